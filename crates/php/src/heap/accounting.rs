//! The account of what was reached of a heap, and its sums.

use borehole_heap::{CONTRADICTION, HeapSink, LocationType, MemoryLocation, Region};
use borehole_process::{Dump, ForeignProcess as _};
use borehole_text::percent_of;

use crate::attach::Php;
use crate::heap::allocator::{Allocator, CHUNK_BYTES, PAGE_BYTES};
use crate::heap::blocks::{BlockSums, HeapBlock, HeapBlocks, Marks};

/// The account of a walk: the blocks it reached and the locations it reported.
#[derive(Clone, Debug)]
pub(crate) struct Accounting<'b> {
    pub(crate) blocks: &'b HeapBlocks,
    reached: Marks,
    reached_count: u64,
    /// The size of the reached blocks.
    reached_bytes: RegionBytes,
    /// The size of the reported locations.
    located_bytes: RegionBytes,
    /// The bytes in blocks beyond the requested size.
    overhead_bytes: RegionBytes,
    /// The size of the reported locations outside of the heap.
    outside_bytes: u64,
    /// The number of reported locations that are larger than their blocks.
    oversized: u64,
    /// The bytes in tables of arrays beyond the used part.
    array_overhead: u64,
}

/// Bytes by region, in the order of the regions' numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RegionBytes([u64; Region::NAMES.len()]);

impl RegionBytes {
    fn add(&mut self, region: Region, bytes: u64) {
        if let Some(sum) = self.0.get_mut(usize::from(region.number())) {
            *sum = sum.saturating_add(bytes);
        }
    }

    fn of(&self, region: Region) -> u64 {
        self.0.get(usize::from(region.number())).copied().unwrap_or_default()
    }

    fn all(&self) -> u64 {
        self.0.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }
}

impl<'b> Accounting<'b> {
    pub(crate) fn new(blocks: &'b HeapBlocks) -> Self {
        Self {
            blocks,
            reached: Marks::of(blocks),
            reached_count: 0,
            reached_bytes: RegionBytes::default(),
            located_bytes: RegionBytes::default(),
            overhead_bytes: RegionBytes::default(),
            outside_bytes: 0,
            oversized: 0,
            array_overhead: 0,
        }
    }

    #[inline]
    pub(crate) fn reach(&mut self, block: &HeapBlock) {
        if self.reached.insert(block.index) {
            self.reached_count += 1;
            self.reached_bytes.add(block.region, block.bytes);
        }
    }

    #[inline]
    pub(crate) fn is_reached(&self, block: &HeapBlock) -> bool {
        self.reached.contains(block.index)
    }

    /// The total size of the reached blocks, in bytes.
    pub(crate) fn reached_bytes(&self) -> u64 {
        self.reached_bytes.all()
    }

    /// Counts a location in `block`; `None` for one outside of the heap.
    #[inline]
    pub(crate) fn locate(&mut self, location: &MemoryLocation, block: Option<&HeapBlock>) {
        let (Some(region), Some(block)) = (location.region, block) else {
            self.outside_bytes = self.outside_bytes.saturating_add(location.size);
            return;
        };
        let overhead = u64::from(location.bin_overhead);
        self.oversized += u64::from(location.size.saturating_add(overhead) > block.end() - location.address);
        self.located_bytes.add(region, location.size);
        self.overhead_bytes.add(region, overhead);
        if location.location_type == LocationType::ARRAY_TABLE_OVERHEAD {
            self.array_overhead += location.size;
        }
    }

    /// Whether every block was reached.
    pub(crate) fn is_complete(&self) -> bool {
        self.reached_count >= self.blocks.sums.blocks
    }

    pub(crate) fn unreached(&self) -> impl Iterator<Item = HeapBlock> + use<'_, 'b> {
        self.blocks.iter().filter(|block| !self.is_reached(block))
    }

    /// The contradiction in the reported sizes: more memory than there is, because some was counted twice; `None` if they fit.
    pub(crate) fn contradiction(&self, dump: &Dump) -> Option<String> {
        if self.oversized > 0 {
            return Some(format!(
                "inconsistent sizes: {} locations are larger than their blocks",
                self.oversized
            ));
        }
        for (number, name) in (0..).zip(Region::NAMES) {
            let region = Region::new(number);
            let located = self.located_bytes.of(region).saturating_add(self.overhead_bytes.of(region));
            let reached = self.reached_bytes.of(region);
            if located > reached {
                let name = String::from_utf8_lossy(name.as_ref());
                return Some(format!(
                    "inconsistent sizes: expected at most {reached} bytes in {name}, found {located}"
                ));
            }
        }
        let mapped = dump.mappings().iter().map(|mapping| mapping.end.saturating_sub(mapping.start));
        let mapped = mapped.fold(0, u64::saturating_add);
        let found = self.outside_bytes;
        (found > mapped).then(|| {
            format!("inconsistent sizes: expected at most {mapped} bytes outside of the heap, found {found}")
        })
    }

