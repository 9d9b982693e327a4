//! A recorded part of a process: the pages that were read, and the mappings, symbols and threads that were asked for.
//!
//! # The file
//!
//! A gzip stream of lines, some of which are followed by bytes:
//! ```text
//! borehole-image 1
//! mapping START END OFFSET FLAGS PATH       FLAGS: r, w, x, s, d (deleted); `-` for none
//! symbols START                             the symbols of the mapping that begins there:
//! tls SIZE ALIGNMENT                          the block of thread-local storage, if any
//! symbol ADDRESS SIZE NAME                    one that all threads share
//! local OFFSET SIZE NAME                      one that each thread has
//! thread ID POINTER                         POINTER is `-` where nobody asked
//! page ADDRESS                              followed by 4096 bytes and a line break
//! ```
//! Numbers are hexadecimal, except for thread numbers, which are decimal. Line breaks and backslashes in paths and
//! names are written `\n` and `\\`.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use crate::error::{Error, ErrorKind, said};
use crate::maps::{Mapping, Mappings};
use crate::memory::{Memory, Piece};
use crate::symbols::{Symbol, Symbols, ThreadLocalBlock};
use crate::target::Target;

/// The size of a page in an image, whatever the machine's page size was.
pub(crate) const PAGE_BYTES: usize = 4096;

pub(crate) type Page = [u8; PAGE_BYTES];

const FIRST_LINE: &str = "borehole-image 1";

/// A line is a path or a name, and a few numbers.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// Recorded memory with its mappings, symbols and threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub(crate) mappings: Mappings,
    /// Keyed by the first address of the mapping.
    pub(crate) symbols: BTreeMap<u64, Symbols>,
    pub(crate) threads: BTreeMap<i32, Option<u64>>,
    /// Keyed by address.
    pub(crate) pages: BTreeMap<u64, Box<Page>>,
}

impl Image {
    /// Drops all symbols except those that `is_wanted`: a large program has thousands, and few are needed.
    pub fn retain_symbols(&mut self, is_wanted: impl Fn(&[u8]) -> bool) {
        for symbols in self.symbols.values_mut() {
            symbols.retain(&is_wanted);
        }
    }

    /// The number of bytes of memory it contains.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }

    /// Drops the pages that lie entirely between these addresses.
    pub(crate) fn forget_pages(&mut self, start: u64, end: u64) {
        let Some(last) = end.checked_sub(PAGE_BYTES as u64).filter(|&last| start <= last) else { return };
        let pages: Vec<u64> = self.pages.range(start..=last).map(|(&address, _)| address).collect();
        for page in pages {
            self.pages.remove(&page);
        }
    }

    /// Overwrites recorded memory, to test readers with damaged memory. Memory that was not recorded stays absent.
    pub fn overwrite(&mut self, address: u64, bytes: &[u8]) {
        for (index, &byte) in bytes.iter().enumerate() {
            let (start, offset) = split(address.saturating_add(index as u64));
            if let Some(page) = self.pages.get_mut(&start) {
                page[offset] = byte;
            }
        }
    }

    /// Writes the image as a file.
    ///
    /// # Errors
    /// If `output` cannot be written.
    pub fn write(&self, output: impl Write) -> io::Result<()> {
        let mut output = GzEncoder::new(output, Compression::best());
        writeln!(output, "{FIRST_LINE}")?;
        for mapping in &self.mappings {
            let Mapping { start, end, file_offset, path, .. } = mapping;
            write!(output, "mapping {start:x} {end:x} {file_offset:x} {} ", flags(mapping))?;
            write_text(&mut output, path)?;
        }
        for (start, symbols) in &self.symbols {
            writeln!(output, "symbols {start:x}")?;
            write_symbols(&mut output, symbols)?;
        }
        for (thread, pointer) in &self.threads {
            let pointer = pointer.map_or("-".to_owned(), |pointer| format!("{pointer:x}"));
            writeln!(output, "thread {thread} {pointer}")?;
        }
        for (address, page) in &self.pages {
            writeln!(output, "page {address:x}")?;
            output.write_all(page.as_slice())?;
            writeln!(output)?;
        }
        output.finish()?.flush()
    }

