//! The severity of findings, by the memory that they concern, its share in the heap, and its share in the memory limit.
//!
//! Each pass rates a finding by what it sees. [`Scale::rated`] then lowers what does not matter in this process: a cache of
//! 30 MiB ends a program with a limit of 32 MiB, and is nothing to one with 512 MiB.

use super::allocator::NO_LIMIT;
use super::amounts::is_share;
use super::finding::{FindingKind, FindingSeverity, HeapFinding};
use super::limits::MEBIBYTE;
use super::summary::HeapSummary;

/// PHP allocates memory in chunks of 2 MiB. If a heap fits in two chunks, its distribution does not matter.
const SMALL_HEAP: u64 = 4 << 20;

/// The percentage of the heap from which a finding matters much.
const HIGH: u64 = 30;

/// Stands for the limit of a process without one.
///
/// Source: PHP 8.2, main/main.c, the default of `memory_limit`.
const DEFAULT_LIMIT: u64 = 128 << 20;

/// Severities of memory that is merely used, by the percentage of the limit: every program uses memory.
const USED: [(u64, FindingSeverity); 3] =
    [(50, FindingSeverity::High), (25, FindingSeverity::Medium), (10, FindingSeverity::Low)];

/// Severities of memory that is wasted, by the share of the limit in thousandths.
const WASTED: [(u64, FindingSeverity); 3] =
    [(30, FindingSeverity::High), (10, FindingSeverity::Medium), (1, FindingSeverity::Low)];

/// The part of the memory that a finding of this kind is about.
enum Matter {
    /// Memory that is in use, perhaps rightly.
    Used,
    /// Memory that the program could do without.
    Wasted,
    /// Something else.
    Other,
}

/// Medium from a mebibyte on.
pub(super) fn by_size(bytes: u64) -> FindingSeverity {
    if bytes >= MEBIBYTE { FindingSeverity::Medium } else { FindingSeverity::Low }
}

/// Like [`by_size`], and high from a percentage of the bytes in use on.
pub(super) fn by_share(bytes: u64, used: u64) -> FindingSeverity {
    if bytes >= MEBIBYTE && is_share(bytes, HIGH, used) { FindingSeverity::High } else { by_size(bytes) }
}

/// The severity of the first of these percentages of `whole` that `part` reaches.
pub(super) fn reached(part: u64, whole: u64, levels: &[(u64, FindingSeverity)]) -> Option<FindingSeverity> {
    levels.iter().find(|&&(percent, _)| is_share(part, percent, whole)).map(|&(_, severity)| severity)
}

/// The measures that sizes are compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    used: u64,
    limit: u64,
}

impl Scale {
    pub(super) fn of(summary: &HeapSummary, used: u64) -> Self {
        let limit = Some(summary.limit).filter(|&limit| limit > 0 && limit < NO_LIMIT);
        Self { used, limit: limit.unwrap_or(DEFAULT_LIMIT) }
    }

    /// Lowers the severity of findings about sizes that do not matter in this process.
    pub(super) fn rated(self, mut findings: Vec<HeapFinding>) -> Vec<HeapFinding> {
        for finding in &mut findings {
            finding.severity = finding.severity.max(self.worst(finding));
        }
        findings
    }

    /// The worst severity that a finding may have.
    fn worst(self, finding: &HeapFinding) -> FindingSeverity {
        let small = if self.used < SMALL_HEAP { FindingSeverity::Low } else { FindingSeverity::High };
        let bytes = finding.impact_bytes;
        let by_limit = match matter(finding.kind) {
            Matter::Used => reached(bytes, self.limit, &USED),
            Matter::Wasted => reached(bytes.saturating_mul(10), self.limit, &WASTED),
            Matter::Other => return FindingSeverity::High,
        };
        // The largest value is always told: somebody who asks for a report wants to know.
        let least = match finding.kind {
            FindingKind::BottleneckPath => FindingSeverity::Low,
            _ => FindingSeverity::Info,
        };
        by_limit.unwrap_or(FindingSeverity::Info).min(least).max(small)
    }
}

const fn matter(kind: FindingKind) -> Matter {
    match kind {
        FindingKind::BottleneckPath
        | FindingKind::ChokePoint
        | FindingKind::DominantClass
        | FindingKind::DominantType
        | FindingKind::LargeArray
        | FindingKind::LargeString
        | FindingKind::PropertyScaling
        | FindingKind::ExpensiveProperty
        | FindingKind::OwnershipPattern
        | FindingKind::CompanionCluster
        // Cycles that something holds are normal; garbage is reported by itself.
        | FindingKind::CycleCluster
        | FindingKind::MicroCycle => Matter::Used,
        FindingKind::GarbageCycles
        | FindingKind::ClosureKeepsThis
        | FindingKind::DuplicateStrings
        | FindingKind::DuplicateArrays
        | FindingKind::OverallocatedArrays
        | FindingKind::SparseArray
        | FindingKind::PropertyTables
        | FindingKind::DynamicPropertiesOverhead
        | FindingKind::StructuralDuplicate
        | FindingKind::EmptyObject
        | FindingKind::DedupCandidate => Matter::Wasted,
        _ => Matter::Other,
    }
}