    /// Writes the summary under the keys of the memory database.
    pub(crate) fn summary(&self, dump: &Dump, php: &Php, sink: &mut impl HeapSink) {
        if let Some(allocator) = self.blocks.allocator() {
            self.heap_summary(allocator, sink);
            chunk_summary(allocator, &self.blocks.sums, sink);
        }
        let contradiction = self.contradiction(dump);
        sink.summary("heap_memory_accounting", &contradiction.clone().unwrap_or_else(|| self.proof()));
        if let Some(text) = contradiction {
            sink.summary(CONTRADICTION, &text);
        }
        let rss = dump.fact("rss_bytes").and_then(|rss| std::str::from_utf8(rss).ok());
        if let Some(rss) = rss {
            sink.summary("rss", rss);
        }
        let left_out = dump.fact("left_out_bytes").and_then(|bytes| std::str::from_utf8(bytes).ok());
        if let Some(bytes) = left_out.filter(|&bytes| bytes != "0") {
            sink.summary("shared_memory_left_out", bytes);
        }
        let release = php.identity().release.to_string().replace('.', "");
        sink.summary("php_version", &format!("v{release}"));
        sink.summary("analyzer", concat!("borehole ", env!("CARGO_PKG_VERSION")));
    }

    /// Whether every byte is accounted for; if not, the reason.
    fn proof(&self) -> String {
        match (self.blocks.allocator(), self.blocks.proof()) {
            (None, _) => "none: PHP does not use its own allocator".to_owned(),
            (Some(_), Ok(())) => "exact".to_owned(),
            (Some(_), Err(error)) => error.to_string(),
        }
    }

    fn heap_summary(&self, allocator: &Allocator, sink: &mut impl HeapSink) {
        let totals = self.region_totals();
        let chunks = allocator.chunks.len() as u64 * CHUNK_BYTES;
        let huge = self.blocks.sums.huge;
        let reached = self.reached_bytes.all();
        let huge_reached = self.reached_bytes.of(Region::HUGE);
        let numbers = [
            ("zend_mm_heap_total", chunks.saturating_add(huge)),
            ("zend_mm_heap_usage", reached),
            ("zend_mm_chunk_total", chunks),
            ("zend_mm_chunk_usage", reached - huge_reached),
            ("zend_mm_huge_total", huge),
            ("zend_mm_huge_usage", huge_reached),
            ("vm_stack_total", totals.of(Region::VM_STACK)),
            ("vm_stack_usage", self.located_bytes.of(Region::VM_STACK)),
            ("compiler_arena_total", totals.of(Region::COMPILER_ARENA)),
            ("compiler_arena_usage", self.located_bytes.of(Region::COMPILER_ARENA)),
            ("possible_allocation_overhead_total", self.overhead_bytes.all()),
            ("possible_array_overhead_total", self.array_overhead),
        ];
        for (key, number) in numbers {
            sink.summary(key, &number.to_string());
        }
        sink.summary(
            "heap_memory_analyzed_percentage",
            &percent_of(reached, allocator.numbers.size).to_string(),
        );
    }

    fn region_totals(&self) -> RegionBytes {
        let mut totals = RegionBytes::default();
        for (block, region) in self.blocks.claims() {
            totals.add(region, block.bytes);
        }
        totals
    }
}

fn chunk_summary(allocator: &Allocator, sums: &BlockSums, sink: &mut impl HeapSink) {
    let numbers = &allocator.numbers;
    let cached = u64::from(numbers.cached_chunks_count);
    let all = [
        ("memory_get_usage", numbers.size),
        ("memory_get_real_usage", numbers.real_size),
        ("memory_get_peak_usage", numbers.peak),
        ("memory_get_real_peak_usage", numbers.real_peak),
        ("memory_limit", numbers.limit),
        ("cached_chunks_size", cached.saturating_mul(CHUNK_BYTES)),
        ("chunks_count", u64::from(numbers.chunks_count)),
        ("peak_chunks_count", u64::from(numbers.peak_chunks_count)),
        ("cached_chunks_count", cached),
        ("chunks_total_free_bytes", sums.free_pages.saturating_mul(PAGE_BYTES)),
        ("chunks_mostly_empty_count", sums.mostly_empty_chunks),
        // Reli counts only whole pages.
        ("chunks_free_blocks_bytes", sums.free_small),
        ("chunks_reclaimable_bytes", sums.reclaimable_pages.saturating_mul(PAGE_BYTES)),
    ];
    for (key, number) in all {
        sink.summary(key, &number.to_string());
    }
    if let Some((boundary, count)) = numbers.last_delete {
        sink.summary("last_chunks_delete_boundary", &boundary.to_string());
        sink.summary("last_chunks_delete_count", &count.to_string());
    }
}
