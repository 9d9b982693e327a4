//! The facts in the summary of a graph.

use crate::graph::Graph;

/// The facts about a whole heap that findings need; 0 or `None` if a graph lacks them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HeapSummary {
    pub(super) php_version: String,
    /// The percentage analysed; `None` if it is unknown, or if no memory is in use.
    pub(super) analyzed: Option<f64>,
    pub(super) accounting: String,
    pub(super) heap_total: u64,
    pub(super) heap_usage: Option<u64>,
    pub(super) vm_stack_total: u64,
    pub(super) compiler_arena_total: u64,
    pub(super) usage: Option<u64>,
    pub(super) real_usage: u64,
    pub(super) peak: u64,
    pub(super) limit: u64,
    pub(super) rss: u64,
    pub(super) chunks: Chunks,
}

/// The counters of PHP's allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chunks {
    /// Whether the counters are known. They are not without PHP's allocator, and in old files.
    pub(super) is_known: bool,
    pub(super) count: u64,
    pub(super) peak: u64,
    pub(super) cached: u64,
    pub(super) delete_boundary: u64,
    pub(super) delete_count: u64,
    /// Free whole pages.
    pub(super) free_bytes: u64,
    /// Free small blocks, in pages of blocks of one size; 0 in reli's files, which do not count them.
    pub(super) free_blocks_bytes: u64,
    /// The bytes that PHP frees when `gc_mem_caches()` is called.
    pub(super) reclaimable_bytes: u64,
    pub(super) mostly_empty: u64,
}

impl Chunks {
    /// All free bytes within chunks in use.
    pub(super) const fn free(&self) -> u64 {
        self.free_bytes.saturating_add(self.free_blocks_bytes)
    }
}

impl HeapSummary {
    pub(super) fn of(graph: &dyn Graph) -> Self {
        let mut summary = Self::default();
        for &(key, value) in graph.summary() {
            let value = String::from_utf8_lossy(graph.string(value));
            summary.take(graph.string(key), &value);
        }
        if summary.usage == Some(0) {
            summary.analyzed = None;
        }
        summary
    }

    /// The bytes in use, as counted by PHP or by the program that analysed the heap; `None` if unknown. It is 0 between
    /// two requests.
    pub(super) fn used(&self) -> Option<u64> {
        self.heap_usage.filter(|&bytes| bytes > 0).or(self.usage).or(self.heap_usage)
    }

    fn take(&mut self, key: &[u8], value: &str) {
        // A value that is not a number, or is negative, is unknown.
        let number = value.trim().parse().ok();
        let chunks = &mut self.chunks;
        let entry = match key {
            b"php_version" => return value.clone_into(&mut self.php_version),
            b"heap_memory_accounting" => return value.clone_into(&mut self.accounting),
            b"heap_memory_analyzed_percentage" => {
                self.analyzed = value.parse().ok().filter(|share: &f64| share.is_finite());
                return;
            }
            b"zend_mm_heap_total" => &mut self.heap_total,
            b"zend_mm_heap_usage" => return self.heap_usage = number,
            b"vm_stack_total" => &mut self.vm_stack_total,
            b"compiler_arena_total" => &mut self.compiler_arena_total,
            b"memory_get_usage" => return self.usage = number,
            b"memory_get_real_usage" => &mut self.real_usage,
            b"memory_get_peak_usage" => &mut self.peak,
            b"memory_limit" => &mut self.limit,
            b"rss" => &mut self.rss,
            b"chunks_count" => &mut chunks.count,
            b"peak_chunks_count" => &mut chunks.peak,
            b"cached_chunks_count" => &mut chunks.cached,
            b"last_chunks_delete_boundary" => &mut chunks.delete_boundary,
            b"last_chunks_delete_count" => &mut chunks.delete_count,
            b"chunks_total_free_bytes" => &mut chunks.free_bytes,
            b"chunks_free_blocks_bytes" => &mut chunks.free_blocks_bytes,
            b"chunks_reclaimable_bytes" => &mut chunks.reclaimable_bytes,
            b"chunks_mostly_empty_count" => &mut chunks.mostly_empty,
            _ => return,
        };
        *entry = number.unwrap_or_default();
        chunks.is_known |= key == b"chunks_count" && number.is_some();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphBuilder;
    use crate::sink::HeapSink as _;

    #[test]
    fn invalid_numbers_are_unknown() {
        let used = |facts: &[(&str, &str)]| {
            let mut builder = GraphBuilder::new();
            facts.iter().for_each(|(key, value)| builder.summary(key, value));
            let summary = HeapSummary::of(&builder.finish().unwrap());
            (summary.used(), summary.chunks.is_known)
        };
        assert_eq!(used(&[("memory_get_usage", "12.5"), ("chunks_count", "many")]), (None, false));
        assert_eq!(used(&[("memory_get_usage", " 0"), ("chunks_count", "1")]), (Some(0), true));
        assert_eq!(used(&[("memory_get_usage", "7"), ("zend_mm_heap_usage", "-1")]), (Some(7), false));
        assert_eq!(used(&[("zend_mm_heap_usage", "12.5")]), (None, false));
    }
}
