//! Findings about arrays: large arrays, arrays with oversized tables, and arrays with equal content.

use hashbrown::HashMap;

use crate::graph::Graph;
use crate::largest::Largest;
use crate::names::LocationType;
use crate::number::Digits;
use crate::sink::NodeId;

use super::amounts::{count, is_share, share, size};
use super::census::Thing;
use super::content::Contents;
use super::context::Context;
use super::finding::{Confidence, Finding, Kind, Place, Severity};
use super::owner::Owner;
use super::{MEBIBYTE, MOST, Sum, medium_from_mebibyte};

/// The number of the largest arrays kept for the ranking.
const KEPT: usize = 20;
/// The minimum saving to report, in bytes.
const SAVED: u64 = 64 << 10;
/// The minimum percentage of the heap that a large array retains.
const LARGE: u64 = 10;
/// The maximum percentage of used slots in a sparse array.
const SPARSE: u64 = 25;
/// The minimum size of a table in PHP, in slots.
///
/// Source: PHP, Zend/zend_types.h, `HT_MIN_SIZE`.
const LEAST_SLOTS: u64 = 8;
/// Bytes of a slot with a key, and of its two hash entries.
///
/// Source: PHP 7.3, Zend/zend_types.h, `HT_SIZE_TO_MASK`; before, it was one part.
const KEYED_SLOT: u64 = 32 + 2 * 4;
/// Bytes of a slot of a list, since PHP 8.2 and before, and of the hash of a list.
const LIST_SLOT: u64 = 16;
const OLD_LIST_SLOT: u64 = 32;
const LIST_HASH: u64 = 8;

/// An array with its table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Array {
    pub(super) node: NodeId,
    pub(super) elements_node: NodeId,
    pub(super) elements: u64,
    /// The used and the unused part of the table, including the overhead of its block.
    pub(super) table_bytes: u64,
    /// The bytes of the table without the overhead of its block, which the program did not request.
    asked_bytes: u64,
    is_list: bool,
    /// Whether its keys are those of a list, in order, so that `array_values()` would make it a list.
    could_be_list: bool,
}

/// The findings about all arrays.
pub(super) struct Arrays {
    largest: Largest,
    sparse: Largest,
    /// The excess of tables by their owner, with one of the arrays.
    overallocated: HashMap<Owner, (Sum, Array)>,
    contents: Contents,
}

/// A row of the ranking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeArray {
    /// The array.
    pub place: Place,
    /// The retained size in bytes.
    pub retained_bytes: u64,
    /// The bytes of its table.
    pub table_bytes: u64,
    /// The number of elements.
    pub elements: u64,
}

impl<G: Graph + ?Sized> Context<'_, '_, G> {
    /// The array at `node`; `None` if it has no table in PHP's own memory.
    pub(super) fn array(&self, node: NodeId) -> Option<Array> {
        let (mut elements_node, mut table_bytes, mut asked_bytes) = (None, 0_u64, 0_u64);
        for child in self.children(node) {
            let is_elements = child.link == self.words.array_elements;
            if !is_elements && child.link != self.words.possible_unused_area {
                continue;
            }
            for location in self.graph().locations(child.node).map(|row| self.graph().location(row)) {
                let is_table = matches!(
                    location.location_type,
                    LocationType::ARRAY_TABLE | LocationType::ARRAY_TABLE_OVERHEAD
                );
                if is_table && self.retention.counts(&location) {
                    asked_bytes = asked_bytes.saturating_add(location.size);
                    table_bytes = table_bytes
                        .saturating_add(location.size)
                        .saturating_add(location.bin_overhead.into());
                }
            }
            elements_node = if is_elements { Some(child.node) } else { elements_node };
        }
        let elements_node = elements_node.filter(|_| table_bytes > 0)?;
        let (elements, is_list) = self.table_facts(elements_node);
        Some(Array { node, elements_node, elements, table_bytes, asked_bytes, is_list, could_be_list: false })
    }

