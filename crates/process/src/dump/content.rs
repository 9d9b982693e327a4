//! The unpacked content of the blocks in a dump's file.

use super::MemorySpan;
use crate::maps::MemoryMapping;
use crate::symbols::{ElfSymbol, ElfSymbols, ThreadLocalBlock};

/// Appends a text, preceded by its length.
///
/// # Panics
/// If the text has 4 GiB or more.
fn put_text(into: &mut Vec<u8>, text: &[u8]) {
    into.extend(u32::try_from(text.len()).expect("a text of less than 4 GiB").to_le_bytes());
    into.extend(text);
}

pub(super) fn put_fact(into: &mut Vec<u8>, name: &str, value: &[u8]) {
    put_text(into, name.as_bytes());
    put_text(into, value);
}

pub(super) fn put_mapping(into: &mut Vec<u8>, mapping: &MemoryMapping) {
    let MemoryMapping { start, end, file_offset, readable, writable, executable, shared, path, deleted } =
        mapping;
    for number in [start, end, file_offset] {
        into.extend(number.to_le_bytes());
    }
    let flags = [readable, writable, executable, shared, deleted];
    into.push(flags.iter().rev().fold(0, |bits, &&flag| bits << 1 | u8::from(flag)));
    put_text(into, path);
}

pub(super) fn put_thread(into: &mut Vec<u8>, id: i32, pointer: Option<u64>) {
    into.extend(id.to_le_bytes());
    into.push(pointer.is_some().into());
    into.extend(pointer.unwrap_or_default().to_le_bytes());
}

pub(super) fn put_symbols(into: &mut Vec<u8>, mapping: u64, block: Option<ThreadLocalBlock>) {
    into.extend(mapping.to_le_bytes());
    into.push(block.is_some().into());
    let ThreadLocalBlock { size, alignment } = block.unwrap_or(ThreadLocalBlock { size: 0, alignment: 0 });
    into.extend([size, alignment].map(u64::to_le_bytes).as_flattened());
}

pub(super) fn put_symbol(into: &mut Vec<u8>, name: &[u8], symbol: ElfSymbol) {
    into.extend([symbol.address, symbol.size].map(u64::to_le_bytes).as_flattened());
    into.push(symbol.thread_local.into());
    put_text(into, name);
}

pub(super) fn put_spans(into: &mut Vec<u8>, spans: &[MemorySpan]) {
    let number = |number: usize| u32::try_from(number).expect("blocks are small").to_le_bytes();
    into.extend(number(spans.len()));
    for span in spans {
        into.extend(span.address.to_le_bytes());
        into.extend(number(span.length));
    }
}

/// The number of bytes that [`put_spans`] writes for each span.
pub(super) const SPAN_BYTES: usize = 12;

pub(super) struct RecordDecoder<'c>(pub(super) &'c [u8]);

impl<'c> RecordDecoder<'c> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, length: usize) -> Option<&'c [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn flag(&mut self) -> Option<bool> {
        [false, true].get(usize::from(self.byte()?)).copied()
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take(8)?.first_chunk().copied().map(u64::from_le_bytes)
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.u32()?).ok()
    }

    fn text(&mut self) -> Option<&'c [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    pub(super) fn fact(&mut self) -> Option<(String, Vec<u8>)> {
        Some((String::from_utf8(self.text()?.to_owned()).ok()?, self.text()?.to_owned()))
    }

    pub(super) fn mapping(&mut self) -> Option<MemoryMapping> {
        let (start, end, file_offset, flags) = (self.u64()?, self.u64()?, self.u64()?, self.byte()?);
        let has = |bit: u8| flags & bit != 0;
        Some(MemoryMapping {
            start,
            end,
            file_offset,
            readable: has(1),
            writable: has(2),
            executable: has(4),
            shared: has(8),
            deleted: has(16),
            path: self.text()?.to_owned(),
        })
    }

    pub(super) fn thread(&mut self) -> Option<(i32, Option<u64>)> {
        let (id, is_known, pointer) = (self.u32()?.cast_signed(), self.flag()?, self.u64()?);
        Some((id, is_known.then_some(pointer)))
    }

    pub(super) fn symbols(&mut self) -> Option<(u64, ElfSymbols)> {
        let (mapping, has_block) = (self.u64()?, self.flag()?);
        let block = ThreadLocalBlock { size: self.u64()?, alignment: self.u64()? };
        Some((mapping, ElfSymbols::new(has_block.then_some(block))))
    }

    pub(super) fn symbol(&mut self) -> Option<(&'c [u8], ElfSymbol)> {
        let (address, size, thread_local) = (self.u64()?, self.u64()?, self.flag()?);
        Some((self.text()?, ElfSymbol { address, size, thread_local }))
    }

    /// Decodes the spans of a block of memory; the rest is then their bytes.
    pub(super) fn spans(&mut self) -> Option<Vec<MemorySpan>> {
        let count = self.length()?;
        let table = self.take(count.checked_mul(SPAN_BYTES)?)?;
        let mut rows = RecordDecoder(table);
        let mut spans = Vec::with_capacity(count);
        while !rows.is_empty() {
            spans.push(MemorySpan { address: rows.u64()?, length: rows.length()? });
        }
        let length = spans.iter().try_fold(0_usize, |sum, span| sum.checked_add(span.length))?;
        (length == self.0.len()).then_some(spans)
    }
}
