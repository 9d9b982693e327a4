//! A complete copy of a process's memory at one moment, to be walked while the process runs on.

mod content;
mod directory;
mod layout;
mod packed;
mod pipeline;
mod read;
mod words;
mod write;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use crate::error::Error;
use crate::image::Image;
use crate::maps::{Mappings, MemoryMapping};
use crate::memory::{ForeignMemory, ForeignProcess, MemoryPiece, copy_front, fill_pieces};
use crate::symbols::ElfSymbols;

use directory::Directory;
pub use packed::{AdoptedChunks, PIECE_BYTES, PackedChunks, PackedMemory, Packer, PieceBytes, StoredPiece};
pub use read::DumpRecovery;
pub use words::Words;

/// Copied memory of a process with its mappings, symbols and threads, and facts about the moment of the copy.
///
/// An [`Image`] has single pages that were requested. A dump has long ranges, whose bytes are either as they were copied, or
/// packed and unpacked piece by piece while they are read.
#[derive(Clone, Default)]
pub struct Dump {
    /// Memory recorded page by page: searched for all addresses outside the ranges.
    image: Image,
    facts: BTreeMap<String, Vec<u8>>,
    /// The buffers that contain the ranges.
    buffers: Vec<DumpBuffer>,
    /// In order of their addresses, without overlaps.
    ranges: Vec<DumpRange>,
    /// Built by the first search after a change.
    directory: OnceLock<Directory>,
}

/// The bytes of ranges.
#[derive(Clone)]
enum DumpBuffer {
    Plain(Vec<u8>),
    Packed(Box<PackedMemory>),
}

impl DumpBuffer {
    fn len(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Packed(memory) => memory.unpacked_bytes(),
        }
    }
}

/// An address range of a process, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySpan {
    /// The first address.
    pub address: u64,
    /// The number of bytes.
    pub length: usize,
}

/// A contiguous range of memory, and the place of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DumpRange {
    address: u64,
    length: usize,
    buffer: usize,
    /// The offset in the buffer.
    offset: usize,
}

impl DumpRange {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.length as u64)
    }

    /// The range without its first `length` bytes.
    fn behind(self, length: usize) -> Self {
        let length = length.min(self.length);
        Self {
            address: self.address.saturating_add(length as u64),
            length: self.length - length,
            offset: self.offset + length,
            ..self
        }
    }

    /// Whether `next` continues this range, both in the address space and in the buffer.
    fn goes_on_with(&self, next: &Self) -> bool {
        self.end() == next.address && self.buffer == next.buffer && self.offset + self.length == next.offset
    }
}

impl Dump {
    /// The first bytes of a dump's file.
    pub const MAGIC: [u8; 8] = layout::MAGIC;

    /// Creates a dump without ranges, with the mappings, symbols, threads and pages of `image`.
    #[must_use]
    pub fn new(image: Image) -> Self {
        Self { image, ..Self::default() }
    }

    /// Replaces the mappings.
    pub fn set_mappings(&mut self, mappings: Mappings) {
        self.image.mappings = mappings;
    }

    /// Adds memory. Existing ranges win over it, and it wins over recorded pages.
    pub fn insert(&mut self, address: u64, bytes: Vec<u8>) {
        let length = bytes.len();
        self.insert_spans(bytes, [(0, MemorySpan { address, length })]);
    }

    /// Adds the memory of many spans, each like [`Self::insert`]. Each span comes with the offset of its bytes in
    /// `bytes`. Nothing is copied.
    pub fn insert_spans(&mut self, bytes: Vec<u8>, spans: impl IntoIterator<Item = (usize, MemorySpan)>) {
        self.insert_buffer(DumpBuffer::Plain(bytes), spans);
    }

    /// Like [`Self::insert_spans`], with packed bytes: the offsets are those of unpacked bytes.
    pub fn insert_packed(
        &mut self,
        memory: PackedMemory,
        spans: impl IntoIterator<Item = (usize, MemorySpan)>,
    ) {
        self.insert_buffer(DumpBuffer::Packed(Box::new(memory)), spans);
    }

