//! Compares heaps: two, or a series.
//!
//! Totals by type and by class are compared by name. Holders, the nodes that retain at least [`LEAST_BYTES`], are
//! compared one by one. They are matched by their path along tree references, and in heaps of one process also by
//! address, if that path changed.
//!
//! Growth is attributed to the deepest holder that explains it: the growth of a holder's parts belongs to the parts,
//! unless they are new. So a cache that got ten thousand entries comes first, not its entries, and not the holders
//! above the cache.

mod census;
mod findings;
mod holders;
mod keys;

use std::collections::BTreeMap;

use borehole_text::percent_of;
use serde::Serialize;

use crate::graph::{Graph, TreeParents};
use crate::names::NodeType;
use crate::path;
use crate::retention::Follow;
use crate::serialized;
use crate::sink::NodeId;
use census::HeapCensus;
pub use findings::FindingsDiff;
pub use holders::LEAST_BYTES;

/// A compared heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// The time of the snapshot, in ISO 8601; empty if unknown.
    #[serde(rename = "captured_at")]
    pub created: String,
    /// The number of nodes.
    #[serde(rename = "node_count")]
    pub nodes: u64,
    /// The bytes of PHP's own memory that are reached.
    pub bytes: u64,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeapComparison {
    /// The heaps, in the order given.
    pub heaps: Vec<Compared>,
    /// Whether they are from one process, or from processes forked from one, so that addresses identify nodes that stayed.
    pub same_process: bool,
    /// The numbers in the summaries, by name.
    pub metrics: Vec<MetricSeries>,
    /// Memory by location type.
    pub types: Vec<TotalChange>,
    /// Objects by class.
    pub classes: Vec<TotalChange>,
    /// Holders in both the first and the last heap that changed beyond their parts.
    pub holders: HolderList,
    /// Holders that the first heap does not have; the outermost ones only.
    pub added: HolderList,
    /// Holders that the last heap does not have; the outermost ones only.
    pub removed: HolderList,
    /// The difference between the findings of the first and the last heap.
    pub findings: FindingsDiff,
}

/// A number in each heap; `None` if a heap does not have it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MetricSeries {
    /// The name of the number.
    pub name: String,
    /// The number in each heap.
    pub values: Vec<Option<f64>>,
}

/// The items of one name in each heap.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TotalChange {
    /// The name of the type or class.
    pub name: Vec<u8>,
    /// The number of items.
    pub counts: Vec<u64>,
    /// The bytes of their own blocks.
    pub bytes: Vec<u64>,
    /// Whether the bytes are more in each heap than in the previous one.
    pub is_steady: bool,
}

/// Changes of holders, the largest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HolderList {
    /// The changes with their paths.
    pub rows: Vec<HolderChange>,
    /// The changes beyond those that anybody reads, without paths.
    pub further: Vec<FurtherChange>,
}

/// A change whose path is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FurtherChange {
    /// The number of holders.
    pub alike: u64,
    /// The growth from the first heap to the last.
    pub growth: i64,
    /// The retained size in the first heap; `None` if it does not have the holder.
    pub retained_before: Option<u64>,
}

/// The changes of a holder, or of holders that are alike: elements of one list. Of those, all numbers are sums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HolderChange {
    /// The path in PHP's syntax, in the last heap that has the holder. `[]` stands for the keys of lists if there are
    /// several holders.
    #[serde(serialize_with = "serialized::text")]
    pub path: Vec<u8>,
    /// The type of the node.
    #[serde(rename = "type", serialize_with = "serialized::text")]
    pub node_type: Vec<u8>,
    /// The number of holders.
    pub alike: u64,
    /// The node in each heap; of several holders, of the one that changed most.
    #[serde(rename = "node_ids")]
    pub nodes: Vec<Option<NodeId>>,
    /// The retained size in bytes.
    #[serde(rename = "retained_bytes")]
    pub retained: Vec<Option<u64>>,
    /// The stored number of elements, properties or bytes.
    pub counts: Vec<Option<u64>>,
    /// The growth from the first heap to the last, without that of its parts; negative if it shrank.
    #[serde(rename = "delta")]
    pub growth: i64,
    /// Whether the retained size is larger in each heap than in the previous one.
    #[serde(rename = "steady")]
    pub is_steady: bool,
    /// Whether a static property or variable holds it, which lives as long as the process.
    #[serde(rename = "static")]
    pub is_static: bool,
}

