//! Reads a dump from a file.

use std::io::{self, Read};

use borehole_text::{Warning, cause};
use zstd::bulk::Decompressor;

use super::content::RecordDecoder;
use super::layout::{BLOCK_HEADER_BYTES, BlockHeader, BlockKind, FILE_HEADER_BYTES, MAGIC, VERSION};
use super::packed::{PIECE_BYTES, PackedChunks, PackedMemory, Packer, StoredPiece};
use super::{Dump, DumpBuffer, DumpRange, MemorySpan, pipeline};
use crate::error::{Error, ErrorKind};
use crate::image::{PAGE_BYTES, PageBytes};
use crate::maps::{Mappings, MemoryMapping};

/// The result of recovering a damaged file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpRecovery {
    /// The number of blocks read.
    pub blocks: u64,
    /// The number of unusable bytes of the file.
    pub lost_bytes: u64,
    /// The losses in file order, at most [`DumpRecovery::MAX_WARNINGS`].
    pub warnings: Vec<Warning>,
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

    fn warn(&mut self, warning: Warning) {
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
            Some(lost) => Err(malformed(lost)),
        }
    }

    /// Reads everything intact from such a file, and reports the rest as lost.
    ///
    /// # Errors
    /// If `input` cannot be read, or does not begin like a dump.
    pub fn recover(mut input: impl Read) -> Result<(Self, DumpRecovery), Error> {
        read_file_header(&mut input)?;
        let mut blocks = BlockReader { input, offset: FILE_HEADER_BYTES as u64, state: ReadState::Reading };
        let mut assembly = Assembly::default();
        let take = |(header, offset, content): (_, _, Option<UnpackedBlock>)| {
            borehole_memory::check().map_err(|over| Error::new(ErrorKind::Memory, over.to_string()))?;
            assembly.take(header, offset, content);
            Ok(())
        };
        pipeline::run(unpacker, || blocks.next(), take)?;
        assembly.end(blocks)
    }
}

/// The content of a block.
enum UnpackedBlock {
    Records(Vec<u8>),
    /// Memory, packed again: in pieces that can be read one by one.
    Memory(PackedBlock),
    /// The block's records do not match its kind.
    Invalid,
}

struct PackedBlock {
    spans: Vec<MemorySpan>,
    chunks: PackedChunks,
    pieces: Vec<StoredPiece>,
}

/// Creates a function that unpacks blocks; the content is `None` if the block is damaged.
fn unpacker() -> impl FnMut(StoredBlock) -> (BlockHeader, u64, Option<UnpackedBlock>) {
    let mut unpacker = Decompressor::new().expect("no dictionary that could be wrong");
    let mut packer = Packer::default();
    move |StoredBlock { header, offset, frame }| {
        let mut content = Vec::with_capacity(header.content);
        let unpacked = unpacker.decompress_to_buffer(&frame, &mut content).ok();
        let content = (unpacked == Some(header.content)).then(|| match BlockKind::of(header.kind) {
            Some(BlockKind::Memory) => {
                pack(&content, &mut packer).map_or(UnpackedBlock::Invalid, UnpackedBlock::Memory)
            }
            _ => UnpackedBlock::Records(content),
        });
        (header, offset, content)
    }
}

/// Packs the bytes of a block of memory.
fn pack(content: &[u8], packer: &mut Packer) -> Option<PackedBlock> {
    let mut records = RecordDecoder(content);
    let spans = records.spans()?;
    let (whole, rest) = records.0.as_chunks();
    let mut pieces: Vec<_> = whole.iter().map(|piece| packer.pack(piece)).collect();
    if !rest.is_empty() {
        let mut last = [0; PIECE_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        pieces.push(packer.pack(&last));
    }
    Some(PackedBlock { spans, chunks: packer.take(), pieces })
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
        let what = format!("truncated header: expected 16 bytes, found {filled}");
        return Err(malformed(&Warning::new(what).at(filled as u64)));
    }
    let version = header[8..].first_chunk().copied().map_or(0, u32::from_le_bytes);
    if version != VERSION {
        let what =
            format!("unsupported dump version: expected {VERSION}, found {version} (rdump, at byte 0x8)");
        return Err(Error::new(ErrorKind::Unsupported, what));
    }
    if header[12..] != [0; 4] {
        let what = format!("invalid header: expected zeros, found {:02x?}", &header[12..]);
        return Err(malformed(&Warning::new(what).at(12)));
    }
    Ok(())
}