    /// The number of elements in a table, and whether it is the table of a list.
    fn table_facts(&self, elements: NodeId) -> (u64, bool) {
        let graph = self.graph();
        let (mut count, mut is_list) = (0, false);
        for fact in graph.attributes(elements).map(|row| graph.attribute(row)) {
            if fact.key == self.words.count {
                count =
                    std::str::from_utf8(graph.string(fact.value)).unwrap_or_default().parse().unwrap_or(0);
            } else if fact.key == self.words.is_packed {
                is_list = graph.string(fact.value) == b"1";
            }
        }
        (count, is_list)
    }

    /// Whether the keys of a table are 0, 1, 2, …. For nearly all other tables, only the first key is checked.
    fn is_ordered(&self, elements: NodeId) -> bool {
        let mut keys = self.children(elements).zip(0..);
        keys.all(|(element, key)| self.graph().string(element.link) == Digits::of_unsigned(key).text())
    }

    /// The bytes of an array's own blocks.
    pub(super) fn array_bytes(&self, node: NodeId) -> u64 {
        let table = self.array(node).map_or(0, |array| array.table_bytes);
        self.own(node).saturating_add(table)
    }

    fn list_slot(&self) -> u64 {
        let version = self.summary.php_version.trim_start_matches('v');
        match version.get(..2).and_then(|version| version.parse::<u64>().ok()) {
            Some(..82) => OLD_LIST_SLOT,
            _ => LIST_SLOT,
        }
    }
}

impl Array {
    /// The bytes of a new table of PHP for this many elements.
    fn fitting(self, list_slot: u64) -> u64 {
        let slots = self.elements.max(LEAST_SLOTS).checked_next_power_of_two().unwrap_or(u64::MAX);
        match self.is_list || self.could_be_list {
            true => slots.saturating_mul(list_slot).saturating_add(LIST_HASH),
            false => slots.saturating_mul(KEYED_SLOT),
        }
    }

    /// The bytes by which a new table would be smaller.
    fn excess(self, list_slot: u64) -> u64 {
        self.asked_bytes.saturating_sub(self.fitting(list_slot))
    }

    fn slots(self, list_slot: u64) -> u64 {
        if self.is_list { self.asked_bytes / list_slot } else { self.asked_bytes / KEYED_SLOT }
    }

    fn is_sparse(self, list_slot: u64) -> bool {
        let used = self.elements.saturating_mul(100);
        self.excess(list_slot) >= SAVED && used <= self.slots(list_slot).saturating_mul(SPARSE)
    }
}

impl Arrays {
    pub(super) fn of<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Self {
        let mut arrays = Self {
            largest: Largest::new(KEPT),
            sparse: Largest::new(MOST),
            overallocated: HashMap::new(),
            contents: Contents::default(),
        };
        let list_slot = context.list_slot();
        // Nested arrays come later in the walk, so this order visits them before the arrays that contain them.
        for (node, _) in context.held().rev().filter(|&(_, thing)| thing == Thing::Array) {
            if let Some(mut array) = context.array(node).filter(|_| !context.is_symbol_table(node)) {
                array.could_be_list = !array.is_list && context.is_ordered(array.elements_node);
                arrays.take(context, array, list_slot);
            }
        }
        arrays
    }

    fn take<G: Graph + ?Sized>(&mut self, context: &Context<'_, '_, G>, array: Array, list_slot: u64) {
        self.largest.push(context.retention.retained(array.node), array.node);
        let excess = array.excess(list_slot);
        if array.is_sparse(list_slot) {
            self.sparse.push(excess, array.node);
        } else if excess > 0 {
            let entry =
                self.overallocated.entry(context.owner(array.node)).or_insert((Sum::default(), array));
            entry.0.add(excess);
        }
        self.contents.take(context, &array);
    }

    /// The arrays with the largest retained sizes.
    pub(super) fn ranking<G: Graph + ?Sized>(&self, context: &Context<'_, '_, G>) -> Vec<LargeArray> {
        let row = |(retained_bytes, node)| {
            let array = context.array(node)?;
            let Array { table_bytes, elements, .. } = array;
            Some(LargeArray { place: context.place(node), retained_bytes, table_bytes, elements })
        };
        self.largest.sorted().into_iter().filter_map(row).collect()
    }

