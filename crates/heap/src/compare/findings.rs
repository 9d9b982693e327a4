//! New, resolved and changed findings, and findings that only a comparison can make.

use serde::{Serialize, Serializer};

use super::HolderChange;
use crate::findings::{Confidence, FindingKind, FindingPlace, FindingSeverity, HeapFinding};

/// The findings of the last heap compared with those of the first. Findings of one kind about one thing are the same,
/// wherever its line is now.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FindingsDiff {
    /// The findings that only the last heap has.
    pub new: Vec<HeapFinding>,
    /// The findings that only the first heap has.
    pub resolved: Vec<HeapFinding>,
    /// The findings of both heaps with different severity or impact: before and after.
    #[serde(serialize_with = "pairs")]
    pub changed: Vec<(HeapFinding, HeapFinding)>,
}

/// Pairs of findings as objects of `baseline` and `target`.
fn pairs<S: Serializer>(changed: &[(HeapFinding, HeapFinding)], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Pair<'a> {
        baseline: &'a HeapFinding,
        target: &'a HeapFinding,
    }
    serializer.collect_seq(changed.iter().map(|(baseline, target)| Pair { baseline, target }))
}

impl FindingsDiff {
    pub(super) fn between(first: &[HeapFinding], last: &[HeapFinding]) -> Self {
        let counterparts = counterparts(first, last);
        let mut diff = Self::default();
        for (now, was) in last.iter().zip(&counterparts) {
            match was.map(|was| &first[was]) {
                None => diff.new.push(now.clone()),
                Some(was) if (was.severity, was.impact_bytes) != (now.severity, now.impact_bytes) => {
                    diff.changed.push((was.clone(), rated(was, now)));
                }
                Some(_) => {}
            }
        }
        let is_gone = |place: &usize| !counterparts.contains(&Some(*place));
        diff.resolved = (0..first.len()).filter(is_gone).map(|place| first[place].clone()).collect();
        diff
    }
}

/// The finding of the last heap, with a severity that considers its growth: however far the limit is, what grows so much
/// reaches it.
fn rated(was: &HeapFinding, now: &HeapFinding) -> HeapFinding {
    let grown = now.impact_bytes.saturating_sub(was.impact_bytes);
    let is_much = grown >= MUCH_GROWTH && grown >= was.impact_bytes / 4;
    let severity = if is_much { now.severity.min(FindingSeverity::Medium) } else { now.severity };
    HeapFinding { severity, ..now.clone() }
}

/// For each finding of the last heap, the place of the same one of the first heap: one with the same path, or else one
/// with the same subject.
fn counterparts(first: &[HeapFinding], last: &[HeapFinding]) -> Vec<Option<usize>> {
    let mut found: Vec<Option<usize>> = vec![None; last.len()];
    for is_same in [has_same_path, has_same_subject] {
        for (place, now) in last.iter().enumerate() {
            if found[place].is_none() {
                let mut candidates = (0..first.len()).filter(|was| !found.contains(&Some(*was)));
                found[place] = candidates.find(|&was| is_same(&first[was], now));
            }
        }
    }
    found
}

fn has_same_path(left: &HeapFinding, right: &HeapFinding) -> bool {
    let path = |finding: &HeapFinding| finding.place.as_ref().map(|place| place.path.clone());
    has_same_subject(left, right) && path(left) == path(right)
}

fn has_same_subject(left: &HeapFinding, right: &HeapFinding) -> bool {
    left.kind == right.kind && left.subject == right.subject
}

/// The minimum growth that matters however large the limit is, in bytes.
const MUCH_GROWTH: u64 = 1 << 20;

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
    let is_series = counts.len() > 2;
    let confidence = if is_series { Confidence::High } else { Confidence::Medium };
    let is_severe = is_series || impact >= MUCH_GROWTH;
    let severity = if is_severe { FindingSeverity::High } else { FindingSeverity::Medium };
    let mut finding = HeapFinding::new(
        FindingKind::StaticGrowth,
        severity,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::NodeId;

    fn holder(counts: &[u64], growth: i64) -> HolderChange {
        HolderChange {
            path: b"Cache::$items".to_vec(),
            node_type: b"array".to_vec(),
            alike: 1,
            nodes: counts.iter().map(|_| Some(NodeId(7))).collect(),
            retained: counts.iter().map(|_| None).collect(),
            counts: counts.iter().copied().map(Some).collect(),
            growth,
            is_steady: true,
            is_static: true,
        }
    }

    #[test]
    fn a_static_variable_grows_if_it_gains_enough_elements_in_each_heap() {
        let told = |counts: &[u64]| static_growth(&[holder(counts, 5000)]).pop();
        assert_eq!(told(&[100, 115]), None);
        let found = told(&[100, 116]).unwrap();
        assert_eq!(found.summary, "Cache::$items gained 16 elements");
        let facts = [("elements_before", 100_u64.into()), ("elements_now", 116_u64.into())];
        assert_eq!((&found.facts[..], found.impact_bytes), (&facts[..], 5000));
        assert_eq!(found.place.unwrap(), FindingPlace { node: NodeId(7), path: "Cache::$items".to_owned() });
        assert_eq!(told(&[100, 200, 200]), None);
        assert_eq!(told(&[100]), None);
        let not_static = HolderChange { is_static: false, ..holder(&[100, 200], 5000) };
        assert_eq!(static_growth(&[not_static]), []);
        assert_eq!(static_growth(&[holder(&[100, 200], -1)]), []);
    }

    #[test]
    fn growth_is_severe_if_it_is_large_or_goes_on() {
        let rated = |counts: &[u64], growth| {
            let found = static_growth(&[holder(counts, growth)]).pop().unwrap();
            (found.severity, found.confidence)
        };
        assert_eq!(rated(&[0, 16], (1 << 20) - 1), (FindingSeverity::Medium, Confidence::Medium));
        assert_eq!(rated(&[0, 16], 1 << 20), (FindingSeverity::High, Confidence::Medium));
        assert_eq!(rated(&[0, 1, 16], 1), (FindingSeverity::High, Confidence::High));
    }

    #[test]
    fn a_finding_that_grows_much_is_at_least_medium() {
        let finding = |severity, impact| {
            let mut finding = HeapFinding::new(FindingKind::LargeArray, severity, "an array");
            finding.impact_bytes = impact;
            finding
        };
        let changed = |was: u64, now: u64| {
            let [first, last] = [was, now].map(|impact| [finding(FindingSeverity::Low, impact)]);
            FindingsDiff::between(&first, &last).changed.pop().map(|(_, now)| now.severity)
        };
        const MIB: u64 = 1 << 20;
        assert_eq!(changed(MIB, MIB), None);
        assert_eq!(changed(MIB, 2 * MIB - 1), Some(FindingSeverity::Low));
        assert_eq!(changed(MIB, 2 * MIB), Some(FindingSeverity::Medium));
        // A quarter of what there was.
        assert_eq!(changed(8 * MIB, 10 * MIB - 1), Some(FindingSeverity::Low));
        assert_eq!(changed(8 * MIB, 10 * MIB), Some(FindingSeverity::Medium));
        let [first, last] = [[finding(FindingSeverity::Low, MIB)], [finding(FindingSeverity::High, 3 * MIB)]];
        assert_eq!(FindingsDiff::between(&first, &last).changed[0].1.severity, FindingSeverity::High);
    }
}
