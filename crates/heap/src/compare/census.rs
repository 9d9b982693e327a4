//! The counts of one heap that are compared with those of others.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::Compared;
use super::holders::{LargeHolder, holders};
use crate::findings::{FindingSeverity, HeapFinding, report};
use crate::graph::{Graph, MemoryTotal, child, children, locations};
use crate::names::NodeType;
use crate::retention::Follow;
use crate::totals::{TotalsScope, totals};
use crate::views::Heap;

/// Count and bytes by name.
pub(super) type TotalsByName = BTreeMap<Vec<u8>, (u64, u64)>;

/// The counts of a heap.
pub(super) struct HeapCensus {
    pub(super) heap: Compared,
    pub(super) metrics: Vec<(String, f64)>,
    pub(super) types: TotalsByName,
    pub(super) classes: TotalsByName,
    pub(super) holders: Vec<LargeHolder>,
    /// The findings of the heap.
    pub(super) findings: Vec<HeapFinding>,
    /// The addresses of the program's classes, by name.
    places: HashMap<Vec<u8>, u64>,
}

impl HeapCensus {
    pub(super) fn of(graph: &dyn Graph, follow: Follow) -> Self {
        let heap = Heap::new(graph, follow);
        let retention = heap.retention();
        let mut findings = report(&heap).findings;
        findings.retain(|finding| finding.severity != FindingSeverity::Info);
        let totals = totals(&graph, TotalsScope::Everything);
        let by_name = |totals: Vec<MemoryTotal>| -> TotalsByName {
            totals.into_iter().map(|total| (total.name, (total.count, total.memory_usage))).collect()
        };
        Self {
            heap: Compared {
                created: graph.created().to_owned(),
                nodes: graph.counts().nodes as u64,
                bytes: retention.total(),
            },
            metrics: metrics(graph),
            types: by_name(totals.location_types),
            classes: by_name(totals.classes),
            holders: holders(graph, retention),
            findings,
            places: places(graph),
        }
    }

    /// Whether all classes known in both are at the same addresses: it is one process, or both were forked from one.
    pub(super) fn is_of_one_process(&self, other: &Self) -> bool {
        let mut shared =
            self.places.iter().filter_map(|(name, place)| Some((place, other.places.get(name)?))).peekable();
        shared.peek().is_some() && shared.all(|(left, right)| left == right)
    }
}

fn metrics(graph: &dyn Graph) -> Vec<(String, f64)> {
    let text = |string| String::from_utf8_lossy(graph.string(string)).into_owned();
    let number = |value: String| value.parse::<f64>().ok().filter(|number| number.is_finite());
    graph.summary().iter().filter_map(|&(key, value)| Some((text(key), number(text(value))?))).collect()
}

/// The addresses of classes by their names in the table.
fn places(graph: &dyn Graph) -> HashMap<Vec<u8>, u64> {
    let is_table = |node| graph.node_type(node) == NodeType::DEFINED_CLASSES;
    let tables = children(graph, None).filter(|root| is_table(root.node));
    let classes = tables.flat_map(|table| children(graph, Some(table.node)));
    let place = |node| locations(graph, node).next().map(|location| location.address);
    let named = classes.filter_map(|class| {
        let place = place(class.node).or_else(|| place(child(graph, class.node, b"class_entry")?))?;
        Some((graph.string(class.link).to_vec(), place))
    });
    named.collect()
}
