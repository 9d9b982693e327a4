//! The input of all findings: the graph, its analyses, and columns computed from it once.

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

/// PHP allocates memory in chunks of 2 MiB. If a heap fits in two chunks, its distribution does not matter.
const SMALL_HEAP: u64 = 4 << 20;

/// The percentage of the heap from which a finding matters much.
const HIGH: u64 = 30;

/// The maximum number of steps up from a node that are followed.
const DEEPEST: usize = 10_000;

/// The input of all findings.
pub(super) struct Context<'h, 'g, G: ?Sized> {
    pub(super) heap: &'h Heap<'g, G>,
    pub(super) retention: &'h Retention,
    pub(super) summary: Summary,
    pub(super) words: Words,
    pub(super) census: Census,
    pub(super) totals: Totals,
    /// Whether there is any garbage.
    has_garbage: bool,
    /// The bytes in use, on which percentages are based.
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

    /// Whether no reference that keeps nodes alive leads to `node`, so that it has not been collected yet.
    pub(super) fn is_garbage(&self, node: NodeId) -> bool {
        self.has_garbage && self.retention.is_reached(node) && !self.retention.is_held(node)
    }

    /// The objects, arrays and strings that are kept alive. Garbage is reported as a whole instead.
    pub(super) fn held(&self) -> impl DoubleEndedIterator<Item = (NodeId, Thing)> + '_ {
        self.census.all().filter(|&(node, _)| !self.is_garbage(node))
    }

    /// The severity of a finding about this many bytes.
    pub(super) fn severity_of(&self, bytes: u64) -> Severity {
        self.weighed(match bytes {
            0..MEBIBYTE => Severity::Low,
            _ if is_share(bytes, HIGH, self.used) => Severity::High,
            _ => Severity::Medium,
        })
    }

    /// The given severity, or low in a small heap, where such findings do not matter.
    pub(super) fn weighed(&self, severity: Severity) -> Severity {
        if self.used < SMALL_HEAP { severity.max(Severity::Low) } else { severity }
    }

    pub(super) fn thing(&self, node: NodeId) -> Thing {
        self.census.thing(self.retention.representative(node))
    }

    /// The bytes of the blocks of `node` itself.
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

    /// The target of the reference of `node` with this name.
    pub(super) fn child(&self, node: NodeId, link: StringId) -> Option<NodeId> {
        self.children(node).find(|child| child.link == link).map(|child| child.node)
    }

    /// A fact about a node.
    pub(super) fn attribute(&self, node: NodeId, key: StringId) -> Option<StringId> {
        let graph = self.graph();
        let mut attributes = graph.attributes(node).map(|row| graph.attribute(row));
        attributes.find(|attribute| attribute.key == key).map(|attribute| attribute.value)
    }

    /// A numeric fact about a node.
    pub(super) fn number(&self, node: NodeId, key: StringId) -> Option<u64> {
        let value = self.graph().string(self.attribute(node, key)?);
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    /// The path of `node`. For very deep nodes only the last steps, because following all of a long chain for each node
    /// would take too long.
    pub(super) fn place(&self, node: NodeId) -> Place {
        let path = path::near(&self.graph(), self.heap.tree(), node, DEEPEST);
        Place { node, path: String::from_utf8_lossy(&path).into_owned() }
    }
}
