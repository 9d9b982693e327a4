//! Reads a dump from a file.

use std::io::{self, Read};

use super::content::Records;
use super::layout::{BLOCK_HEADER_BYTES, BlockHeader, FILE_HEADER_BYTES, Kind, MAGIC, VERSION};
use super::{Dump, Range, Span, frames, pipeline};
use crate::error::{Error, ErrorKind, said};
use crate::image::{PAGE_BYTES, Page};
use crate::maps::{Mapping, Mappings};

/// Data that a damaged file has lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpWarning {
    /// The offset in the file.
    pub offset: u64,
    /// The number of unusable bytes of the file.
    pub lost_bytes: u64,
    /// The expected and the found content.
    pub message: String,
}

/// The result of recovering a damaged file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpRecovery {
    /// The number of blocks read.
    pub blocks: u64,
    /// The number of unusable bytes of the file.
    pub lost_bytes: u64,
    /// The losses in file order, at most [`DumpRecovery::MAX_WARNINGS`].
    pub warnings: Vec<DumpWarning>,
    /// The number of warnings that were not kept.
    pub more_warnings: u64,
}

impl DumpRecovery {
    /// The maximum number of warnings kept.
    pub const MAX_WARNINGS: usize = 1000;

    /// Whether nothing was lost.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.warnings.is_empty()
    }

    fn warn(&mut self, warning: DumpWarning) {
        self.lost_bytes = self.lost_bytes.saturating_add(warning.lost_bytes);
        if self.warnings.len() < Self::MAX_WARNINGS {
            self.warnings.push(warning);
        } else {
            self.more_warnings += 1;
        }
    }
}

impl Dump {
    /// Reads a file that [`Dump::write`] wrote.
    ///
    /// # Errors
    /// If `input` cannot be read, is not a dump, or is damaged or truncated. The error gives the position.
    pub fn read(input: impl Read) -> Result<Self, Error> {
        let (dump, recovery) = Self::recover(input)?;
        match recovery.warnings.first() {
            None => Ok(dump),
            Some(DumpWarning { offset, message, .. }) => Err(malformed(message, *offset)),
        }
    }

    /// Reads everything intact from such a file, and reports the rest as lost.
    ///
    /// # Errors
    /// If `input` cannot be read, or does not begin like a dump.
    pub fn recover(mut input: impl Read) -> Result<(Self, DumpRecovery), Error> {
        read_file_header(&mut input)?;
        let mut blocks = Blocks { input, offset: FILE_HEADER_BYTES as u64, state: State::Reading };
        let mut assembly = Assembly::default();
        let unpack = || {
            let mut unpack = frames::unpacker();
            move |Stored { header, offset, frame }: Stored| Unpacked {
                kind: header.kind,
                offset,
                stored: BLOCK_HEADER_BYTES + frame.len(),
                content: unpack(&frame, header.content),
            }
        };
        pipeline::run(
            unpack,
            || blocks.next(),
            |block| {
                assembly.take(&block);
                Ok::<(), Error>(())
            },
        )?;
        assembly.end(blocks)
    }
}

fn read_file_header(input: &mut impl Read) -> Result<(), Error> {
    let mut header = [0; FILE_HEADER_BYTES];
    let filled = fill(input, &mut header).map_err(|error| unreadable(&error))?;
    let known = filled.min(MAGIC.len());
    if filled == 0 || header[..known] != MAGIC[..known] {
        let what = format!("expected a dump, found a file that begins with {:02x?}", &header[..known]);
        return Err(Error::new(ErrorKind::Malformed, what));
    }
    if filled < FILE_HEADER_BYTES {
        return Err(malformed("truncated header: expected 16 bytes", filled as u64));
    }
    let version = header[8..].first_chunk().copied().map_or(0, u32::from_le_bytes);
    if version != VERSION {
        let what = format!(
            "unsupported version of a dump: expected {VERSION}, found {version} (rdump, at byte 0x8)"
        );
        return Err(Error::new(ErrorKind::Unsupported, what));
    }
    if header[12..] != [0; 4] {
        return Err(malformed(&format!("invalid header: expected zeros, found {:02x?}", &header[12..]), 12));
    }
    Ok(())
}