    pub(super) fn find<G: Graph + ?Sized>(&self, context: &Context<'_, '_, G>) -> Vec<Finding> {
        let mut findings = large(context, &self.ranking(context));
        let list_slot = context.list_slot();
        findings.extend(self.sparse.sorted().into_iter().filter_map(|(_, node)| {
            let array = context.array(node)?;
            Some(sparse(context, array, list_slot))
        }));
        findings.extend(self.overallocation(context));
        findings.extend(self.contents.find(context));
        findings
    }

    fn overallocation<G: Graph + ?Sized>(&self, context: &Context<'_, '_, G>) -> Option<Finding> {
        let mut owners: Vec<(Owner, Sum, Array)> =
            self.overallocated.iter().map(|(&owner, &(sum, array))| (owner, sum, array)).collect();
        owners.sort_by_key(|&(owner, sum, _)| (std::cmp::Reverse(sum.bytes), owner));
        let all = owners.iter().fold(Sum::default(), |all, (_, sum, _)| all.with(*sum));
        if all.bytes < SAVED {
            return None;
        }
        let severity = context.weighed(medium_from_mebibyte(all.bytes));
        let line = |&(owner, sum, _): &(Owner, Sum, Array)| {
            format!("{}: {} arrays, {}", context.label(owner), count(sum.count), size(sum.bytes))
        };
        let text = format!(
            "the tables of {} arrays are larger than their elements need: {} too much",
            count(all.count),
            size(all.bytes)
        );
        let place =
            owners.first().map(|&(owner, _, array)| Place { node: array.node, path: context.label(owner) });
        let finding = Finding::new(Kind::OverallocatedArrays, severity, text)
            .fact("arrays", all.count)
            .fact("saved_bytes", all.bytes)
            .fact("percentage_of_heap", share(all.bytes, context.used))
            .details(owners.iter().take(MOST).map(line).collect())
            .likely(
                Confidence::High,
                "elements were removed, or lists were not filled in order: a table never becomes smaller by itself",
            )
            .check("Make them anew: array_values($list), or array_slice($array, 0, null, true) to keep the keys")
            .impact(all.bytes)
            .at(place);
        Some(finding)
    }
}

fn large<G: Graph + ?Sized>(context: &Context<'_, '_, G>, ranking: &[LargeArray]) -> Vec<Finding> {
    let large = ranking.iter().filter(|array| array.retained_bytes >= MEBIBYTE).take(MOST);
    let finding = |array: &LargeArray| {
        let bytes = array.retained_bytes;
        let is_large = is_share(bytes, LARGE, context.used);
        let severity = context.weighed(if is_large { Severity::Medium } else { Severity::Low });
        let text = format!(
            "{} in {} elements (table {}): {}",
            size(bytes),
            count(array.elements),
            size(array.table_bytes),
            array.place.path
        );
        Finding::new(Kind::LargeArray, severity, text)
            .fact("path", array.place.path.as_str())
            .fact("retained_bytes", bytes)
            .fact("table_bytes", array.table_bytes)
            .fact("elements", array.elements)
            .fact("percentage_of_heap", share(bytes, context.used))
            .likely(Confidence::Medium, "a list of all there is, or a cache")
            .check("See whether it grows with the input, and whether all of it is needed at once")
            .impact(bytes)
            .at(Some(array.place.clone()))
    };
    large.map(finding).collect()
}

fn sparse<G: Graph + ?Sized>(context: &Context<'_, '_, G>, array: Array, list_slot: u64) -> Finding {
    let excess = array.excess(list_slot);
    let place = context.place(array.node);
    let (used, slots) = (array.elements, array.slots(list_slot));
    let text = format!(
        "{} of {} slots used, a table of {}: {}",
        count(used),
        count(slots),
        size(array.table_bytes),
        place.path
    );
    let severity = context.weighed(medium_from_mebibyte(excess));
    Finding::new(Kind::SparseArray, severity, text)
        .fact("path", place.path.as_str())
        .fact("elements", used)
        .fact("slots", slots)
        .fact("table_bytes", array.table_bytes)
        .fact("saved_bytes", excess)
        .likely(Confidence::High, "most elements were removed: a table never becomes smaller by itself")
        .check("Make it anew: array_values($list), or array_slice($array, 0, null, true)")
        .impact(excess)
        .at(Some(place))
}
