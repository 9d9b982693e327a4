//! Garbage in a heap without PHP's own allocator: without a list of blocks, only a walk shows what refers to what.
//!
//! The walk goes on from the objects that nothing known holds, on trial: it writes nothing, and counts. As in PHP's collector,
//! a value with more references than these is held from elsewhere, and so is everything it leads to. The rest is garbage.

use borehole_heap::{AttributeValue, Edge, HeapSink, MemoryLocation, NodeId, NodeType, Strength, StringId};
use hashbrown::HashMap;

use super::{HeapWalkOptions, HeapWalker, NodeLink, VisitKind};
use crate::heap::garbage::Garbage;

/// The number of the first node on trial. Nodes that are written have lower numbers.
const FIRST: u32 = 1 << 31;

/// The references and the reference counts of a walk on trial.
#[derive(Default)]
struct TrialSink {
    nodes: Vec<TrialNode>,
    /// References between nodes, as their numbers on trial.
    edges: Vec<(usize, usize)>,
}

#[derive(Clone, Copy, Default)]
struct TrialNode {
    /// The reference count; `None` for what is no value itself.
    counted: Option<u32>,
    /// The number of references met on trial.
    met: u32,
    is_held: bool,
}

impl HeapSink for TrialSink {
    fn string(&mut self, _: &[u8]) -> StringId {
        StringId(0)
    }

    fn node(&mut self, _: NodeType) -> NodeId {
        self.nodes.push(TrialNode::default());
        NodeId(u32::try_from(self.nodes.len()).map_or(u32::MAX - 1, |count| FIRST + count - 1))
    }

    fn edge(&mut self, edge: Edge) {
        let (Some(from), Some(to)) = (edge.parent.and_then(number), number(edge.child)) else { return };
        if edge.strength != Strength::Weak {
            self.edges.push((from, to));
        }
    }

    fn location(&mut self, node: NodeId, location: &MemoryLocation) {
        let node = number(node).and_then(|number| self.nodes.get_mut(number));
        if let (Some(node), Some(count)) = (node, location.refcount) {
            node.counted = Some(count);
        }
    }

    fn attribute(&mut self, _: NodeId, _: StringId, _: AttributeValue<'_>) {}

    fn summary(&mut self, _: &str, _: &str) {}
}

/// The number of a node on trial; `None` if it is written.
fn number(node: NodeId) -> Option<usize> {
    usize::try_from(node.0.checked_sub(FIRST)?).ok()
}

impl TrialSink {
    /// Marks the values that have more references than were met.
    fn hold(&mut self) {
        for &(_, to) in &self.edges {
            if let Some(node) = self.nodes.get_mut(to) {
                node.met = node.met.saturating_add(1);
            }
        }
        for node in &mut self.nodes {
            node.is_held = node.counted.is_some_and(|count| count > node.met);
        }
    }

    /// Marks everything that held values lead to.
    fn spread(&mut self) {
        self.edges.sort_unstable();
        let held = self.nodes.iter().enumerate().filter(|(_, node)| node.is_held);
        let mut open: Vec<usize> = held.map(|(number, _)| number).collect();
        while let Some(from) = open.pop() {
            let first = self.edges.partition_point(|edge| edge.0 < from);
            for &(_, to) in self.edges[first..].iter().take_while(|edge| edge.0 == from) {
                if let Some(node) = self.nodes.get_mut(to).filter(|node| !node.is_held) {
                    node.is_held = true;
                    open.push(to);
                }
            }
        }
    }
}

impl<S: HeapSink> HeapWalker<'_, S> {
    /// Finds the garbage among `objects`, which are all existing objects with their handles.
    pub(super) fn garbage_on_trial(&self, objects: Vec<(u32, u64)>) -> Garbage {
        let is_unknown =
            |&(_, address): &(u32, u64)| self.graph.seen.node(&self.heap.spot(address)).is_none();
        let objects: Vec<(u32, u64)> = objects.into_iter().filter(is_unknown).collect();
        let mut sink = TrialSink::default();
        let nodes = self.walk_on_trial(&objects, &mut sink);
        sink.hold();
        let is_held = |sink: &TrialSink, object: &(u32, u64)| {
            let number = nodes.get(&object.1).copied();
            number.and_then(|number| sink.nodes.get(number)).is_none_or(|node| node.is_held)
        };
        let held = objects.iter().copied().filter(|object| is_held(&sink, object)).collect();
        sink.spread();
        let objects = objects.iter().copied().filter(|object| !is_held(&sink, object)).collect();
        Garbage { objects, values: Vec::new(), held }
    }

    /// Walks on from `objects`. Returns the numbers of their nodes, by address.
    fn walk_on_trial(&self, objects: &[(u32, u64)], sink: &mut TrialSink) -> HashMap<u64, usize> {
        let mut walker = HeapWalker::new(self.heap, &HeapWalkOptions::default(), sink);
        walker.graph.seen = self.graph.seen.clone();
        walker.graph.account = self.graph.account.clone();
        walker.graph.stacks = self.graph.stacks.clone();
        walker.graph.limits = self.graph.limits;
        walker.globals = self.globals;
        for &(_, address) in objects {
            let link = NodeLink { strength: Strength::Weak, ..NodeLink::root(StringId(0)) };
            walker.later(link, VisitKind::Object, address);
            walker.run();
        }
        let seen = &walker.graph.seen;
        let node = |&(_, address): &(u32, u64)| {
            Some((address, seen.node(&self.heap.spot(address)).and_then(number)?))
        };
        objects.iter().filter_map(node).collect()
    }
}