fn malformed(warning: &Warning) -> Error {
    Error::new(ErrorKind::Malformed, warning.to_error("rdump").to_string())
}

fn unreadable(error: &io::Error) -> Error {
    Error::new(ErrorKind::Unsupported, format!("dump: {}", cause(error)))
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

struct StoredBlock {
    header: BlockHeader,
    /// The offset of the block's header in the file.
    offset: u64,
    frame: Vec<u8>,
}

struct BlockReader<R> {
    input: R,
    offset: u64,
    state: ReadState,
}

enum ReadState {
    Reading,
    /// The file ended after a complete block.
    Ended,
    /// No block begins here, or the block is truncated.
    Damaged(Warning),
    Failed(io::Error),
}

impl From<io::Error> for ReadState {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl<R: Read> BlockReader<R> {
    fn next(&mut self) -> Option<StoredBlock> {
        if !matches!(self.state, ReadState::Reading) {
            return None;
        }
        self.read().map_err(|state| self.state = state).ok()
    }

    /// Reads the next block; the error is the state that ends reading.
    fn read(&mut self) -> Result<StoredBlock, ReadState> {
        let offset = self.offset;
        let mut header = [0; BLOCK_HEADER_BYTES];
        let filled = fill(&mut self.input, &mut header)?;
        self.offset += filled as u64;
        let damaged = |lost_bytes, message: String| {
            ReadState::Damaged(Warning::new(message).at(offset).losing(lost_bytes))
        };
        if filled == 0 {
            return Err(ReadState::Ended);
        }
        if filled < BLOCK_HEADER_BYTES {
            let what = format!("truncated block: expected 16 header bytes, found {filled}");
            return Err(damaged(filled as u64, what));
        }
        let Some(header) = BlockHeader::decode(&header) else {
            let rest = io::copy(&mut self.input, &mut io::sink())?;
            let what = "invalid block header: the rest of the file is lost".to_owned();
            return Err(damaged(filled as u64 + rest, what));
        };
        let mut frame = vec![0; header.stored];
        let found = fill(&mut self.input, &mut frame)?;
        self.offset += found as u64;
        if found < header.stored {
            let what = format!("truncated block: expected {} bytes, found {found}", header.stored);
            return Err(damaged((filled + found) as u64, what));
        }
        Ok(StoredBlock { header, offset, frame })
    }
}

#[derive(Default)]
struct Assembly {
    dump: Dump,
    mappings: Vec<MemoryMapping>,
    /// All memory; the ranges of the dump are parts of it. Each block begins a new piece.
    memory: PackedMemory,
    pages_end: u64,
    recovery: DumpRecovery,
    /// The number of blocks, including those that could not be unpacked.
    blocks: u64,
    /// The offset of the end block, and the number of blocks before it that it states.
    end: Option<(u64, u64)>,
}

impl Assembly {
    fn take(&mut self, header: BlockHeader, offset: u64, content: Option<UnpackedBlock>) {
        if let Some((end, _)) = self.end.take() {
            self.warn(end, 0, "invalid end block: more blocks follow it");
        }
        let before = self.blocks;
        self.blocks += 1;
        const INVALID: &str = "invalid block: its records do not match its kind";
        let taken = match (content, BlockKind::of(header.kind)) {
            (None, _) => Err("damaged block: its checksum or length does not match its content"),
            (Some(UnpackedBlock::Records(content)), Some(BlockKind::End)) => {
                let count = RecordDecoder(&content).u64().filter(|_| content.len() == 8);
                self.end = count.map(|count| (offset, count));
                if count == Some(before) {
                    Ok(())
                } else {
                    Err("invalid end block: its count does not match the blocks before it")
                }
            }
            (Some(UnpackedBlock::Memory(block)), _) => self.memory(block).ok_or(INVALID),
            (Some(UnpackedBlock::Records(content)), Some(kind)) => {
                self.content(kind, &content).ok_or(INVALID)
            }
            (Some(UnpackedBlock::Invalid), _) => Err(INVALID),
            (Some(UnpackedBlock::Records(_)), None) => Ok(()),
        };
        match taken {
            Ok(()) => self.recovery.blocks += 1,
            Err(message) => self.warn(offset, (BLOCK_HEADER_BYTES + header.stored) as u64, message),
        }
    }

    fn warn(&mut self, offset: u64, lost_bytes: u64, message: &str) {
        self.recovery.warn(Warning::new(message).at(offset).losing(lost_bytes));
    }

    /// Adds the content of a block. `None` if it is invalid; the records before the invalid one are kept.
    fn content(&mut self, kind: BlockKind, content: &[u8]) -> Option<()> {
        let mut records = RecordDecoder(content);
        match kind {
            BlockKind::Pages => return self.pages(records),
            BlockKind::Symbols => return self.symbols(records),
            BlockKind::End
            | BlockKind::Facts
            | BlockKind::Mappings
            | BlockKind::Threads
            | BlockKind::Memory => {}
        }
        while !records.is_empty() {
            match kind {
                BlockKind::Facts => self.dump.facts.extend([records.fact()?]),
                BlockKind::Mappings => self.mappings.push(records.mapping()?),
                _ => self.dump.image.threads.extend([records.thread()?]),
            }
        }
        Some(())
    }

    fn symbols(&mut self, mut records: RecordDecoder<'_>) -> Option<()> {
        let (mapping, empty) = records.symbols()?;
        let symbols = self.dump.image.symbols.entry(mapping).or_insert(empty);
        while !records.is_empty() {
            let (name, symbol) = records.symbol()?;
            symbols.add(name, symbol);
        }
        Some(())
    }

    fn memory(&mut self, PackedBlock { spans, chunks, pieces }: PackedBlock) -> Option<()> {
        let end = self.dump.ranges.last().map_or(0, DumpRange::end);
        ascend(&spans, end)?;
        let mut offset = self.memory.unpacked_bytes();
        let adopted = self.memory.adopt(chunks);
        pieces.into_iter().for_each(|piece| self.memory.push(adopted, piece));
        for MemorySpan { address, length } in spans {
            let range = DumpRange { address, length, buffer: 0, offset };
            offset += length;
            match self.dump.ranges.last_mut() {
                Some(last) if last.goes_on_with(&range) => last.length += length,
                _ => self.dump.ranges.push(range),
            }
        }
        Some(())
    }

    fn pages(&mut self, mut records: RecordDecoder<'_>) -> Option<()> {
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
            let page = PageBytes::try_from(page).ok()?;
            self.dump.image.pages.insert(address, Box::new(page));
        }
        Some(())
    }

    fn end<R>(mut self, blocks: BlockReader<R>) -> Result<(Dump, DumpRecovery), Error> {
        match blocks.state {
            ReadState::Failed(error) => return Err(unreadable(&error)),
            ReadState::Damaged(warning) => self.recovery.warn(warning),
            ReadState::Reading | ReadState::Ended if self.end.is_none() => {
                self.warn(blocks.offset, 0, "truncated dump: the end block is missing");
            }
            ReadState::Reading | ReadState::Ended => {}
        }
        let Self { mut dump, mappings, memory, recovery, .. } = self;
        dump.image.mappings = Mappings::new(mappings);
        dump.buffers = vec![DumpBuffer::Packed(Box::new(memory))];
        Ok((dump, recovery))
    }
}

/// The end of the spans; `None` unless they ascend from `start` without overlaps.
fn ascend(spans: &[MemorySpan], start: u64) -> Option<u64> {
    spans.iter().try_fold(start, |end, span| {
        let behind = span.address.checked_add(span.length as u64)?;
        (end <= span.address && span.length > 0).then_some(behind)
    })
}