    fn insert_buffer(&mut self, bytes: DumpBuffer, spans: impl IntoIterator<Item = (usize, MemorySpan)>) {
        let buffer = self.buffers.len();
        for (offset, MemorySpan { address, length }) in spans {
            // Cut the span at the end of the address space and of the buffer.
            let room = usize::try_from(u64::MAX - address).unwrap_or(usize::MAX);
            let length = length.min(room).min(bytes.len().saturating_sub(offset));
            self.place(DumpRange { address, length, buffer, offset });
        }
        self.buffers.push(bytes);
        self.directory.take();
    }

    /// Adds the parts of a range that no other range covers.
    fn place(&mut self, mut range: DumpRange) {
        self.image.forget_pages(range.address, range.end());
        while range.length > 0 {
            let at = self.ranges.partition_point(|known| known.address <= range.address);
            let covered = at.checked_sub(1).map_or(range.address, |before| self.ranges[before].end());
            if covered > range.address {
                range = range.behind(usize::try_from(covered - range.address).unwrap_or(usize::MAX));
                continue;
            }
            let next = self.ranges.get(at).map_or(u64::MAX, |next| next.address);
            let room = usize::try_from(next - range.address).unwrap_or(usize::MAX);
            let fits = DumpRange { length: range.length.min(room), ..range };
            match at.checked_sub(1).map(|before| &mut self.ranges[before]) {
                Some(before) if before.goes_on_with(&fits) => before.length += fits.length,
                _ => self.ranges.insert(at, fits),
            }
            range = range.behind(fits.length);
        }
    }

    /// Sets how many bytes of unpacked memory are kept while packed memory is read, and how many bytes the program may hold
    /// while more are kept.
    pub fn keep(&mut self, most_bytes: usize, goal: usize) {
        for buffer in &mut self.buffers {
            if let DumpBuffer::Packed(memory) = buffer {
                memory.keep(most_bytes, goal);
            }
        }
    }

