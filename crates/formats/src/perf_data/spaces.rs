//! Which file an address of a process belongs to.

use std::collections::BTreeMap;
use std::rc::Rc;

use borehole_model::StringId;
use hashbrown::HashMap;

use super::layout::KERNEL_PROCESS;
use super::read::FileMapping;

/// The mappings of all processes.
#[derive(Debug, Default)]
pub(super) struct AddressSpaces {
    spaces: HashMap<u32, AddressSpace>,
    versions: u64,
    /// The number of mappings held.
    held: usize,
}

/// The mappings of a process. A new process shares those of its parent until one of them changes.
#[derive(Clone, Debug, Default)]
pub(super) struct AddressSpace {
    /// By their first address.
    ranges: Rc<BTreeMap<u64, MappedRange>>,
    /// A number that no other set of mappings has or had.
    pub(super) version: u64,
}

/// A mapping.
#[derive(Clone, Copy, Debug)]
struct MappedRange {
    end: u64,
    /// Added to an address, it makes one in the file.
    to_file: u64,
    file: StringId,
}

/// A file, and an address in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileAddress {
    pub(super) file: Option<StringId>,
    pub(super) address: u64,
}

impl AddressSpaces {
    /// The mappings of a process, or of the kernel.
    pub(super) fn of(&self, process: Option<u32>) -> Option<&AddressSpace> {
        self.spaces.get(&process.unwrap_or(KERNEL_PROCESS))
    }

    /// Adds a mapping, in place of those that it overlaps.
    pub(super) fn map(&mut self, mapping: &FileMapping<'_>, file: StringId) {
        let FileMapping { process, start, size, file_offset, .. } = *mapping;
        let end = start.saturating_add(size);
        if start == end {
            return;
        }
        let to_file = if process == KERNEL_PROCESS { 0 } else { file_offset.wrapping_sub(start) };
        self.versions += 1;
        let space = self.spaces.entry(process).or_default();
        space.version = self.versions;
        if Rc::strong_count(&space.ranges) > 1 {
            self.held += space.ranges.len();
        }
        let ranges = Rc::make_mut(&mut space.ranges);
        let before = ranges.len();
        cut(ranges, start, end);
        ranges.insert(start, MappedRange { end, to_file, file });
        self.held = (self.held + ranges.len()).saturating_sub(before);
    }

    /// Gives a new process the mappings of its parent.
    pub(super) fn fork(&mut self, parent: u32, child: u32) {
        if let Some(space) = self.spaces.get(&parent).filter(|_| parent != child).cloned() {
            self.forget(child);
            self.spaces.insert(child, space);
        }
    }

    /// Forgets the mappings of a process that has ended.
    pub(super) fn forget(&mut self, process: u32) {
        if let Some(space) = self.spaces.remove(&process)
            && Rc::strong_count(&space.ranges) == 1
        {
            self.held = self.held.saturating_sub(space.ranges.len());
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        const ENTRY_BYTES: usize = 2 * size_of::<(u64, MappedRange)>();
        self.held.saturating_mul(ENTRY_BYTES).saturating_add(self.spaces.allocation_size())
    }
}

/// Makes room between `start` and `end`.
fn cut(ranges: &mut BTreeMap<u64, MappedRange>, start: u64, end: u64) {
    if let Some((_, before)) = ranges.range_mut(..start).next_back()
        && before.end > start
    {
        let rest = *before;
        before.end = start;
        if rest.end > end {
            ranges.insert(end, rest);
        }
    }
    while let Some((&first, &range)) = ranges.range(start..end).next() {
        ranges.remove(&first);
        if range.end > end {
            ranges.insert(end, range);
        }
    }
}

impl AddressSpace {
    /// The file of an address; the address itself if there is none.
    pub(super) fn find(&self, address: u64) -> FileAddress {
        let range = self.ranges.range(..=address).next_back().map(|(_, range)| range);
        match range.filter(|range| address < range.end) {
            Some(range) => {
                FileAddress { file: Some(range.file), address: address.wrapping_add(range.to_file) }
            }
            None => FileAddress { file: None, address },
        }
    }
}

#[cfg(test)]
mod tests {
    use borehole_model::Tables;

    use super::*;

    fn mapping(process: u32, start: u64, size: u64, file_offset: u64) -> FileMapping<'static> {
        FileMapping { process, start, size, file_offset, build_id: None, file: b"" }
    }

    #[test]
    fn a_mapping_takes_the_place_of_what_it_overlaps() {
        let mut tables = Tables::default();
        let [one, two] = [b"one", b"two"].map(|name| tables.intern_string(name).unwrap());
        let mut spaces = AddressSpaces::default();
        spaces.map(&mapping(7, 0x1000, 0x3000, 0), one);
        spaces.map(&mapping(7, 0x2000, 0x1000, 0x500), two);
        let find = |spaces: &AddressSpaces, process, address| {
            let found = spaces.of(Some(process)).unwrap().find(address);
            (found.file, found.address)
        };
        assert_eq!(find(&spaces, 7, 0x1fff), (Some(one), 0xfff));
        assert_eq!(find(&spaces, 7, 0x2000), (Some(two), 0x500));
        assert_eq!(find(&spaces, 7, 0x3000), (Some(one), 0x2000));
        assert_eq!(find(&spaces, 7, 0x4000), (None, 0x4000));
        spaces.fork(7, 8);
        spaces.map(&mapping(8, 0x1000, 0x3000, 0x10), two);
        assert_eq!(find(&spaces, 7, 0x3000), (Some(one), 0x2000));
        assert_eq!(find(&spaces, 8, 0x3000), (Some(two), 0x2010));
        assert_eq!(spaces.held, 4);
        spaces.forget(7);
        spaces.forget(8);
        assert_eq!(spaces.held, 0);
        assert!(spaces.of(Some(7)).is_none());
    }
}
