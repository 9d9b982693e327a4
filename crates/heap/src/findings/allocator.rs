//! Findings about the memory that PHP's allocator keeps, and about the memory limit.

use crate::graph::Graph;

use super::amounts::{count, each, is_share, share, size};
use super::context::Context;
use super::finding::{Confidence, Finding, Kind, Severity};
use super::summary::{Chunks, Summary};

/// Source: PHP, Zend/zend_alloc.c, `ZEND_MM_CHUNK_SIZE`.
const CHUNK_BYTES: u64 = 2 << 20;

/// Percentages of the limit: reli's thresholds.
const LIMIT_NEAR: u64 = 80;
const LIMIT_REACHED: u64 = 95;

/// A higher limit means no limit: PHP sets the maximum integer for `-1`.
const NO_LIMIT: u64 = 1 << 60;

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

pub(super) fn find<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<Finding> {
    let summary = &context.summary;
    let mut findings = Vec::new();
    findings.extend(near_limit(summary));
    findings.extend(coverage(summary));
    if summary.chunks.is_known {
        findings.extend(fragmentation(summary, context.used));
        findings.extend(pinned(summary.chunks));
        findings.extend(cache(summary.chunks));
        findings.extend(expansion(summary.chunks));
        findings.extend([heuristic_state(summary.chunks), fragmentation_state(summary.chunks)]);
    }
    findings
}

fn near_limit(summary: &Summary) -> Option<Finding> {
    let Summary { peak, limit, .. } = *summary;
    let usage = summary.usage.unwrap_or_default();
    let peak = peak.max(usage);
    let severity = match limit {
        0 | NO_LIMIT.. => return None,
        _ if is_share(peak, LIMIT_REACHED, limit) => Severity::High,
        _ if is_share(peak, LIMIT_NEAR, limit) => Severity::Warning,
        _ => return None,
    };
    let text = format!(
        "{} of {} were in use at the peak ({:.1}%), {} are now",
        size(peak),
        size(limit),
        share(peak, limit),
        size(usage)
    );
    let finding = Finding::new(Kind::NearMemoryLimit, severity, text)
        .fact("memory_get_peak_usage", peak)
        .fact("memory_get_usage", usage)
        .fact("memory_get_real_usage", summary.real_usage)
        .fact("memory_limit", limit)
        .fact("percentage_of_limit", share(peak, limit))
        .likely(
            Confidence::High,
            "a little more input, and the program ends with \"Allowed memory size exhausted\"",
        )
        .check("Look at what holds most, below: it is what has to shrink")
        .check("See whether it grows with the input; if so, work on it piece by piece")
        .impact(peak);
    Some(finding)
}

fn coverage(summary: &Summary) -> Option<Finding> {
    let analyzed = summary.analyzed.filter(|&share| share < COVERED)?;
    let finding = Finding::new(
        Kind::CoverageGap,
        Severity::Warning,
        format!("{analyzed:.1}% of the memory in use is held by something known"),
    )
    .fact("heap_memory_analyzed_percentage", analyzed)
    .fact("heap_memory_accounting", summary.accounting.as_str())
    .likely(Confidence::High, "an extension holds the rest, or the heap changed while it was copied")
    .check("Look at the root `unattributed`: its blocks are listed by size");
    Some(finding)
}

/// The number of chunks beyond those that the memory in use would fill.
fn spare_chunks(chunks: Chunks, used: u64) -> u64 {
    chunks.count.saturating_sub(used.div_ceil(CHUNK_BYTES))
}

