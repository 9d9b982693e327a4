//! The severity of findings, by the memory that they concern.

use super::amounts::is_share;
use super::finding::{FindingSeverity, HeapFinding};
use super::limits::MEBIBYTE;

/// PHP allocates memory in chunks of 2 MiB. If a heap fits in two chunks, its distribution does not matter.
const SMALL_HEAP: u64 = 4 << 20;

/// The percentage of the heap from which a finding matters much.
const HIGH: u64 = 30;

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

/// Lowers the severity of findings about sizes in a small heap, where sizes do not matter.
pub(super) fn weighed(mut findings: Vec<HeapFinding>, used: u64) -> Vec<HeapFinding> {
    if used < SMALL_HEAP {
        for finding in &mut findings {
            finding.severity = finding.severity.max(FindingSeverity::Low);
        }
    }
    findings
}