    /// Reads an image from a file.
    ///
    /// # Errors
    /// If `input` cannot be read or is not an image.
    pub fn read(input: impl BufRead) -> Result<Self, Error> {
        let mut parser = Parser::default();
        let mut input = BufReader::new(GzDecoder::new(input));
        let mut first = true;
        while let Some(line) = next_line(&mut input)? {
            if std::mem::take(&mut first) {
                if line != FIRST_LINE.as_bytes() {
                    return Err(malformed(&line));
                }
                continue;
            }
            parser.line(&line, &mut input)?;
        }
        let Parser { mut image, mappings, .. } = parser;
        image.mappings = Mappings::new(mappings);
        Ok(image)
    }
}

/// The page of an address, and the offset within the page.
pub(crate) fn split(address: u64) -> (u64, usize) {
    let offset = address % PAGE_BYTES as u64;
    (address - offset, usize::try_from(offset).expect("less than a page"))
}

/// Reads the pieces page by page, up to the first missing page.
pub(crate) fn read_pages(
    pieces: &mut [Piece<'_>],
    mut page: impl FnMut(u64, &mut dyn FnMut(&Page)) -> Result<bool, Error>,
) -> Result<usize, Error> {
    let mut filled = 0;
    for piece in pieces {
        let mut done = 0;
        while done < piece.into.len() {
            let Some(address) = piece.address.checked_add(done as u64) else { return Ok(filled + done) };
            let (start, offset) = split(address);
            let length = (PAGE_BYTES - offset).min(piece.into.len() - done);
            let into = &mut piece.into[done..done + length];
            let is_there = page(start, &mut |page| into.copy_from_slice(&page[offset..offset + length]))?;
            if !is_there {
                return Ok(filled + done);
            }
            done += length;
        }
        filled += done;
    }
    Ok(filled)
}

impl Memory for Image {
    fn read_pieces(&self, pieces: &mut [Piece<'_>]) -> Result<usize, Error> {
        read_pages(pieces, |start, take| {
            let page = self.pages.get(&start);
            if let Some(page) = page {
                take(page);
            }
            Ok(page.is_some())
        })
    }
}

impl Target for Image {
    fn mappings(&self) -> &Mappings {
        &self.mappings
    }

    fn symbols(&self, mapping: &Mapping) -> Result<Symbols, Error> {
        let missing = || Error::new(ErrorKind::Unsupported, "symbols that were not recorded".to_owned());
        self.symbols.get(&mapping.start).cloned().ok_or_else(missing)
    }

    fn threads(&self) -> Result<Vec<i32>, Error> {
        Ok(self.threads.keys().copied().collect())
    }

    fn thread_pointer(&self, thread: i32) -> Result<u64, Error> {
        let missing = || Error::new(ErrorKind::Gone, format!("thread {thread} was not recorded"));
        self.threads.get(&thread).copied().flatten().ok_or_else(missing)
    }
}

fn flags(mapping: &Mapping) -> String {
    let all = [
        (mapping.readable, 'r'),
        (mapping.writable, 'w'),
        (mapping.executable, 'x'),
        (mapping.shared, 's'),
        (mapping.deleted, 'd'),
    ];
    let set: String = all.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter).collect();
    if set.is_empty() { "-".to_owned() } else { set }
}

fn write_symbols(output: &mut impl Write, symbols: &Symbols) -> io::Result<()> {
    if let Some(ThreadLocalBlock { size, alignment }) = symbols.thread_local_block() {
        writeln!(output, "tls {size:x} {alignment:x}")?;
    }
    for (name, Symbol { address, size, thread_local }) in symbols.iter() {
        let kind = if thread_local { "local" } else { "symbol" };
        write!(output, "{kind} {address:x} {size:x} ")?;
        write_text(output, name)?;
    }
    Ok(())
}

/// Writes text, escaped, to the end of the line.
fn write_text(output: &mut impl Write, text: &[u8]) -> io::Result<()> {
    for &byte in text {
        match byte {
            b'\n' => output.write_all(b"\\n")?,
            b'\\' => output.write_all(b"\\\\")?,
            byte => output.write_all(&[byte])?,
        }
    }
    output.write_all(b"\n")
}

fn read_text(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                other => other.unwrap_or(b'\\'),
            },
            byte => byte,
        });
    }
    plain
}

