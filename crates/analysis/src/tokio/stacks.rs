//! Stacks as addresses, each stored once, and the names of the addresses.

use borehole_model::{Addresses, Distinct};
use hashbrown::HashMap;

use super::names::cut;

/// The first kernel address, on x86-64 and on aarch64.
const KERNEL: u64 = 0xffff_0000_0000_0000;
/// The number of functions of a stack that are named.
const NAMED: usize = 8;

/// The number of functions of a stack that a page shows.
const SHOWN: usize = 64;

/// The number of addresses that distinguish stacks, from the leaf on. A trace states a long stack once, and many events may
/// refer to it.
const DISTINGUISHED: usize = 256;

/// Memory: distinct stacks and symbols.
#[derive(Debug, Default)]
pub(super) struct NamedStacks {
    stacks: Distinct<[u8; 8]>,
    /// The functions at an address with their inlining depths, the innermost first; at most [`SHOWN`].
    symbols: HashMap<u64, Vec<(u64, Box<str>)>>,
}

impl NamedStacks {
    /// The row of a stack, which it shares with those that differ only far from the leaf; `None` when there are 2^32 - 1 others.
    pub(super) fn row(&mut self, stack: Addresses<'_>) -> Option<u32> {
        self.stacks.intern(&stack.0[..stack.len().min(DISTINGUISHED)])
    }

    pub(super) fn symbol(&mut self, address: u64, name: &str, depth: u64) {
        let known = self.symbols.entry(address).or_default();
        // Segments of one process repeat each other's symbols.
        let Err(place) = known.binary_search_by(|(other, _)| depth.cmp(other)) else { return };
        if place < SHOWN {
            known.truncate(SHOWN - 1);
            known.insert(place, (depth, cut(name).into()));
        }
    }

    /// The functions at an address, the innermost first.
    fn names(&self, address: u64) -> Vec<String> {
        self.symbols.get(&address).map_or_else(
            || vec![format!("{address:#x}")],
            |functions| functions.iter().map(|(_, name)| short(name).to_owned()).collect(),
        )
    }

    fn addresses(&self, row: u32) -> impl Iterator<Item = u64> {
        self.stacks.get(row as usize).iter().map(|&bytes| u64::from_le_bytes(bytes))
    }

    pub(super) fn leaf(&self, row: u32) -> String {
        let leaf = self.addresses(row).next().and_then(|address| self.names(address).into_iter().next());
        leaf.unwrap_or_else(|| "(empty stack)".to_owned())
    }

    /// The functions nearest to the leaf, leaf first, with those that were inlined.
    pub(super) fn functions(&self, row: u32) -> Vec<String> {
        self.addresses(row).flat_map(|address| self.names(address)).take(SHOWN).collect()
    }

    /// The functions outside the kernel, from the leaf outwards, with those that were inlined.
    pub(super) fn callers(&self, row: u32) -> Vec<String> {
        let outside = self.addresses(row).filter(|&address| address < KERNEL);
        outside.flat_map(|address| self.names(address)).take(NAMED).collect()
    }
}

/// The function's name without the hash and the address that tools append.
fn short(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((head, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => head,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_stored_once_and_names_its_innermost_functions() {
        let mut stacks = NamedStacks::default();
        let addresses = [KERNEL + 7, 16, 32].map(u64::to_le_bytes);
        let row = stacks.row(Addresses(&addresses)).unwrap();
        assert_eq!(stacks.row(Addresses(&addresses)), Some(row));
        assert_ne!(stacks.row(Addresses(&[])), Some(row));
        stacks.symbol(16, "std::thread::sleep::h0123456789abcdef", 1);
        stacks.symbol(16, "outer", 0);
        stacks.symbol(KERNEL + 7, "schedule", 0);
        assert_eq!(stacks.leaf(row), "schedule");
        assert_eq!(stacks.callers(row), ["std::thread::sleep", "outer", "0x20"]);
        assert_eq!(stacks.leaf(1), "(empty stack)");
    }

    #[test]
    fn of_many_inlined_functions_the_innermost_are_kept_in_whatever_order_they_come() {
        let mut stacks = NamedStacks::default();
        let row = stacks.row(Addresses(&[16_u64.to_le_bytes()])).unwrap();
        let last = 3 * SHOWN as u64;
        for depth in (0..=last).map(|number| number * 7 % (last + 1)) {
            stacks.symbol(16, &format!("f{depth}"), depth);
            stacks.symbol(16, "repeated", depth);
        }
        let innermost: Vec<_> = (0..=last).rev().take(SHOWN).map(|depth| format!("f{depth}")).collect();
        assert_eq!(stacks.functions(row), innermost);
        assert_eq!(stacks.callers(row), innermost[..NAMED]);
    }

    #[test]
    fn stacks_are_distinguished_near_the_leaf() {
        let mut stacks = NamedStacks::default();
        let long: Vec<_> = (0..1000_u64).map(u64::to_le_bytes).collect();
        let rows = [300, 600, 200].map(|length| stacks.row(Addresses(&long[..length])).unwrap());
        assert_eq!(rows, [0, 0, 1]);
        assert_eq!(stacks.stacks.get(0).len(), DISTINGUISHED);
    }
}
