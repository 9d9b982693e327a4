//! Call stacks as addresses, and the names of addresses in the trace's own symbol events.

use std::io;

use borehole_model::{Distinct, Frame, FrameId, StackId, StringId, TableFull, Tables, Warning};
use hashbrown::HashMap;

/// The maximum number of functions at one address: each occurrence in a stack becomes as many frames. Compilers inline
/// a few dozen into each other.
const MAX_FUNCTIONS: usize = 128;

/// The functions at each address: a trace may state them before or after it uses the address.
#[derive(Debug, Default)]
pub(super) struct AddressSymbols {
    by_address: HashMap<u64, Vec<Symbol>>,
    /// The number of functions beyond the maximum of their address.
    pub(super) left_out: u64,
}

/// One function at an address: the compiled one, or one inlined into it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol {
    pub(super) name: StringId,
    /// 0 is the function that was compiled; each inlining adds 1.
    pub(super) inline_depth: u64,
    pub(super) file: Option<StringId>,
    pub(super) line: Option<i64>,
}

impl AddressSymbols {
    pub(super) fn add(&mut self, address: u64, symbol: Symbol) {
        let at = self.by_address.entry(address).or_default();
        // Segments of one process repeat each other's symbols.
        match at.binary_search_by(|other| symbol.inline_depth.cmp(&other.inline_depth)) {
            Ok(same) => at[same] = symbol,
            Err(_) if at.len() == MAX_FUNCTIONS => self.left_out += 1,
            Err(place) => at.insert(place, symbol),
        }
    }

    /// A warning about omitted functions.
    pub(super) fn warning(&self) -> Warning {
        let left_out = self.left_out;
        let message = "too many functions at one address: expected at most";
        Warning::new(format!("{message} {MAX_FUNCTIONS}; left out {left_out}"))
    }

    /// Appends the frames at `address`, the innermost first; a frame named by the address if nothing is known.
    pub(super) fn frames(
        &self,
        address: u64,
        tables: &mut Tables,
        frames: &mut Vec<FrameId>,
    ) -> Result<(), TableFull> {
        let Some(symbols) = self.by_address.get(&address) else {
            let name = tables.intern_string(format!("{address:#x}").as_bytes())?;
            frames.push(tables.intern_frame(&Frame::named(name))?);
            return Ok(());
        };
        for symbol in symbols {
            let frame = Frame { file: symbol.file, line: symbol.line, ..Frame::named(symbol.name) };
            frames.push(tables.intern_frame(&frame)?);
        }
        Ok(())
    }
}

/// The addresses of each distinct stack, leaf first, as in the trace.
#[derive(Debug, Default)]
pub(super) struct AddressStacks {
    distinct: Distinct<[u8; 8]>,
    /// The numbers of the stacks of the batch's pool that events referred to, by the places of their definitions. A long
    /// stack is not looked at again for each event that refers to it.
    pooled: HashMap<(usize, usize), u32>,
}

impl AddressStacks {
    /// The number of a stack.
    ///
    /// # Errors
    /// If there are 2^32 - 1 others.
    pub(super) fn intern(&mut self, stack: &[[u8; 8]]) -> io::Result<u32> {
        let number = self.distinct.intern(stack);
        number.ok_or_else(|| io::Error::other("too many stacks: expected fewer than 2^32"))
    }

    /// The number of a stack that the pool of the batch defines at `place`.
    ///
    /// # Errors
    /// Those of [`intern`](Self::intern).
    pub(super) fn intern_pooled(&mut self, place: (usize, usize), stack: &[[u8; 8]]) -> io::Result<u32> {
        if let Some(&number) = self.pooled.get(&place) {
            return Ok(number);
        }
        let number = self.intern(stack)?;
        self.pooled.insert(place, number);
        Ok(number)
    }

    /// Forgets the places: the pool begins anew.
    pub(super) fn begin_batch(&mut self) {
        self.pooled.clear();
    }

    /// Resolves every stack with `symbols`, by number.
    pub(super) fn resolve(
        &self,
        symbols: &AddressSymbols,
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
        self.distinct.iter().map(resolve).collect()
    }
}
