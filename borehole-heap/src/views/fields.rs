//! What a node refers to, as a program sees it: the engine's parts of an object or an array are passed over.

use std::ops::Range;

use super::Heap;
use crate::graph::{Child, Graph};
use crate::names::{NodeType, Strength};
use crate::path;
use crate::sink::NodeId;

/// Nodes with more references than this are no object or array, whose parts are few.
const MOST_PARTS: usize = 64;

/// So many of the engine's steps lie between a name and its value at most.
const MOST_STEPS: usize = 4;

/// The fields of a node. However many they are, each is soon there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Rows of references, with the node that they are of.
    parts: Vec<(Option<NodeId>, Range<usize>)>,
    count: usize,
}

/// What a node refers to by a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in PHP's syntax, such as `->items` or `['key']`.
    pub name: Vec<u8>,
    /// What is referred to: the value, behind what the engine has between.
    pub node: NodeId,
    /// Whether it keeps that alive.
    pub strength: Strength,
    /// Whether the walk came there by it.
    pub is_tree: bool,
}

impl Fields {
    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn push(&mut self, of: Option<NodeId>, rows: Range<usize>) {
        self.count += rows.len();
        self.parts.push((of, rows));
    }

    /// The row at a place, and whose it is.
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

/// Whether a node is only how the engine keeps what is in an object or an array.
pub(super) fn is_part(node_type: NodeType) -> bool {
    matches!(node_type, NodeType::OBJECT_PROPERTIES | NodeType::ARRAY_ELEMENTS)
}

impl<G: Graph + ?Sized> Heap<'_, G> {
    /// The fields of `node`; of `None`, the roots.
    #[must_use]
    pub fn fields(&self, node: Option<NodeId>) -> Fields {
        let graph = self.graph();
        let rows = graph.children(node);
        let mut fields = Fields::default();
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

    /// The field at a place. `None` beyond the last, and where a damaged file refers to nothing.
    #[must_use]
    pub fn field(&self, fields: &Fields, place: usize) -> Option<Field> {
        let (of, row) = fields.row(place)?;
        let child = self.graph().child(row)?;
        Some(Field {
            name: self.step(of, &child),
            node: self.value(child.node),
            strength: child.strength,
            is_tree: child.is_tree,
        })
    }

    /// What a reference adds to a path, or its name where that is nothing.
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

    /// What stands in an element of an array, or behind a reference; otherwise the node itself.
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
