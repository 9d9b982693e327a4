//! Writes a dump as a file.

use std::io::{self, Write};

use zstd::bulk::Compressor;

use super::content::{self, SPAN_BYTES};
use super::layout::{self, BLOCK_BYTES, BLOCK_HEADER_BYTES, BlockHeader, BlockKind, MAX_CONTENT_BYTES};
use super::{Dump, MemorySpan, pipeline};
use crate::image::PAGE_BYTES;
use crate::memory::copy_front;

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
        let pages = self.image.pages.keys().map(|&address| MemorySpan { address, length: PAGE_BYTES });
        let read_pages = |address: u64, into: &mut [u8]| {
            for (into, address) in into.chunks_mut(PAGE_BYTES).zip((address..).step_by(PAGE_BYTES)) {
                self.image.rest(address).map(|page| copy_front(page, into));
            }
        };
        let pages = MemoryBlocks::new(BlockKind::Pages, PAGE_BYTES, pages, read_pages);
        let read = |address, into: &mut [u8]| {
            self.copy(address, into);
        };
        let memory = MemoryBlocks::new(BlockKind::Memory, 1, self.spans(), read);
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

/// Fills blocks with memory, span by span.
struct MemoryBlocks<I, R> {
    kind: BlockKind,
    /// Spans are split only at multiples of this number of bytes.
    unit: usize,
    spans: I,
    /// The unwritten rest of the last span.
    left: MemorySpan,
    /// Reads from an address.
    read: R,
}

impl<I: Iterator<Item = MemorySpan>, R: Fn(u64, &mut [u8])> MemoryBlocks<I, R> {
    fn new(kind: BlockKind, unit: usize, spans: I, read: R) -> Self {
        Self { kind, unit, spans, left: MemorySpan { address: 0, length: 0 }, read }
    }

    /// The next part of a span, at most `room` bytes long; `None` if there is none or no room.
    fn part(&mut self, room: usize) -> Option<MemorySpan> {
        while self.left.length == 0 {
            self.left = self.spans.next()?;
        }
        let MemorySpan { address, length: left } = self.left;
        let length = left.min(room / self.unit * self.unit);
        self.left = MemorySpan { address: address.saturating_add(length as u64), length: left - length };
        (length > 0).then_some(MemorySpan { address, length })
    }
}

impl<I: Iterator<Item = MemorySpan>, R: Fn(u64, &mut [u8])> Iterator for MemoryBlocks<I, R> {
    type Item = BlockContent;

    fn next(&mut self) -> Option<BlockContent> {
        let (mut spans, mut filled) = (Vec::<MemorySpan>::new(), 0);
        while let Some(part) = self.part(BLOCK_BYTES.saturating_sub(filled + SPAN_BYTES)) {
            filled += part.length + SPAN_BYTES;
            match spans.last_mut() {
                Some(last) if last.address + last.length as u64 == part.address => last.length += part.length,
                _ => spans.push(part),
            }
        }
        if spans.is_empty() {
            return None;
        }
        let mut content = Vec::with_capacity(filled + 4);
        content::put_spans(&mut content, &spans);
        for MemorySpan { address, length } in spans {
            let start = content.len();
            content.resize(start + length, 0);
            (self.read)(address, &mut content[start..]);
        }
        Some(BlockContent { kind: self.kind, content })
    }
}
