//! What all findings look at: the graph, what is known of it, and columns that are made of it once.

use crate::graph::{Child, Graph, Totals};
use crate::path;
use crate::retention::Retention;
use crate::sink::{NodeId, StringId};
use crate::totals::{Scope, totals};
use crate::views::Heap;

use super::MEBIBYTE;
use super::amounts::is_share;
use super::census::{Census, Thing};
use super::finding::{Place, Severity};
use super::summary::Summary;
use super::words::Words;

/// PHP takes memory in chunks of 2 MiB. What of a heap that fits into two of them takes how much is nobody's concern.
const SMALL_HEAP: u64 = 4 << 20;

/// What matters much, in per cent of the heap.
const HIGH: u64 = 30;

/// So far up the way to a node is followed.
const DEEPEST: usize = 10_000;

/// What findings look at.
pub(super) struct Context<'h, 'g, G: ?Sized> {
    pub(super) heap: &'h Heap<'g, G>,
    pub(super) retention: &'h Retention,
    pub(super) summary: Summary,
    pub(super) words: Words,
    pub(super) census: Census,
    pub(super) totals: Totals,
    /// Whether there is garbage at all.
    has_garbage: bool,
    /// Bytes in use: what shares are of.
    pub(super) used: u64,
}

impl<'h, 'g, G: Graph + ?Sized> Context<'h, 'g, G> {
    pub(super) fn new(heap: &'h Heap<'g, G>) -> Self {
        let (graph, retention) = (heap.graph(), heap.retention());
        let summary = Summary::of(&graph);
        let words = Words::of(graph);
        Self {
            heap,
            retention,
            words,
            census: Census::of(graph, retention),
            totals: graph.totals().cloned().unwrap_or_else(|| totals(&graph, Scope::OwnMemory)),
            has_garbage: retention.has_garbage(),
            used: summary.used().unwrap_or_else(|| retention.total()),
            summary,
        }
    }

    pub(super) fn graph(&self) -> &'g G {
        self.heap.graph()
    }

    /// Whether nothing that keeps nodes alive leads to `node`: it has not been collected.
    pub(super) fn is_garbage(&self, node: NodeId) -> bool {
        self.has_garbage && self.retention.is_reached(node) && !self.retention.is_held(node)
    }

    /// Every object, array and string that something keeps alive. What is said of garbage is said of it as a whole.
    pub(super) fn held(&self) -> impl DoubleEndedIterator<Item = (NodeId, Thing)> + '_ {
        self.census.all().filter(|&(node, _)| !self.is_garbage(node))
    }

    /// What a finding about so many bytes matters.
    pub(super) fn severity_of(&self, bytes: u64) -> Severity {
        self.weighed(match bytes {
            0..MEBIBYTE => Severity::Low,
            _ if is_share(bytes, HIGH, self.used) => Severity::High,
            _ => Severity::Medium,
        })
    }

    /// A severity, in a small heap low: nothing of the sort matters there.
    pub(super) fn weighed(&self, severity: Severity) -> Severity {
        if self.used < SMALL_HEAP { severity.max(Severity::Low) } else { severity }
    }

    pub(super) fn thing(&self, node: NodeId) -> Thing {
        self.census.thing(self.retention.representative(node))
    }

    /// The bytes of the blocks that `node` itself stands for.
    pub(super) fn own(&self, node: NodeId) -> u64 {
        self.retention.own(&self.graph(), node)
    }

    pub(super) fn text(&self, string: StringId) -> String {
        String::from_utf8_lossy(self.graph().string(string)).into_owned()
    }

    pub(super) fn children(&self, node: NodeId) -> impl Iterator<Item = Child> + use<'g, G> {
        let graph = self.heap.graph();
        graph.children(Some(node)).filter_map(|row| graph.child(row))
    }

    /// What `node` refers to by this name.
    pub(super) fn child(&self, node: NodeId, link: StringId) -> Option<NodeId> {
        self.children(node).find(|child| child.link == link).map(|child| child.node)
    }

    /// A fact about a node.
    pub(super) fn attribute(&self, node: NodeId, key: StringId) -> Option<StringId> {
        let graph = self.graph();
        let mut attributes = graph.attributes(node).map(|row| graph.attribute(row));
        attributes.find(|attribute| attribute.key == key).map(|attribute| attribute.value)
    }

    /// A fact about a node that is a number.
    pub(super) fn number(&self, node: NodeId, key: StringId) -> Option<u64> {
        let value = self.graph().string(self.attribute(node, key)?);
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    /// Where a program finds `node`. Of what lies very deep, the last steps: all of a long chain would be walked for each.
    pub(super) fn place(&self, node: NodeId) -> Place {
        let path = path::near(&self.graph(), self.heap.tree(), node, DEEPEST);
        Place { node, path: String::from_utf8_lossy(&path).into_owned() }
    }
}
