//! The input of all findings: the graph, its analyses, and columns computed from it once.

use crate::graph::{Child, Graph, Totals, attributes, children};
use crate::path;
use crate::retention::Retention;
use crate::sink::{NodeId, StringId};
use crate::totals::{TotalsScope, totals};
use crate::views::Heap;

use super::census::{NodeCensus, Thing};
use super::finding::FindingPlace;
use super::shapes::PathShapes;
use super::summary::HeapSummary;
use super::words::KnownWords;

/// The maximum number of steps up from a node that are followed.
pub(super) const DEEPEST: usize = 10_000;

/// The input of all findings.
pub(super) struct HeapSurvey<'g> {
    pub(super) heap: &'g Heap<'g>,
    pub(super) retention: &'g Retention,
    pub(super) summary: HeapSummary,
    pub(super) words: KnownWords,
    pub(super) census: NodeCensus,
    pub(super) totals: Totals,
    pub(super) shapes: PathShapes,
    /// Whether there is any garbage.
    has_garbage: bool,
    /// The bytes in use, on which percentages are based.
    pub(super) used: u64,
}

impl<'g> HeapSurvey<'g> {
    pub(super) fn new(heap: &'g Heap<'g>) -> Self {
        let (graph, retention) = (heap.graph(), heap.retention());
        let summary = HeapSummary::of(graph);
        let words = KnownWords::of(graph);
        Self {
            heap,
            retention,
            words,
            census: NodeCensus::of(graph, retention),
            totals: graph.totals().cloned().unwrap_or_else(|| totals(&graph, TotalsScope::OwnMemory)),
            shapes: PathShapes::default(),
            has_garbage: retention.has_garbage(),
            used: summary.used().unwrap_or_else(|| retention.total()),
            summary,
        }
    }

    pub(super) fn graph(&self) -> &'g dyn Graph {
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

    /// The objects that are kept alive, with their classes.
    pub(super) fn objects(&self) -> impl Iterator<Item = (NodeId, StringId)> + '_ {
        self.census.objects().filter(|&(node, _)| !self.is_garbage(node))
    }

    pub(super) fn thing(&self, node: NodeId) -> Thing {
        self.census.thing(self.retention.representative(node))
    }

    /// The bytes of the blocks of `node` itself.
    pub(super) fn shallow(&self, node: NodeId) -> u64 {
        self.retention.shallow(&self.graph(), node)
    }

    pub(super) fn text(&self, string: StringId) -> String {
        String::from_utf8_lossy(self.graph().string(string)).into_owned()
    }

    pub(super) fn children(&self, node: NodeId) -> impl Iterator<Item = Child> + use<'g> {
        children(self.heap.graph(), Some(node))
    }

    /// The target of the reference of `node` with this name.
    pub(super) fn child(&self, node: NodeId, link: StringId) -> Option<NodeId> {
        self.children(node).find(|child| child.link == link).map(|child| child.node)
    }

    /// A fact about a node.
    pub(super) fn attribute(&self, node: NodeId, key: StringId) -> Option<StringId> {
        attributes(self.graph(), node).find(|attribute| attribute.key == key).map(|attribute| attribute.value)
    }

    /// A numeric fact about a node.
    pub(super) fn number(&self, node: NodeId, key: StringId) -> Option<u64> {
        let value = self.graph().string(self.attribute(node, key)?);
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    /// The path of `node`. For very deep nodes only the last steps, because following all of a long chain for each node
    /// would take too long.
    pub(super) fn place(&self, node: NodeId) -> FindingPlace {
        let path = path::near(&self.graph(), self.heap.tree(), node, DEEPEST);
        FindingPlace { node, path: String::from_utf8_lossy(&path).into_owned() }
    }
}
