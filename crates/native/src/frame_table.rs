//! The unwind information of a module, asked for one function at a time.

use std::sync::Arc;

use gimli::{
    BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian,
    UnwindContext, UnwindSection as _,
};

use crate::module::SectionBytes;
use crate::saved::SavedCaller;

pub(crate) const ADDRESS_BYTES: u8 = 8;

pub(crate) type Bytes<'s> = EndianSlice<'s, LittleEndian>;

/// How a function states where its caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerRule {
    /// Not at all.
    Unstated,
    /// By its own registers.
    Registers,
    /// In memory.
    Saved(SavedCaller),
}

/// Where the entries of a module's `.eh_frame` are.
#[derive(Clone, Debug)]
pub(crate) enum EntryIndex {
    /// `.eh_frame_hdr`, and its address in the file.
    Section(SectionBytes, u64),
    /// Made of the entries, as programs that were linked statically have no such section.
    Made(Arc<[EntryRange]>),
}

/// The code of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryRange {
    /// The first address.
    start: u64,
    /// Where the entry is in `.eh_frame`.
    offset: usize,
}

/// The unwind information of a module.
#[derive(Clone, Debug)]
pub(crate) struct FrameTable {
    /// The difference between an address in the process and the address in the file.
    bias: u64,
    index: EntryIndex,
    /// `.eh_frame`, and its address in the file.
    frames: (SectionBytes, u64),
}

impl FrameTable {
    /// A table with an index of its own.
    pub(crate) fn indexed(bias: u64, index: (SectionBytes, u64), frames: (SectionBytes, u64)) -> Self {
        Self { bias, index: EntryIndex::Section(index.0, index.1), frames }
    }

    /// A table of which the index is made. It takes less memory than the table.
    pub(crate) fn plain(frames: (SectionBytes, u64)) -> Self {
        let bases = BaseAddresses::default().set_eh_frame(frames.1);
        let section = EhFrame::new(&frames.0, LittleEndian);
        let mut entries = section.entries(&bases);
        let mut ranges = Vec::new();
        // What follows an invalid entry cannot be found.
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(entry) = entry else { continue };
            if let Ok(entry) = entry.parse(EhFrame::cie_from_offset) {
                ranges.push(EntryRange { start: entry.initial_address(), offset: entry.offset() });
            }
        }
        ranges.sort_unstable();
        Self { bias: 0, index: EntryIndex::Made(ranges.into()), frames }
    }

    /// How the function at `address` states its caller at this point.
    pub(crate) fn caller_rule(&self, address: u64) -> CallerRule {
        let address = address.wrapping_sub(self.bias);
        let bases = BaseAddresses::default().set_eh_frame(self.frames.1);
        let frames = EhFrame::new(&self.frames.0, LittleEndian);
        let Some(entry) = self.entry(&frames, &bases, address) else { return CallerRule::Unstated };
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(&frames, &bases, &mut context, address);
        let Ok(row) = row else { return CallerRule::Unstated };
        SavedCaller::of(row, &frames).map_or(CallerRule::Registers, CallerRule::Saved)
    }

    /// The entry of the function at an address in the file.
    fn entry<'s>(
        &self,
        frames: &EhFrame<Bytes<'s>>,
        bases: &BaseAddresses,
        address: u64,
    ) -> Option<FrameDescriptionEntry<Bytes<'s>>> {
        let cie = EhFrame::cie_from_offset;
        let offset = match &self.index {
            EntryIndex::Section(index, start) => {
                let bases = bases.clone().set_eh_frame_hdr(*start);
                let index = EhFrameHdr::new(index, LittleEndian).parse(&bases, ADDRESS_BYTES).ok()?;
                let table = index.table()?;
                let pointer = table.lookup(address, &bases).ok()?;
                table.pointer_to_offset(pointer).ok()?
            }
            EntryIndex::Made(ranges) => {
                let behind = ranges.partition_point(|range| range.start <= address);
                ranges.get(behind.checked_sub(1)?)?.offset.into()
            }
        };
        frames.fde_from_offset(bases, offset, cie).ok().filter(|entry| entry.contains(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CIE, and an entry each for 16 bytes of code at these addresses relative to the section, in this order.
    ///
    /// Source: Linux Standard Base 5.0, "Exception Frames", section 10.6.1.
    fn section(starts: &[u32]) -> Vec<u8> {
        // The frame of a call: its address is on the top of the stack.
        let cie = [1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0];
        let mut section = Vec::new();
        section.extend(20_u32.to_le_bytes());
        section.extend(0_u32.to_le_bytes());
        section.extend(cie);
        for start in starts {
            section.extend(16_u32.to_le_bytes());
            section.extend(u32::try_from(section.len()).unwrap().to_le_bytes());
            let place = u32::try_from(section.len()).unwrap();
            section.extend(start.wrapping_sub(place).to_le_bytes());
            section.extend(16_u32.to_le_bytes());
            section.extend([0; 4]);
        }
        section
    }

    #[test]
    fn functions_of_a_table_without_index_are_found_and_gaps_between_them() {
        let starts: Vec<u32> = (0..60_000_u32).map(|number| 0x40_0000 + 64 * (number * 7 % 60_000)).collect();
        let bytes = section(&starts);
        assert!(bytes.len() > 1 << 20);
        let table = FrameTable::plain((bytes.into(), 0));
        let rules = [0, 15, 16, 64 * 59_999 + 3, 64 * 60_000].map(|at| table.caller_rule(0x40_0000 + at));
        let [known, unstated] = [CallerRule::Registers, CallerRule::Unstated];
        assert_eq!(rules, [known, known, unstated, known, unstated]);
        assert_eq!(table.caller_rule(0), unstated);
    }

    #[test]
    fn what_follows_damage_in_a_table_is_unstated() {
        let mut bytes = section(&[0x1000, 0x2000]);
        let last = bytes.len() - 20;
        bytes[last] = 0xf0;
        let table = FrameTable::plain((bytes.into(), 0));
        assert_eq!(
            [0x1000, 0x2000].map(|at| table.caller_rule(at)),
            [CallerRule::Registers, CallerRule::Unstated]
        );
    }
}
