//! The names of the addresses that stacks contain.
//!
//! Addresses mean something in their process only, so each file ends with the names of those that it may contain.

#[cfg(feature = "stacks")]
use std::collections::{BTreeMap, BTreeSet};
#[cfg(feature = "stacks")]
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The addresses that were recorded, and their names as far as they are known.
#[derive(Default)]
pub(crate) struct Symbols {
    #[cfg(feature = "stacks")]
    table: Mutex<SymbolTable>,
}

#[cfg(feature = "stacks")]
#[derive(Default)]
struct SymbolTable {
    /// The addresses since the last file was completed.
    wanted: BTreeSet<u64>,
    /// Those that are no return addresses: an instruction at the address was running.
    exact: BTreeSet<u64>,
    names: BTreeMap<u64, Vec<Symbol>>,
    /// The number of addresses that found no place.
    left_out: u64,
}

/// A function at an address.
#[cfg(feature = "stacks")]
#[derive(Clone, Debug, PartialEq, Eq)]
struct Symbol {
    name: String,
    file: String,
    line: u32,
}

/// The maximum number of distinct addresses, which only a program that generates code exceeds.
#[cfg(feature = "stacks")]
const MOST_ADDRESSES: usize = 1 << 17;

/// A file without events of stacks needs no names.
#[cfg(not(feature = "stacks"))]
impl Symbols {
    #[expect(clippy::unused_self, reason = "the method of the feature `stacks`")]
    pub(crate) const fn batch(&self, _is_file_over: bool) -> Vec<u8> {
        Vec::new()
    }
}

#[cfg(feature = "stacks")]
impl Symbols {
    /// Notes the addresses of a stack.
    pub(crate) fn want(&self, addresses: &[u64]) {
        let mut table = self.lock();
        let table = &mut *table;
        for &address in addresses {
            if table.wanted.len() < MOST_ADDRESSES {
                table.wanted.insert(address);
            } else if !table.wanted.contains(&address) {
                table.left_out += 1;
            }
        }
    }

    /// Notes that an address, which is also noted as one of a stack, is no return address.
    #[cfg(all(target_os = "linux", feature = "cpu-samples"))]
    pub(crate) fn want_exact(&self, address: Option<u64>) {
        let mut table = self.lock();
        if table.exact.len() < MOST_ADDRESSES {
            table.exact.extend(address);
        }
    }

    /// Looks up a number of addresses in advance, so that the end of a file does not take long. Returns whether there are
    /// more.
    pub(crate) fn look_up(&self, most: usize) -> bool {
        let unknown: Vec<(u64, bool)> = {
            let table = self.lock();
            let unknown = table.wanted.iter().filter(|address| !table.names.contains_key(address));
            unknown.take(most).map(|&address| (address, table.exact.contains(&address))).collect()
        };
        // Without the lock: the debug information of a large program takes seconds to read.
        for &(address, is_exact) in &unknown {
            let symbols = resolve(address.saturating_add(is_exact.into()));
            self.lock().names.insert(address, symbols);
        }
        unknown.len() == most
    }

    /// A batch of the names of all addresses that were noted; empty if there are none. If the file is over, the next one
    /// begins without any.
    pub(crate) fn batch(&self, is_file_over: bool) -> Vec<u8> {
        while self.look_up(MOST_ADDRESSES) {}
        let mut table = self.lock();
        let table = &mut *table;
        if table.wanted.is_empty() {
            return Vec::new();
        }
        let mut writer = crate::trc::Writer::new(Vec::new());
        for &address in &table.wanted {
            let symbols = table.names.get(&address).map_or(&[][..], Vec::as_slice);
            for (inline_depth, symbol) in (0..).zip(symbols) {
                // Writing to a vector cannot fail, and an event that does not fit is one name less.
                let _ = writer.write(&symbol.event(address, inline_depth));
            }
        }
        if is_file_over {
            table.wanted.clear();
            if table.names.len() >= MOST_ADDRESSES {
                table.names.clear();
                table.exact.clear();
            }
        }
        writer.finish().unwrap_or_default()
    }

