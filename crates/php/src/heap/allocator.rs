//! The allocator's heap: its location, its fields, its chunks and huge blocks.
//!
//! Its structures are private to PHP and change within a minor version through distributions' patches, so there is no table of
//! offsets by release: each field is found by the value that it must have.
//!
//! Source: `zend_alloc.c`: `_zend_mm_heap`, `_zend_mm_chunk`, `_zend_mm_huge_list`, in 7.0 to 8.6, and processes of these
//! releases.

use borehole_process::ForeignMemory;
use hashbrown::HashSet;

use crate::attach::Php;
use crate::error::{Error, ErrorKind};
use crate::executor::Executor;
use crate::heap_pointer::HeapPointer;
use crate::layout::Layout;
use crate::release::PhpRelease;
use crate::remote::{moved, u32_at, u64_at};

/// The size of a chunk in bytes, and the alignment of its address.
pub(crate) const CHUNK_BYTES: u64 = 2 << 20;
pub(crate) const PAGE_BYTES: u64 = 4096;
pub(crate) const PAGES: usize = 512;
/// The number of sizes of small blocks.
pub(crate) const BINS: usize = 30;

/// The first page of a chunk: its header, and the heap if it is the main chunk.
pub(crate) type ChunkHeader = [u8; 4096];

/// The offset of the heap in the main chunk.
const HEAP_IN_CHUNK: u64 = 0x40;
/// `zend_mm_chunk`: `heap`, `next`.
const CHUNK_NEXT: usize = 8;
/// `zend_mm_heap`: `use_custom_heap`, `size`, `peak`.
const CUSTOM: usize = 0;
const SIZE: usize = 0x10;
const PEAK: usize = 0x18;
/// `free_slot` comes directly after `peak`, or after the key added in 8.4.
const EARLIEST_FREE_SLOTS: usize = 0x20;
/// The possible offsets of `main_chunk`, which comes after `free_slot`, `real_size`, `real_peak`, `limit`, `overflow` and
/// `huge_list`.
const MAIN_CHUNK_WITHIN: std::ops::Range<usize> = 0x138..0x1c0;
/// The end of the offsets where the page map of a chunk may begin.
const MAP_BEFORE: usize = 0x400;
/// The page map's entry for the header: a large block of one page.
const HEADER_PAGE: u32 = 0x4000_0001;

/// The offsets of fields of the heap, counted from the heap, and of its chunks, counted from the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeapOffsets {
    pub(crate) free_slots: usize,
    pub(crate) real_size: usize,
    pub(crate) main_chunk: usize,
    pub(crate) free_map: usize,
    pub(crate) map: usize,
}

/// A block larger than a chunk, which the system allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Huge {
    /// The address of its list entry, which is a block itself.
    pub(crate) entry: u64,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

