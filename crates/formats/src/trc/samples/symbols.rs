//! The names of addresses in the trace's own symbol events.

use borehole_model::{Frame, FrameId, StringId, TableFull, Tables, Warning};
use hashbrown::HashMap;

/// The maximum number of functions at one address: each occurrence in a stack becomes as many frames. Compilers inline
/// a few dozen into each other.
const MAX_FUNCTIONS: usize = 128;

/// The functions at each address: a trace may state them before or after it uses the address.
#[derive(Debug, Default)]
pub(super) struct Symbols {
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

impl Symbols {
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
        Warning::new(format!("{message} {MAX_FUNCTIONS}, left out {left_out}"))
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
