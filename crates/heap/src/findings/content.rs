//! Findings about arrays with equal content, which could be a single array, because PHP copies an array only when it is
//! written to.

use std::hash::{DefaultHasher, Hash, Hasher};

use hashbrown::HashMap;

use crate::graph::attributes;
use crate::largest::sort_largest_first;
use crate::sink::NodeId;

use super::amounts::{ByteSum, count, share, size};
use super::array::Array;
use super::census::Thing;
use super::finding::{Confidence, FindingKind, HeapFinding};
use super::limits::MOST;
use super::owner::Owner;
use super::severity;
use super::survey::HeapSurvey;

/// The maximum number of elements: larger arrays are rarely equal, and slow to compare.
const ELEMENTS: u64 = 256;
/// The minimum saving to report, in bytes.
const SAVED: u64 = 64 << 10;

/// Arrays by content.
#[derive(Debug, Default)]
pub(super) struct Contents {
    groups: HashMap<u64, EqualArrays>,
    /// The content of each array that is nested in another one, for the content of the outer array.
    nested: HashMap<NodeId, u64>,
}

/// Arrays with equal content.
#[derive(Clone, Copy, Debug)]
struct EqualArrays {
    copies: u64,
    /// The bytes of the blocks of one of them.
    each: u64,
    example: NodeId,
}

impl EqualArrays {
    fn saved(self) -> u64 {
        (self.copies - 1).saturating_mul(self.each)
    }
}

impl Contents {
    /// Adds an array, after the arrays nested in it.
    pub(super) fn take(&mut self, survey: &HeapSurvey<'_>, array: &Array) {
        if array.elements == 0 || array.elements > ELEMENTS {
            return;
        }
        let Some(content) = self.content(survey, array.elements_node) else { return };
        let link = survey.heap.tree().link(array.node);
        if link == Some(survey.words.value) {
            self.nested.insert(array.node, content);
        }
        let group = self.groups.entry(content).or_insert_with(|| {
            let each = survey.shallow(array.node).saturating_add(array.table_bytes);
            EqualArrays { copies: 0, each, example: array.node }
        });
        group.copies += 1;
        group.example = array.node;
    }

    /// A hash of the elements in order; `None` if an element is an object, a PHP reference or unknown, which are not
    /// interchangeable even if they are equal.
    fn content(&self, survey: &HeapSurvey<'_>, elements: NodeId) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        for element in survey.children(elements) {
            element.link.hash(&mut hasher);
            let value = survey.child(element.node, survey.words.value)?;
            match survey.thing(value) {
                Thing::String(content) => (1, content).hash(&mut hasher),
                Thing::Array => (2, *self.nested.get(&value)?).hash(&mut hasher),
                Thing::Object(_) => return None,
                Thing::Other => {
                    let graph = survey.graph();
                    let mut facts = attributes(graph, value);
                    let fact = facts.find(|fact| fact.key == survey.words.value)?;
                    (3, fact.value, fact.kind as u8).hash(&mut hasher);
                }
            }
        }
        Some(hasher.finish())
    }

    pub(super) fn find(&self, survey: &HeapSurvey<'_>) -> Option<HeapFinding> {
        let mut groups: Vec<EqualArrays> =
            self.groups.values().copied().filter(|group| group.copies > 1).collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.saved()), group.example));
        let saved = groups.iter().fold(0_u64, |sum, group| sum.saturating_add(group.saved()));
        let copies = groups.iter().fold(0_u64, |sum, group| sum.saturating_add(group.copies));
        if saved < SAVED {
            return None;
        }
        let severity = severity::by_share(saved, survey.used);
        let owners = by_owner(survey, &groups);
        let line = |(owner, arrays): &(Owner, ByteSum)| {
            format!("{}: {} arrays, {} wasted", survey.label(*owner), count(arrays.count), size(arrays.bytes))
        };
        let text = format!(
            "{} arrays have only {} distinct contents; the copies waste {}",
            count(copies),
            count(groups.len() as u64),
            size(saved)
        );
        let place =
            groups.first().map(|group| survey.owner_place(survey.owner(group.example), group.example));
        let finding = HeapFinding::new(FindingKind::DuplicateArrays, severity, text)
            .fact("arrays", copies)
            .fact("contents", groups.len())
            .fact("saved_bytes", saved)
            .fact("percentage_of_heap", share(saved, survey.used))
            .details(owners.iter().take(MOST).map(line).collect())
            .likely(
                Confidence::High,
                "The same data is created repeatedly. PHP shares an array that is assigned, but not one that is \
                 merely equal.",
            )
            .check("Create it once and assign it. PHP copies it only on write.")
            .check("As a constant or a property default it costs nothing.")
            .impact(saved)
            .at(place);
        Some(finding)
    }
}

/// The copies of arrays and the bytes that they waste, by owner, the most bytes first.
fn by_owner(survey: &HeapSurvey<'_>, groups: &[EqualArrays]) -> Vec<(Owner, ByteSum)> {
    let mut owners: HashMap<Owner, ByteSum> = HashMap::new();
    for group in groups {
        let sum = owners.entry(survey.owner(group.example)).or_default();
        *sum = sum.with(ByteSum { count: group.copies, bytes: group.saved() });
    }
    let mut owners: Vec<(Owner, ByteSum)> = owners.into_iter().collect();
    sort_largest_first(&mut owners, |(_, sum)| sum.bytes, |(owner, _)| owner);
    owners
}
