//! Writes a dump as a file.

use std::io::{self, Write};

use super::content::{self, SPAN_BYTES};
use super::frames;
use super::layout::{self, BLOCK_BYTES, BlockHeader, Kind, MAX_CONTENT_BYTES};
use super::{Dump, Span, pipeline};
use crate::image::PAGE_BYTES;

/// The content of a block to be written.
struct Block {
    kind: Kind,
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
        let pages = MemoryBlocks::new(Kind::Pages, PAGE_BYTES, pages);
        let memory = MemoryBlocks::new(Kind::Memory, 1, self.ranges());
        let mut blocks = small.into_iter().chain(pages).chain(memory);
        let mut count: u64 = 0;
        let pack = || {
            let mut pack = frames::packer();
            move |Block { kind, content }: Block| pack_block(kind, &content, &mut pack)
        };
        let next = || blocks.next();
        pipeline::run(pack, next, |(header, frame)| {
            count += 1;
            output.write_all(&header)?;
            output.write_all(&frame)
        })?;
        let (header, frame) = pack_block(Kind::End, &count.to_le_bytes(), &mut frames::packer());
        output.write_all(&header)?;
        output.write_all(&frame)?;
        output.flush()
    }

    /// Creates the blocks of everything but memory.
    fn small_blocks(&self) -> io::Result<Vec<Block>> {
        let mut facts = Records::new(Kind::Facts);
        for (name, value) in self.facts() {
            facts.put(|content| content::put_fact(content, name, value))?;
        }
        let mut mappings = Records::new(Kind::Mappings);
        for mapping in &self.image.mappings {
            mappings.put(|content| content::put_mapping(content, mapping))?;
        }
        let mut threads = Records::new(Kind::Threads);
        for (&id, &pointer) in &self.image.threads {
            threads.put(|content| content::put_thread(content, id, pointer))?;
        }
        let mut blocks: Vec<Block> =
            [facts, mappings, threads].into_iter().flat_map(Records::finish).collect();
        for (&mapping, symbols) in &self.image.symbols {
            let mut records = Records::new(Kind::Symbols);
            content::put_symbols(&mut records.head, mapping, symbols.thread_local_block());
            for (name, symbol) in symbols.iter() {
                records.put(|content| content::put_symbol(content, name, symbol))?;
            }
            blocks.extend(records.finish());
        }
        Ok(blocks)
    }
}

fn pack_block(
    kind: Kind,
    content: &[u8],
    pack: &mut impl FnMut(&[u8]) -> Vec<u8>,
) -> ([u8; layout::BLOCK_HEADER_BYTES], Vec<u8>) {
    let frame = pack(content);
    let header = BlockHeader { kind: kind as u8, stored: frame.len(), content: content.len() };
    (header.encode(), frame)
}

/// Fills blocks with records; no record is split.
struct Records {
    kind: Kind,
    /// The head of every block.
    head: Vec<u8>,
    record: Vec<u8>,
    content: Vec<u8>,
    blocks: Vec<Block>,
}

impl Records {
    fn new(kind: Kind) -> Self {
        Self { kind, head: Vec::new(), record: Vec::new(), content: Vec::new(), blocks: Vec::new() }
    }

    fn put(&mut self, record: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.record.clear();
        record(&mut self.record);
        if self.head.len() + self.record.len() > MAX_CONTENT_BYTES {
            let bytes = self.record.len();
            let what =
                format!("too large for a dump: expected at most 4 MiB, found {bytes} bytes in one record");
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
            self.blocks.push(Block { kind: self.kind, content: std::mem::take(&mut self.content) });
        }
    }

    fn finish(mut self) -> Vec<Block> {
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
    kind: Kind,
    /// Pieces are split only at multiples of this number of bytes.
    unit: usize,
    pieces: I,
    /// The unwritten rest of the last piece.
    left: (u64, &'d [u8]),
}

impl<'d, I: Iterator<Item = (u64, &'d [u8])>> MemoryBlocks<'d, I> {
    fn new(kind: Kind, unit: usize, pieces: I) -> Self {
        Self { kind, unit, pieces, left: (0, &[]) }
    }

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
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let (mut spans, mut pieces, mut filled) = (Vec::<Span>::new(), Vec::new(), 0);
        while let Some((address, bytes)) = self.piece(BLOCK_BYTES.saturating_sub(filled + SPAN_BYTES)) {
            filled += bytes.len() + SPAN_BYTES;
            match spans.last_mut() {
                Some(last) if last.address + last.length as u64 == address => last.length += bytes.len(),
                _ => spans.push(Span { address, length: bytes.len() }),
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
        Some(Block { kind: self.kind, content })
    }
}