    /// The `length` bytes at `address`; `None` unless all are there. Bytes that are not packed, and contiguous, are lent.
    #[must_use]
    pub fn bytes(&self, address: u64, length: usize) -> Option<Cow<'_, [u8]>> {
        let bytes = self.bytes_up_to(address, length);
        (bytes.len() == length).then_some(bytes)
    }

    /// Like [`Self::bytes`], but as many as are there.
    #[must_use]
    pub fn bytes_up_to(&self, address: u64, length: usize) -> Cow<'_, [u8]> {
        if let Some(bytes) = self.lent(address).and_then(|rest| rest.get(..length)) {
            return Cow::Borrowed(bytes);
        }
        let mut bytes = vec![0; self.present(address, length)];
        let read = self.copy(address, &mut bytes);
        bytes.truncate(read);
        Cow::Owned(bytes)
    }

    /// The `N` bytes at `address`; `None` unless all are there.
    #[must_use]
    #[inline]
    pub fn array<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let found = self.find(address).and_then(|(range, at)| match &self.buffers[range.buffer] {
            DumpBuffer::Plain(bytes) => {
                bytes[range.offset + at..range.offset + range.length].first_chunk().copied()
            }
            DumpBuffer::Packed(memory) if at + N <= range.length => memory.array(range.offset + at),
            DumpBuffer::Packed(_) => None,
        });
        found.or_else(|| self.split_array(address))
    }

    /// Like [`Self::array`], across ranges, pieces and pages.
    #[cold]
    fn split_array<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        (self.copy(address, &mut bytes) == N).then_some(bytes)
    }

    /// The number of contiguous bytes from `address` on, up to `most`.
    #[must_use]
    pub fn present(&self, address: u64, most: usize) -> usize {
        let mut there = 0;
        while there < most {
            let Some(next) = address.checked_add(there as u64) else { break };
            match self.room(next) {
                0 => break,
                room => there = most.min(there.saturating_add(room)),
            }
        }
        there
    }

    /// The number of bytes from `address` on in its range or page. More may follow in the next one.
    #[must_use]
    pub fn room(&self, address: u64) -> usize {
        match self.find(address) {
            Some((range, at)) => range.length - at,
            None => self.image.rest(address).map_or(0, <[u8]>::len),
        }
    }

    /// The range that contains `address`, and the offset in it.
    #[inline]
    fn find(&self, address: u64) -> Option<(&DumpRange, usize)> {
        let directory = self.directory.get_or_init(|| Directory::of(&self.ranges));
        let range = directory.find(&self.ranges, address)?;
        Some((range, usize::try_from(address - range.address).ok()?))
    }

    /// The rest of the range or page that contains `address`, if it is not packed.
    fn lent(&self, address: u64) -> Option<&[u8]> {
        match self.find(address) {
            Some((range, at)) => match &self.buffers[range.buffer] {
                DumpBuffer::Plain(bytes) => bytes.get(range.offset + at..range.offset + range.length),
                DumpBuffer::Packed(_) => None,
            },
            None => self.image.rest(address),
        }
    }

    /// Copies bytes from `address` on, as far as they are there. Returns their number.
    fn copy(&self, address: u64, into: &mut [u8]) -> usize {
        let filled =
            fill_pieces(&mut [MemoryPiece { address, into }], |address, into| Ok(self.part(address, into)));
        filled.unwrap_or_default()
    }

    /// Copies bytes from `address` on, as far as they are in one range, piece or page.
    fn part(&self, address: u64, into: &mut [u8]) -> usize {
        let Some((range, at)) = self.find(address) else {
            return self.image.rest(address).map_or(0, |there| copy_front(there, into));
        };
        let length = into.len().min(range.length - at);
        match &self.buffers[range.buffer] {
            DumpBuffer::Plain(bytes) => copy_front(&bytes[range.offset + at..], &mut into[..length]),
            DumpBuffer::Packed(memory) => memory.copy(range.offset + at, &mut into[..length]),
        }
    }

    /// The words at `address`, at multiples of 8 bytes, in `length` bytes or up to the first that is missing.
    #[must_use]
    pub fn words(&self, address: u64, length: u64) -> Words<'_> {
        Words::new(self, address, length)
    }

    /// Whether `address` is in shared memory of which the dump has nothing: it was left out when the process was copied.
    #[must_use]
    pub fn is_left_out(&self, address: u64) -> bool {
        let shared = self.image.mappings.at(address).filter(|mapping| mapping.shared);
        shared.is_some_and(|mapping| {
            let first = self.ranges.partition_point(|range| range.end() <= mapping.start);
            self.ranges.get(first).is_none_or(|range| range.address >= mapping.end)
        })
    }

    /// The ranges in order of their addresses, without recorded pages. Ranges do not touch each other.
    pub fn spans(&self) -> impl Iterator<Item = MemorySpan> {
        let mut ranges = self.ranges.iter().peekable();
        std::iter::from_fn(move || {
            let first = ranges.next()?;
            let mut length = first.length;
            let mut end = first.end();
            while let Some(next) = ranges.next_if(|next| next.address == end) {
                length += next.length;
                end = next.end();
            }
            Some(MemorySpan { address: first.address, length })
        })
    }

    /// Like [`Self::spans`], with all their bytes, which may need as much memory as the process had.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, Cow<'_, [u8]>)> {
        self.spans().map(|MemorySpan { address, length }| (address, self.bytes_up_to(address, length)))
    }

    /// The number of bytes of memory it contains.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.length as u64).sum::<u64>() + self.image.bytes() as u64
    }

    /// Sets a fact about the moment of the copy, such as `pid` or `rss`. It replaces an earlier one of the same name.
    pub fn set_fact(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// A fact about the moment of the copy.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&[u8]> {
        self.facts.get(name).map(Vec::as_slice)
    }

    /// Iterates over the facts, in order of their names.
    pub fn facts(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.facts.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }
}

/// Omits the memory, which may be gigabytes.
impl fmt::Debug for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { facts, ranges, .. } = self;
        write!(f, "Dump {{ facts: {facts:?}, ranges: {ranges:?}, pages: {}, .. }}", self.image.pages.len())
    }
}

/// Compares the contents, not how memory was added.
impl PartialEq for Dump {
    fn eq(&self, other: &Self) -> bool {
        self.image == other.image
            && self.facts == other.facts
            && self.spans().eq(other.spans())
            && self.spans().all(|span| self.is_same_memory(other, span))
    }
}

impl Eq for Dump {}

impl Dump {
    fn is_same_memory(&self, other: &Self, span: MemorySpan) -> bool {
        let ours = self.words(span.address, span.length as u64);
        ours.eq(other.words(span.address, span.length as u64)) && {
            let tail = span.length % 8;
            let start = span.address + (span.length - tail) as u64;
            self.bytes_up_to(start, tail) == other.bytes_up_to(start, tail)
        }
    }
}