fn malformed(message: &str, offset: u64) -> Error {
    Error::new(ErrorKind::Malformed, format!("{message} (rdump, at byte {offset:#x})"))
}

fn unreadable(error: &io::Error) -> Error {
    Error::new(ErrorKind::Unsupported, format!("dump: {}", said(error)))
}

/// Fills `into`, or as much of it as there is input for.
fn fill(input: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match input.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A block as stored in the file.
struct Stored {
    header: BlockHeader,
    /// The offset of the block's header in the file.
    offset: u64,
    frame: Vec<u8>,
}

/// A block with its unpacked content, if it is not damaged.
struct Unpacked {
    kind: u8,
    offset: u64,
    stored: usize,
    content: Option<Vec<u8>>,
}

/// Reads the blocks of a file in order.
struct Blocks<R> {
    input: R,
    offset: u64,
    state: State,
}

enum State {
    Reading,
    /// The file ended after a complete block.
    Ended,
    /// No block begins here, or the block is truncated.
    Damaged(DumpWarning),
    Failed(io::Error),
}

impl<R: Read> Blocks<R> {
    fn next(&mut self) -> Option<Stored> {
        if !matches!(self.state, State::Reading) {
            return None;
        }
        let block = self.read();
        match block {
            Ok(Ok(block)) => Some(block),
            Ok(Err(state)) => {
                self.state = state;
                None
            }
            Err(error) => {
                self.state = State::Failed(error);
                None
            }
        }
    }

    /// Reads the next block, or returns why there is none.
    fn read(&mut self) -> io::Result<Result<Stored, State>> {
        let offset = self.offset;
        let mut header = [0; BLOCK_HEADER_BYTES];
        let filled = fill(&mut self.input, &mut header)?;
        self.offset += filled as u64;
        let damaged = |message: String, lost_bytes| {
            Ok(Err(State::Damaged(DumpWarning { offset, lost_bytes, message })))
        };
        if filled == 0 {
            return Ok(Err(State::Ended));
        }
        if filled < BLOCK_HEADER_BYTES {
            return damaged(
                format!("truncated block: expected 16 bytes of header, found {filled}"),
                filled as u64,
            );
        }
        let Some(header) = BlockHeader::decode(&header) else {
            let rest = io::copy(&mut self.input, &mut io::sink())?;
            return damaged(
                "invalid header of a block: what follows is lost".to_owned(),
                filled as u64 + rest,
            );
        };
        let mut frame = vec![0; header.stored];
        let found = fill(&mut self.input, &mut frame)?;
        self.offset += found as u64;
        if found < header.stored {
            let what = format!("truncated block: expected {} bytes, found {found}", header.stored);
            return damaged(what, (filled + found) as u64);
        }
        Ok(Ok(Stored { header, offset, frame }))
    }
}

/// A dump under construction.
#[derive(Default)]
struct Assembly {
    dump: Dump,
    mappings: Vec<Mapping>,
    /// All memory; the ranges of the dump are parts of it.
    memory: Vec<u8>,
    pages_end: u64,
    recovery: DumpRecovery,
    /// The number of blocks, including those that could not be unpacked.
    blocks: u64,
    /// The offset of the end block, and the number of blocks before it that it states.
    end: Option<(u64, u64)>,
}

impl Assembly {
    fn take(&mut self, block: &Unpacked) {
        let Unpacked { kind, offset, stored, content } = block;
        if let Some((end, _)) = self.end.take() {
            self.warn(end, 0, "invalid last block: others follow it");
        }
        let before = self.blocks;
        self.blocks += 1;
        let known = Kind::of(*kind);
        let taken = match (content, known) {
            (None, _) => Err("damaged block: its checksum or its length is not that of its content"),
            (Some(content), Some(Kind::End)) => {
                let count = Records(content).u64().filter(|_| content.len() == 8);
                self.end = count.map(|count| (*offset, count));
                if count == Some(before) {
                    Ok(())
                } else {
                    Err("invalid last block: expected the number of blocks")
                }
            }
            (Some(content), Some(kind)) => {
                self.content(kind, content).ok_or("invalid block: expected records of its kind")
            }
            (Some(_), None) => Ok(()),
        };
        match taken {
            Ok(()) => self.recovery.blocks += 1,
            Err(message) => self.warn(*offset, *stored as u64, message),
        }
    }

    fn warn(&mut self, offset: u64, lost_bytes: u64, message: &str) {
        self.recovery.warn(DumpWarning { offset, lost_bytes, message: message.to_owned() });
    }

    /// Adds the content of a block. `None` if it is invalid; the records before the invalid one are kept.
    fn content(&mut self, kind: Kind, content: &[u8]) -> Option<()> {
        let mut records = Records(content);
        match kind {
            Kind::Memory => return self.memory(records),
            Kind::Pages => return self.pages(records),
            Kind::Symbols => return self.symbols(records),
            Kind::End => {}
            Kind::Facts => {
                while !records.is_empty() {
                    let (name, value) = records.fact()?;
                    self.dump.facts.insert(name, value);
                }
            }
            Kind::Mappings => {
                while !records.is_empty() {
                    self.mappings.push(records.mapping()?);
                }
            }
            Kind::Threads => {
                while !records.is_empty() {
                    let (id, pointer) = records.thread()?;
                    self.dump.image.threads.insert(id, pointer);
                }
            }
        }
        Some(())
    }

    fn symbols(&mut self, mut records: Records<'_>) -> Option<()> {
        let (mapping, empty) = records.symbols()?;
        let symbols = self.dump.image.symbols.entry(mapping).or_insert(empty);
        while !records.is_empty() {
            let (name, symbol) = records.symbol()?;
            symbols.add(name, symbol);
        }
        Some(())
    }

    fn memory(&mut self, mut records: Records<'_>) -> Option<()> {
        let spans = records.spans()?;
        let end = self.dump.ranges.last().map_or(0, Range::end);
        ascend(&spans, end)?;
        let mut offset = self.memory.len();
        self.memory.extend_from_slice(records.0);
        for Span { address, length } in spans {
            let range = Range { address, length, buffer: 0, offset };
            offset += length;
            match self.dump.ranges.last_mut() {
                Some(last) if last.goes_on_with(&range) => last.length += length,
                _ => self.dump.ranges.push(range),
            }
        }
        Some(())
    }

    fn pages(&mut self, mut records: Records<'_>) -> Option<()> {
        let spans = records.spans()?;
        let is_whole = |bytes: u64| bytes.is_multiple_of(PAGE_BYTES as u64);
        if !spans.iter().all(|span| is_whole(span.address) && is_whole(span.length as u64)) {
            return None;
        }
        self.pages_end = ascend(&spans, self.pages_end)?;
        let addresses = spans
            .iter()
            .flat_map(|span| (0..span.length).step_by(PAGE_BYTES).map(|offset| span.address + offset as u64));
        for (address, page) in addresses.zip(records.0.chunks_exact(PAGE_BYTES)) {
            let page = Page::try_from(page).ok()?;
            self.dump.image.pages.insert(address, Box::new(page));
        }
        Some(())
    }

    /// Finishes the dump at the end of the input.
    fn end<R>(mut self, blocks: Blocks<R>) -> Result<(Dump, DumpRecovery), Error> {
        match blocks.state {
            State::Failed(error) => return Err(unreadable(&error)),
            State::Damaged(warning) => self.recovery.warn(warning),
            State::Reading | State::Ended if self.end.is_none() => {
                self.warn(
                    blocks.offset,
                    0,
                    "truncated dump: expected its last block, found the end of the file",
                );
            }
            State::Reading | State::Ended => {}
        }
        let Self { mut dump, mappings, memory, recovery, .. } = self;
        dump.image.mappings = Mappings::new(mappings);
        dump.buffers = vec![memory];
        Ok((dump, recovery))
    }
}

/// The end of the spans; `None` unless they ascend from `start` without overlaps.
fn ascend(spans: &[Span], start: u64) -> Option<u64> {
    spans.iter().try_fold(start, |end, span| {
        let behind = span.address.checked_add(span.length as u64)?;
        (end <= span.address && span.length > 0).then_some(behind)
    })
}
