//! Byte strings, each stored once, end to end.
//!
//! Columns: `bytes` (all strings one after the other), `ends` (where each ends). The hash index holds row
//! numbers only and compares through the columns. Strings are bytes, not text: PHP names need not be
//! UTF-8.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::ids::{Id as _, StringId};

#[derive(Clone, Debug, Default)]
pub(crate) struct StringTable {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    index: HashTable<StringId>,
    hasher: DefaultHashBuilder,
}

impl StringTable {
    pub(crate) fn intern(&mut self, string: &[u8]) -> Option<StringId> {
        let hash = self.hasher.hash_one(string);
        let found = self.index.find(hash, |&id| slice(&self.bytes, &self.ends, id) == string);
        if let Some(&id) = found {
            return Some(id);
        }
        let id = StringId::from_row(self.ends.len())?;
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
        let Self { bytes, ends, index, hasher } = self;
        index.insert_unique(hash, id, |&id| hasher.hash_one(slice(bytes, ends, id)));
        Some(id)
    }

    pub(crate) fn find(&self, string: &[u8]) -> Option<StringId> {
        let hash = self.hasher.hash_one(string);
        self.index.find(hash, |&id| self.get(id) == string).copied()
    }

    #[inline]
    pub(crate) fn get(&self, id: StringId) -> &[u8] {
        slice(&self.bytes, &self.ends, id)
    }

    pub(crate) const fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) const fn byte_len(&self) -> usize {
        self.bytes.len()
    }
}

#[inline]
fn slice<'a>(bytes: &'a [u8], ends: &[usize], id: StringId) -> &'a [u8] {
    let row = id.row();
    let start = if row == 0 { 0 } else { ends[row - 1] };
    &bytes[start..ends[row]]
}
