//! Findings about the memory that PHP's allocator keeps, and about the memory limit.

use super::amounts::{count, each, is_share, share, size};
use super::finding::{Confidence, FindingKind, FindingSeverity, HeapFinding};
use super::severity;
use super::summary::{Chunks, HeapSummary};
use super::survey::HeapSurvey;

/// Source: PHP, Zend/zend_alloc.c, `ZEND_MM_CHUNK_SIZE`.
const CHUNK_BYTES: u64 = 2 << 20;

/// Severities by the percentage of the limit: reli's thresholds.
const LIMIT_LEVELS: [(u64, FindingSeverity); 2] =
    [(95, FindingSeverity::High), (80, FindingSeverity::Warning)];

/// A higher limit means no limit: PHP sets the maximum integer for `-1`.
pub(super) const NO_LIMIT: u64 = 1 << 60;

/// The percentage below which memory is unaccounted for.
const COVERED: f64 = 95.0;

/// The minimum number of unused chunks that is reported: a heap that has just grown or shrunk has one or two.
const SPARE_CHUNKS: u64 = 4;

/// The minimum percentage of the free memory that is worth reclaiming.
const RECLAIMABLE: u64 = 10;

/// The number of deletions at the same number of chunks from which PHP is about to keep one more chunk.
///
/// Source: PHP, Zend/zend_alloc.c, `zend_mm_delete_chunk`: it does at 4.
const DELETIONS: u64 = 3;

pub(super) fn find(survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
    let summary = &survey.summary;
    let mut findings = Vec::new();
    findings.extend(near_limit(summary));
    findings.extend(coverage(summary));
    if summary.chunks.is_known {
        findings.extend(fragmentation(summary, survey.used));
        findings.extend(pinned(summary.chunks));
        findings.extend(cache(summary.chunks));
        findings.extend(expansion(summary.chunks));
        findings.extend([heuristic_state(summary.chunks), fragmentation_state(summary.chunks)]);
    }
    findings
}

fn near_limit(summary: &HeapSummary) -> Option<HeapFinding> {
    let HeapSummary { peak, limit, .. } = *summary;
    let usage = summary.usage.unwrap_or_default();
    let peak = peak.max(usage);
    let severity = severity::reached(peak, limit, &LIMIT_LEVELS).filter(|_| limit < NO_LIMIT)?;
    let text = format!(
        "peak use was {} of {} ({:.1}%); {} is in use now",
        size(peak),
        size(limit),
        share(peak, limit),
        size(usage)
    );
    let finding = HeapFinding::new(FindingKind::NearMemoryLimit, severity, text)
        .fact("memory_get_peak_usage", peak)
        .fact("memory_get_usage", usage)
        .fact("memory_get_real_usage", summary.real_usage)
        .fact("memory_limit", limit)
        .fact("percentage_of_limit", share(peak, limit))
        .likely(
            Confidence::High,
            "Slightly more input will end the program with \"Allowed memory size exhausted\".",
        )
        .check("Reduce the values that retain the most memory, listed below.")
        .check("If memory grows with the input, process the input in smaller pieces.")
        .impact(peak);
    Some(finding)
}

fn coverage(summary: &HeapSummary) -> Option<HeapFinding> {
    let analyzed = summary.analyzed.filter(|&share| share < COVERED)?;
    let finding = HeapFinding::new(
        FindingKind::CoverageGap,
        FindingSeverity::Warning,
        format!("only {analyzed:.1}% of the memory in use can be reached from known roots"),
    )
    .fact("heap_memory_analyzed_percentage", analyzed)
    .fact("heap_memory_accounting", summary.accounting.as_str())
    .likely(Confidence::High, "An extension holds the rest, or the heap changed while it was copied.")
    .check("Inspect the root `unattributed`, which lists the remaining blocks by size.");
    Some(finding)
}

/// The number of chunks beyond those that the memory in use would fill.
fn spare_chunks(chunks: Chunks, used: u64) -> u64 {
    chunks.count.saturating_sub(used.div_ceil(CHUNK_BYTES))
}

fn fragmentation(summary: &HeapSummary, used: u64) -> Option<HeapFinding> {
    let chunks = summary.chunks;
    let (free, spare) = (chunks.free(), spare_chunks(chunks, used));
    if free <= used || spare < SPARE_CHUNKS {
        return None;
    }
    let text = format!("{} is free in {} chunks that hold {}", size(free), count(chunks.count), size(used));
    let finding = HeapFinding::new(FindingKind::HeapFragmentation, FindingSeverity::Medium, text)
        .fact("chunks_total_free_bytes", chunks.free_bytes)
        .fact("chunks_free_blocks_bytes", chunks.free_blocks_bytes)
        .fact("chunks_reclaimable_bytes", chunks.reclaimable_bytes)
        .fact("zend_mm_heap_usage", used)
        .fact("chunks_count", chunks.count)
        .fact("chunks_beyond_need", spare)
        .impact(free);
    Some(remedy(finding, chunks))
}

