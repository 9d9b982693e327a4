//! Finds the range that contains an address, in a few nanoseconds.

use super::DumpRange;

/// The size of a region as a power of two: 2 MiB, the size of a chunk of PHP's allocator.
const REGION_BITS: u32 = 21;

/// The number of slots for each region in use: a search rarely needs a second slot.
const SLOTS_PER_REGION: usize = 4;

/// An odd number without pattern: the product spreads neighbouring regions over the slots.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Maps each region to the ranges that touch it.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    /// The number of slots is a power of two, and at least one is empty.
    slots: Vec<DirectorySlot>,
    shift: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct DirectorySlot {
    /// The number of the region plus 1; 0 in an empty slot.
    region: u64,
    /// The first range that touches the region.
    first: usize,
    /// The index after the last such range.
    end: usize,
}

fn region(address: u64) -> u64 {
    address >> REGION_BITS
}

impl Directory {
    /// Creates the directory of ranges in order of their addresses.
    pub(super) fn of(ranges: &[DumpRange]) -> Self {
        let regions = |range: &DumpRange| region(range.address)..=region(range.end().saturating_sub(1));
        let mut found: Vec<DirectorySlot> = Vec::new();
        for (index, range) in ranges.iter().enumerate() {
            for region in regions(range) {
                match found.last_mut() {
                    Some(last) if last.region == region + 1 => last.end = index + 1,
                    _ => found.push(DirectorySlot { region: region + 1, first: index, end: index + 1 }),
                }
            }
        }
        let count = (found.len() * SLOTS_PER_REGION).next_power_of_two().max(2);
        let mut directory =
            Self { slots: vec![DirectorySlot::default(); count], shift: u64::BITS - count.ilog2() };
        for slot in found {
            let at = directory.slot(slot.region);
            directory.slots[at] = slot;
        }
        directory
    }

    #[inline]
    fn slot(&self, region: u64) -> usize {
        let mask = self.slots.len() - 1;
        let hash = region.wrapping_mul(SPREAD) >> self.shift;
        let mut at = usize::try_from(hash).unwrap_or_default() & mask;
        while self.slots[at].region != region && self.slots[at].region != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    #[inline]
    pub(super) fn find<'r>(&self, ranges: &'r [DumpRange], address: u64) -> Option<&'r DumpRange> {
        let DirectorySlot { first, end, .. } = self.slots[self.slot(region(address) + 1)];
        let mut range = ranges.get(first)?;
        if end - first > 1 {
            let before = ranges[first..end].partition_point(|range| range.address <= address);
            range = &ranges[first + before.checked_sub(1)?];
        }
        (range.address <= address && address < range.end()).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_finds_what_a_search_of_all_ranges_finds() {
        let range = |address, length| DumpRange { address, length, buffer: 0, offset: 0 };
        let mut ranges = vec![range(0, 1), range(0x1000, 0x40), range(0x1040, 0x40), range(0x1f_fff0, 0x30)];
        ranges.extend((0..300).map(|index| range(0x7f00_0000_0000 + index * 0x40_0000, 0x20_0000)));
        ranges.extend([range(0x7fff_0000_0000, 0x80_0000), range(u64::MAX - 8, 8)]);
        let directory = Directory::of(&ranges);
        let slow = |address| ranges.iter().find(|range| range.address <= address && address < range.end());
        let edges = ranges.iter().flat_map(|range| [range.address, range.end()]);
        for edge in edges.chain([0x3f_ffff, 0x7fff_0020_0001, 0x7f00_0021_0000]) {
            for address in [edge.wrapping_sub(1), edge, edge.wrapping_add(1)] {
                assert_eq!(directory.find(&ranges, address), slow(address), "{address:#x}");
            }
        }
        assert_eq!(Directory::of(&[]).find(&[], 0x1000), None);
    }
}
