//! Call stacks as addresses, each stored once until its symbols are known.

use std::io;

use borehole_model::{Distinct, FrameId, StackId, TableFull, Tables};

use super::symbols::Symbols;

/// The addresses, leaf first, as in the trace.
#[derive(Debug, Default)]
pub(super) struct AddressStacks(Distinct<[u8; 8]>);

impl AddressStacks {
    /// The number of a stack.
    ///
    /// # Errors
    /// If there are 2^32 - 1 others.
    pub(super) fn intern(&mut self, stack: &[[u8; 8]]) -> io::Result<u32> {
        self.0.intern(stack).ok_or_else(|| io::Error::other("too many stacks: expected less than 2^32"))
    }

    /// Resolves every stack with `symbols`, by number.
    pub(super) fn resolve(
        &self,
        symbols: &Symbols,
        tables: &mut Tables,
    ) -> Result<Vec<Option<StackId>>, TableFull> {
        let mut frames: Vec<FrameId> = Vec::new();
        let resolve = |stack: &[[u8; 8]]| {
            frames.clear();
            for &address in stack {
                symbols.frames(u64::from_le_bytes(address), tables, &mut frames)?;
            }
            tables.intern_stack_leaf_first(&frames)
        };
        self.0.iter().map(resolve).collect()
    }
}