/// The allocator's heap, according to its fields.
#[derive(Clone, Debug)]
pub(crate) struct Allocator {
    pub(crate) layout: HeapOffsets,
    pub(crate) numbers: AllocatorCounters,
    /// The addresses of its chunks in the order of the ring, starting with the main chunk.
    pub(crate) chunks: Vec<u64>,
    /// The addresses of chunks that are cached for later.
    pub(crate) cached: Vec<u64>,
    pub(crate) huge: Vec<Huge>,
    /// The first inconsistency. Everything found before it is here.
    pub(crate) doubt: Option<Error>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AllocatorCounters {
    /// The result of `memory_get_usage()`.
    pub(crate) size: u64,
    pub(crate) peak: u64,
    /// The result of `memory_get_usage(true)`.
    pub(crate) real_size: u64,
    pub(crate) real_peak: u64,
    pub(crate) limit: u64,
    pub(crate) chunks_count: u32,
    pub(crate) peak_chunks_count: u32,
    pub(crate) cached_chunks_count: u32,
    /// The number of chunks when one was last freed, and how many times in a row it was this number; `None` before 7.2.
    pub(crate) last_delete: Option<(u32, u32)>,
    /// The address of the first free block of each bin.
    pub(crate) free: [u64; BINS],
}

impl Php {
    /// Finds the allocator of `executor` and the contents of its heap; `None` if PHP uses the system's allocator, as with
    /// `USE_ZEND_ALLOC=0`.
    ///
    /// # Errors
    /// If there is none, it is inconsistent, or the memory cannot be read.
    pub(crate) fn allocator(
        &self,
        memory: &impl ForeignMemory,
        executor: &Executor,
    ) -> Result<Option<Box<Allocator>>, Error> {
        let by_code = self.heap_pointers.iter().filter_map(|&pointer| self.follow(memory, executor, pointer));
        let mut candidates: Vec<u64> = by_code.collect();
        candidates.extend(heap_of_stack(memory, &self.layout, executor));
        let main = |heap: &&u64| **heap % CHUNK_BYTES == HEAP_IN_CHUNK;
        let mut refused = None;
        for &heap in candidates.iter().filter(main) {
            match Allocator::read(memory, heap, self.identity.release) {
                Ok(allocator) => return Ok(Some(Box::new(allocator))),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        if candidates.iter().any(|&heap| is_foreign(memory, heap)) {
            return Ok(None);
        }
        Err(refused.unwrap_or_else(|| missing(&candidates)))
    }

    /// The address that a pointer loaded by `zend_mm_get_heap` leads to.
    fn follow(&self, memory: &impl ForeignMemory, executor: &Executor, pointer: HeapPointer) -> Option<u64> {
        let address = match pointer {
            HeapPointer::Variable(address) => address,
            HeapPointer::InThreadBlock(offset) => self.place.block_of(executor)?.wrapping_add(offset),
        };
        memory.read_u64(address).ok().filter(|&heap| heap != 0)
    }
}

fn missing(candidates: &[u64]) -> Error {
    let what = format!(
        "missing heap of PHP: expected it in its main chunk; zend_mm_get_heap and the stack point to {candidates:#x?}"
    );
    Error::new(ErrorKind::Implausible, what)
}

fn heap_of_stack(memory: &impl ForeignMemory, layout: &Layout, executor: &Executor) -> Option<u64> {
    let stack = memory.read_u64(moved(executor.globals, layout.executor_stack_top + 16)).ok()?;
    let chunk = stack - stack % CHUNK_BYTES;
    memory.read_u64(chunk).ok().filter(|_| stack != 0)
}

/// Whether a heap outside of any chunk says that another allocator is used.
fn is_foreign(memory: &impl ForeignMemory, heap: u64) -> bool {
    let mut custom = [0; 4];
    let is_read = memory.read(moved(heap, CUSTOM), &mut custom).is_ok();
    is_read && heap % CHUNK_BYTES != HEAP_IN_CHUNK && matches!(u32::from_le_bytes(custom), 1..=3)
}

pub(crate) fn read_header(memory: &impl ForeignMemory, chunk: u64) -> Result<Box<ChunkHeader>, Error> {
    let mut header = Box::new([0; 4096]);
    read_chunk(memory, chunk, header.as_mut_slice())?;
    Ok(header)
}

fn read_chunk(memory: &impl ForeignMemory, chunk: u64, into: &mut [u8]) -> Result<(), Error> {
    memory
        .read(chunk, into)
        .map_err(|error| Error::reading(&format!("cannot read the chunk at {chunk:#x} of PHP's heap"), error))
}

fn implausible(what: &str, expected: &str, found: &str) -> Error {
    Error::new(
        ErrorKind::Implausible,
        format!("implausible {what} of PHP's heap: expected {expected}, found {found}"),
    )
}

impl Allocator {
    /// Reads the heap at `address`, which must be in its main chunk.
    pub(super) fn read(
        memory: &impl ForeignMemory,
        address: u64,
        release: PhpRelease,
    ) -> Result<Self, Error> {
        let main = address - HEAP_IN_CHUNK;
        let header = read_header(memory, main)?;
        let heap = &header[usize::try_from(HEAP_IN_CHUNK).expect("a small number")..];
        if u64_at(header.as_slice(), 0) != Some(address) {
            return Err(implausible("main chunk", &format!("one of the heap at {address:#x}"), "another"));
        }
        let main_chunk = main_chunk_field(heap, main).ok_or_else(|| {
            implausible("fields", &format!("a pointer to the main chunk at {main:#x}"), "none")
        })?;
        let field = |offset| u64_at(heap, offset).unwrap_or_default();
        let (chunks, broken_ring) = ring(memory, main, address);
        let (huge, broken_list) = huge_blocks(memory, field(main_chunk - 8));
        let cached = cached_chunks(memory, field(main_chunk + 8), field(main_chunk + 24) & 0xffff_ffff);
        let real = real_bytes(&chunks, &cached, &huge);
        let real_size = real_size_field(heap, main_chunk, real, release);
        let map = map_field(&header, main_chunk)?;
        let layout = HeapOffsets {
            free_slots: real_size - BINS * 8,
            real_size,
            main_chunk,
            free_map: map - PAGES / 8,
            map,
        };
        let numbers = AllocatorCounters::read(heap, &layout, release);
        let doubt = broken_ring.or(broken_list);
        Ok(Self { layout, numbers, chunks, cached, huge, doubt })
    }

    /// The memory that the heap holds from the system, in bytes.
    pub(crate) fn real_bytes(&self) -> u64 {
        real_bytes(&self.chunks, &self.cached, &self.huge)
    }
}

fn real_bytes(chunks: &[u64], cached: &[u64], huge: &[Huge]) -> u64 {
    let chunks = (chunks.len() as u64 + cached.len() as u64).saturating_mul(CHUNK_BYTES);
    huge.iter().fold(chunks, |sum, huge| sum.saturating_add(huge.bytes))
}

impl AllocatorCounters {
    fn read(heap: &[u8], layout: &HeapOffsets, release: PhpRelease) -> Self {
        let long = |offset| u64_at(heap, offset).unwrap_or_default();
        let int = |offset| u32_at(heap, offset).unwrap_or_default();
        let counts = layout.main_chunk + 16;
        let has_last_delete = PhpRelease::of_version(7, 2).is_some_and(|since| release >= since);
        Self {
            size: long(SIZE),
            peak: long(PEAK),
            real_size: long(layout.real_size),
            real_peak: long(layout.real_size + 8),
            limit: long(layout.real_size + 16),
            chunks_count: int(counts),
            peak_chunks_count: int(counts + 4),
            cached_chunks_count: int(counts + 8),
            last_delete: has_last_delete.then(|| (int(counts + 24), int(counts + 28))),
            free: std::array::from_fn(|bin| long(layout.free_slots + bin * 8)),
        }
    }
}

/// The offset of `main_chunk`, the only field that points to the main chunk.
fn main_chunk_field(heap: &[u8], main: u64) -> Option<usize> {
    MAIN_CHUNK_WITHIN.step_by(8).find(|&offset| u64_at(heap, offset) == Some(main))
}

/// The offset of `real_size`: the word that equals the sum of what the heap holds. If there is none, because the memory changed
/// during the copy, its offset in the releases.
fn real_size_field(heap: &[u8], main_chunk: usize, real: u64, release: PhpRelease) -> usize {
    let earliest = EARLIEST_FREE_SLOTS + BINS * 8;
    let is_real_size = |&offset: &usize| {
        u64_at(heap, offset) == Some(real) && u64_at(heap, offset + 8).is_some_and(|peak| peak >= real)
    };
    let has_key = PhpRelease::of_version(8, 4).is_some_and(|since| release >= since);
    let usual = if has_key { earliest + 8 } else { earliest };
    (earliest..main_chunk - 24).step_by(8).find(is_real_size).unwrap_or(usual)
}

/// The offset of the page map: the first place after the heap that has the entry of the header's page and follows the bits of
/// the pages in use.
fn map_field(header: &ChunkHeader, main_chunk: usize) -> Result<usize, Error> {
    let first = usize::try_from(HEAP_IN_CHUNK).expect("a small number") + main_chunk + 48 + PAGES / 8;
    let is_map = |&map: &usize| {
        u32_at(header, map) == Some(HEADER_PAGE)
            && PageRuns::new(header, map - PAGES / 8, map).all(|run| run.is_ok())
    };
    let found = (first..MAP_BEFORE).step_by(4).find(is_map);
    found.ok_or_else(|| implausible("main chunk", "a map of its pages", "none"))
}

/// The chunks from the main chunk on, which form a ring, and the error that ended it early.
fn ring(memory: &impl ForeignMemory, main: u64, heap: u64) -> (Vec<u64>, Option<Error>) {
    let mut chunks = vec![main];
    let mut seen: HashSet<u64> = [main].into_iter().collect();
    let mut chunk = main;
    let doubt = loop {
        let next = match chunk_words(memory, chunk) {
            Ok((owner, next)) if owner == heap => next,
            other => {
                chunks.pop();
                let wrong_owner = |(owner, _)| {
                    broken("ring of chunks", chunk, &format!("this chunk belongs to the heap at {owner:#x}"))
                };
                break Some(other.map_or_else(|error| error, wrong_owner));
            }
        };
        if next == main {
            break None;
        }
        if next % CHUNK_BYTES != 0 || !seen.insert(next) {
            break Some(broken("ring of chunks", next, "it skips the main chunk or leads to no chunk"));
        }
        chunks.push(next);
        chunk = next;
    };
    (chunks, doubt)
}

fn broken(what: &str, address: u64, why: &str) -> Error {
    Error::new(ErrorKind::Implausible, format!("broken {what} of PHP's heap at {address:#x}: {why}"))
}

/// The heap that a chunk belongs to, and the next chunk.
fn chunk_words(memory: &impl ForeignMemory, chunk: u64) -> Result<(u64, u64), Error> {
    let mut words = [0; 16];
    read_chunk(memory, chunk, &mut words)?;
    Ok((u64_at(&words, 0).unwrap_or_default(), u64_at(&words, CHUNK_NEXT).unwrap_or_default()))
}

/// The cached chunks, at most the number counted, as far as they can be read.
fn cached_chunks(memory: &impl ForeignMemory, first: u64, count: u64) -> Vec<u64> {
    let mut chunks = Vec::new();
    let mut next = first;
    let mut seen = HashSet::new();
    while next != 0 && next.is_multiple_of(CHUNK_BYTES) && (chunks.len() as u64) < count && seen.insert(next)
    {
        chunks.push(next);
        next = chunk_words(memory, next).map_or(0, |words| words.1);
    }
    chunks
}

/// `zend_mm_huge_list`: the address, the size and the next entry.
pub(crate) const HUGE_ENTRY_BYTES: usize = 24;

/// The list of huge blocks, and the error that ended it early. Each entry is a small block with the address, the size and the
/// next entry.
fn huge_blocks(memory: &impl ForeignMemory, first: u64) -> (Vec<Huge>, Option<Error>) {
    let (mut blocks, mut seen) = (Vec::new(), HashSet::new());
    let mut next = first;
    while next != 0 {
        let mut entry = [0; HUGE_ENTRY_BYTES];
        if let Err(error) = memory.read(next, &mut entry) {
            let what = format!("cannot read the list of huge blocks of PHP's heap at {next:#x}");
            return (blocks, Some(Error::reading(&what, error)));
        }
        let [address, bytes, following] = [0, 8, 16].map(|offset| u64_at(&entry, offset).unwrap_or_default());
        let is_whole = address % CHUNK_BYTES == 0 && bytes > 0 && bytes % PAGE_BYTES == 0;
        if !is_whole || address.checked_add(bytes).is_none() || !seen.insert(next) {
            let found = format!("an entry lists {bytes} bytes at {address:#x}");
            return (blocks, Some(broken("list of huge blocks", next, &found)));
        }
        blocks.push(Huge { entry: next, address, bytes });
        next = following;
    }
    (blocks, None)
}

/// A run of pages of a chunk, by its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageRun {
    /// Unused.
    Free { first: usize },
    /// One block of several pages.
    Large { first: usize, pages: usize },
    /// Blocks of one bin.
    Small { first: usize, bin: usize },
}

/// The runs of pages of a chunk, after its header. Entries of pages within a run may be left over from earlier runs.
pub(crate) struct PageRuns<'h> {
    header: &'h [u8],
    free_map: usize,
    map: usize,
    next: usize,
}

impl<'h> PageRuns<'h> {
    pub(crate) fn new(header: &'h ChunkHeader, free_map: usize, map: usize) -> Self {
        Self { header, free_map, map, next: 1 }
    }

