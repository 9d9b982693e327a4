//! Cycles: nodes that hold each other.

use hashbrown::HashMap;

use serde::Serialize;

use super::Heap;
use crate::graph::locations;
use crate::largest::sort_largest_first;
use crate::retention::{Cycle, Retention};
use crate::serialized;
use crate::sink::NodeId;

/// A summary of a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CycleView {
    /// The first of its nodes.
    #[serde(rename = "first_node_id")]
    pub first: NodeId,
    /// The number of nodes.
    pub nodes: u64,
    /// The classes and the number of objects of each, the most first.
    #[serde(serialize_with = "serialized::counts")]
    pub classes: Vec<(Vec<u8>, u64)>,
    /// The bytes of its nodes' own blocks.
    pub shallow_bytes: u64,
    /// The retained size of the cycle as a whole in bytes.
    pub retained_bytes: u64,
    /// The number of its nodes that are referred to from outside.
    pub entries: u64,
}

/// The cycles with at least one object, array or PHP reference of the program, the largest retained size first.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::retention::Follow;
use borehole_heap::views::{Heap, cycles};

assert!(cycles(&Heap::new(&graph, Follow::default())).is_empty());"#
)]
#[must_use]
pub fn cycles(heap: &Heap<'_>) -> Vec<CycleView> {
    let retention = heap.retention();
    let has_several = |cycle: &Cycle| retention.head(cycle).is_none();
    // If a cycle is entered at several nodes, none of its nodes retains the whole cycle.
    let whole = retention
        .cycles()
        .iter()
        .any(has_several)
        .then(|| Retention::of(&heap.graph(), heap.follow()).with_whole_cycles(&heap.graph()));
    let mut views: Vec<CycleView> = retention
        .cycles()
        .iter()
        .map(|cycle| view(heap, cycle, whole.as_ref().unwrap_or(retention)))
        .collect();
    views.sort_by_key(|view| (std::cmp::Reverse(view.retained_bytes), view.first));
    views
}

fn view(heap: &Heap<'_>, cycle: &Cycle, whole: &Retention) -> CycleView {
    let graph = heap.graph();
    let nodes = || cycle.nodes.iter().map(|&node| NodeId(node));
    let mut classes: HashMap<&[u8], u64> = HashMap::new();
    for node in nodes() {
        if let Some(class) = locations(graph, node).find_map(|location| location.class) {
            *classes.entry(graph.string(class)).or_default() += 1;
        }
    }
    let mut classes: Vec<(Vec<u8>, u64)> =
        classes.into_iter().map(|(name, count)| (name.to_vec(), count)).collect();
    sort_largest_first(&mut classes, |&(_, count)| count, |(name, _)| name);
    let is_entry = |node: &NodeId| {
        let mut referrers = heap.parents().referrers(*node);
        referrers.any(|(from, _)| from.is_none_or(|from| cycle.nodes.binary_search(&from.0).is_err()))
    };
    let first = NodeId(cycle.nodes[0]);
    CycleView {
        first,
        nodes: cycle.nodes.len() as u64,
        classes,
        shallow_bytes: nodes()
            .map(|node| heap.retention().shallow(&graph, node))
            .fold(0, u64::saturating_add),
        retained_bytes: retained(whole, heap.retention(), cycle),
        entries: nodes().filter(is_entry).count() as u64,
    }
}

/// The retained size of a cycle: that of its head, or of all its nodes merged.
fn retained(whole: &Retention, single: &Retention, cycle: &Cycle) -> u64 {
    match single.head(cycle) {
        Some(head) => single.retained(head),
        None => whole.retained(NodeId(cycle.nodes[0])),
    }
}
