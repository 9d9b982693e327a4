//! The fields of a node from the view of a program: the engine's parts of an object or an array are skipped.

use std::ops::Range;

use serde::Serialize;

use super::Heap;
use crate::graph::Child;
use crate::names::{NodeType, Strength};
use crate::path;
use crate::serialized;
use crate::sink::NodeId;

/// A node with more references than this is not an object or array, whose parts are few.
const MOST_PARTS: usize = 64;

/// The maximum number of engine nodes between a name and its value.
const MOST_STEPS: usize = 4;

/// The fields of a node. Access to a field is fast, however many there are.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::{retention::Follow, views::{Heap, NodeFields}};

let heap = Heap::new(&graph, Follow::default());
let roots: NodeFields = heap.fields(None);
assert!(heap.field(&roots, 0).is_some() && heap.field(&roots, 1).is_none());"#
)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFields {
    /// Rows of references, with the node that they belong to.
    parts: Vec<(Option<NodeId>, Range<usize>)>,
    count: usize,
}

/// A named reference of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NodeField {
    /// The name in PHP's syntax, such as `->items` or `['key']`.
    #[serde(serialize_with = "serialized::text")]
    pub name: Vec<u8>,
    /// The value, behind engine nodes.
    #[serde(rename = "node_id")]
    pub node: NodeId,
    /// Whether the reference keeps the value alive.
    pub strength: Strength,
    /// Whether the walk first reached the value by this reference.
    #[serde(rename = "tree")]
    pub is_tree: bool,
}

impl NodeFields {
    /// The number of fields.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no fields.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn push(&mut self, of: Option<NodeId>, rows: Range<usize>) {
        self.count += rows.len();
        self.parts.push((of, rows));
    }

    /// The row of the field with this index, and the node that it belongs to.
    fn row(&self, mut place: usize) -> Option<(Option<NodeId>, usize)> {
        for (of, rows) in &self.parts {
            if place < rows.len() {
                return Some((*of, rows.start + place));
            }
            place -= rows.len();
        }
        None
    }
}

/// Whether a node is a part of an object or an array that only the engine sees.
pub(super) fn is_part(node_type: NodeType) -> bool {
    matches!(node_type, NodeType::OBJECT_PROPERTIES | NodeType::ARRAY_ELEMENTS)
}

impl Heap<'_> {
    /// The fields of `node`; for `None`, the roots.
    #[must_use]
    pub fn fields(&self, node: Option<NodeId>) -> NodeFields {
        let graph = self.graph();
        let rows = graph.children(node);
        let mut fields = NodeFields::default();
        if rows.len() > MOST_PARTS {
            fields.push(node, rows);
            return fields;
        }
        for row in rows {
            match graph.child(row).filter(|child| child.is_tree && is_part(graph.node_type(child.node))) {
                Some(part) => fields.push(Some(part.node), graph.children(Some(part.node))),
                None => fields.push(node, row..row + 1),
            }
        }
        fields
    }

    /// The field with this index. `None` after the last one, and for a reference to a missing node in a damaged file.
    #[must_use]
    pub fn field(&self, fields: &NodeFields, place: usize) -> Option<NodeField> {
        let (of, row) = fields.row(place)?;
        let child = self.graph().child(row)?;
        Some(NodeField {
            name: self.step(of, &child),
            node: self.value(child.node),
            strength: child.strength,
            is_tree: child.is_tree,
        })
    }

    /// The text that a reference adds to a path, or its name if that is empty.
    pub(super) fn step(&self, from: Option<NodeId>, child: &Child) -> Vec<u8> {
        let graph = self.graph();
        let name = graph.string(child.link);
        let step = from.map(|from| path::step(&graph, graph.node_type(from), child.node, child.link));
        match step {
            Some(step) if !step.is_empty() => step,
            Some(_) => [b".", name].concat(),
            None => [b"<", name, b">"].concat(),
        }
    }

    /// The value in an array element or behind a PHP reference; otherwise the node itself.
    #[must_use]
    pub fn value(&self, node: NodeId) -> NodeId {
        let below = |node: NodeId| self.value_below(node);
        std::iter::successors(Some(node), |&node| below(node)).take(MOST_STEPS).last().unwrap_or(node)
    }

    fn value_below(&self, node: NodeId) -> Option<NodeId> {
        let graph = self.graph();
        let link: &[u8] = match graph.node_type(node) {
            NodeType::ARRAY_ELEMENT => b"value",
            NodeType::PHP_REFERENCE => b"referenced",
            _ => return None,
        };
        let mut children = graph.children(Some(node)).take(MOST_PARTS).filter_map(|row| graph.child(row));
        children.find(|child| graph.string(child.link) == link).map(|child| child.node)
    }
}
