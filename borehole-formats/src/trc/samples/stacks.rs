//! Call stacks as addresses, each stored once until its symbols are known.

use std::hash::BuildHasher as _;
use std::io;

use borehole_model::{FrameId, StackId, TableFull, Tables};
use hashbrown::{DefaultHashBuilder, HashTable};

use super::symbols::Symbols;

#[derive(Debug, Default)]
pub(super) struct AddressStacks {
    /// The leaf first, as the trace has them.
    addresses: Vec<[u8; 8]>,
    ends: Vec<usize>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl AddressStacks {
    /// The number of a stack.
    ///
    /// # Errors
    /// When there are 2^32 others.
    pub(super) fn intern(&mut self, stack: &[[u8; 8]]) -> io::Result<u32> {
        let hash = self.hasher.hash_one(stack);
        let found = self.index.find(hash, |&row| slice(&self.addresses, &self.ends, row) == stack);
        if let Some(&row) = found {
            return Ok(row);
        }
        let row = u32::try_from(self.ends.len()).map_err(io::Error::other)?;
        self.addresses.extend_from_slice(stack);
        self.ends.push(self.addresses.len());
        let Self { addresses, ends, index, hasher } = self;
        index.insert_unique(hash, row, |&row| hasher.hash_one(slice(addresses, ends, row)));
        Ok(row)
    }

    /// Every stack in the words of `symbols`, by number.
    pub(super) fn resolve(
        &self,
        symbols: &Symbols,
        tables: &mut Tables,
    ) -> Result<Vec<Option<StackId>>, TableFull> {
        let mut frames: Vec<FrameId> = Vec::new();
        let mut resolved = Vec::with_capacity(self.ends.len());
        let mut start = 0;
        for &end in &self.ends {
            frames.clear();
            for &address in &self.addresses[start..end] {
                symbols.frames(u64::from_le_bytes(address), tables, &mut frames)?;
            }
            resolved.push(tables.intern_stack_leaf_first(&frames)?);
            start = end;
        }
        Ok(resolved)
    }
}

fn slice<'a>(addresses: &'a [[u8; 8]], ends: &[usize], row: u32) -> &'a [[u8; 8]] {
    let row = row as usize;
    let start = if row == 0 { 0 } else { ends[row - 1] };
    &addresses[start..ends[row]]
}