impl ForeignMemory for Dump {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
        fill_pieces(pieces, |address, into| Ok(self.part(address, into)))
    }
}

impl ForeignProcess for Dump {
    fn mappings(&self) -> &Mappings {
        self.image.mappings()
    }

    fn symbols(&self, mapping: &MemoryMapping) -> Result<ElfSymbols, Error> {
        self.image.symbols(mapping)
    }

    fn threads(&self) -> Result<Vec<i32>, Error> {
        self.image.threads()
    }

    fn thread_pointer(&self, thread: i32) -> Result<u64, Error> {
        self.image.thread_pointer(thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_overlap_keep_what_came_first_and_neighbours_are_read_as_one() {
        let mut dump = Dump::default();
        dump.insert(0x1000, vec![1; 16]);
        dump.insert(0x1020, vec![3; 16]);
        dump.insert(0x1008, vec![2; 64]);
        let mut read = [0; 72];
        assert_eq!(
            dump.read_pieces(&mut [MemoryPiece { address: 0x1000, into: &mut read }]).expect("memory"),
            72
        );
        assert_eq!(read[..48], [[1; 16], [2; 16], [3; 16]].concat()[..]);
        assert_eq!(read[48..], [2; 24]);
        assert_eq!(dump.bytes(0x100f, 1).as_deref(), Some(&[1][..]));
        assert_eq!(dump.bytes(0x1010, 16).as_deref(), Some(&[2; 16][..]));
        assert_eq!(dump.bytes(0x1048, 1), None);
        assert_eq!(dump.bytes(0xfff, 1), None);
        assert_eq!(dump.held_bytes(), 72);
    }

    #[test]
    fn spans_share_a_buffer_and_those_that_touch_are_one() {
        let mut dump = Dump::default();
        let span = |address, length| MemorySpan { address, length };
        let spans = [(0, span(0x2000, 10)), (10, span(0x200a, 20)), (30, span(0x9000, 70))];
        dump.insert_spans((0..100).collect(), spans);
        assert_eq!(dump.bytes(0x2000, 30).as_deref(), Some(&(0..30).collect::<Vec<u8>>()[..]));
        assert_eq!(dump.bytes(0x9000, 70).as_deref(), Some(&(30..100).collect::<Vec<u8>>()[..]));
        assert_eq!(dump.ranges().count(), 2);
    }

    #[test]
    fn shared_memory_without_any_bytes_is_left_out() {
        let maps = b"1000-2000 rw-s 0 00:01 7 /dev/zero\n2000-3000 rw-s 0 00:01 8 /dev/zero\n3000-4000 rw-p 0 00:00 0 ";
        let mut dump = Dump::default();
        dump.set_mappings(Mappings::parse(maps).expect("three mappings"));
        dump.insert(0x1f00, vec![1; 0x100]);
        let is_left_out =
            [0xfff, 0x1000, 0x1fff, 0x2000, 0x2fff, 0x3000, 0x4000].map(|at| dump.is_left_out(at));
        assert_eq!(is_left_out, [false, false, false, true, true, false, false]);
    }

    #[test]
    fn memory_at_the_end_of_all_addresses_and_spans_without_bytes_are_cut() {
        let mut dump = Dump::default();
        dump.insert(u64::MAX - 4, vec![1; 16]);
        assert_eq!(dump.bytes_up_to(u64::MAX - 4, 8), [1; 4].as_slice());
        let span = |address| MemorySpan { address, length: 8 };
        dump.insert_spans(vec![1; 3], [(0, span(0x1000)), (8, span(0x2000))]);
        assert_eq!(dump.bytes_up_to(0x1000, 8), [1; 3].as_slice());
        assert_eq!(dump.room(0x2000), 0);
    }

    #[test]
    fn equal_is_what_holds_the_same_however_it_was_put_in() {
        let (mut one, mut two) = (Dump::default(), Dump::default());
        one.insert(0x1000, vec![7; 30]);
        two.insert(0x1000, vec![7; 10]);
        assert_ne!(one, two);
        two.insert(0x100a, vec![7; 20]);
        assert_eq!(one, two);
        two.set_fact("pid", "1");
        assert_ne!(one, two);
    }
}
