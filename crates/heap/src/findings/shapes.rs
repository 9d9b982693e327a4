//! The shapes of paths: paths without the keys of lists, which are equal for values that are alike.

use std::cell::RefCell;

use hashbrown::HashMap;

use crate::names::NodeType;
use crate::path;
use crate::sink::{NodeId, StringId};

use super::amounts::ByteSum;
use super::finding::FindingPlace;
use super::survey::{DEEPEST, HeapSurvey};

/// The shape of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Shape(u32);

/// No shape yet.
const UNKNOWN: u32 = u32::MAX;

/// The number of elements from which string keys do not tell elements apart either.
const MANY: u64 = 64;

/// The shapes computed so far.
#[derive(Debug, Default)]
pub(super) struct PathShapes(RefCell<KnownShapes>);

#[derive(Debug, Default)]
struct KnownShapes {
    /// The shape of each node.
    of_nodes: Vec<u32>,
    /// The shapes by the shape above and the step from it; `None` for the key of a list.
    of_steps: HashMap<(u32, Option<StringId>), u32>,
    /// A node of each shape, from shape 1 on.
    examples: Vec<NodeId>,
}

impl KnownShapes {
    fn of(&mut self, survey: &HeapSurvey<'_>, node: NodeId) -> Shape {
        self.of_nodes.resize(survey.graph().counts().nodes, UNKNOWN);
        let tree = survey.heap.tree();
        let (mut unknown, mut above, mut next) = (Vec::new(), 0, Some(node));
        while let Some(node) = next {
            let Some(shape) = self.of_nodes.get_mut(node.0 as usize) else { break };
            if *shape != UNKNOWN {
                above = *shape;
                break;
            }
            // A damaged tree may have a cycle.
            *shape = 0;
            unknown.push(node);
            next = tree.parent(node);
        }
        while let Some(node) = unknown.pop() {
            let step = tree.link(node).filter(|_| !survey.is_one_of_many(node));
            let new = u32::try_from(self.of_steps.len() + 1).unwrap_or(0);
            above = *self.of_steps.entry((above, step)).or_insert_with(|| {
                self.examples.push(node);
                new
            });
            self.of_nodes[node.0 as usize] = above;
        }
        Shape(above)
    }
}

/// Values of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AlikeValues {
    pub(super) sum: ByteSum,
    /// The largest of them, and its bytes.
    pub(super) largest: (u64, NodeId),
}

/// Values by shape.
#[derive(Debug, Default)]
pub(super) struct ShapeSums(HashMap<Shape, AlikeValues>);

impl ShapeSums {
    pub(super) fn add(&mut self, shape: Shape, node: NodeId, bytes: u64) {
        let new = || AlikeValues { sum: ByteSum::default(), largest: (bytes, node) };
        let values = self.0.entry(shape).or_insert_with(new);
        values.sum.add(bytes);
        if bytes > values.largest.0 {
            values.largest = (bytes, node);
        }
    }

    /// The groups that take most, at most so many.
    pub(super) fn largest_first(&self, most: usize) -> Vec<AlikeValues> {
        let mut groups: Vec<AlikeValues> = self.0.values().copied().collect();
        groups.sort_unstable_by_key(|group| (std::cmp::Reverse(group.sum.bytes), group.largest.1));
        groups.truncate(most);
        groups
    }
}

impl HeapSurvey<'_> {
    /// The shape of the path of `node`.
    pub(super) fn shape(&self, node: NodeId) -> Shape {
        self.shapes.0.borrow_mut().of(self, node)
    }

    /// A path of this shape, with `[]` for the keys of lists; empty if there is none.
    pub(super) fn path_of_shape(&self, shape: Shape) -> String {
        let place = shape.0.checked_sub(1).map(|place| place as usize);
        let example = place.and_then(|place| self.shapes.0.borrow().examples.get(place).copied());
        example.map_or_else(String::new, |node| self.shape_path(node))
    }

    /// Whether `node` is an element of an array whose key does not tell what it is.
    fn is_one_of_many(&self, node: NodeId) -> bool {
        let tree = self.heap.tree();
        let Some((elements, key)) = tree.parent(node).zip(tree.link(node)) else { return false };
        if self.graph().node_type(elements) != NodeType::ARRAY_ELEMENTS || self.holds_names(elements) {
            return false;
        }
        path::is_integer(self.graph().string(key))
            || self.number(elements, self.words.count).is_some_and(|count| count >= MANY)
    }

    /// Whether the keys of a table are names of variables or properties.
    fn holds_names(&self, elements: NodeId) -> bool {
        let array = self.heap.tree().parent(elements);
        array.is_none_or(|array| {
            let link = self.heap.tree().link(array);
            self.graph().node_type(array) != NodeType::ARRAY_HEADER
                || self.is_variable_table(array)
                || link == Some(self.words.dynamic_properties)
        })
    }

    /// The place of values that are alike, with `[]` for the keys of lists; of a single value, its own path.
    pub(super) fn alike_place(&self, values: &AlikeValues) -> FindingPlace {
        let node = values.largest.1;
        if values.sum.count == 1 {
            return self.place(node);
        }
        FindingPlace { node, path: self.shape_path(node) }
    }

    /// The path of `node` with `[]` for the keys of lists.
    pub(super) fn shape_path(&self, node: NodeId) -> String {
        let is_any = |node: NodeId| self.is_one_of_many(node);
        let path = path::near_with(&self.graph(), self.heap.tree(), node, DEEPEST, is_any);
        String::from_utf8_lossy(&path).into_owned()
    }

    /// Like [`Self::shape_path`], without the lines of calls.
    pub(super) fn name_path(&self, node: NodeId) -> String {
        let is_any = |node: NodeId| self.is_one_of_many(node);
        let path = path::names(&self.graph(), self.heap.tree(), node, DEEPEST, is_any);
        String::from_utf8_lossy(&path).into_owned()
    }
}
