//! What the writer has defined in the current segment.
//!
//! Strings, frames and stacks stand in columns in the order of their ids; hash tables beside them hold row
//! numbers and compare by content, so that looking up borrowed frames allocates nothing.

use std::hash::BuildHasher as _;
use std::io;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::write::{FrameDef, FrameId, StackId};

#[derive(Default)]
pub(super) struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Strings {
    /// The id of `string`, and whether it is new.
    pub(super) fn intern(&mut self, string: &[u8]) -> io::Result<(u32, bool)> {
        let Self { bytes, ends, index, hasher } = self;
        let hash = hasher.hash_one(string);
        if let Some(&id) = index.find(hash, |&id| slice(bytes, ends, id) == string) {
            return Ok((id, false));
        }
        let id = next_id(ends.len())?;
        bytes.extend_from_slice(string);
        ends.push(bytes.len());
        index.insert_unique(hash, id, |&id| hasher.hash_one(slice(bytes, ends, id)));
        Ok((id, true))
    }

    #[inline]
    fn get(&self, id: Option<u32>) -> &[u8] {
        id.map_or(&[], |id| slice(&self.bytes, &self.ends, id))
    }
}

/// A defined frame: the ids of its strings as [`FrameDef`] orders them, `None` for those it does not have.
#[derive(Clone, Copy)]
pub(super) struct FrameRow {
    pub(super) strings: [Option<u32>; 5],
    pub(super) number: i64,
    pub(super) native: bool,
}

#[derive(Default)]
pub(super) struct Frames {
    rows: Vec<FrameRow>,
    hashes: Vec<u64>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Frames {
    pub(super) const fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn hash(&self, frame: &FrameDef<'_>) -> u64 {
        self.hasher.hash_one((frame.strings(), frame.number()))
    }

    pub(super) fn find(&self, hash: u64, frame: &FrameDef<'_>, strings: &Strings) -> Option<FrameId> {
        self.index.find(hash, |&id| self.is(FrameId(id), frame, strings)).map(|&id| FrameId(id))
    }

    /// Whether `id` is `frame`. An empty opcode and none are the same, as in reli.
    #[inline]
    pub(super) fn is(&self, id: FrameId, frame: &FrameDef<'_>, strings: &Strings) -> bool {
        let row = &self.rows[id.0 as usize];
        // The method differs most often, the namespace least.
        let wanted = frame.strings();
        (row.number, row.native) == frame.number()
            && [2, 1, 3, 0, 4].into_iter().all(|part| strings.get(row.strings[part]) == wanted[part])
    }

    pub(super) fn insert(&mut self, hash: u64, row: FrameRow) -> io::Result<FrameId> {
        let id = next_id(self.rows.len())?;
        self.rows.push(row);
        self.hashes.push(hash);
        self.index.insert_unique(hash, id, |&id| self.hashes[id as usize]);
        Ok(FrameId(id))
    }
}

#[derive(Default)]
pub(super) struct Stacks {
    frames: Vec<FrameId>,
    ends: Vec<usize>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Stacks {
    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn hash(&self, frames: &[FrameId]) -> u64 {
        self.hasher.hash_one(frames)
    }

    pub(super) fn find(&self, hash: u64, frames: &[FrameId]) -> Option<StackId> {
        self.index.find(hash, |&id| slice(&self.frames, &self.ends, id) == frames).map(|&id| StackId(id))
    }

    pub(super) fn insert(&mut self, hash: u64, stack: &[FrameId]) -> io::Result<StackId> {
        let Self { frames, ends, index, hasher } = self;
        let id = next_id(ends.len())?;
        frames.extend_from_slice(stack);
        ends.push(frames.len());
        index.insert_unique(hash, id, |&id| hasher.hash_one(slice(frames, ends, id)));
        Ok(StackId(id))
    }
}

fn next_id(len: usize) -> io::Result<u32> {
    u32::try_from(len)
        .map_err(|_| io::Error::other("too many definitions in one segment: expected at most 2^32"))
}

#[inline]
fn slice<'a, T>(items: &'a [T], ends: &[usize], id: u32) -> &'a [T] {
    let row = id as usize;
    let start = if row == 0 { 0 } else { ends[row - 1] };
    &items[start..ends[row]]
}

/// The annotations of a run, copied: the caller's may be gone when the run is written.
#[derive(Default)]
pub(super) struct AnnotationList {
    bytes: Vec<u8>,
    /// Where each string ends: key, value, key, value, …
    ends: Vec<usize>,
    present: bool,
}

impl AnnotationList {
    pub(super) const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn set(&mut self, annotations: Option<&[(&[u8], &[u8])]>) {
        self.present = annotations.is_some();
        self.bytes.clear();
        self.ends.clear();
        for (key, value) in annotations.unwrap_or_default() {
            for part in [key, value] {
                self.bytes.extend_from_slice(part);
                self.ends.push(self.bytes.len());
            }
        }
    }

    /// Whether `annotations` are these, in the same order. None and an empty list differ.
    #[inline]
    pub(super) fn equal(&self, annotations: Option<&[(&[u8], &[u8])]>) -> bool {
        match annotations {
            None => !self.present,
            Some(annotations) => {
                let theirs = annotations.iter().flat_map(|(key, value)| [*key, *value]);
                self.present && self.ends.len() == annotations.len() * 2 && self.strings().eq(theirs)
            }
        }
    }

    pub(super) fn strings(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}
