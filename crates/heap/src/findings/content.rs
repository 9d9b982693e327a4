//! Findings about arrays with equal content, which could be a single array, because PHP copies an array only when it is
//! written to.

use std::hash::{DefaultHasher, Hash, Hasher};

use hashbrown::HashMap;

use crate::graph::Graph;
use crate::sink::NodeId;

use super::MOST;
use super::amounts::{count, share, size};
use super::arrays::Array;
use super::census::Thing;
use super::context::Context;
use super::finding::{Confidence, Finding, Kind, Place};

/// The maximum number of elements: larger arrays are rarely equal, and slow to compare.
const ELEMENTS: u64 = 256;
/// The minimum saving to report, in bytes.
const SAVED: u64 = 64 << 10;

/// Arrays by content.
#[derive(Debug, Default)]
pub(super) struct Contents {
    groups: HashMap<u64, Group>,
    /// The content of each array that is nested in another one, for the content of the outer array.
    nested: HashMap<NodeId, u64>,
}

/// Arrays with equal content.
#[derive(Clone, Copy, Debug)]
struct Group {
    copies: u64,
    /// The bytes of the blocks of one of them.
    each: u64,
    example: NodeId,
}

impl Group {
    fn saved(self) -> u64 {
        (self.copies - 1).saturating_mul(self.each)
    }
}

impl Contents {
    /// Adds an array, after the arrays nested in it.
    pub(super) fn take<G: Graph + ?Sized>(&mut self, context: &Context<'_, '_, G>, array: &Array) {
        if array.elements == 0 || array.elements > ELEMENTS {
            return;
        }
        let Some(content) = self.content(context, array.elements_node) else { return };
        let link = context.heap.tree().link(array.node);
        if link == Some(context.words.value) {
            self.nested.insert(array.node, content);
        }
        let group = self.groups.entry(content).or_insert_with(|| {
            let each = context.own(array.node).saturating_add(array.table_bytes);
            Group { copies: 0, each, example: array.node }
        });
        group.copies += 1;
        group.example = array.node;
    }

    /// A hash of the elements in order; `None` if an element is an object, a PHP reference or unknown, which are not
    /// interchangeable even if they are equal.
    fn content<G: Graph + ?Sized>(&self, context: &Context<'_, '_, G>, elements: NodeId) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        for element in context.children(elements) {
            element.link.hash(&mut hasher);
            let value = context.child(element.node, context.words.value)?;
            match context.thing(value) {
                Thing::String(content) => (1, content).hash(&mut hasher),
                Thing::Array => (2, *self.nested.get(&value)?).hash(&mut hasher),
                Thing::Object(_) => return None,
                Thing::Other => {
                    let graph = context.graph();
                    let mut facts = graph.attributes(value).map(|row| graph.attribute(row));
                    let fact = facts.find(|fact| fact.key == context.words.value)?;
                    (3, fact.value, fact.kind as u8).hash(&mut hasher);
                }
            }
        }
        Some(hasher.finish())
    }

    pub(super) fn find<G: Graph + ?Sized>(&self, context: &Context<'_, '_, G>) -> Option<Finding> {
        let mut groups: Vec<Group> = self.groups.values().copied().filter(|group| group.copies > 1).collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.saved()), group.example));
        let saved = groups.iter().fold(0_u64, |sum, group| sum.saturating_add(group.saved()));
        let copies = groups.iter().fold(0_u64, |sum, group| sum.saturating_add(group.copies));
        if saved < SAVED {
            return None;
        }
        let severity = context.severity_of(saved);
        let label = |node| context.label(context.owner(node));
        let line = |group: &Group| {
            format!("{} x {}: {}", count(group.copies), size(group.each), label(group.example))
        };
        let text = format!(
            "{} arrays hold what {} could: {} too much",
            count(copies),
            count(groups.len() as u64),
            size(saved)
        );
        let place = groups.first().map(|group| Place { node: group.example, path: label(group.example) });
        let finding = Finding::new(Kind::DuplicateArrays, severity, text)
            .fact("arrays", copies)
            .fact("contents", groups.len())
            .fact("saved_bytes", saved)
            .fact("percentage_of_heap", share(saved, context.used))
            .details(groups.iter().take(MOST).map(line).collect())
            .likely(Confidence::High, "the same data is made again and again: PHP shares an array that is assigned, not one that is equal")
            .check("Make it once and assign it: PHP copies it only when it is written to")
            .check("As a constant, or a default of a property, it costs nothing")
            .impact(saved)
            .at(place);
        Some(finding)
    }
}
