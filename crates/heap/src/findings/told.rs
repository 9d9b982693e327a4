//! Keeps one finding for each part of the memory that several findings about sizes tell.

use crate::sink::NodeId;

use super::amounts::is_share;
use super::finding::{FindingKind, HeapFinding};
use super::limits::MOST;
use super::survey::HeapSurvey;

/// Two findings along one chain tell the same memory if the smaller one has at least this percentage of the larger one's.
const SAME: u64 = 50;

/// The maximum number of steps up from a place to search for another one.
const STEPS: usize = 1000;

/// The kinds that say how much memory something takes, the most useful first.
const OF_SIZES: [FindingKind; 10] = [
    FindingKind::BottleneckPath,
    FindingKind::PropertyScaling,
    FindingKind::OwnershipPattern,
    FindingKind::ExpensiveProperty,
    FindingKind::LargeArray,
    FindingKind::LargeString,
    FindingKind::ChokePoint,
    FindingKind::DominantClass,
    FindingKind::DominantType,
    FindingKind::CompanionCluster,
];

/// The kinds that say how memory is divided among many values: kept as a detail of the finding that tells the memory.
const DIVIDING: [FindingKind; 4] = [
    FindingKind::PropertyScaling,
    FindingKind::OwnershipPattern,
    FindingKind::DominantClass,
    FindingKind::CompanionCluster,
];

/// Removes findings about sizes if a better one tells the same memory: its place is above or below on the same chain, and
/// it concerns nearly as much.
pub(super) fn once(survey: &HeapSurvey<'_>, findings: &mut Vec<HeapFinding>) {
    findings
        .sort_by_key(|finding| (finding.severity, rank(finding), std::cmp::Reverse(finding.impact_bytes)));
    let mut kept: Vec<HeapFinding> = Vec::with_capacity(findings.len());
    for finding in findings.drain(..) {
        match kept.iter_mut().find(|other| tells(survey, other, &finding)) {
            None => kept.push(finding),
            Some(other) => {
                let is_detail = DIVIDING.contains(&finding.kind) && other.details.len() < MOST;
                other.details.extend(is_detail.then_some(finding.summary));
            }
        }
    }
    *findings = kept;
}

/// Whether a finding that is kept tells the memory of another one.
fn tells(survey: &HeapSurvey<'_>, kept: &HeapFinding, other: &HeapFinding) -> bool {
    let Some((upper, node)) = place(kept).zip(place(other)) else { return false };
    if rank(kept).is_none() || rank(other).is_none() {
        return false;
    }
    let (bytes, told) = (other.impact_bytes, kept.impact_bytes);
    // What holds the bottleneck is in its chain.
    let holds = kept.kind == FindingKind::BottleneckPath && is_above(survey, node, upper);
    holds || is_share(bytes.min(told), SAME, bytes.max(told)) && are_on_one_chain(survey, node, upper)
}

fn rank(finding: &HeapFinding) -> Option<usize> {
    OF_SIZES.iter().position(|&kind| kind == finding.kind)
}

fn place(finding: &HeapFinding) -> Option<NodeId> {
    finding.place.as_ref().map(|place| place.node)
}

fn are_on_one_chain(survey: &HeapSurvey<'_>, one: NodeId, other: NodeId) -> bool {
    is_above(survey, one, other) || is_above(survey, other, one)
}

/// Whether `upper` dominates `lower`, or is the same.
fn is_above(survey: &HeapSurvey<'_>, upper: NodeId, lower: NodeId) -> bool {
    let upper = survey.retention.representative(upper);
    let lower = survey.retention.representative(lower);
    let upwards = std::iter::successors(Some(lower), |&node| survey.retention.dominator(node));
    upwards.take(STEPS).any(|node| node == upper)
}
