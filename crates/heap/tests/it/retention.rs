//! Dominators, retained sizes and cycles, compared with a slow computation from their definitions; and on extreme graphs.

use std::collections::BTreeSet;

use borehole_heap::retention::{DominatorTree, Follow, Retention, ShortestPaths, freed_without};
use borehole_heap::{
    Edge, Graph, GraphBuilder, HeapGraph, HeapSink, LocationType, MemoryLocation, NodeId, NodeType, Region,
    Strength,
};
use proptest::prelude::*;

/// A short form of graphs: for each node its tree parent (itself for a root), the strength of that edge, and its memory;
/// then the edges.
#[derive(Clone, Debug)]
struct Sketch {
    nodes: Vec<(usize, Strength, u64, u64)>,
    edges: Vec<(usize, usize, Strength)>,
}

impl Sketch {
    fn build(&self) -> HeapGraph {
        let mut builder = GraphBuilder::new();
        let link = builder.string(b"link");
        let id = |index: usize| NodeId(u32::try_from(index).unwrap());
        for (index, &(parent, strength, address, size)) in self.nodes.iter().enumerate() {
            let child = builder.node(NodeType::OBJECT);
            let parent = Some(parent).filter(|&parent| parent < index).map(id);
            builder.edge(Edge { parent, child, link, is_tree: true, strength });
            builder.location(child, &location(address, size));
        }
        for &(from, to, strength) in &self.edges {
            let (from, to) = (from % self.nodes.len(), to % self.nodes.len());
            builder.edge(Edge { parent: Some(id(from)), child: id(to), link, is_tree: false, strength });
        }
        builder.finish().unwrap()
    }
}

fn location(address: u64, size: u64) -> MemoryLocation {
    MemoryLocation { region: Some(Region::HEAP), ..MemoryLocation::new(LocationType::OBJECT, address, size) }
}

fn strengths() -> impl Strategy<Value = Strength> {
    prop_oneof![6 => Just(Strength::Strong), 1 => Just(Strength::Weak), 1 => Just(Strength::Structural)]
}

fn sketches() -> impl Strategy<Value = Sketch> {
    let node = |index: usize| (0..=index, strengths(), 1..40_u64, 0..50_u64);
    let nodes = (1..14_usize).prop_flat_map(move |count| (0..count).map(node).collect::<Vec<_>>());
    let edges = prop::collection::vec((0..14_usize, 0..14_usize, strengths()), 0..20);
    (nodes, edges).prop_map(|(nodes, edges)| Sketch { nodes, edges })
}

/// The slow computation: a graph as sets.
struct Naive {
    groups: Vec<usize>,
    /// From `usize::MAX`, the roots.
    edges: BTreeSet<(usize, usize)>,
    bytes: Vec<u64>,
}

impl Naive {
    fn of(graph: &HeapGraph, follow: Follow) -> Self {
        let count = graph.counts().nodes;
        let mut groups: Vec<usize> = (0..count).collect();
        for node in 0..count {
            if let Some(smallest) = graph.canonical(NodeId(u32::try_from(node).unwrap())) {
                let (old, new) = (groups[node], groups[smallest.0 as usize]);
                groups.iter_mut().for_each(|group| {
                    if *group == old {
                        *group = new;
                    }
                });
            }
        }
        let is_followed = |strength| match strength {
            Strength::Strong => true,
            Strength::Weak => follow.weak,
            Strength::Structural => follow.structural,
        };
        let mut all = Vec::new();
        for parent in std::iter::once(None).chain((0..count).map(Some)) {
            let rows = graph.children(parent.map(|node| NodeId(u32::try_from(node).unwrap())));
            for child in rows.map(|row| graph.child(row).unwrap()) {
                let from = parent.map_or(usize::MAX, |node| groups[node]);
                all.push((from, groups[child.node.0 as usize], is_followed(child.strength)));
            }
        }
        let followed = all.iter().filter(|edge| edge.2).map(|&(from, to, _)| (from, to));
        let mut naive = Self { groups, edges: followed.collect(), bytes: vec![0; count] };
        let reached = naive.reached(None);
        let unreached = all.iter().filter(|edge| !reached.contains(&edge.1)).map(|&(from, to, _)| (from, to));
        naive.edges.extend(unreached);
        let mut seen = BTreeSet::new();
        for row in 0..graph.counts().locations {
            let (location, node) = (graph.location(row), graph.location_node(row).0 as usize);
            if seen.insert(location.address) {
                naive.bytes[naive.groups[node]] += location.size;
            }
        }
        naive
    }

