//! An array with its table, and the table that it would need.

use borehole_text::IntegerDigits;

use crate::graph::locations;
use crate::names::LocationType;
use crate::sink::NodeId;

use super::survey::HeapSurvey;

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
    pub(super) is_list: bool,
    /// Whether its keys are those of a list, in order, so that `array_values()` would make it a list.
    pub(super) could_be_list: bool,
    /// The bytes of a slot of a list in this version of PHP.
    list_slot: u64,
}

impl HeapSurvey<'_> {
    /// The array at `node`; `None` if it has no table in PHP's own memory.
    pub(super) fn array(&self, node: NodeId) -> Option<Array> {
        let (mut elements_node, mut table_bytes, mut asked_bytes) = (None, 0_u64, 0_u64);
        for child in self.children(node) {
            let is_elements = child.link == self.words.array_elements;
            if !is_elements && child.link != self.words.possible_unused_area {
                continue;
            }
            for location in locations(self.graph(), child.node) {
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
        let elements = self.number(elements_node, self.words.count).unwrap_or(0);
        let is_packed = self.attribute(elements_node, self.words.is_packed);
        let is_list = is_packed.is_some_and(|value| self.graph().string(value) == b"1");
        let list_slot = self.list_slot();
        Some(Array {
            node,
            elements_node,
            elements,
            table_bytes,
            asked_bytes,
            is_list,
            could_be_list: false,
            list_slot,
        })
    }

    /// Whether the keys of a table are 0, 1, 2, …. For nearly all other tables, only the first key is checked.
    pub(super) fn is_ordered(&self, elements: NodeId) -> bool {
        let mut keys = self.children(elements).zip(0..);
        keys.all(|(element, key)| self.graph().string(element.link) == IntegerDigits::of_unsigned(key).text())
    }

    /// The bytes of an array's own blocks.
    pub(super) fn array_bytes(&self, node: NodeId) -> u64 {
        let table = self.array(node).map_or(0, |array| array.table_bytes);
        self.shallow(node).saturating_add(table)
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
    fn fitting(self) -> u64 {
        let slots = self.elements.max(LEAST_SLOTS).checked_next_power_of_two().unwrap_or(u64::MAX);
        match self.is_list || self.could_be_list {
            true => slots.saturating_mul(self.list_slot).saturating_add(LIST_HASH),
            false => slots.saturating_mul(KEYED_SLOT),
        }
    }

    /// The bytes by which a new table would be smaller.
    pub(super) fn excess(self) -> u64 {
        self.asked_bytes.saturating_sub(self.fitting())
    }

    pub(super) fn slots(self) -> u64 {
        if self.is_list { self.asked_bytes / self.list_slot } else { self.asked_bytes / KEYED_SLOT }
    }
}
