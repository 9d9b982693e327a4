//! A recorded part of a process: the pages that were read, and the mappings, symbols and threads that were requested.
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
//! thread ID POINTER                         POINTER is `-` if it was not requested
//! page ADDRESS                              followed by 4096 bytes and a line break
//! ```
//! Numbers are hexadecimal, except for thread numbers, which are decimal. Line breaks and backslashes in paths and
//! names are written `\n` and `\\`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, BufRead, BufReader, Read, Write};

use borehole_text::cause;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use crate::error::{Error, ErrorKind};
use crate::maps::{Mappings, MemoryMapping, parse_hex};
use crate::memory::{ForeignMemory, ForeignProcess, MemoryPiece, copy_front, fill_pieces};
use crate::symbols::{ElfSymbol, ElfSymbols, ThreadLocalBlock};

/// The size of a page in an image, whatever the machine's page size was.
pub(crate) const PAGE_BYTES: usize = 4096;

pub(crate) type PageBytes = [u8; PAGE_BYTES];

const FIRST_LINE: &str = "borehole-image 1";

/// A line is a path or a name, and a few numbers.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// Recorded memory with its mappings, symbols and threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub(crate) mappings: Mappings,
    /// Keyed by the first address of the mapping.
    pub(crate) symbols: BTreeMap<u64, ElfSymbols>,
    pub(crate) threads: BTreeMap<i32, Option<u64>>,
    /// Keyed by address.
    pub(crate) pages: BTreeMap<u64, Box<PageBytes>>,
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

    /// The recorded bytes from `address` to the end of its page.
    pub(crate) fn rest(&self, address: u64) -> Option<&[u8]> {
        let (start, offset) = split(address);
        self.pages.get(&start).map(|page| &page[offset..])
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
            let MemoryMapping { start, end, file_offset, path, .. } = mapping;
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
        if let Some(line) = next_line(&mut input)?.filter(|line| line != FIRST_LINE.as_bytes()) {
            return Err(malformed(&line));
        }
        while let Some(line) = next_line(&mut input)? {
            parser.take(&line, &mut input)?.ok_or_else(|| malformed(&line))?;
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

impl ForeignMemory for Image {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
        fill_pieces(pieces, |address, into| Ok(self.rest(address).map_or(0, |there| copy_front(there, into))))
    }
}

impl ForeignProcess for Image {
    fn mappings(&self) -> &Mappings {
        &self.mappings
    }

    fn symbols(&self, mapping: &MemoryMapping) -> Result<ElfSymbols, Error> {
        let missing = || Error::new(ErrorKind::Unsupported, "the symbols were not recorded".to_owned());
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

fn flags(mapping: &MemoryMapping) -> String {
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

fn write_symbols(output: &mut impl Write, symbols: &ElfSymbols) -> io::Result<()> {
    if let Some(ThreadLocalBlock { size, alignment }) = symbols.thread_local_block() {
        writeln!(output, "tls {size:x} {alignment:x}")?;
    }
    for (name, ElfSymbol { address, size, thread_local }) in symbols.iter() {
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
    Error::new(ErrorKind::Malformed, format!("image: {}", cause(error)))
}

fn malformed(line: &[u8]) -> Error {
    let shown = String::from_utf8_lossy(&line[..line.len().min(100)]);
    Error::new(ErrorKind::Malformed, format!("expected a record of an image, found {shown:?}"))
}

#[derive(Default)]
struct Parser {
    image: Image,
    mappings: Vec<MemoryMapping>,
    /// The mapping that the following symbols belong to.
    mapping: Option<u64>,
}

impl Parser {
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
                self.mapping.map(|start| drop(self.image.symbols.insert(start, ElfSymbols::default())))
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
        self.mappings.push(MemoryMapping {
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
            pointer => Some(parse_hex(pointer)?),
        };
        self.image.threads.insert(thread, pointer);
        Some(())
    }

    fn thread_local_block<'a>(&mut self, mut fields: impl Iterator<Item = &'a [u8]>) -> Option<()> {
        let block = ThreadLocalBlock { size: hex(fields.next())?, alignment: hex(fields.next())? };
        self.image.symbols.insert(self.mapping?, ElfSymbols::new(Some(block)));
        Some(())
    }

    fn symbol(&mut self, thread_local: bool, line: &[u8]) -> Option<()> {
        let mut fields = line.splitn(4, |&byte| byte == b' ').skip(1);
        let (address, size) = (hex(fields.next())?, hex(fields.next())?);
        let symbols = self.image.symbols.get_mut(&self.mapping?)?;
        symbols.add(&read_text(fields.next()?), ElfSymbol { address, size, thread_local });
        Some(())
    }
}

fn hex(digits: Option<&[u8]>) -> Option<u64> {
    digits.and_then(parse_hex)
}

/// A target that keeps the pages read from it and serves repeated reads from them, so that its readers see exactly what
/// the image will contain.
///
/// Stop a live process while it is recorded; otherwise the pages are from different moments.
#[derive(Debug)]
pub struct ImageRecorder<T> {
    target: T,
    image: RefCell<Image>,
}

impl<T: ForeignProcess> ImageRecorder<T> {
    /// Starts to record the reads of `target`.
    ///
    /// # Errors
    /// If the target is gone.
    pub fn new(target: T) -> Result<Self, Error> {
        let threads = target.threads()?.into_iter().map(|thread| (thread, None)).collect();
        let image = Image { mappings: target.mappings().clone(), threads, ..Image::default() };
        Ok(Self { target, image: RefCell::new(image) })
    }

    /// The image recorded so far.
    #[must_use]
    pub fn finish(self) -> Image {
        self.image.into_inner()
    }
}

impl<T: ForeignProcess> ForeignMemory for ImageRecorder<T> {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
        let mut image = self.image.borrow_mut();
        fill_pieces(pieces, |address, into| {
            let (address, offset) = split(address);
            let page = match image.pages.entry(address) {
                Entry::Occupied(page) => page.into_mut(),
                Entry::Vacant(place) => {
                    let mut page = Box::new([0; PAGE_BYTES]);
                    let piece = MemoryPiece { address, into: page.as_mut_slice() };
                    if self.target.read_pieces(&mut [piece])? < PAGE_BYTES {
                        return Ok(0);
                    }
                    place.insert(page)
                }
            };
            Ok(copy_front(&page[offset..], into))
        })
    }
}

impl<T: ForeignProcess> ForeignProcess for ImageRecorder<T> {
    fn mappings(&self) -> &Mappings {
        self.target.mappings()
    }

    fn symbols(&self, mapping: &MemoryMapping) -> Result<ElfSymbols, Error> {
        let symbols = self.target.symbols(mapping)?;
        self.image.borrow_mut().symbols.insert(mapping.start, symbols.clone());
        Ok(symbols)
    }

    fn threads(&self) -> Result<Vec<i32>, Error> {
        self.target.threads()
    }

    fn thread_pointer(&self, thread: i32) -> Result<u64, Error> {
        let pointer = self.target.thread_pointer(thread)?;
        self.image.borrow_mut().threads.insert(thread, Some(pointer));
        Ok(pointer)
    }
}