    /// The nodes that are reached without some nodes.
    fn reached(&self, without: Option<&BTreeSet<usize>>) -> BTreeSet<usize> {
        self.reached_from(usize::MAX, without)
    }

    fn reached_from(&self, start: usize, without: Option<&BTreeSet<usize>>) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        loop {
            let is_new = |&&(from, to): &&(usize, usize)| {
                (from == start || reached.contains(&from))
                    && !reached.contains(&to)
                    && without.is_none_or(|without| !without.contains(&to))
            };
            let Some(&(_, to)) = self.edges.iter().find(is_new) else { return reached };
            reached.insert(to);
        }
    }

    /// The nodes that would be freed without some nodes, and their bytes.
    fn freed(&self, without: &BTreeSet<usize>) -> (BTreeSet<usize>, u64) {
        let kept = self.reached(Some(without));
        let freed: BTreeSet<usize> = self.reached(None).difference(&kept).copied().collect();
        let bytes = freed.iter().map(|&node| self.bytes[node]).sum();
        (freed, bytes)
    }

    fn cycles(&self) -> BTreeSet<BTreeSet<usize>> {
        let leads: Vec<_> = (0..self.groups.len()).map(|node| self.reached_from(node, None)).collect();
        let all = self.reached(None);
        let on_cycle = all.iter().filter(|&&node| leads[node].contains(&node));
        on_cycle
            .map(|&node| {
                all.iter()
                    .copied()
                    .filter(|&other| leads[node].contains(&other) && leads[other].contains(&node))
                    .collect()
            })
            .collect()
    }
}

fn set(node: usize) -> BTreeSet<usize> {
    BTreeSet::from([node])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn retained_sizes_equal_the_freed_bytes(sketch in sketches(), weak: bool, structural: bool) {
        let (graph, follow) = (sketch.build(), Follow { weak, structural });
        let (retention, naive) = (Retention::of(&graph, follow), Naive::of(&graph, follow));
        let reached = naive.reached(None);
        for index in 0..graph.counts().nodes {
            let (node, group) = (NodeId(u32::try_from(index).unwrap()), naive.groups[index]);
            let (freed, bytes) = naive.freed(&set(group));
            prop_assert_eq!(retention.is_reached(node), reached.contains(&group));
            prop_assert_eq!(retention.retained(node), bytes, "of {:?}", node);
            let dominators = reached.iter().filter(|&&other| other != group && naive.freed(&set(other)).0.contains(&group));
            // The nearest dominator is dominated by all others.
            let nearest = dominators.max_by_key(|&&other| std::cmp::Reverse(naive.freed(&set(other)).0.len()));
            let found = retention.dominator(node).map(|found| naive.groups[found.0 as usize]);
            prop_assert_eq!(found, nearest.copied().filter(|_| reached.contains(&group)));
            prop_assert!(freed.len() <= graph.counts().nodes);
        }
        let total: u64 = reached.iter().map(|&node| naive.bytes[node]).sum();
        prop_assert_eq!(retention.total(), total);
    }

    #[test]
    fn cycles_are_the_nodes_that_lead_to_each_other(sketch in sketches()) {
        let (graph, follow) = (sketch.build(), Follow::default());
        let (retention, naive) = (Retention::of(&graph, follow), Naive::of(&graph, follow));
        let found: BTreeSet<BTreeSet<usize>> = retention.cycles().iter()
            .map(|cycle| cycle.nodes.iter().map(|&node| naive.groups[node as usize]).collect())
            .collect();
        prop_assert_eq!(&found, &naive.cycles());
        let of_cycles = Retention::of(&graph, follow).with_whole_cycles(&graph);
        for cycle in retention.cycles() {
            let members = cycle.nodes.iter().map(|&node| naive.groups[node as usize]).collect();
            let bytes = naive.freed(&members).1;
            prop_assert_eq!(of_cycles.retained(NodeId(cycle.nodes[0])), bytes);
            if let Some(head) = retention.head(cycle) {
                prop_assert_eq!(retention.retained(head), bytes);
            }
        }
    }

    #[test]
    fn nodes_held_by_several_are_freed_with_all_of_them(sketch in sketches(), first in 0..14_usize, second in 0..14_usize) {
        let graph = sketch.build();
        let follow = Follow { weak: true, structural: true };
        let naive = Naive::of(&graph, follow);
        let gone = [first, second].map(|node| node % graph.counts().nodes);
        let (freed, bytes) = naive.freed(&gone.iter().map(|&node| naive.groups[node]).collect());
        let found = freed_without(&graph, follow, &gone.map(|node| NodeId(u32::try_from(node).unwrap())));
        prop_assert_eq!((found.nodes, found.bytes), (freed.len() as u64, bytes));
    }

    #[test]
    fn the_tree_of_dominators_holds_each_node_once(sketch in sketches()) {
        let graph = sketch.build();
        let retention = Retention::of(&graph, Follow::default());
        let tree = DominatorTree::of(&retention);
        let mut found = Vec::new();
        let mut ahead = vec![None];
        while let Some(node) = ahead.pop() {
            for below in tree.dominated(&retention, node) {
                prop_assert_eq!(retention.dominator(below), node);
                found.push(below);
                ahead.push(Some(below));
            }
        }
        found.sort_unstable();
        let mut all: Vec<NodeId> = retention.nodes().collect();
        all.sort_unstable();
        prop_assert_eq!(found, all);
    }

    #[test]
    fn shortest_paths_are_valid_and_minimal(sketch in sketches()) {
        let graph = sketch.build();
        let follow = Follow { weak: true, structural: true };
        let paths = ShortestPaths::of(&graph, follow);
        let lengths: Vec<usize> = (0..graph.counts().nodes).map(|node| paths.rows(NodeId(u32::try_from(node).unwrap())).len()).collect();
        for (node, &length) in lengths.iter().enumerate() {
            let rows = paths.rows(NodeId(u32::try_from(node).unwrap()));
            prop_assert_eq!(rows.last().map(|&row| graph.child(row).unwrap().node.0 as usize), Some(node));
            for row in graph.children(Some(NodeId(u32::try_from(node).unwrap()))) {
                let child = graph.child(row).unwrap().node.0 as usize;
                prop_assert!(lengths[child] <= length + 1);
            }
        }
    }
}

