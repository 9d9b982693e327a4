//! The memory of each root of the graph: exclusive, and shared with other roots.

use hashbrown::{HashMap, HashSet};
use serde::Serialize;

use crate::graph::children;
use crate::retention::Retention;
use crate::sink::NodeId;

use super::amounts::{share, size};
use super::finding::{Fact, FindingKind, FindingSeverity, HeapFinding};
use super::survey::HeapSurvey;

/// The memory of a root.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RootBlame {
    /// The root's name.
    #[serde(rename = "root")]
    pub name: String,
    /// The root.
    #[serde(rename = "node_id")]
    pub node: NodeId,
    /// The bytes that would be freed without it.
    pub exclusive_bytes: u64,
    /// The bytes that it leads to and that other roots lead to too.
    pub shared_bytes: u64,
    /// The percentage of both in the memory in use.
    pub percentage_of_heap: f64,
}

/// The maximum number of roots, more than a graph has: each root is a bit.
const MOST_ROOTS: usize = 64;

pub(super) fn blame(survey: &HeapSurvey<'_>) -> Vec<RootBlame> {
    let graph = survey.graph();
    let mut roots = Vec::new();
    for root in children(graph, None) {
        let node = survey.retention.representative(root.node);
        if roots.len() < MOST_ROOTS && roots.iter().all(|&(known, _)| known != node) {
            roots.push((node, root.link));
        }
    }
    let reached = roots_of_tops(survey, &roots.iter().map(|&(node, _)| node).collect::<Vec<_>>());
    let mut shared = vec![0_u64; roots.len()];
    for (&top, &bits) in reached.iter().filter(|(_, bits)| bits.count_ones() > 1) {
        for (place, sum) in shared.iter_mut().enumerate().filter(|(place, _)| bits >> place & 1 == 1) {
            // The retained memory of a root is exclusive, even if other roots refer to it.
            if roots[place].0 != top {
                *sum = sum.saturating_add(survey.retention.retained(top));
            }
        }
    }
    let row = |(&(node, link), shared_bytes)| {
        let exclusive_bytes = survey.retention.retained(node);
        let all = exclusive_bytes.saturating_add(shared_bytes);
        let percentage_of_heap = share(all, survey.used);
        RootBlame { name: survey.text(link), node, exclusive_bytes, shared_bytes, percentage_of_heap }
    };
    let mut rows: Vec<RootBlame> = roots.iter().zip(shared).map(row).collect();
    rows.retain(|row| row.exclusive_bytes > 0 || row.shared_bytes > 0);
    rows.sort_by_key(|row| {
        (std::cmp::Reverse(row.exclusive_bytes.saturating_add(row.shared_bytes)), row.node)
    });
    rows
}

/// For each node without dominator, the roots that lead to it, as bits.
fn roots_of_tops(survey: &HeapSurvey<'_>, roots: &[NodeId]) -> HashMap<NodeId, u64> {
    let mut below: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for (from, to) in crossings(survey) {
        below.entry(from).or_default().push(to);
    }
    let mut reached: HashMap<NodeId, u64> = HashMap::new();
    let mut ahead: Vec<NodeId> = Vec::new();
    for (place, &root) in roots.iter().enumerate() {
        let bit = 1 << place;
        ahead.push(root);
        while let Some(top) = ahead.pop() {
            let bits = reached.entry(top).or_default();
            if *bits & bit == 0 {
                *bits |= bit;
                ahead.extend(below.get(&top).into_iter().flatten());
            }
        }
    }
    reached
}

/// The references from below one node without dominator to another such node.
fn crossings(survey: &HeapSurvey<'_>) -> HashSet<(NodeId, NodeId)> {
    let (follow, retention) = (survey.heap.follow(), survey.retention);
    let tops = tops(survey.graph().counts().nodes, retention);
    let top = |node: NodeId| {
        let node = retention.representative(node);
        tops.get(node.0 as usize).copied().filter(|&top| top != NONE)
    };
    let mut crossings = HashSet::new();
    let mut last = (NONE, NONE);
    survey.graph().each_reference(&mut |parent, _, child| {
        let Some((from, to)) = parent.and_then(top).zip(top(child.node)) else { return };
        if from != to && last != (from, to) && follow.follows(child.strength) {
            last = (from, to);
            crossings.insert((NodeId(from), NodeId(to)));
        }
    });
    crossings
}

/// No node.
const NONE: u32 = u32::MAX;

/// For each node, the node without dominator above it, or itself. Works because dominators come before the nodes that
/// they dominate.
fn tops(count: usize, retention: &Retention) -> Vec<u32> {
    let mut tops = vec![NONE; count];
    for node in retention.nodes() {
        let above = retention.dominator(node).and_then(|dominator| tops.get(dominator.0 as usize).copied());
        if let Some(top) = tops.get_mut(node.0 as usize) {
            *top = above.unwrap_or(node.0);
        }
    }
    tops
}

/// The blame as a finding, for programs that read findings.
pub(super) fn finding(roots: &[RootBlame]) -> HeapFinding {
    let text = roots.first().map_or_else(
        || "no root retains memory".to_owned(),
        |root| {
            format!(
                "{} leads to {}, of which it alone retains {}",
                root.name,
                size(root.exclusive_bytes.saturating_add(root.shared_bytes)),
                size(root.exclusive_bytes)
            )
        },
    );
    let row = |root: &RootBlame| {
        vec![
            ("root", Fact::from(root.name.as_str())),
            ("exclusive_bytes", Fact::from(root.exclusive_bytes)),
            ("shared_bytes", Fact::from(root.shared_bytes)),
            ("total_bytes", Fact::from(root.exclusive_bytes.saturating_add(root.shared_bytes))),
            ("percentage_of_heap", Fact::from(root.percentage_of_heap)),
        ]
    };
    HeapFinding::new(FindingKind::RootBlame, FindingSeverity::Info, text)
        .fact("roots", Fact::Rows(roots.iter().map(row).collect()))
}
