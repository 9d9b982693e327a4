//! A summary of a graph.

use hashbrown::HashMap;
use serde::{Serialize, Serializer};

use crate::contradiction::contradiction;
use crate::graph::{Graph, GraphCounts, MemoryTotal, Totals, nodes};
use crate::largest::sort_largest_first;
use crate::names::{NodeType, Strength};
use crate::serialized;
use crate::totals::{TotalsScope, ranked, totals};

/// A summary of a graph. Lists are sorted, the largest first.
///
/// Serialized, all counts are in `counts`, summary and node types are objects, and the totals are those of all memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapInfo {
    /// The number of items of each kind.
    pub counts: GraphCounts,
    /// The time of the snapshot, in ISO 8601; empty if unknown.
    pub created: String,
    /// Facts about the whole heap, in order.
    pub summary: Vec<(String, String)>,
    /// The number of nodes of each type.
    pub node_types: Vec<(String, u64)>,
    /// References by strength, and further counts.
    pub references: References,
    /// Totals by location type and class in PHP's own memory, as counted by the program that walked the heap if known.
    pub own_memory: Totals,
    /// The totals of all memory, including that outside of PHP's own.
    pub everything: Totals,
    /// Each region of PHP's memory; memory outside has an empty name.
    pub regions: Vec<MemoryTotal>,
    /// Bytes of blocks beyond their contents.
    pub overhead_bytes: u64,
    /// Nodes that represent the same memory as another node with a smaller number.
    pub duplicates: u64,
    /// The reason why no size can be trusted; `None` if the sizes fit.
    pub contradiction: Option<String>,
}

/// The number of references by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct References {
    /// References to roots.
    pub roots: u64,
    /// Strong references, which keep their target alive.
    pub strong: u64,
    /// Weak references, which do not.
    pub weak: u64,
    /// Structural references of the engine.
    pub structural: u64,
    /// References to nodes that the walk had already reached.
    pub shared: u64,
}

/// The keys of a [`HeapInfo`].
#[derive(Serialize)]
struct InfoKeys<'a> {
    counts: CountKeys,
    created: &'a str,
    #[serde(serialize_with = "serialized::object")]
    summary: &'a [(String, String)],
    #[serde(serialize_with = "serialized::object")]
    node_types: &'a [(String, u64)],
    regions: &'a [MemoryTotal],
    #[serde(flatten)]
    everything: &'a Totals,
    overhead_bytes: u64,
    contradiction: Option<&'a str>,
}

#[derive(Serialize)]
struct CountKeys {
    #[serde(flatten)]
    items: GraphCounts,
    #[serde(flatten)]
    references: References,
    duplicates: u64,
}

impl Serialize for HeapInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { counts: items, references, duplicates, .. } = *self;
        InfoKeys {
            counts: CountKeys { items, references, duplicates },
            created: &self.created,
            summary: &self.summary,
            node_types: &self.node_types,
            regions: &self.regions,
            everything: &self.everything,
            overhead_bytes: self.overhead_bytes,
            contradiction: self.contradiction.as_deref(),
        }
        .serialize(serializer)
    }
}

/// Summarizes `graph` in one pass.
#[doc = crate::doc_graph::graph_example!(
    r#"let info = borehole_heap::info(&graph);
assert_eq!((info.counts.nodes, info.references.strong), (2, 2));"#
)]
#[must_use]
pub fn info(graph: &impl Graph) -> HeapInfo {
    let text = |string| String::from_utf8_lossy(graph.string(string)).into_owned();
    let count = graph.counts().nodes;
    let is_duplicate = |&node: &_| graph.canonical(node).is_some_and(|canonical| canonical != node);
    let (regions, overhead_bytes) = regions(graph);
    HeapInfo {
        counts: graph.counts(),
        created: graph.created().to_owned(),
        summary: graph.summary().iter().map(|&(key, value)| (text(key), text(value))).collect(),
        node_types: node_types(graph),
        references: references(graph),
        own_memory: graph.totals().cloned().unwrap_or_else(|| totals(graph, TotalsScope::OwnMemory)),
        everything: totals(graph, TotalsScope::Everything),
        regions,
        overhead_bytes,
        duplicates: nodes(count).filter(is_duplicate).count() as u64,
        contradiction: contradiction(graph),
    }
}

fn node_types(graph: &impl Graph) -> Vec<(String, u64)> {
    let mut counts: HashMap<NodeType, u64> = HashMap::new();
    for node in nodes(graph.counts().nodes) {
        *counts.entry(graph.node_type(node)).or_default() += 1;
    }
    let names = &graph.vocabulary().node_types;
    let name =
        |node_type: NodeType| String::from_utf8_lossy(graph.name(names, node_type.number())).into_owned();
    let mut counts: Vec<(String, u64)> =
        counts.into_iter().map(|(node_type, count)| (name(node_type), count)).collect();
    sort_largest_first(&mut counts, |&(_, count)| count, |(name, _)| name);
    counts
}

fn references(graph: &impl Graph) -> References {
    let mut found = References { roots: graph.children(None).len() as u64, ..References::default() };
    for child in (0..graph.counts().edges).filter_map(|row| graph.child(row)) {
        let count = match child.strength {
            Strength::Strong => &mut found.strong,
            Strength::Weak => &mut found.weak,
            Strength::Structural => &mut found.structural,
        };
        *count += 1;
        found.shared += u64::from(!child.is_tree);
    }
    found
}

fn regions(graph: &impl Graph) -> (Vec<MemoryTotal>, u64) {
    let mut sums: HashMap<Option<u16>, (u64, u64)> = HashMap::new();
    let mut overhead = 0_u64;
    for location in (0..graph.counts().locations).map(|row| graph.location(row)) {
        let sum = sums.entry(location.region.map(crate::names::Region::number)).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(location.size));
        overhead = overhead.saturating_add(u64::from(location.bin_overhead));
    }
    let name = |region: Option<u16>| {
        region.map_or(&[][..], |number| graph.name(&graph.vocabulary().regions, number))
    };
    (ranked(sums, |region| name(region).to_vec()), overhead)
}