fn next_line(input: &mut impl BufRead) -> Result<Option<Vec<u8>>, Error> {
    let mut line = Vec::new();
    input.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).map_err(|error| unreadable(&error))?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(malformed(&line));
    }
    Ok(Some(line))
}

fn unreadable(error: &io::Error) -> Error {
    Error::new(ErrorKind::Malformed, format!("image: {}", said(error)))
}

fn malformed(line: &[u8]) -> Error {
    let shown = &line[..line.len().min(100)];
    Error::new(
        ErrorKind::Malformed,
        format!("expected a line of an image, found {:?}", String::from_utf8_lossy(shown)),
    )
}

/// Parses the file line by line.
#[derive(Default)]
struct Parser {
    image: Image,
    mappings: Vec<Mapping>,
    /// The mapping that the following symbols belong to.
    mapping: Option<u64>,
}

impl Parser {
    fn line(&mut self, line: &[u8], rest: &mut impl Read) -> Result<(), Error> {
        self.take(line, rest)?.ok_or_else(|| malformed(line))
    }

    /// Parses a line; `None` if it is invalid.
    fn take(&mut self, line: &[u8], rest: &mut impl Read) -> Result<Option<()>, Error> {
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let kind = fields.next().unwrap_or_default();
        if kind == b"page" {
            let Some(address) = hex(fields.next()) else { return Ok(None) };
            let mut page = Box::new([0; PAGE_BYTES]);
            let mut line_break = [0];
            let read = rest.read_exact(page.as_mut_slice()).and_then(|()| rest.read_exact(&mut line_break));
            read.map_err(|error| unreadable(&error))?;
            self.image.pages.insert(address, page);
            return Ok((line_break == *b"\n").then_some(()));
        }
        Ok(match kind {
            b"mapping" => self.mapping(fields),
            b"thread" => self.thread(fields),
            b"symbols" => {
                self.mapping = hex(fields.next());
                self.mapping.map(|start| drop(self.image.symbols.insert(start, Symbols::default())))
            }
            b"tls" => self.thread_local_block(fields),
            b"symbol" | b"local" => self.symbol(kind == b"local", line),
            _ => None,
        })
    }

    fn mapping<'a>(&mut self, mut fields: impl Iterator<Item = &'a [u8]>) -> Option<()> {
        let (start, end, file_offset) = (hex(fields.next())?, hex(fields.next())?, hex(fields.next())?);
        let flags = fields.next()?;
        let has = |flag: u8| flags.contains(&flag);
        self.mappings.push(Mapping {
            start,
            end,
            file_offset,
            readable: has(b'r'),
            writable: has(b'w'),
            executable: has(b'x'),
            shared: has(b's'),
            deleted: has(b'd'),
            path: read_text(fields.next()?),
        });
        Some(())
    }

    fn thread<'a>(&mut self, mut fields: impl Iterator<Item = &'a [u8]>) -> Option<()> {
        let thread = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let pointer = match fields.next()? {
            b"-" => None,
            pointer => Some(hex(Some(pointer))?),
        };
        self.image.threads.insert(thread, pointer);
        Some(())
    }

    fn thread_local_block<'a>(&mut self, mut fields: impl Iterator<Item = &'a [u8]>) -> Option<()> {
        let block = ThreadLocalBlock { size: hex(fields.next())?, alignment: hex(fields.next())? };
        self.image.symbols.insert(self.mapping?, Symbols::new(Some(block)));
        Some(())
    }

    fn symbol(&mut self, thread_local: bool, line: &[u8]) -> Option<()> {
        let mut fields = line.splitn(4, |&byte| byte == b' ').skip(1);
        let (address, size) = (hex(fields.next())?, hex(fields.next())?);
        let symbols = self.image.symbols.get_mut(&self.mapping?)?;
        symbols.add(&read_text(fields.next()?), Symbol { address, size, thread_local });
        Some(())
    }
}

fn hex(digits: Option<&[u8]>) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits?).ok()?, 16).ok()
}
