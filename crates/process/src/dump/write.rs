//! Writes a dump as a file.

use std::io::{self, Write};

use zstd::bulk::Compressor;

use super::content::{self, SPAN_BYTES};
use super::layout::{self, BLOCK_BYTES, BLOCK_HEADER_BYTES, BlockHeader, BlockKind, MAX_CONTENT_BYTES};
use super::{Dump, MemorySpan, pipeline};
use crate::image::PAGE_BYTES;

/// The compression level. Measured with the heap of a million objects, 453 MB: level 1 packs it to 24 MB, level 3 to 22
/// MB at four fifths of the speed, level 9 to 20 MB at a tenth of it; below level 1 the result is twice as large.
const LEVEL: i32 = 1;

struct BlockContent {
    kind: BlockKind,
    content: Vec<u8>,
}

impl Dump {
    /// Writes the dump as a file that [`Dump::read`] reads. This needs memory for some blocks beside the dump. If
    /// writing stops early, the file can be read up to its last complete block.
    ///
    /// # Errors
    /// If `output` cannot be written, or a fact, a path or the name of a symbol is too long for a block of 4 MiB.
    pub fn write(&self, mut output: impl Write) -> io::Result<()> {
        output.write_all(&layout::file_header())?;
        let small = self.small_blocks()?;
        let pages = self.image.pages.iter().map(|(&address, page)| (address, page.as_slice()));
        let pages = MemoryBlocks { kind: BlockKind::Pages, unit: PAGE_BYTES, pieces: pages, left: (0, &[]) };
        let memory = MemoryBlocks { kind: BlockKind::Memory, unit: 1, pieces: self.ranges(), left: (0, &[]) };
        let mut blocks = small.into_iter().chain(pages).chain(memory);
        let mut count: u64 = 0;
        let mut write = |(header, frame): ([u8; BLOCK_HEADER_BYTES], Vec<u8>)| {
            output.write_all(&header)?;
            output.write_all(&frame)
        };
        pipeline::run(
            packer,
            || blocks.next(),
            |block| {
                count += 1;
                write(block)
            },
        )?;
        write(packer()(BlockContent { kind: BlockKind::End, content: count.to_le_bytes().to_vec() }))?;
        output.flush()
    }

    fn small_blocks(&self) -> io::Result<Vec<BlockContent>> {
        let mut facts = BlockBuilder::new(BlockKind::Facts);
        for (name, value) in self.facts() {
            facts.put(|content| content::put_fact(content, name, value))?;
        }
        let mut mappings = BlockBuilder::new(BlockKind::Mappings);
        for mapping in &self.image.mappings {
            mappings.put(|content| content::put_mapping(content, mapping))?;
        }
        let mut threads = BlockBuilder::new(BlockKind::Threads);
        for (&id, &pointer) in &self.image.threads {
            threads.put(|content| content::put_thread(content, id, pointer))?;
        }
        let mut blocks: Vec<BlockContent> =
            [facts, mappings, threads].into_iter().flat_map(BlockBuilder::finish).collect();
        for (&mapping, symbols) in &self.image.symbols {
            let mut records = BlockBuilder::new(BlockKind::Symbols);
            content::put_symbols(&mut records.head, mapping, symbols.thread_local_block());
            for (name, symbol) in symbols.iter() {
                records.put(|content| content::put_symbol(content, name, symbol))?;
            }
            blocks.extend(records.finish());
        }
        Ok(blocks)
    }
}

fn packer() -> impl FnMut(BlockContent) -> ([u8; BLOCK_HEADER_BYTES], Vec<u8>) {
    let mut packer = Compressor::new(LEVEL).expect("a level that Zstandard has");
    packer.include_checksum(true).expect("an option that Zstandard has");
    move |BlockContent { kind, content }| {
        let frame =
            packer.compress(&content).expect("room for the worst case, and nothing else can go wrong");
        let header = BlockHeader { kind: kind as u8, stored: frame.len(), content: content.len() };
        (header.encode(), frame)
    }
}

/// Fills blocks with records; no record is split.
struct BlockBuilder {
    kind: BlockKind,
    /// The head of every block.
    head: Vec<u8>,
    record: Vec<u8>,
    content: Vec<u8>,
    blocks: Vec<BlockContent>,
}

impl BlockBuilder {
    fn new(kind: BlockKind) -> Self {
        Self { kind, head: Vec::new(), record: Vec::new(), content: Vec::new(), blocks: Vec::new() }
    }

    fn put(&mut self, record: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.record.clear();
        record(&mut self.record);
        if self.head.len() + self.record.len() > MAX_CONTENT_BYTES {
            let bytes = self.record.len();
            let what = format!("record too large for a dump: expected at most 4 MiB, found {bytes} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        if self.content.len() + self.record.len() > BLOCK_BYTES {
            self.end_block();
        }
        if self.content.is_empty() {
            self.content.extend(&self.head);
        }
        self.content.append(&mut self.record);
        Ok(())
    }

    fn end_block(&mut self) {
        if !self.content.is_empty() {
            self.blocks.push(BlockContent { kind: self.kind, content: std::mem::take(&mut self.content) });
        }
    }

    fn finish(mut self) -> Vec<BlockContent> {
        // A head without records is information too.
        if self.blocks.is_empty() && self.content.is_empty() {
            self.content.extend(&self.head);
        }
        self.end_block();
        self.blocks
    }
}

/// Fills blocks with memory, piece by piece.
struct MemoryBlocks<'d, I> {
    kind: BlockKind,
    /// Pieces are split only at multiples of this number of bytes.
    unit: usize,
    pieces: I,
    /// The unwritten rest of the last piece.
    left: (u64, &'d [u8]),
}

impl<'d, I: Iterator<Item = (u64, &'d [u8])>> MemoryBlocks<'d, I> {
    /// The next piece, at most `room` bytes long; `None` if there is none or no room.
    fn piece(&mut self, room: usize) -> Option<(u64, &'d [u8])> {
        while self.left.1.is_empty() {
            self.left = self.pieces.next()?;
        }
        let (address, bytes) = self.left;
        let length = bytes.len().min(room / self.unit * self.unit);
        let (taken, rest) = bytes.split_at(length);
        self.left = (address.saturating_add(length as u64), rest);
        (length > 0).then_some((address, taken))
    }
}

impl<'d, I: Iterator<Item = (u64, &'d [u8])>> Iterator for MemoryBlocks<'d, I> {
    type Item = BlockContent;

    fn next(&mut self) -> Option<BlockContent> {
        let (mut spans, mut pieces, mut filled) = (Vec::<MemorySpan>::new(), Vec::new(), 0);
        while let Some((address, bytes)) = self.piece(BLOCK_BYTES.saturating_sub(filled + SPAN_BYTES)) {
            filled += bytes.len() + SPAN_BYTES;
            match spans.last_mut() {
                Some(last) if last.address + last.length as u64 == address => last.length += bytes.len(),
                _ => spans.push(MemorySpan { address, length: bytes.len() }),
            }
            pieces.push(bytes);
        }
        if spans.is_empty() {
            return None;
        }
        let mut content = Vec::with_capacity(filled + 4);
        content::put_spans(&mut content, &spans);
        for bytes in pieces {
            content.extend_from_slice(bytes);
        }
        Some(BlockContent { kind: self.kind, content })
    }
}
