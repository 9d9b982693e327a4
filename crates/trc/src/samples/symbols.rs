//! Call stacks as addresses, and the names of addresses in the trace's own symbol events.

use std::io;

use borehole_memory::HeldBytes as _;
use borehole_model::{Distinct, Frame, FrameId, Limits, StackId, StringId, TableFull, Tables, Warning};
use hashbrown::HashMap;

/// The maximum number of functions at one address: each occurrence in a stack becomes as many frames. Compilers inline
/// a few dozen into each other.
const MAX_FUNCTIONS: usize = 128;

/// The functions at each address: a trace may state them before or after it uses the address.
#[derive(Debug, Default)]
pub(super) struct AddressSymbols {
    by_address: HashMap<u64, Vec<Symbol>>,
    /// The memory of the lists, in bytes.
    list_bytes: usize,
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
        let before = at.held_bytes();
        // Segments of one process repeat each other's symbols.
        match at.binary_search_by(|other| symbol.inline_depth.cmp(&other.inline_depth)) {
            Ok(same) => at[same] = symbol,
            Err(_) if at.len() == MAX_FUNCTIONS => self.left_out += 1,
            Err(place) => at.insert(place, symbol),
        }
        self.list_bytes += at.held_bytes() - before;
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.by_address.allocation_size() + self.list_bytes
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
    stacks: Distinct<[u8; 8]>,
    /// The number of addresses, without those that a stack shares with the one before: as many frames, or more, will be
    /// made of them.
    unshared: usize,
}

impl AddressStacks {
    /// The number of a stack.
    ///
    /// # Errors
    /// If there are 2^32 - 1 others, or the stacks take more memory than allowed.
    pub(super) fn intern(&mut self, stack: &[[u8; 8]], limits: &Limits) -> io::Result<u32> {
        let before = self.stacks.count();
        let number = self.stacks.intern(stack);
        let number = number.ok_or_else(|| io::Error::other("too many stacks: expected fewer than 2^32"))?;
        if self.stacks.count() > before {
            self.unshared +=
                stack.len() - before.checked_sub(1).map_or(0, |last| shared(self.stacks.get(last), stack));
            let to_come = self.unshared.saturating_mul(Tables::MADE_OF_STACK_BYTES);
            limits.check(self.stacks.held_bytes().saturating_add(to_come))?;
        }
        Ok(number)
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.stacks.held_bytes()
    }

    /// Resolves every stack with `symbols`, by number. What a stack shares with the one before is resolved once.
    pub(super) fn resolve(
        &self,
        symbols: &AddressSymbols,
        tables: &mut Tables,
        limits: &Limits,
    ) -> Result<Vec<Option<StackId>>, TableFull> {
        let before = tables.stack_count();
        let held = self.held_bytes().saturating_add(symbols.held_bytes());
        let mut frames = AddressFrames { symbols, frames: Vec::new(), known: HashMap::new() };
        let (mut resolved, mut last, mut path) = (Vec::new(), &[][..], Vec::<Option<StackId>>::new());
        for stack in self.stacks.iter() {
            let is_shared = shared(last, stack);
            path.truncate(is_shared);
            let new = &stack[..stack.len() - is_shared];
            // The innermost first, as the frames of a stack are numbered.
            for &address in new {
                frames.of(address, tables)?;
            }
            for &address in new.iter().rev() {
                let caller = path.last().copied().flatten();
                let range = frames.of(address, tables)?;
                path.push(frames.call(caller, range, tables)?);
                limits.check(held.saturating_add(tables.bytes_of_stacks_since(before)))?;
            }
            resolved.push(path.last().copied().flatten());
            last = stack;
        }
        Ok(resolved)
    }
}

/// The number of equal addresses at the end of two stacks, where the callers are.
fn shared(one: &[[u8; 8]], other: &[[u8; 8]]) -> usize {
    one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count()
}

/// The frames at each address, made on first use.
struct AddressFrames<'s> {
    symbols: &'s AddressSymbols,
    /// The frames at one address after the other, the innermost first.
    frames: Vec<FrameId>,
    known: HashMap<[u8; 8], (usize, usize)>,
}

impl AddressFrames<'_> {
    /// The range of the frames at an address.
    fn of(&mut self, address: [u8; 8], tables: &mut Tables) -> Result<(usize, usize), TableFull> {
        if let Some(&range) = self.known.get(&address) {
            return Ok(range);
        }
        let start = self.frames.len();
        self.symbols.frames(u64::from_le_bytes(address), tables, &mut self.frames)?;
        let range = (start, self.frames.len());
        self.known.insert(address, range);
        Ok(range)
    }

    /// The stack in which `caller` called the frames of `range`.
    fn call(
        &self,
        caller: Option<StackId>,
        (start, end): (usize, usize),
        tables: &mut Tables,
    ) -> Result<Option<StackId>, TableFull> {
        let outermost_first = self.frames[start..end].iter().rev();
        outermost_first
            .copied()
            .try_fold(caller, |caller, frame| tables.intern_stack(caller, frame).map(Some))
    }
}