    fn is_used(&self, page: usize) -> bool {
        self.header.get(self.free_map + page / 8).is_some_and(|bits| bits >> (page % 8) & 1 == 1)
    }

    fn run(&self, first: usize) -> Result<PageRun, Error> {
        if !self.is_used(first) {
            return Ok(PageRun::Free { first });
        }
        let entry = u32_at(self.header, self.map + first * 4).unwrap_or_default();
        let low = |bits: u32| usize::try_from(entry & bits).unwrap_or_default();
        let (run, pages) = match entry >> 30 {
            1 => (PageRun::Large { first, pages: low(0x3ff) }, low(0x3ff)),
            2 if low(0x1f) < BINS => (PageRun::Small { first, bin: low(0x1f) }, BIN_PAGES[low(0x1f)]),
            _ => (PageRun::Free { first }, 0),
        };
        let is_whole =
            pages > 0 && first + pages <= PAGES && (first..first + pages).all(|page| self.is_used(page));
        if is_whole {
            return Ok(run);
        }
        Err(implausible("map of pages", "a run of used pages", &format!("{entry:#010x} at page {first}")))
    }
}

impl Iterator for PageRuns<'_> {
    type Item = Result<PageRun, Error>;

    /// The next run. An invalid page is an error, and counts as one page.
    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= PAGES {
            return None;
        }
        let run = self.run(self.next);
        self.next += match run {
            Ok(PageRun::Large { pages, .. }) => pages,
            Ok(PageRun::Small { bin, .. }) => BIN_PAGES[bin],
            Ok(PageRun::Free { .. }) | Err(_) => 1,
        };
        Some(run)
    }
}

/// The sizes of small blocks, in bytes.
///
/// Source: `zend_alloc_sizes.h`, the same in 7.0 to 8.6.
pub(crate) const BIN_BYTES: [u16; BINS] = [
    8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896,
    1024, 1280, 1536, 1792, 2048, 2560, 3072,
];

/// The smallest number of bytes, in whole words, for which the allocator gives a block of `bytes` bytes; 0 for no block.
pub(crate) fn least_request(bytes: u64) -> u64 {
    let bin = BIN_BYTES.partition_point(|&bin| u64::from(bin) < bytes);
    let smaller = match bin {
        0 => return bytes,
        BINS => bytes.saturating_sub(PAGE_BYTES),
        _ => u64::from(BIN_BYTES[bin - 1]),
    };
    smaller + 8
}

/// The number of pages in a run of each bin.
pub(crate) const BIN_PAGES: [usize; BINS] =
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 3, 1, 1, 5, 3, 2, 2, 5, 3, 7, 4, 5, 3];

pub(crate) const fn bin_elements(bin: usize) -> usize {
    BIN_PAGES[bin] * 4096 / BIN_BYTES[bin] as usize
}
