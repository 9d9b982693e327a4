//! Finds nodes step by step, so that a search through millions of nodes blocks nobody.

use super::Heap;
use crate::graph::{contains, locations, nodes};
use crate::names::NodeType;
use crate::sink::{NodeId, StringId};

/// A search criterion.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchTarget {
    /// Nodes with a location that contains this address.
    Address(u64),
    /// Objects whose class contains this text, strings and scalars that contain it, targets of references with this
    /// name, and nodes whose path ends in it. Case is ignored except in paths.
    Text(Vec<u8>),
}

/// The maximum number of matches kept.
const MOST: usize = 10_000;

/// The maximum number of engine nodes between a name and its value.
const MOST_STEPS: usize = 4;

/// The maximum number of bytes searched of a string.
const LONGEST: usize = 1 << 20;

/// The known result for a string.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum TextMatch {
    #[default]
    Unknown,
    Other,
    Contains,
    Equals,
}

/// A search in progress.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::{retention::Follow, views::{Heap, NodeSearch, SearchTarget}};

let heap = Heap::new(&graph, Follow::default());
let mut search = NodeSearch::new(SearchTarget::Text(b"cache".to_vec()));
while search.advance(&heap, 1_000) {}
assert!(search.found().contains(&object));"#
)]
pub struct NodeSearch {
    sought: SearchTarget,
    is_path: bool,
    next: usize,
    verdicts: Vec<TextMatch>,
    found: Vec<NodeId>,
    count: u64,
}

impl NodeSearch {
    /// Starts a search.
    #[must_use]
    pub fn new(sought: SearchTarget) -> Self {
        let is_path =
            matches!(&sought, SearchTarget::Text(text) if text.iter().any(|byte| b"$>:[<".contains(byte)));
        Self { sought, is_path, next: 0, verdicts: Vec::new(), found: Vec::new(), count: 0 }
    }

    /// The first 10,000 matches, in order.
    #[must_use]
    pub fn found(&self) -> &[NodeId] {
        &self.found
    }

    /// The number of matches.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether it searches for an address.
    #[must_use]
    pub const fn is_for_address(&self) -> bool {
        matches!(self.sought, SearchTarget::Address(_))
    }

    /// The number of nodes searched.
    #[must_use]
    pub const fn seen(&self) -> usize {
        self.next
    }

    /// Continues the search for this much work; a unit is a node or some bytes of a string. Returns whether there is
    /// more to search.
    pub fn advance(&mut self, heap: &Heap<'_>, work: usize) -> bool {
        let count = heap.graph().counts().nodes;
        self.verdicts.resize(heap.graph().counts().strings, TextMatch::Unknown);
        let mut left = work;
        for node in nodes(count).skip(self.next) {
            if left == 0 {
                return true;
            }
            left -= 1;
            self.next += 1;
            if self.is_found(heap, node, &mut left) {
                self.count += 1;
                if self.found.len() < MOST {
                    self.found.push(node);
                }
            }
        }
        false
    }

    fn is_found(&mut self, heap: &Heap<'_>, node: NodeId, left: &mut usize) -> bool {
        let graph = heap.graph();
        let mut locations = locations(graph, node);
        if let SearchTarget::Address(address) = self.sought {
            return locations.any(|location| contains(&location, address));
        }
        let is_in = locations.any(|location| {
            let mut contains = |string| self.verdict(heap, string, left) >= TextMatch::Contains;
            location.class.is_some_and(&mut contains) || location.string.is_some_and(contains)
        });
        is_in || self.is_scalar(heap, node) || self.is_called(heap, node, left)
    }

    fn is_scalar(&self, heap: &Heap<'_>, node: NodeId) -> bool {
        let SearchTarget::Text(text) = &self.sought else { return false };
        let is_scalar = heap.graph().node_type(node) == NodeType::SCALAR_VALUE;
        is_scalar
            && !text.is_empty()
            && heap.attribute(node, b"value").is_some_and(|value| value.eq_ignore_ascii_case(text))
    }

    /// Whether the name of the reference to a node, or its path, matches.
    fn is_called(&mut self, heap: &Heap<'_>, node: NodeId, left: &mut usize) -> bool {
        let Some(link) = name_of(heap, node) else { return false };
        if self.verdict(heap, link, left) == TextMatch::Equals {
            return true;
        }
        let SearchTarget::Text(text) = &self.sought else { return false };
        let is_frame = heap.graph().node_type(node) == NodeType::CALL_FRAME;
        if !self.is_path || !(is_frame || ends_in_name(text, heap.graph().string(link))) {
            return false;
        }
        *left = left.saturating_sub(16);
        heap.near_path(node).ends_with(text)
    }

    fn verdict(&mut self, heap: &Heap<'_>, string: StringId, left: &mut usize) -> TextMatch {
        let SearchTarget::Text(text) = &self.sought else { return TextMatch::Other };
        let Some(verdict) = self.verdicts.get_mut(string.0 as usize) else { return TextMatch::Other };
        if *verdict == TextMatch::Unknown {
            let content = heap.graph().string(string);
            let content = &content[..content.len().min(LONGEST)];
            *left = left.saturating_sub(content.len() / 64);
            *verdict = judge(content, text);
        }
        *verdict
    }
}

/// The name by which a program knows a node. The value of an array element or behind a PHP reference has no name of its
/// own, so it gets the name of that element or reference.
fn name_of(heap: &Heap<'_>, node: NodeId) -> Option<StringId> {
    let (graph, tree) = (heap.graph(), heap.tree());
    let is_between =
        |node| matches!(graph.node_type(node), NodeType::ARRAY_ELEMENT | NodeType::PHP_REFERENCE);
    if is_between(node) {
        return None;
    }
    let mut named = node;
    for _ in 0..MOST_STEPS {
        let is_value =
            tree.link(named).is_some_and(|link| matches!(graph.string(link), b"value" | b"referenced"));
        match tree.parent(named).filter(|&above| is_value && is_between(above)) {
            Some(above) => named = above,
            None => break,
        }
    }
    tree.link(named)
}

fn judge(content: &[u8], text: &[u8]) -> TextMatch {
    let Some((first, _)) = text.split_first() else { return TextMatch::Other };
    if content.eq_ignore_ascii_case(text) {
        return TextMatch::Equals;
    }
    let begins = |part: &&[u8]| part[0].eq_ignore_ascii_case(first);
    let mut parts = content.windows(text.len()).filter(begins);
    if parts.any(|part| part.eq_ignore_ascii_case(text)) { TextMatch::Contains } else { TextMatch::Other }
}

/// Whether a path may end in the step of this name.
fn ends_in_name(path: &[u8], name: &[u8]) -> bool {
    let end = path.iter().rposition(|byte| !b"]')(".contains(byte)).map_or(0, |last| last + 1);
    let name = name.strip_prefix(b"$").unwrap_or(name);
    let end = &path[..end];
    !name.is_empty() && end.len() >= name.len() && end[end.len() - name.len()..].eq_ignore_ascii_case(name)
}
