//! The writer's definitions in the current segment.
//!
//! Strings and frames are stored in columns in the order of their ids. Hash tables beside them hold row numbers and
//! compare by content, so that looking up borrowed frames allocates nothing.

use std::hash::BuildHasher as _;
use std::io;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::frame_def::{FrameContent, FrameDef};
use super::ids::FrameNumber;

#[derive(Default)]
pub(super) struct WrittenStrings {
    bytes: Vec<u8>,
    spans: Vec<StringSpan>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// The position of a string among the others.
#[derive(Clone, Copy)]
struct StringSpan {
    start: usize,
    len: usize,
}

impl WrittenStrings {
    /// The id of `string`, and whether it is new.
    pub(super) fn intern(&mut self, string: &[u8]) -> io::Result<(u32, bool)> {
        let Self { bytes, spans, index, hasher } = self;
        let hash = hasher.hash_one(string);
        if let Some(&id) = index.find(hash, |&id| spans[id as usize].of(bytes) == string) {
            return Ok((id, false));
        }
        let id = next_id(spans.len())?;
        spans.push(StringSpan { start: bytes.len(), len: string.len() });
        bytes.extend_from_slice(string);
        index.insert_unique(hash, id, |&id| hasher.hash_one(spans[id as usize].of(bytes)));
        Ok((id, true))
    }
}

impl StringSpan {
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start..self.start + self.len]
    }
}

#[derive(Default)]
pub(super) struct WrittenFrames {
    rows: Vec<WrittenFrame>,
    /// The texts of every frame. Texts that frames share are repeated.
    texts: Vec<u8>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

struct WrittenFrame {
    content: FrameContent,
    /// The start of its texts.
    start: usize,
    hash: u64,
}

impl WrittenFrames {
    pub(super) const fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn hash(&self, frame: &FrameDef<'_>) -> u64 {
        self.hasher.hash_one((frame.strings(), frame.number()))
    }

    pub(super) fn find(&self, hash: u64, frame: &FrameDef<'_>) -> Option<FrameNumber> {
        self.index.find(hash, |&id| self.is(FrameNumber(id), frame)).map(|&id| FrameNumber(id))
    }

    /// Whether `id` is `frame`.
    #[inline]
    pub(super) fn is(&self, id: FrameNumber, frame: &FrameDef<'_>) -> bool {
        let Some(row) = self.rows.get(id.0 as usize) else { return false };
        row.content.is(self.texts.get(row.start..).unwrap_or_default(), frame)
    }

    pub(super) fn insert(&mut self, hash: u64, frame: &FrameDef<'_>) -> io::Result<FrameNumber> {
        let id = next_id(self.rows.len())?;
        let start = self.texts.len();
        let content = FrameContent::keep(frame, &mut self.texts);
        self.rows.push(WrittenFrame { content, start, hash });
        self.index.insert_unique(hash, id, |&id| self.rows[id as usize].hash);
        Ok(FrameNumber(id))
    }
}

pub(super) fn next_id(len: usize) -> io::Result<u32> {
    u32::try_from(len)
        .map_err(|_| io::Error::other("too many definitions in one segment: expected at most 2^32"))
}

/// The annotations of a run, copied, because the caller's may be gone when the run is written.
#[derive(Default)]
pub(super) struct AnnotationList {
    bytes: Vec<u8>,
    /// The end of each string: key, value, key, value, …
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

    /// Whether `annotations` equal these, in the same order. `None` and an empty list differ.
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