fn fragmentation(summary: &Summary, used: u64) -> Option<Finding> {
    let chunks = summary.chunks;
    let (free, spare) = (chunks.free(), spare_chunks(chunks, used));
    if free <= used || spare < SPARE_CHUNKS {
        return None;
    }
    let text = format!(
        "{} are free within {} chunks in use, which hold {}",
        size(free),
        count(chunks.count),
        size(used)
    );
    let finding = Finding::new(Kind::HeapFragmentation, Severity::Medium, text)
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
fn remedy(finding: Finding, chunks: Chunks) -> Finding {
    let reclaimable = chunks.reclaimable_bytes;
    let finding = if is_share(reclaimable, RECLAIMABLE, chunks.free()) {
        let size = size(reclaimable);
        finding.check(format!(
            "Call gc_mem_caches() between jobs: it frees {size}, and gives chunks back that are empty then"
        ))
    } else {
        finding
    };
    if reclaimable > chunks.free() / 2 {
        return finding.likely(
            Confidence::High,
            "many small values went: PHP keeps their pages for others of the same size until gc_mem_caches() is called",
        );
    }
    finding
        .likely(
            Confidence::High,
            "small things that stay were allocated between others that went: a chunk goes back only when it is empty",
        )
        .check("Let what is large go before what stays is made, or make what stays first")
        .check("Let a worker that has done such a job begin anew")
}

fn pinned(chunks: Chunks) -> Option<Finding> {
    let severity = match chunks.mostly_empty {
        // The last chunk of a heap that has just grown is nearly empty.
        0 | 1 => return None,
        SPARE_CHUNKS.. => Severity::Medium,
        _ => Severity::Warning,
    };
    // At least nine tenths of each such chunk are free.
    let least = chunks.mostly_empty.saturating_mul(CHUNK_BYTES / 10 * 9);
    let text = format!(
        "{} of {} chunks in use are at least nine tenths empty, and have not been given back",
        count(chunks.mostly_empty),
        count(chunks.count)
    );
    let finding = Finding::new(Kind::ChunksPinned, severity, text)
        .fact("chunks_mostly_empty_count", chunks.mostly_empty)
        .fact("chunks_count", chunks.count)
        .impact(least.min(chunks.free_bytes));
    // This is an estimate: memory in use and kept memory of a chunk may be in the same pages.
    let finding = if chunks.reclaimable_bytes > 0 {
        finding
            .likely(
                Confidence::Medium,
                "something small that stays is in each of them, or pages that PHP keeps for values of one size",
            )
            .check("Call gc_mem_caches() between jobs: it gives those back that nothing is in")
    } else {
        finding.likely(
            Confidence::High,
            "something small that stays is in each of them; gc_mem_caches() does not help",
        )
    };
    Some(finding.check("Let a worker that has done such a job begin anew"))
}

fn cache(chunks: Chunks) -> Option<Finding> {
    if chunks.cached <= chunks.count || chunks.cached < SPARE_CHUNKS {
        return None;
    }
    let bytes = chunks.cached.saturating_mul(CHUNK_BYTES);
    let text = format!(
        "{} chunks ({}) are kept for later, {} are in use",
        count(chunks.cached),
        size(bytes),
        count(chunks.count)
    );
    let finding = Finding::new(Kind::CacheBloat, Severity::Medium, text)
        .fact("cached_chunks_count", chunks.cached)
        .fact("cached_chunks_size", bytes)
        .fact("chunks_count", chunks.count)
        .likely(Confidence::High, "a job needed much more than what comes between jobs")
        .check("Call gc_mem_caches() between jobs: it gives these chunks back")
        .impact(bytes);
    Some(finding)
}

fn expansion(chunks: Chunks) -> Option<Finding> {
    if chunks.delete_count < DELETIONS {
        return None;
    }
    let text = format!(
        "a chunk was given back {} times at {} chunks: PHP is about to keep one more",
        count(chunks.delete_count),
        count(chunks.delete_boundary)
    );
    let finding = Finding::new(Kind::CacheExpansionImminent, Severity::Warning, text)
        .fact("last_chunks_delete_count", chunks.delete_count)
        .fact("last_chunks_delete_boundary", chunks.delete_boundary)
        .fact("cached_chunks_count", chunks.cached)
        .likely(Confidence::Medium, "the program's need swings around the border of a chunk")
        .check("Nothing, if memory is not short; otherwise gc_mem_caches() between jobs");
    Some(finding)
}

fn heuristic_state(chunks: Chunks) -> Finding {
    let text = format!(
        "{} chunks in use, {} at the peak, {} kept for later",
        count(chunks.count),
        count(chunks.peak),
        count(chunks.cached)
    );
    Finding::new(Kind::ChunkHeuristicState, Severity::Info, text)
        .fact("chunks_count", chunks.count)
        .fact("peak_chunks_count", chunks.peak)
        .fact("cached_chunks_count", chunks.cached)
        .fact("last_chunks_delete_boundary", chunks.delete_boundary)
        .fact("last_chunks_delete_count", chunks.delete_count)
}

fn fragmentation_state(chunks: Chunks) -> Finding {
    let text = format!(
        "{} free within chunks in use ({} a chunk), of which gc_mem_caches() frees {}; {} of them at least nine tenths empty",
        size(chunks.free()),
        size(each(chunks.free(), chunks.count)),
        size(chunks.reclaimable_bytes),
        count(chunks.mostly_empty)
    );
    Finding::new(Kind::ChunkFragmentationState, Severity::Info, text)
        .fact("chunks_total_free_bytes", chunks.free_bytes)
        .fact("chunks_free_blocks_bytes", chunks.free_blocks_bytes)
        .fact("chunks_reclaimable_bytes", chunks.reclaimable_bytes)
        .fact("chunks_mostly_empty_count", chunks.mostly_empty)
}
