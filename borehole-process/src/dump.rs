//! The memory of a process at one moment, held whole: what is walked when the process has long run on.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::image::{Image, PAGE_BYTES};
use crate::maps::{Mapping, Mappings};
use crate::memory::{Memory, Piece};
use crate::symbols::Symbols;
use crate::target::Target;

/// Copied memory of a process, with the mappings, symbols and threads that belong to it, and facts about the moment.
///
/// Unlike an [`Image`], which keeps single pages that somebody asked for, it holds long ranges and lends them out:
/// [`bytes`](Self::bytes) copies nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// What has been recorded page by page: whatever is not in a range is looked for here.
    image: Image,
    facts: BTreeMap<String, Vec<u8>>,
    /// In the order of their addresses, apart from each other.
    ranges: Vec<Range>,
}

/// Memory without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    address: u64,
    bytes: Vec<u8>,
}

impl Range {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes.len() as u64)
    }
}

impl Dump {
    /// A dump without ranges: the mappings, symbols, threads and pages of `image` are its.
    #[must_use]
    pub fn new(image: Image) -> Self {
        Self { image, ..Self::default() }
    }

    /// Adds memory. What a range before has of it stays as it was.
    pub fn insert(&mut self, address: u64, bytes: Vec<u8>) {
        let at = self.ranges.partition_point(|range| range.address <= address);
        let from = at.checked_sub(1).map_or(address, |before| self.ranges[before].end().max(address));
        let to = self.ranges.get(at).map_or(u64::MAX, |next| next.address);
        let end = address.saturating_add(bytes.len() as u64).min(to);
        let offset = |place: u64| usize::try_from(place - address).ok().filter(|&place| place <= bytes.len());
        if let (Some(start), Some(end)) = (offset(from), offset(end))
            && start < end
        {
            self.ranges.insert(at, Range { address: from, bytes: bytes[start..end].to_vec() });
        }
    }

    /// The `length` bytes at `address`, if one range or one page has them all.
    #[must_use]
    pub fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.rest(address)?.get(..length)
    }

    /// What there is without a gap from `address` on, which may be less than is there in all.
    #[must_use]
    pub fn rest(&self, address: u64) -> Option<&[u8]> {
        let at = self.ranges.partition_point(|range| range.address <= address);
        let range = at.checked_sub(1).map(|before| &self.ranges[before]);
        if let Some(range) = range.filter(|range| address < range.end()) {
            return range.bytes.get(usize::try_from(address - range.address).ok()?..);
        }
        let offset = usize::try_from(address % PAGE_BYTES as u64).ok()?;
        self.image.pages.get(&(address - offset as u64)).map(|page| &page[offset..])
    }

    /// How many bytes of memory it holds.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.bytes.len() as u64).sum::<u64>() + self.image.bytes() as u64
    }

    /// States a fact about the moment, such as `pid` or `rss`. A later one of the same name replaces it.
    pub fn set_fact(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// A fact about the moment.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&[u8]> {
        self.facts.get(name).map(Vec::as_slice)
    }

    /// The facts by name.
    pub fn facts(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.facts.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }
}

impl Memory for Dump {
    fn read_pieces(&self, pieces: &mut [Piece<'_>]) -> Result<usize, Error> {
        let mut filled = 0;
        for piece in pieces {
            let mut done = 0;
            while done < piece.into.len() {
                let Some(address) = piece.address.checked_add(done as u64) else { return Ok(filled + done) };
                let Some(there) = self.rest(address) else { return Ok(filled + done) };
                let length = there.len().min(piece.into.len() - done);
                piece.into[done..done + length].copy_from_slice(&there[..length]);
                done += length;
            }
            filled += done;
        }
        Ok(filled)
    }
}

impl Target for Dump {
    fn mappings(&self) -> &Mappings {
        self.image.mappings()
    }

    fn symbols(&self, mapping: &Mapping) -> Result<Symbols, Error> {
        self.image.symbols(mapping)
    }

    fn threads(&self) -> Result<Vec<i32>, Error> {
        self.image.threads()
    }

    fn thread_pointer(&self, thread: i32) -> Result<u64, Error> {
        self.image.thread_pointer(thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_overlap_keep_what_came_first_and_neighbours_are_read_as_one() {
        let mut dump = Dump::default();
        dump.insert(0x1000, vec![1; 16]);
        dump.insert(0x1020, vec![3; 16]);
        dump.insert(0x1008, vec![2; 64]);
        let mut read = [0; 48];
        assert_eq!(dump.read_pieces(&mut [Piece { address: 0x1000, into: &mut read }]).expect("memory"), 48);
        assert_eq!(read, [[1; 16], [2; 16], [3; 16]].concat()[..]);
        assert_eq!(dump.bytes(0x100f, 1), Some(&[1][..]));
        assert_eq!(dump.bytes(0x1010, 16), Some(&[2; 16][..]));
        assert_eq!(dump.bytes(0x1030, 1), None);
        assert_eq!(dump.bytes(0xfff, 1), None);
    }
}