    /// The number of addresses that have no name because there were too many.
    pub(crate) fn left_out(&self) -> u64 {
        self.lock().left_out
    }

    fn lock(&self) -> MutexGuard<'_, SymbolTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "stacks")]
impl Symbol {
    fn event(&self, addr: u64, inline_depth: u64) -> crate::events::SymbolTableEntry<'_> {
        crate::events::SymbolTableEntry {
            timestamp_ns: 0,
            addr,
            size: 1,
            symbol_name: &self.name,
            inline_depth,
            source_file: &self.file,
            source_line: u64::from(self.line),
        }
    }
}

/// The functions at a return address: the compiled one, then those inlined into it.
#[cfg(feature = "stacks")]
fn resolve(address: u64) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    let Ok(address) = usize::try_from(address) else { return symbols };
    backtrace::resolve(std::ptr::without_provenance_mut(address), |symbol| {
        symbols.push(Symbol {
            name: symbol.name().map(|name| format!("{name:#}")).unwrap_or_default(),
            file: symbol.filename().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default(),
            line: symbol.lineno().unwrap_or(0),
        });
    });
    // The innermost function comes first.
    symbols.reverse();
    symbols.retain(|symbol| !symbol.name.is_empty());
    symbols
}

/// Appends the return addresses of the calling thread, the leaf first, at most `most`; none on systems other than Unix. If the
/// function at `from` is among the callers, it is left out with those that it called; if that at `to` is, it is left out with those
/// that called it. Null is no function.
///
/// # Examples
///
/// ```
/// use std::ptr::null;
/// use borehole_recorder::capture_stack;
///
/// let mut stack = Vec::new();
/// capture_stack(&mut stack, 64, null(), null());
/// assert!(!stack.is_empty() || cfg!(not(unix)));
/// ```
#[cfg(feature = "stacks")]
pub fn capture_stack(addresses: &mut Vec<u64>, most: usize, from: *const (), to: *const ()) {
    let start = addresses.len();
    let end = start.saturating_add(most);
    #[cfg(unix)]
    borehole_memory::visit_stack(|address, function| {
        // The functions of some callers are not known.
        let is_at = |place: *const ()| !place.is_null() && function == place.addr();
        if is_at(from) {
            addresses.truncate(start);
        } else if !is_at(to) {
            addresses.push(address as u64);
        }
        addresses.len() < end && !is_at(to)
    });
    #[cfg(not(unix))]
    let _ = (end, from, to);
}

#[cfg(all(test, feature = "stacks"))]
mod tests {
    use super::*;
    use crate::trc::{Reader, Value};

    #[inline(never)]
    fn outer_function(addresses: &mut Vec<u64>) {
        inner_function(addresses);
        std::hint::black_box(addresses);
    }

    #[inline(never)]
    fn inner_function(addresses: &mut Vec<u64>) {
        capture_stack(addresses, 64, inner_function as *const (), std::ptr::null());
        std::hint::black_box(addresses);
    }

    #[test]
    fn a_stack_begins_after_the_given_function_and_its_names_are_written_once_a_file() {
        let mut stack = Vec::new();
        outer_function(&mut stack);
        let symbols = Symbols::default();
        symbols.want(&stack);
        symbols.want(&stack);
        let read = |batch: Vec<u8>| {
            let (mut names, mut reader) = (Vec::new(), Reader::new(&*batch));
            while let Some(event) = reader.next_event().unwrap() {
                let address = event.value_of("addr").and_then(Value::as_u64).unwrap();
                names.push((address, event.value_of("symbol_name").unwrap().as_str().unwrap().to_owned()));
            }
            names
        };
        let names = read(symbols.batch(true));
        let of = |address| names.iter().find(|name| name.0 == address).map_or("", |name| name.1.as_str());
        assert!(of(stack[0]).contains("outer_function"), "{names:?}");
        assert!(!names.iter().any(|name| name.1.contains("inner_function")), "{names:?}");
        assert_eq!(symbols.batch(true), Vec::<u8>::new());
    }
}
