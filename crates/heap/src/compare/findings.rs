//! New, resolved and changed findings, and findings that only a comparison can make.

use super::HolderChange;
use crate::findings::{Confidence, FindingKind, FindingPlace, FindingSeverity, HeapFinding};

/// The findings of the last heap compared with those of the first. Findings of one kind at one place are the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FindingsDiff {
    /// The findings that only the last heap has.
    pub new: Vec<HeapFinding>,
    /// The findings that only the first heap has.
    pub resolved: Vec<HeapFinding>,
    /// The findings of both heaps with different severity or impact: before and after.
    pub changed: Vec<(HeapFinding, HeapFinding)>,
}

impl FindingsDiff {
    pub(super) fn between(first: &[HeapFinding], last: &[HeapFinding]) -> Self {
        let counterpart = |of: &[HeapFinding], wanted: &HeapFinding| {
            of.iter().find(|other| is_same(other, wanted)).cloned()
        };
        let missing = |list: &[HeapFinding], other: &[HeapFinding]| -> Vec<HeapFinding> {
            list.iter().filter(|finding| counterpart(other, finding).is_none()).cloned().collect()
        };
        let changed = last.iter().filter_map(|now| {
            let was = counterpart(first, now)?;
            let differs = (was.severity, was.impact_bytes) != (now.severity, now.impact_bytes);
            differs.then(|| (was, now.clone()))
        });
        Self { new: missing(last, first), resolved: missing(first, last), changed: changed.collect() }
    }
}

/// Whether two findings are about the same thing.
fn is_same(left: &HeapFinding, right: &HeapFinding) -> bool {
    let path = |finding: &HeapFinding| finding.place.as_ref().map(|place| place.path.clone());
    left.kind == right.kind && path(left) == path(right)
}

/// The minimum number of added elements that is growth: static variables hold their values and rarely release any.
const LEAST_ELEMENTS: u64 = 16;

/// Finds static variables that have more elements in each heap than in the previous one.
pub(super) fn static_growth(holders: &[HolderChange]) -> Vec<HeapFinding> {
    holders.iter().filter(|holder| holder.is_static).filter_map(growing).collect()
}

fn growing(holder: &HolderChange) -> Option<HeapFinding> {
    let counts: Option<Vec<u64>> = holder.counts.iter().copied().collect();
    let counts = counts.filter(|counts| counts.windows(2).all(|pair| pair[0] < pair[1]))?;
    let (before, now) = (*counts.first()?, *counts.last()?);
    let node = holder.nodes.last().copied().flatten()?;
    let impact = u64::try_from(holder.growth).ok().filter(|_| now - before >= LEAST_ELEMENTS)?;
    let path = String::from_utf8_lossy(&holder.path).into_owned();
    // Two heaps may differ by chance; a series that only grows does not.
    let confidence = if counts.len() > 2 { Confidence::High } else { Confidence::Medium };
    let mut finding = HeapFinding::new(
        FindingKind::StaticGrowth,
        FindingSeverity::High,
        format!("{path} gained {} elements", now - before),
    )
    .fact("elements_before", before)
    .fact("elements_now", now)
    .likely(confidence, "A static variable lives as long as the process, and so do its values.")
    .check("Bound it, or clear it at the end of each request or job.");
    finding.impact_bytes = impact;
    finding.place = Some(FindingPlace { node, path });
    Some(finding)
}