impl TotalChange {
    /// The change of the bytes from the first heap to the last.
    #[must_use]
    pub fn growth(&self) -> i64 {
        delta(self.bytes.first().copied(), self.bytes.last().copied())
    }
}

impl MetricSeries {
    /// The change from the first heap to the last. A heap that does not have the number counts as 0.
    #[must_use]
    pub fn growth(&self) -> f64 {
        self.last().unwrap_or(0.0) - self.first().unwrap_or(0.0)
    }

    /// The growth in percent of the number in the first heap; `None` from nothing.
    #[must_use]
    pub fn growth_percent(&self) -> Option<f64> {
        let before = self.first().filter(|before| *before != 0.0)?;
        Some(100.0 * self.growth() / before.abs())
    }

    fn first(&self) -> Option<f64> {
        self.values.first().copied().flatten()
    }

    fn last(&self) -> Option<f64> {
        self.values.last().copied().flatten()
    }
}

impl HolderList {
    /// The number of holders.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.rows.iter().map(|row| row.alike).chain(self.further.iter().map(|change| change.alike)).sum()
    }

    /// Keeps the changes that are shown, given the growth and the retained size in the first heap.
    pub fn retain(&mut self, is_shown: impl Fn(i64, Option<u64>) -> bool) {
        self.rows.retain(|row| is_shown(row.growth, row.retained_before()));
        self.further.retain(|change| is_shown(change.growth, change.retained_before));
    }

    /// Keeps the paths of the first `limit` changes only.
    pub fn limit(&mut self, limit: usize) {
        let cut = self.rows.split_off(limit.min(self.rows.len()));
        self.further.splice(0..0, cut.iter().map(HolderChange::further));
    }
}

impl HolderChange {
    fn retained_before(&self) -> Option<u64> {
        self.retained.first().copied().flatten()
    }

    fn further(&self) -> FurtherChange {
        let retained_before = self.retained_before();
        FurtherChange { alike: self.alike, growth: self.growth, retained_before }
    }
}

/// Growth in percent; `None` from nothing.
///
/// # Examples
///
/// ```
/// use borehole_heap::compare::growth_percent;
///
/// assert_eq!([growth_percent(5, 10), growth_percent(5, 0)], [Some(50.0), None]);
/// ```
#[must_use]
pub fn growth_percent(growth: i64, before: u64) -> Option<f64> {
    (before > 0).then(|| percent_of(growth, before))
}

/// Compares heaps, the oldest first. Each heap is analysed separately, so that memory holds the analysis of one heap,
/// and the holders of all.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::compare::{HolderList, MetricSeries, TotalChange, compare};
use borehole_heap::retention::Follow;

let comparison = compare(&[&graph, &graph], Follow::default());
assert!(comparison.heaps.len() == 2 && comparison.added.rows.is_empty());

// The lists are of named types, whose rows know by how much they grew.
let added: &HolderList = &comparison.added;
let metrics: &[MetricSeries] = &comparison.metrics;
let classes: &[TotalChange] = &comparison.classes;
assert!(added.rows.is_empty() && metrics.iter().all(|metric| metric.growth() == 0.0));
assert!(classes.iter().all(|class| class.growth() == 0));"#
)]
#[must_use]
pub fn compare(graphs: &[&dyn Graph], follow: Follow) -> HeapComparison {
    let censuses: Vec<HeapCensus> = graphs.iter().map(|graph| HeapCensus::of(*graph, follow)).collect();
    let same_process =
        censuses.windows(2).all(|pair| pair[0].is_of_one_process(&pair[1])) && graphs.len() > 1;
    let holders: Vec<_> = censuses.iter().map(|census| census.holders.as_slice()).collect();
    let changes = holders::compare(&holders, same_process);
    let holders = told(graphs, changes.changed);
    let ends = (censuses.first(), censuses.last());
    let mut findings = match ends {
        (Some(first), Some(last)) => FindingsDiff::between(&first.findings, &last.findings),
        _ => FindingsDiff::default(),
    };
    findings.new.splice(0..0, findings::static_growth(&holders.rows));
    HeapComparison {
        heaps: censuses.iter().map(|census| census.heap.clone()).collect(),
        same_process,
        metrics: metrics(&censuses),
        types: totals(&censuses, |census| &census.types),
        classes: totals(&censuses, |census| &census.classes),
        holders,
        added: told(graphs, changes.added),
        removed: told(graphs, changes.removed),
        findings,
    }
}

