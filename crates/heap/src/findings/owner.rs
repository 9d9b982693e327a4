//! The owner of a value: the property, or the node, that a program knows it by.

use std::cmp::Reverse;

use hashbrown::HashMap;

use crate::sink::{NodeId, StringId};

use super::amounts::ByteSum;
use super::census::Thing;
use super::finding::FindingPlace;
use super::shapes::Shape;
use super::survey::HeapSurvey;

/// The maximum number of nested arrays that are followed upwards.
const DEEPEST: u8 = 4;

/// Bytes of values by their owners, with one of the values of each owner.
#[derive(Debug, Default)]
pub(super) struct OwnerSums(HashMap<Owner, (ByteSum, NodeId)>);

impl OwnerSums {
    pub(super) fn add(&mut self, owner: Owner, value: NodeId, bytes: u64) {
        self.0.entry(owner).or_insert((ByteSum::default(), value)).0.add(bytes);
    }

    pub(super) fn largest_first(&self) -> Vec<(Owner, ByteSum, NodeId)> {
        let mut sums: Vec<_> = self.0.iter().map(|(&owner, &(sum, value))| (owner, sum, value)).collect();
        sums.sort_by_key(|&(owner, sum, _)| (Reverse(sum.bytes), owner));
        sums
    }
}

/// The owner by which values are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Owner {
    /// A property of a class, and the number of arrays between.
    Property { class: StringId, name: StringId, depth: u8 },
    /// The shape of the path of the outermost array or other node that is in no property, and the number of arrays between.
    Node { shape: Shape, depth: u8 },
}

impl HeapSurvey<'_> {
    /// The owner of `node`.
    pub(super) fn owner(&self, node: NodeId) -> Owner {
        let tree = self.heap.tree();
        match tree.parent(node).zip(tree.link(node)) {
            Some((parent, link)) => self.owner_by(parent, link, node),
            None => Owner::Node { shape: self.shape(node), depth: 0 },
        }
    }

    /// The owner of `node` by the reference of this name from `parent`.
    pub(super) fn owner_by(&self, parent: NodeId, link: StringId, node: NodeId) -> Owner {
        let tree = self.heap.tree();
        let (mut parent, mut link, mut node, mut depth) = (parent, link, node, 0);
        // Each array takes one step up through a PHP reference, and one through the array.
        for _ in 0..2 * DEEPEST {
            if let Some(class) = self.class_of_properties(parent) {
                return Owner::Property { class, name: link, depth };
            }
            let above = if link == self.words.referenced {
                Some((parent, depth))
            } else if link == self.words.value || link == self.words.key {
                let array = self.array_around(parent).filter(|&array| !self.is_variable_table(array));
                array.map(|array| (array, depth + 1))
            } else {
                None
            };
            let Some((next, deeper)) = above.filter(|&(_, depth)| depth <= DEEPEST) else { break };
            (node, depth) = (next, deeper);
            let Some(step) = tree.parent(node).zip(tree.link(node)) else { break };
            (parent, link) = step;
        }
        Owner::Node { shape: self.shape(node), depth }
    }

    /// The class of the object whose table of properties `node` is.
    fn class_of_properties(&self, node: NodeId) -> Option<StringId> {
        let tree = self.heap.tree();
        let object = tree.parent(node).filter(|_| tree.link(node) == Some(self.words.object_properties))?;
        self.thing(object).class()
    }

    /// The array that contains `element`.
    fn array_around(&self, element: NodeId) -> Option<NodeId> {
        let tree = self.heap.tree();
        let elements = tree.parent(element)?;
        let array =
            tree.parent(elements).filter(|_| tree.link(elements) == Some(self.words.array_elements))?;
        (self.thing(array) == Thing::Array).then_some(array)
    }

    /// Whether `node` is a table of global or static variables, which only the engine sees as an array.
    pub(super) fn is_variable_table(&self, node: NodeId) -> bool {
        let link = self.heap.tree().link(node);
        link == Some(self.words.symbol_table) || link == Some(self.words.static_variables)
    }

    /// The owner of most bytes of the wanted values, with one of the values.
    pub(super) fn heaviest_owner(&self, is_wanted: impl Fn(Thing) -> bool) -> Option<FindingPlace> {
        let mut owners = OwnerSums::default();
        for (node, thing) in self.held().filter(|&(_, thing)| is_wanted(thing)) {
            let bytes = if thing == Thing::Array { self.array_bytes(node) } else { self.shallow(node) };
            owners.add(self.owner(node), node, bytes);
        }
        owners.largest_first().first().map(|&(owner, _, node)| self.owner_place(owner, node))
    }

    /// The place of a value, named by its owner.
    pub(super) fn owner_place(&self, owner: Owner, node: NodeId) -> FindingPlace {
        FindingPlace { node, path: self.label(owner) }
    }

    /// The owner in PHP's syntax, such as `Shop\Cart::$lines[]`.
    pub(super) fn label(&self, owner: Owner) -> String {
        let (name, depth) = match owner {
            Owner::Property { class, name, depth } => {
                (format!("{}::${}", self.text(class), self.text(name)), depth)
            }
            Owner::Node { shape, depth } => (self.path_of_shape(shape), depth),
        };
        name + &"[]".repeat(depth.into())
    }
}
