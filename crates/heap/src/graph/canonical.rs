//! Finds the nodes that represent the same memory.

use hashbrown::HashMap;

/// The nodes that share memory with others, ascending, each with the smallest node of its group.
pub(crate) type CanonicalGroups = Vec<(u32, u32)>;

/// The addresses of more than one node, with the smallest node of each.
type SharedMemory = HashMap<u64, u32>;

/// Groups nodes by the addresses of their locations, given as pairs of address and node.
///
/// A node with several shared addresses belongs to the group of the highest, because reli overwrites the node's group
/// in turn. Address 0 means no address.
pub(crate) fn groups(locations: impl Iterator<Item = (u64, u32)> + Clone) -> CanonicalGroups {
    let shared = shared(locations.clone());
    if shared.is_empty() {
        return CanonicalGroups::new();
    }
    let mut found: Vec<(u32, u64, u32)> = Vec::new();
    for (address, node) in locations {
        found.extend(shared.get(&address).map(|&smallest| (node, address, smallest)));
    }
    found.sort_unstable();
    let mut groups = CanonicalGroups::with_capacity(found.len());
    for (node, _, smallest) in found {
        match groups.last_mut() {
            Some(last) if last.0 == node => last.1 = smallest,
            _ => groups.push((node, smallest)),
        }
    }
    groups
}

fn shared(locations: impl Iterator<Item = (u64, u32)> + Clone) -> SharedMemory {
    let candidates = repeated(locations.clone().map(|(address, _)| address));
    let mut nodes: HashMap<u64, (u32, u32)> = HashMap::new();
    for (address, node) in locations {
        if candidates.binary_search(&address).is_ok() {
            let (smallest, largest) = nodes.entry(address).or_insert((node, node));
            *smallest = (*smallest).min(node);
            *largest = (*largest).max(node);
        }
    }
    let several = nodes.into_iter().filter(|(_, (smallest, largest))| smallest != largest);
    several.map(|(address, (smallest, _))| (address, smallest)).collect()
}

/// The addresses that occur more than once, ascending.
///
/// A bit set finds the few candidates: sorting all addresses of a large heap would take longer than building the rest
/// of its graph.
fn repeated(addresses: impl Iterator<Item = u64> + Clone) -> Vec<u64> {
    let count = addresses.clone().count();
    let mut seen = Bits::new(count);
    let mut suspects = Bits::new(count);
    for address in addresses.clone() {
        if !seen.insert(address) {
            suspects.insert(address);
        }
    }
    let mut found: Vec<u64> =
        addresses.filter(|&address| address != 0 && suspects.contains(address)).collect();
    found.sort_unstable();
    let is_repeated = |pair: &[u64]| (pair[0] == pair[1]).then_some(pair[0]);
    let mut repeated: Vec<u64> = found.windows(2).filter_map(is_repeated).collect();
    repeated.dedup();
    repeated
}

/// A set of addresses with some bits of their hashes: it may contain others too, but lacks none.
struct Bits {
    words: Vec<u64>,
    shift: u32,
}

impl Bits {
    fn new(count: usize) -> Self {
        let bits = count.saturating_mul(16).next_power_of_two().max(64);
        Self { words: vec![0; bits / 64], shift: 64 - bits.trailing_zeros() }
    }

    fn place(&self, address: u64) -> (usize, u64) {
        let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        (usize::try_from(hash / 64).unwrap_or_default(), 1 << (hash % 64))
    }

    /// Adds `address`; returns whether its place was empty.
    fn insert(&mut self, address: u64) -> bool {
        let (word, bit) = self.place(address);
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }

    fn contains(&self, address: u64) -> bool {
        let (word, bit) = self.place(address);
        self.words[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_one_address_get_the_smallest_of_them() {
        let locations = [(16, 1), (32, 2), (16, 5), (48, 3), (32, 7), (48, 3), (0, 8), (0, 9)];
        assert_eq!(groups(locations.into_iter()), [(1, 1), (2, 2), (5, 1), (7, 2)]);
    }

    #[test]
    fn of_several_shared_addresses_the_highest_counts() {
        let locations = [(16, 1), (16, 5), (32, 3), (32, 5)];
        assert_eq!(groups(locations.into_iter()), [(1, 1), (3, 3), (5, 3)]);
    }
}
