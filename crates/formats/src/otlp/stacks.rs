//! The stacks of a document, as a tree: callers that stacks share are held once, though the document repeats them.

use std::io::{self, Write};

use borehole_model::{InternedRows, StackId};
use borehole_wire::{put_varint, varint_len};

use super::layout::{dictionary, stack};
use crate::documents::protobuf::{FieldStream, field_length};

/// The stacks, numbered in order of first use. Number 0 is the empty one.
#[derive(Debug)]
pub(super) struct StackEntries {
    /// The node of the caller, plus one, or 0 at a root; and the location.
    nodes: InternedRows<(u32, u32)>,
    /// By node: the length of its locations as varints, in bytes.
    lengths: Vec<u64>,
    /// By node: its number, 0 if it has none.
    numbers: Vec<u32>,
    /// The nodes with numbers, in order.
    entries: Vec<u32>,
    /// By stack of the model: its node, plus one; 0 if it has none.
    of_stacks: Vec<u32>,
}

impl StackEntries {
    /// Creates a table for as many stacks as the model has.
    pub(super) fn new(stacks: usize) -> Self {
        Self {
            nodes: InternedRows::default(),
            lengths: Vec::new(),
            numbers: Vec::new(),
            entries: Vec::new(),
            of_stacks: vec![0; stacks],
        }
    }

    /// The node of a stack, plus one; 0 if it has none yet.
    pub(super) fn node(&self, stack: StackId) -> u32 {
        self.of_stacks[stack.index()]
    }

    /// Adds a stack whose caller has the node `caller`, 0 at a root; returns its node, plus one, or 0 if no node is left.
    pub(super) fn add(&mut self, stack: StackId, caller: u32, location: u32) -> u32 {
        let Some(node) = self.nodes.intern(&(caller, location)) else { return 0 };
        if node as usize == self.lengths.len() {
            let callers = caller.checked_sub(1).map_or(0, |caller| self.lengths[caller as usize]);
            self.lengths.push(callers + varint_len(location.into()) as u64);
            self.numbers.push(0);
        }
        self.of_stacks[stack.index()] = node + 1;
        node + 1
    }

    /// The number of a stack that has been added; 0 if no number was left for it.
    pub(super) fn number(&mut self, stack: StackId) -> u32 {
        let Some(node) = self.node(stack).checked_sub(1) else { return 0 };
        let number = &mut self.numbers[node as usize];
        if *number == 0 {
            self.entries.push(node);
            // There are no more entries than nodes.
            *number = u32::try_from(self.entries.len()).unwrap_or(0);
        }
        *number
    }

    /// The length of all entries as fields.
    pub(super) fn field_bytes(&self) -> u64 {
        let entries = self.entries.iter().map(|&node| self.entry_length(node));
        field_length(0) + entries.map(field_length).sum::<u64>()
    }

    /// Writes all entries as fields, the empty one first.
    pub(super) fn write<W: Write>(&self, output: &mut FieldStream<W>) -> io::Result<()> {
        output.bytes(dictionary::STACK, &[])?;
        for &node in &self.entries {
            output.begin(dictionary::STACK, self.entry_length(node));
            output.begin(stack::LOCATION_INDICES, self.lengths[node as usize]);
            let mut next = node + 1;
            while let Some(node) = next.checked_sub(1) {
                let (caller, location) = self.nodes.rows()[node as usize];
                put_varint(output.buffer(), location.into());
                output.spill()?;
                next = caller;
            }
        }
        Ok(())
    }

    fn entry_length(&self, node: u32) -> u64 {
        field_length(self.lengths[node as usize])
    }
}
