//! Strings and frames, numbered in the order of their first use.

use std::hash::BuildHasher as _;
use std::io;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::tables::Frame;

/// Byte strings, end to end.
#[derive(Debug, Default)]
pub(super) struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Strings {
    pub(super) fn intern(&mut self, string: &[u8]) -> io::Result<u32> {
        let Self { bytes, ends, index, hasher } = self;
        let hash = hasher.hash_one(string);
        if let Some(&id) = index.find(hash, |&id| slice(bytes, ends, id) == string) {
            return Ok(id);
        }
        if u32::try_from(string.len()).is_err() {
            return Err(io::Error::other("too long a string: expected less than 2^32 bytes"));
        }
        let id = next_id(ends.len(), "strings")?;
        bytes.extend_from_slice(string);
        ends.push(bytes.len());
        index.insert_unique(hash, id, |&id| hasher.hash_one(slice(bytes, ends, id)));
        Ok(id)
    }

    /// The number of strings. They are numbered with 32 bits.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.ends.len()).unwrap_or(u32::MAX)
    }

    /// The strings from number `first` on.
    pub(super) fn since(&self, first: usize) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = first.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends[first..].iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }
}

/// Frames. The hash table compares them by content.
#[derive(Debug, Default)]
pub(super) struct Frames {
    rows: Vec<Frame>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Frames {
    pub(super) fn intern(&mut self, frame: &Frame) -> io::Result<u32> {
        let Self { rows, index, hasher } = self;
        let hash = hasher.hash_one(frame);
        if let Some(&id) = index.find(hash, |&id| rows[id as usize] == *frame) {
            return Ok(id);
        }
        let id = next_id(rows.len(), "frames")?;
        rows.push(*frame);
        index.insert_unique(hash, id, |&id| hasher.hash_one(rows[id as usize]));
        Ok(id)
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.rows.len()).unwrap_or(u32::MAX)
    }

    /// The frames from number `first` on.
    pub(super) fn since(&self, first: usize) -> &[Frame] {
        &self.rows[first..]
    }
}

/// The number of the next row; the last number is reserved for lost frames.
fn next_id(len: usize, what: &str) -> io::Result<u32> {
    let id = u32::try_from(len).ok().filter(|&id| id < u32::MAX);
    id.ok_or_else(|| io::Error::other(format!("too many {what}: expected less than 2^32")))
}

#[inline]
fn slice<'a>(bytes: &'a [u8], ends: &[usize], id: u32) -> &'a [u8] {
    let row = id as usize;
    let start = if row == 0 { 0 } else { ends[row - 1] };
    &bytes[start..ends[row]]
}
