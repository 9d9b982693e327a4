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
    /// The innermost function at an address, and its inlining depth there.
    symbols: HashMap<u64, (u64, Box<str>)>,
}

impl NamedStacks {
    /// The row of a stack, which it shares with those that differ only far from the leaf; `None` when there are 2^32 - 1 others.
    pub(super) fn row(&mut self, stack: Addresses<'_>) -> Option<u32> {
        self.stacks.intern(&stack.0[..stack.len().min(DISTINGUISHED)])
    }

    pub(super) fn symbol(&mut self, address: u64, name: &str, depth: u64) {
        let name = cut(name);
        let known = self.symbols.entry(address);
        let known = known.or_insert_with(|| (depth, name.into()));
        if known.0 < depth {
            *known = (depth, name.into());
        }
    }

    fn name(&self, address: u64) -> String {
        self.symbols.get(&address).map_or_else(|| format!("{address:#x}"), |(_, name)| short(name).to_owned())
    }

    fn addresses(&self, row: u32) -> impl Iterator<Item = u64> {
        self.stacks.get(row as usize).iter().map(|&bytes| u64::from_le_bytes(bytes))
    }

    pub(super) fn leaf(&self, row: u32) -> String {
        self.addresses(row).next().map_or_else(|| "(empty stack)".to_owned(), |address| self.name(address))
    }

    /// The functions nearest to the leaf, leaf first.
    pub(super) fn functions(&self, row: u32) -> Vec<String> {
        self.addresses(row).take(SHOWN).map(|address| self.name(address)).collect()
    }

    /// The functions outside the kernel, from the leaf outwards.
    pub(super) fn callers(&self, row: u32) -> Vec<String> {
        let outside = self.addresses(row).filter(|&address| address < KERNEL);
        outside.take(NAMED).map(|address| self.name(address)).collect()
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
        assert_eq!(stacks.callers(row), ["std::thread::sleep", "0x20"]);
        assert_eq!(stacks.leaf(1), "(empty stack)");
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
