//! Checks the consistency of a file.

use borehole_text::Error;

use super::layout::*;
use super::read::{MappedGraph, first_word};
use super::sections::{RowTable, malformed, word};
use crate::graph::STRINGS_STRIDE;

impl MappedGraph<'_> {
    /// Reads all of the file and reports the first inconsistency: node and string numbers out of range, nodes that the
    /// tree reaches twice, wrong indexes.
    ///
    /// # Errors
    /// Malformed, at the row.
    pub fn check(&self) -> Result<(), Error> {
        self.check_strings()?;
        self.check_nodes()?;
        self.check_edges()?;
        self.check_rows(self.locations.table, LOCATIONS, &[1], &[2, 7, 10])?;
        self.check_rows(self.attributes.table, ATTRIBUTES, &[1, 2], &[])?;
        for (key, value) in &self.facts.summary {
            self.check_string(key.0, SUMMARY, self.strings.offset)?;
            self.check_string(value.0, SUMMARY, self.strings.offset)?;
        }
        let zero = self.zero_group();
        if !zero.rows().map(first_word).is_sorted() {
            return Err(malformed(format!("expected sorted nodes in section {ZERO_GROUP}"), zero.offset));
        }
        let count = self.node_count();
        self.edges.check(count + 1, EDGE_STARTS)?;
        self.locations.check(count, LOCATION_STARTS)?;
        self.attributes.check(count, ATTRIBUTE_STARTS)
    }

    fn check_strings(&self) -> Result<(), Error> {
        let mut at = 4_usize;
        for number in 0..self.strings.count {
            if number.is_multiple_of(STRINGS_STRIDE)
                && self.strings.start(number / STRINGS_STRIDE) != Some(at)
            {
                return Err(self.wrong_string("invalid index of", number, at));
            }
            let length = self.strings.bytes.get(at..).and_then(|rest| rest.first_chunk());
            let length = length.map(|length| u32::from_le_bytes(*length) as usize);
            let end = length.and_then(|length| at.checked_add(4)?.checked_add(length));
            at = end
                .filter(|&end| end <= self.strings.bytes.len())
                .ok_or_else(|| self.wrong_string("truncated:", number, at))?;
        }
        Ok(())
    }

    fn wrong_string(&self, what: &str, number: usize, at: usize) -> Error {
        malformed(format!("{what} string {number}"), self.strings.offset.saturating_add(at as u64))
    }

    fn check_string(&self, string: u32, section: &str, offset: u64) -> Result<(), Error> {
        if (string as usize) < self.strings.count {
            return Ok(());
        }
        let count = self.strings.count;
        Err(malformed(
            format!("invalid string number in section {section}: expected less than {count}, found {string}"),
            offset,
        ))
    }

    fn check_node(&self, node: u32, section: &str, offset: u64) -> Result<(), Error> {
        let count = self.node_count();
        if (node as usize) < count {
            return Ok(());
        }
        Err(malformed(
            format!("invalid node number in section {section}: expected less than {count}, found {node}"),
            offset,
        ))
    }

    fn check_nodes(&self) -> Result<(), Error> {
        for (row, node) in self.nodes.rows().enumerate() {
            let offset = self.nodes.offset_of(row);
            let is_in_place = match &self.node_rows {
                None => word(node, 0) as usize == row,
                Some(rows) => rows.get(word(node, 0) as usize).is_some_and(|&found| found as usize == row),
            };
            if !is_in_place {
                return Err(malformed(format!("duplicate or misplaced node {}", word(node, 0)), offset));
            }
            self.check_string(word(node, 2), NODES, offset)?;
            if word(node, 1) != NULL {
                self.check_node(word(node, 1), NODES, offset)?;
            }
        }
        Ok(())
    }

    fn check_edges(&self) -> Result<(), Error> {
        let mut reached = vec![false; self.node_count()];
        for (row, edge) in self.edges.table.rows().enumerate() {
            let offset = self.edges.table.offset_of(row);
            if word(edge, 0) != NULL {
                self.check_node(word(edge, 0), EDGES, offset)?;
            }
            let child = word(edge, 1);
            self.check_node(child, EDGES, offset)?;
            self.check_string(word(edge, 2), EDGES, offset)?;
            let [is_tree, strength, ..] = word(edge, 3).to_le_bytes();
            if is_tree > 1 || strength > 2 {
                let message =
                    format!("invalid flags: expected at most 1 and 2, found {is_tree} and {strength}");
                return Err(malformed(message, offset));
            }
            if is_tree == 1 && std::mem::replace(&mut reached[child as usize], true) {
                return Err(malformed(format!("duplicate tree edge to node {child}"), offset));
            }
        }
        Ok(())
    }

    /// Checks the node of each row, and its required and optional strings.
    fn check_rows<const N: usize>(
        &self,
        table: RowTable<'_, N>,
        section: &str,
        strings: &[usize],
        optional: &[usize],
    ) -> Result<(), Error> {
        for (row, words) in table.rows().enumerate() {
            let offset = table.offset_of(row);
            self.check_node(word(words, 0), section, offset)?;
            for &index in strings {
                self.check_string(word(words, index), section, offset)?;
            }
            for &index in optional.iter().filter(|&&index| word(words, index) != NULL) {
                self.check_string(word(words, index), section, offset)?;
            }
        }
        Ok(())
    }
}