/// `count` nodes in a row, each held by the previous one, with further edges.
fn chain(count: usize, edges: impl Iterator<Item = (usize, usize)>) -> HeapGraph {
    let address = |index: usize| (index as u64 + 1) * 16;
    let node = |index: usize| (index.max(1) - 1, Strength::Strong, address(index), 16);
    let edges = edges.map(|(from, to)| (from, to, Strength::Strong)).collect();
    Sketch { nodes: (0..count).map(node).collect(), edges }.build()
}

#[test]
fn a_graph_without_nodes_retains_nothing() {
    let graph = GraphBuilder::new().finish().unwrap();
    let retention = Retention::of(&graph, Follow::default());
    assert_eq!((retention.total(), retention.cycles().len()), (0, 0));
    assert_eq!(retention.retained(NodeId(0)), 0);
    assert_eq!(retention.dominator(NodeId(7)), None);
    assert_eq!(DominatorTree::of(&retention).dominated(&retention, None).len(), 0);
    assert_eq!(retention.shallow(&graph, NodeId(0)), 0);
}

#[test]
fn a_long_list_is_held_by_its_first_node() {
    const COUNT: usize = 10_000_000;
    let graph = chain(COUNT, std::iter::empty());
    let retention = Retention::of(&graph, Follow::default());
    assert_eq!(retention.retained(NodeId(0)), 16 * COUNT as u64);
    assert_eq!(retention.retained(NodeId(9_999_999)), 16);
}

#[test]
fn a_long_ring_is_one_cycle() {
    const COUNT: usize = 1_000_000;
    let graph = chain(COUNT, std::iter::once((COUNT - 1, 0)));
    let retention = Retention::of(&graph, Follow::default());
    let [ring] = retention.cycles() else { panic!("expected one cycle") };
    assert_eq!((ring.nodes.len(), retention.head(ring)), (COUNT, Some(NodeId(0))));
    let of_cycles = Retention::of(&graph, Follow::default()).with_whole_cycles(&graph);
    assert_eq!(of_cycles.retained(NodeId(5)), 16 * COUNT as u64);
}

/// A list whose end every node refers to, and whose first node refers to every node. This takes quadratic time if paths are
/// walked up without path compression.
#[test]
fn hubs_at_the_end_of_lists_take_no_longer() {
    const COUNT: usize = 10_000_000;
    let hub = (0..COUNT).map(|index| (index, COUNT - 1));
    let fan = (0..COUNT).map(|index| (0, index));
    let graph = chain(COUNT, hub.chain(fan));
    let retention = Retention::of(&graph, Follow::default());
    assert_eq!(retention.retained(NodeId(0)), 16 * COUNT as u64);
    assert_eq!(retention.dominator(NodeId(400_000)), Some(NodeId(0)));
    assert_eq!(retention.retained(NodeId(1)), 16);
}