fn metrics(censuses: &[HeapCensus]) -> Vec<MetricSeries> {
    let mut names: Vec<&str> = Vec::new();
    for name in censuses.iter().flat_map(|census| census.metrics.iter().map(|(name, _)| name.as_str())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let value = |census: &HeapCensus, name: &str| {
        census.metrics.iter().find(|(known, _)| known == name).map(|known| known.1)
    };
    let series = |name: &str| MetricSeries {
        name: name.to_owned(),
        values: censuses.iter().map(|census| value(census, name)).collect(),
    };
    names.into_iter().map(series).collect()
}

/// Count and bytes by name, the largest growth first.
fn totals(censuses: &[HeapCensus], of: impl Fn(&HeapCensus) -> &census::TotalsByName) -> Vec<TotalChange> {
    let mut changes: BTreeMap<&[u8], TotalChange> = BTreeMap::new();
    for (position, census) in censuses.iter().enumerate() {
        for (name, &(count, bytes)) in of(census) {
            let none = || vec![0; censuses.len()];
            let change = changes.entry(name).or_insert_with(|| TotalChange {
                name: name.clone(),
                counts: none(),
                bytes: none(),
                is_steady: false,
            });
            (change.counts[position], change.bytes[position]) = (count, bytes);
        }
    }
    let mut changes: Vec<TotalChange> = changes.into_values().collect();
    for change in &mut changes {
        change.is_steady = is_steady(&change.bytes);
    }
    changes.sort_by_key(|change| {
        (std::cmp::Reverse(change.is_steady && censuses.len() > 2), std::cmp::Reverse(change.growth().abs()))
    });
    changes
}

fn is_steady(values: &[u64]) -> bool {
    values.windows(2).all(|pair| pair[0] < pair[1])
}

fn delta(first: Option<u64>, last: Option<u64>) -> i64 {
    let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
    last.saturating_sub(first).try_into().unwrap_or(i64::MAX)
        - i64::try_from(first.saturating_sub(last)).unwrap_or(i64::MAX)
}

/// Whether a static property or a function's static variable is on the path to a node.
fn is_static(graph: &dyn Graph, parents: &TreeParents, node: NodeId) -> bool {
    let statics = |&node: &NodeId| {
        let link = parents.link(node).map(|link| graph.string(link));
        graph.node_type(node) == NodeType::CLASS_STATIC_PROPERTIES || link == Some(b"static_variables")
    };
    parents.path(node).iter().any(statics)
}

/// The maximum number of paths in each list: more than anybody reads, and each takes time.
const MOST_PATHS: usize = 1000;

/// The changes with the paths of their holders.
fn told(graphs: &[&dyn Graph], mut changes: Vec<holders::HolderRow>) -> HolderList {
    let further = changes.split_off(changes.len().min(MOST_PATHS));
    let mut rows: Vec<HolderChange> = changes.iter().map(holders::HolderRow::change).collect();
    for (position, graph) in graphs.iter().enumerate().rev() {
        let mut missing =
            rows.iter_mut().filter(|change| change.path.is_empty() && change.nodes[position].is_some());
        let Some(first) = missing.next() else { continue };
        let parents = TreeParents::of(graph);
        for change in std::iter::once(first).chain(missing) {
            let node = change.nodes[position].expect("only such ones are chosen");
            change.path = match change.alike {
                1 => path::path(graph, &parents, node),
                _ => shape_path(*graph, &parents, node),
            };
            change.node_type = graph.node_type_name(node).to_vec();
            change.is_static = is_static(graph, &parents, node);
        }
    }
    HolderList { rows, further: further.iter().map(|row| row.change().further()).collect() }
}

fn shape_path(graph: &dyn Graph, parents: &TreeParents, node: NodeId) -> Vec<u8> {
    path::near_with(&graph, parents, node, usize::MAX, |node| holders::is_list_element(graph, parents, node))
}