/// Adds the source of the free memory and the way to release it, by the larger of the two kinds of free memory.
fn remedy(finding: HeapFinding, chunks: Chunks) -> HeapFinding {
    let reclaimable = chunks.reclaimable_bytes;
    let finding = if is_share(reclaimable, RECLAIMABLE, chunks.free()) {
        let size = size(reclaimable);
        finding.check(format!(
            "Call gc_mem_caches() between jobs. It frees {size} and releases chunks that become empty."
        ))
    } else {
        finding
    };
    if reclaimable > chunks.free() / 2 {
        return finding.likely(
            Confidence::High,
            "Many small values were freed. PHP keeps their pages for values of the same size until gc_mem_caches() is \
             called.",
        );
    }
    finding
        .likely(
            Confidence::High,
            "Small long-lived values were allocated between values that have been freed. PHP releases a chunk only when \
             it is empty.",
        )
        .check("Free large values before you create long-lived ones, or create the long-lived ones first.")
        .check("Restart a worker after such a job.")
}

fn pinned(chunks: Chunks) -> Option<HeapFinding> {
    let severity = match chunks.mostly_empty {
        // The last chunk of a heap that has just grown is nearly empty.
        0 | 1 => return None,
        SPARE_CHUNKS.. => FindingSeverity::Medium,
        _ => FindingSeverity::Warning,
    };
    // At least nine tenths of each such chunk are free.
    let least = chunks.mostly_empty.saturating_mul(CHUNK_BYTES / 10 * 9);
    let text = format!(
        "{} of {} chunks are at least 90% empty but cannot be released",
        count(chunks.mostly_empty),
        count(chunks.count)
    );
    let finding = HeapFinding::new(FindingKind::ChunksPinned, severity, text)
        .fact("chunks_mostly_empty_count", chunks.mostly_empty)
        .fact("chunks_count", chunks.count)
        .impact(least.min(chunks.free_bytes));
    // This is an estimate: memory in use and kept memory of a chunk may be in the same pages.
    let finding = if chunks.reclaimable_bytes > 0 {
        finding
            .likely(
                Confidence::Medium,
                "Each of them holds a small long-lived value, or pages that PHP keeps for values of one size.",
            )
            .check("Call gc_mem_caches() between jobs. It releases the chunks that hold no values.")
    } else {
        finding.likely(
            Confidence::High,
            "Each of them holds a small long-lived value. gc_mem_caches() does not help.",
        )
    };
    Some(finding.check("Restart a worker after such a job."))
}

fn cache(chunks: Chunks) -> Option<HeapFinding> {
    if chunks.cached <= chunks.count || chunks.cached < SPARE_CHUNKS {
        return None;
    }
    let bytes = chunks.cached.saturating_mul(CHUNK_BYTES);
    let text = format!(
        "{} chunks ({}) are cached, but only {} are in use",
        count(chunks.cached),
        size(bytes),
        count(chunks.count)
    );
    let finding = HeapFinding::new(FindingKind::CacheBloat, FindingSeverity::Medium, text)
        .fact("cached_chunks_count", chunks.cached)
        .fact("cached_chunks_size", bytes)
        .fact("chunks_count", chunks.count)
        .likely(Confidence::High, "One job needed much more memory than the process needs between jobs.")
        .check("Call gc_mem_caches() between jobs. It releases the cached chunks.")
        .impact(bytes);
    Some(finding)
}

fn expansion(chunks: Chunks) -> Option<HeapFinding> {
    if chunks.delete_count < DELETIONS {
        return None;
    }
    let text = format!(
        "a chunk was released {} times at {} chunks; PHP is about to cache one more",
        count(chunks.delete_count),
        count(chunks.delete_boundary)
    );
    let finding = HeapFinding::new(FindingKind::CacheExpansionImminent, FindingSeverity::Warning, text)
        .fact("last_chunks_delete_count", chunks.delete_count)
        .fact("last_chunks_delete_boundary", chunks.delete_boundary)
        .fact("cached_chunks_count", chunks.cached)
        .likely(Confidence::Medium, "Memory use fluctuates around a chunk boundary.")
        .check("Call gc_mem_caches() between jobs if memory is short. Otherwise no action is needed.");
    Some(finding)
}

fn heuristic_state(chunks: Chunks) -> HeapFinding {
    let text = format!(
        "{} chunks in use, {} at the peak, {} cached",
        count(chunks.count),
        count(chunks.peak),
        count(chunks.cached)
    );
    HeapFinding::new(FindingKind::ChunkHeuristicState, FindingSeverity::Info, text)
        .fact("chunks_count", chunks.count)
        .fact("peak_chunks_count", chunks.peak)
        .fact("cached_chunks_count", chunks.cached)
        .fact("last_chunks_delete_boundary", chunks.delete_boundary)
        .fact("last_chunks_delete_count", chunks.delete_count)
}

fn fragmentation_state(chunks: Chunks) -> HeapFinding {
    let text = format!(
        "{} free in chunks ({} per chunk), {} reclaimable by gc_mem_caches(); {} chunks at least 90% empty",
        size(chunks.free()),
        size(each(chunks.free(), chunks.count)),
        size(chunks.reclaimable_bytes),
        count(chunks.mostly_empty)
    );
    HeapFinding::new(FindingKind::ChunkFragmentationState, FindingSeverity::Info, text)
        .fact("chunks_total_free_bytes", chunks.free_bytes)
        .fact("chunks_free_blocks_bytes", chunks.free_blocks_bytes)
        .fact("chunks_reclaimable_bytes", chunks.reclaimable_bytes)
        .fact("chunks_mostly_empty_count", chunks.mostly_empty)
}
