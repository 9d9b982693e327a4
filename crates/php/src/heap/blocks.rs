//! All blocks of the heap that are in use, found by address.
//!
//! The page map of each chunk shows where blocks can be; those in the allocator's free lists are not in use. The sizes of the
//! others add up to the heap's counters, to the byte; otherwise the list is wrong.
//!
//! The places of blocks, used and free, are numbered consecutively, so that data about blocks can be kept in a `Vec`.

use std::collections::BTreeMap;
use std::ops::Range;

use borehole_heap::Region;
use borehole_process::Dump;
use hashbrown::HashMap;

use crate::attach::Php;
use crate::error::{Error, ErrorKind};
use crate::executor::Executor;
use crate::heap::allocator::{
    self, Allocator, BIN_BYTES, BIN_PAGES, BINS, CHUNK_BYTES, Huge, PAGE_BYTES, PAGES, PageRun, PageRuns,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeapBlock {
    /// The number of its place.
    pub(crate) index: u32,
    pub(crate) address: u64,
    /// The size allocated, which may be larger than the size requested.
    pub(crate) bytes: u64,
    pub(crate) region: Region,
}

impl HeapBlock {
    pub(crate) fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct HeapBlocks {
    allocator: Option<Box<Allocator>>,
    /// The number of each chunk, by address.
    chunks: HashMap<u64, u32>,
    /// The pages of all chunks, chunk by chunk.
    pages: Vec<ChunkPage>,
    /// Huge blocks with the numbers of their places, ordered by address.
    huge: Vec<(Huge, u32)>,
    /// The places that have a block in use.
    live: Marks,
    places: u32,
    /// Large or huge blocks with a special region, ordered by address.
    claims: BTreeMap<u64, Region>,
    pub(crate) sums: BlockSums,
    doubt: Option<Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChunkPage {
    /// The number of the first place in its run.
    first: u32,
    /// The number of pages before it in its run.
    back: u16,
    /// A bin, or [`LARGE`] and a number of pages, or [`NOTHING`].
    kind: u16,
}

const LARGE: u16 = 0x8000;
const NOTHING: u16 = u16::MAX;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockSums {
    pub(crate) small: u64,
    pub(crate) large: u64,
    pub(crate) huge: u64,
    /// The number of blocks.
    pub(crate) blocks: u64,
    /// Unused pages of chunks.
    pub(crate) free_pages: u64,
    /// Chunks with at least nine tenths of their pages free.
    pub(crate) mostly_empty_chunks: u64,
    /// Bytes of free small blocks, whose pages PHP keeps for blocks of equal size.
    pub(crate) free_small: u64,
    /// Pages of runs of small blocks that are all free.
    pub(crate) reclaimable_pages: u64,
}

impl BlockSums {
    pub(crate) fn bytes(&self) -> u64 {
        self.small.saturating_add(self.large).saturating_add(self.huge)
    }
}

/// `offset / size` is `offset * reciprocal >> 32` for every offset in a run.
const RECIPROCALS: [u64; BINS] = {
    let mut reciprocals = [0; BINS];
    let mut bin = 0;
    while bin < BINS {
        reciprocals[bin] = (1 << 32) / BIN_BYTES[bin] as u64 + 1;
        bin += 1;
    }
    reciprocals
};

impl HeapBlocks {
    /// The blocks of the heap of `executor`; none if it does not use PHP's allocator.
    ///
    /// Inconsistent parts are left out, and [`proof`](Self::proof) reports them.
    ///
    /// # Errors
    /// If there is no heap, or it has more places than can be numbered.
    pub(crate) fn of(dump: &Dump, php: &Php, executor: &Executor) -> Result<Self, Error> {
        let allocator = php.allocator(dump, executor)?;
        allocator.map_or_else(|| Ok(Self::default()), |allocator| Self::read(dump, allocator))
    }

    fn read(dump: &Dump, allocator: Box<Allocator>) -> Result<Self, Error> {
        let mut blocks = Self { doubt: allocator.doubt.clone(), ..Self::default() };
        for &chunk in &allocator.chunks {
            blocks.add_chunk(dump, chunk, &allocator)?;
        }
        let mut huge = allocator.huge.clone();
        huge.sort_unstable_by_key(|huge| huge.address);
        for huge in huge {
            let place = blocks.new_places(1)?;
            blocks.live.insert(place);
            blocks.sums.huge = blocks.sums.huge.saturating_add(huge.bytes);
            blocks.sums.blocks += 1;
            blocks.huge.push((huge, place));
        }
        for bin in 0..BINS {
            blocks.free(dump, bin, allocator.numbers.free[bin]);
        }
        blocks.sums.reclaimable_pages = blocks.reclaimable_pages();
        blocks.allocator = Some(allocator);
        Ok(blocks)
    }

    fn new_places(&mut self, count: u32) -> Result<u32, Error> {
        let first = self.places;
        let too_many = || Error::new(ErrorKind::Implausible, "too many blocks: the heap has more than 2^32");
        self.places = first.checked_add(count).filter(|&end| end < u32::MAX).ok_or_else(too_many)?;
        self.live.0.resize(word(self.places) + 1, 0);
        Ok(first)
    }

    /// Adds the runs of a chunk; at first, all places in them count as used.
    fn add_chunk(&mut self, dump: &Dump, chunk: u64, allocator: &Allocator) -> Result<(), Error> {
        let header = match allocator::read_header(dump, chunk) {
            Ok(header) => header,
            Err(error) => {
                self.doubt.get_or_insert(error);
                return Ok(());
            }
        };
        let number = u32::try_from(self.chunks.len()).expect("places run out before chunks");
        let mut pages = [ChunkPage { first: 0, back: 0, kind: NOTHING }; PAGES];
        let mut free = 0;
        for run in PageRuns::new(&header, allocator.layout.free_map, allocator.layout.map) {
            match run {
                Ok(PageRun::Free { .. }) => free += 1,
                Ok(PageRun::Large { first, pages: count }) => {
                    let place = self.add_run(1, count as u64 * PAGE_BYTES, true)?;
                    let kind = LARGE | u16::try_from(count).expect("at most 511 pages");
                    fill(&mut pages[first..first + count], place, kind);
                }
                Ok(PageRun::Small { first, bin }) => {
                    let count = u32::try_from(allocator::bin_elements(bin)).expect("at most 512");
                    let bytes = u64::from(count) * u64::from(BIN_BYTES[bin]);
                    let place = self.add_run(count, bytes, false)?;
                    let kind = u16::try_from(bin).expect("one of 30");
                    fill(&mut pages[first..first + BIN_PAGES[bin]], place, kind);
                }
                Err(error) => drop(self.doubt.get_or_insert(error)),
            }
        }
        self.sums.free_pages += free;
        self.sums.mostly_empty_chunks += u64::from(free * 10 >= PAGES as u64 * 9);
        self.chunks.insert(chunk / CHUNK_BYTES, number);
        self.pages.extend_from_slice(&pages);
        Ok(())
    }

    fn add_run(&mut self, count: u32, bytes: u64, is_large: bool) -> Result<u32, Error> {
        let first = self.new_places(count)?;
        for place in first..first + count {
            self.live.insert(place);
        }
        let sum = if is_large { &mut self.sums.large } else { &mut self.sums.small };
        *sum = sum.saturating_add(bytes);
        self.sums.blocks += u64::from(count);
        Ok(first)
    }

    /// Marks the blocks of a free list as unused.
    fn free(&mut self, dump: &Dump, bin: usize, first: u64) {
        let mut next = first;
        while next != 0 {
            let place =
                self.place(next).filter(|&(kind, address, _)| usize::from(kind) == bin && address == next);
            let place = place.map(|(.., place)| place).filter(|&place| self.live.contains(place));
            let words = dump.array(next).map(u64::from_le_bytes);
            let (Some(place), Some(following)) = (place, words) else {
                self.doubt.get_or_insert_with(|| broken_list(bin, next));
                return;
            };
            self.live.0[word(place)] &= !(1 << (place % 64));
            self.sums.small -= u64::from(BIN_BYTES[bin]);
            self.sums.free_small += u64::from(BIN_BYTES[bin]);
            self.sums.blocks -= 1;
            next = following;
        }
    }

    /// The number of pages in runs of small blocks that are all free. PHP frees these pages on request.
    ///
    /// Source: PHP, Zend/zend_alloc.c, `zend_mm_gc`.
    fn reclaimable_pages(&self) -> u64 {
        let first = self.pages.iter().filter(|page| page.back == 0);
        let empty = first.filter(|page| {
            let bin = usize::from(page.kind);
            bin < BINS
                && (0..allocator::bin_elements(bin))
                    .zip(page.first..)
                    .all(|(_, place)| !self.live.contains(place))
        });
        empty.map(|page| BIN_PAGES[usize::from(page.kind)] as u64).sum()
    }

    /// The page's kind, the address and the number of the place in a chunk that contains `address`.
    #[inline]
    fn place(&self, address: u64) -> Option<(u16, u64, u32)> {
        let chunk = *self.chunks.get(&(address / CHUNK_BYTES))?;
        let in_chunk = address % CHUNK_BYTES;
        let number = in_chunk / PAGE_BYTES;
        let page = self.pages[chunk as usize * PAGES + number as usize];
        let start = address - in_chunk + (number - u64::from(page.back)) * PAGE_BYTES;
        match usize::from(page.kind) {
            bin if bin < BINS => {
                let element = ((address - start) * RECIPROCALS[bin]) >> 32;
                let is_one = element < allocator::bin_elements(bin) as u64;
                let place = page.first + element as u32;
                is_one.then(|| (page.kind, start + element * u64::from(BIN_BYTES[bin]), place))
            }
            _ => (page.kind != NOTHING).then_some((page.kind, start, page.first)),
        }
    }

    #[inline]
    pub(crate) fn find(&self, address: u64) -> Option<HeapBlock> {
        let Some((kind, start, index)) = self.place(address) else { return self.find_huge(address) };
        if !self.live.contains(index) {
            return None;
        }
        let bin = usize::from(kind);
        let (bytes, region) = match BIN_BYTES.get(bin) {
            Some(&bytes) => (u64::from(bytes), Region::HEAP),
            None => (u64::from(kind & !LARGE) * PAGE_BYTES, self.claimed(start).unwrap_or(Region::HEAP)),
        };
        Some(HeapBlock { index, address: start, bytes, region })
    }

    #[inline]
    pub(crate) fn at(&self, address: u64) -> Option<HeapBlock> {
        self.find(address).filter(|block| block.address == address)
    }

    fn find_huge(&self, address: u64) -> Option<HeapBlock> {
        let behind = self.huge.partition_point(|(huge, _)| huge.address <= address);
        let &(Huge { address: start, bytes, .. }, index) = self.huge[..behind].last()?;
        let region = self.claimed(start).unwrap_or(Region::HUGE);
        (address - start < bytes).then_some(HeapBlock { index, address: start, bytes, region })
    }

    /// Marks the large or huge block at `address` as part of the VM stack or of the compiler's memory.
    pub(crate) fn claim(&mut self, address: u64, region: Region) {
        let Some(block) = self.find(address) else { return };
        self.claims.entry(block.address).or_insert(region);
    }

    /// Whether the memory at `address` belongs to the heap, in use, free or cached.
    pub(crate) fn is_heap(&self, address: u64) -> bool {
        let chunk = address / CHUNK_BYTES;
        let cached = self.allocator.as_ref().map_or(&[][..], |allocator| &allocator.cached);
        self.chunks.contains_key(&chunk)
            || self.find_huge(address).is_some()
            || cached.contains(&(chunk * CHUNK_BYTES))
    }

    fn claimed(&self, start: u64) -> Option<Region> {
        self.claims.get(&start).copied()
    }

    pub(crate) fn claims(&self) -> impl Iterator<Item = (HeapBlock, Region)> {
        self.claims.iter().filter_map(|(&start, &region)| Some((self.at(start)?, region)))
    }

    /// The number of places; every [`HeapBlock::index`] is less.
    pub(crate) fn places(&self) -> usize {
        self.places as usize
    }

    /// All blocks in use: first those of the chunks, in the heap's order of chunks, then the huge ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = HeapBlock> {
        let chunks = self.allocator.as_deref().map_or(&[][..], |allocator| &allocator.chunks);
        let pages = chunks.iter().filter_map(|chunk| {
            let number = *self.chunks.get(&(chunk / CHUNK_BYTES))? as usize;
            Some((*chunk, &self.pages[number * PAGES..][..PAGES]))
        });
        let runs = pages.flat_map(|(chunk, pages)| {
            let first = pages.iter().enumerate().filter(|(_, page)| page.kind != NOTHING && page.back == 0);
            first.flat_map(move |(number, page)| addresses(chunk + number as u64 * PAGE_BYTES, page.kind))
        });
        runs.chain(self.huge.iter().map(|(huge, _)| huge.address)).filter_map(|address| self.at(address))
    }

    /// The large and huge blocks, which consist of whole pages.
    pub(crate) fn of_pages(&self) -> impl Iterator<Item = HeapBlock> {
        let starts = self.chunks.iter().flat_map(|(&chunk, &number)| {
            let pages = self.pages[number as usize * PAGES..][..PAGES].iter().zip(0_u64..);
            let first =
                pages.filter(|(page, _)| page.back == 0 && page.kind != NOTHING && page.kind & LARGE != 0);
            first.map(move |(_, number)| chunk * CHUNK_BYTES + number * PAGE_BYTES)
        });
        let huge = self.huge.iter().map(|(huge, _)| huge.address);
        starts.chain(huge).filter_map(|start| self.at(start))
    }

    /// The allocator's own account; `None` if PHP uses another allocator.
    pub(crate) fn allocator(&self) -> Option<&Allocator> {
        self.allocator.as_deref()
    }

    /// Checks that the blocks add up to the heap's counters.
    ///
    /// # Errors
    /// If they do not, with the expected and the found number, or if something was inconsistent.
    pub(crate) fn proof(&self) -> Result<(), Error> {
        if let Some(doubt) = &self.doubt {
            return Err(doubt.clone());
        }
        let Some(allocator) = &self.allocator else { return Ok(()) };
        let numbers = &allocator.numbers;
        equal("bytes in use", numbers.size, self.sums.bytes())?;
        equal("bytes of chunks and huge blocks", numbers.real_size, allocator.real_bytes())?;
        equal("chunks", u64::from(numbers.chunks_count), allocator.chunks.len() as u64)
    }
}

fn equal(what: &str, expected: u64, found: u64) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    let text = format!("inconsistent heap: expected {expected} {what} by PHP's own count, found {found}");
    Err(Error::new(ErrorKind::Implausible, text))
}

fn broken_list(bin: usize, found: u64) -> Error {
    let text = format!(
        "broken list of free blocks of {} bytes in PHP's heap: expected a free block that is not listed yet, found {found:#x}",
        BIN_BYTES[bin]
    );
    Error::new(ErrorKind::Implausible, text)
}

fn addresses(start: u64, kind: u16) -> impl Iterator<Item = u64> {
    let (count, bytes) = match BIN_BYTES.get(usize::from(kind)) {
        Some(&bytes) => (allocator::bin_elements(usize::from(kind)) as u64, u64::from(bytes)),
        None => (1, 0),
    };
    Range { start: 0, end: count }.map(move |element| start + element * bytes)
}

fn fill(pages: &mut [ChunkPage], first: u32, kind: u16) {
    for (page, back) in pages.iter_mut().zip(0..) {
        *page = ChunkPage { first, back, kind };
    }
}

/// The index of the word with a place's bit.
#[inline]
const fn word(place: u32) -> usize {
    place as usize / 64
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Marks(Vec<u64>);

impl Marks {
    pub(crate) fn of(blocks: &HeapBlocks) -> Self {
        Self(vec![0; blocks.live.0.len()])
    }

    /// Adds a place; `false` if it was in the set already.
    #[inline]
    pub(crate) fn insert(&mut self, index: u32) -> bool {
        let bits = &mut self.0[word(index)];
        let bit = 1 << (index % 64);
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }

    #[inline]
    pub(crate) fn contains(&self, index: u32) -> bool {
        self.0[word(index)] >> (index % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::allocator::Allocator;
    use crate::heap::live;
    use crate::release::PhpRelease;

    #[test]
    fn the_blocks_of_real_programs_add_up() {
        for (name, peer, root) in live::phps() {
            for program in ["mem/m2_arrays", "internals/containers"] {
                let Some(copied) = live::copy(&peer, &root, program, &[], &[]) else { continue };
                let asking = if program.starts_with("mem/") { live::ASKING } else { 0 };
                let blocks = HeapBlocks::of(&copied.dump, &copied.php, &copied.executor).unwrap();
                blocks.proof().unwrap();
                assert_eq!(blocks.sums.bytes() + asking, copied.usage, "{name} {program}");
                assert_eq!(blocks.iter().map(|block| block.bytes).sum::<u64>(), blocks.sums.bytes());
                for block in blocks.iter() {
                    assert_eq!(blocks.find(block.end() - 1), Some(block));
                }
            }
        }
    }

    #[test]
    fn another_allocator_is_told() {
        for (name, peer, root) in live::phps() {
            let environment = [("USE_ZEND_ALLOC", "0")];
            let copied = live::copy_with(&peer, &root, "internals/objects", &[], &[], &environment).unwrap();
            let blocks = HeapBlocks::of(&copied.dump, &copied.php, &copied.executor).unwrap();
            assert!(blocks.allocator().is_none(), "{name}");
        }
    }

    /// A heap of one chunk, as in 8.3: a run of 64 bytes with a free list, a large block of 3 pages, a huge one.
    struct Made {
        chunk: Vec<u8>,
    }

    const CHUNK: u64 = 0x7f00_0020_0000;
    const HEAP: u64 = CHUNK + 0x40;
    const HUGE: u64 = CHUNK + 2 * CHUNK_BYTES;
    const SMALL_RUN: u64 = CHUNK + 5 * PAGE_BYTES;
    const LARGE_RUN: u64 = CHUNK + PAGE_BYTES;
    /// The bin of 64 bytes.
    const BIN: u64 = 7;

    impl Made {
        fn new() -> Self {
            let mut made = Self { chunk: vec![0; usize::try_from(CHUNK_BYTES).unwrap()] };
            made.word(CHUNK, HEAP);
            made.word(CHUNK + 8, CHUNK);
            // The first two blocks are in use, all others are free.
            let in_use = 3 * PAGE_BYTES + 2 * 64 + 4 * CHUNK_BYTES;
            made.word(HEAP + 0x10, in_use);
            made.word(HEAP + 0x20 + BIN * 8, SMALL_RUN + 2 * 64);
            for element in 2..63 {
                made.word(SMALL_RUN + element * 64, SMALL_RUN + (element + 1) * 64);
            }
            let real = CHUNK_BYTES + 4 * CHUNK_BYTES;
            made.word(HEAP + 0x110, real);
            made.word(HEAP + 0x118, real);
            made.word(HEAP + 0x130, SMALL_RUN);
            for (offset, word) in [(0, HUGE), (8, 4 * CHUNK_BYTES), (16, 0)] {
                made.word(SMALL_RUN + offset, word);
            }
            made.word(HEAP + 0x138, CHUNK);
            made.word(HEAP + 0x148, 1 | 1 << 32);
            // Pages 0 to 3 and 5.
            made.word(CHUNK + 0x1c8, 0b10_1111);
            made.word(CHUNK + 0x208, 0x4000_0001 | 0x4000_0003 << 32);
            made.word(CHUNK + 0x208 + 16, (0x8000_0000 | BIN) << 32);
            made
        }

        fn word(&mut self, address: u64, word: u64) {
            let at = usize::try_from(address - CHUNK).unwrap();
            self.chunk[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }

        fn blocks(&self) -> Result<HeapBlocks, Error> {
            let mut dump = Dump::default();
            dump.insert(CHUNK, self.chunk.clone());
            let allocator = Allocator::read(&dump, HEAP, PhpRelease::of_version(8, 3).unwrap())?;
            HeapBlocks::read(&dump, Box::new(allocator))
        }
    }

    #[test]
    fn blocks_are_found_by_any_address_in_them() {
        let blocks = Made::new().blocks().unwrap();
        blocks.proof().unwrap();
        let found =
            |address| blocks.find(address).map(|block| (block.address, block.bytes, block.region.number()));
        let [heap, huge] = [Region::HEAP, Region::HUGE].map(Region::number);
        assert_eq!(found(SMALL_RUN + 64), Some((SMALL_RUN + 64, 64, heap)));
        assert_eq!(found(SMALL_RUN + 127), Some((SMALL_RUN + 64, 64, heap)));
        assert_eq!(found(SMALL_RUN + 128), None, "a free block");
        assert_eq!(found(LARGE_RUN + 9000), Some((LARGE_RUN, 12288, heap)));
        assert_eq!(found(LARGE_RUN + 12288), None, "a free page");
        assert_eq!(found(CHUNK + 100), None, "the header");
        assert_eq!(found(HUGE + 4 * CHUNK_BYTES - 1), Some((HUGE, 4 * CHUNK_BYTES, huge)));
        assert_eq!(found(HUGE + 4 * CHUNK_BYTES), None);
        assert_eq!(found(u64::MAX), None);
        assert_eq!(blocks.iter().count(), 4);
        assert_eq!(blocks.places(), 1 + 64 + 1);
    }

    #[test]
    fn pages_without_a_block_in_use_are_counted() {
        let mut made = Made::new();
        let free = |made: &Made| {
            let blocks = made.blocks().unwrap();
            blocks.proof().unwrap();
            (blocks.sums.free_small, blocks.sums.reclaimable_pages)
        };
        assert_eq!(free(&made), (62 * 64, 0), "two blocks of the run are in use");
        // Another run of equal size after it, with all its blocks in the free list.
        made.word(CHUNK + 0x1c8, 0b110_1111);
        made.word(CHUNK + 0x208 + 24, 0x8000_0000 | BIN);
        for element in 63..127 {
            made.word(SMALL_RUN + element * 64, SMALL_RUN + (element + 1) * 64);
        }
        assert_eq!(free(&made), (126 * 64, 1));
    }

    #[test]
    fn claimed_blocks_are_of_another_region() {
        let mut blocks = Made::new().blocks().unwrap();
        blocks.claim(LARGE_RUN + 100, Region::VM_STACK);
        assert_eq!(blocks.at(LARGE_RUN).unwrap().region, Region::VM_STACK);
        assert_eq!(blocks.claims().count(), 1);
    }

    #[test]
    fn a_heap_that_contradicts_itself_says_what_was_expected_and_found() {
        let doubt = |change: &dyn Fn(&mut Made)| {
            let mut made = Made::new();
            change(&mut made);
            let blocks = made.blocks().unwrap();
            // Consistent parts are still found.
            assert!(blocks.at(LARGE_RUN).is_some());
            blocks.proof().unwrap_err().to_string()
        };
        let size = doubt(&|made| made.word(HEAP + 0x10, 1000));
        assert_eq!(size, "inconsistent heap: expected 1000 bytes in use by PHP's own count, found 8401024");
        let real = doubt(&|made| made.word(HEAP + 0x110, CHUNK_BYTES));
        assert!(
            real.contains("chunks and huge blocks")
                && real.ends_with(
                    "expected 2097152 bytes of chunks and huge blocks by PHP's own count, found 10485760"
                ),
            "{real}"
        );
        let cycle = doubt(&|made| made.word(SMALL_RUN + 30 * 64, SMALL_RUN + 4 * 64));
        assert!(cycle.contains("list of free blocks of 64 bytes"), "{cycle}");
        let outside = doubt(&|made| made.word(SMALL_RUN + 30 * 64, 0x1000));
        assert!(outside.ends_with("found 0x1000"), "{outside}");
        let ring = doubt(&|made| made.word(CHUNK + 8, CHUNK + CHUNK_BYTES));
        assert!(ring.contains("chunk at 0x7f0000400000"), "{ring}");
        let huge = doubt(&|made| made.word(SMALL_RUN + 16, SMALL_RUN));
        assert!(huge.contains("list of huge blocks"), "{huge}");
        let count = doubt(&|made| made.word(HEAP + 0x148, 2));
        assert!(count.contains("expected 2 chunks by PHP's own count, found 1"), "{count}");
    }

    #[test]
    fn damaged_headers_are_read_to_an_end() {
        let mut refused = 0;
        for at in 0..0x400 {
            for byte in [0, 1, 0x40, 0x80, 0xff] {
                let mut made = Made::new();
                made.chunk[at] = byte;
                match made.blocks() {
                    Ok(blocks) => assert!(blocks.iter().count() < 1000),
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(refused > 10, "{refused}");
    }
}
