//! Frames by the text that named them, so that a text which repeats is taken apart once.
//!
//! Columns: `bytes` (all texts end to end) and `rows` (where each ends, and its frame); the hash index
//! holds row numbers and compares through the columns. One look-up here replaces three in the tables.

use std::hash::BuildHasher as _;

use borehole_model::FrameId;
use hashbrown::{DefaultHashBuilder, HashTable};

/// A map from texts to frames.
#[derive(Default)]
pub(crate) struct FrameMemo {
    bytes: Vec<u8>,
    rows: Vec<(usize, FrameId)>,
    index: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

impl FrameMemo {
    /// The frame that `text` names, made by `make` when the text is new.
    pub(crate) fn frame<E>(
        &mut self,
        text: &[u8],
        make: impl FnOnce() -> Result<FrameId, E>,
    ) -> Result<FrameId, E> {
        let hash = self.hasher.hash_one(text);
        let Self { bytes, rows, index, .. } = self;
        match index.find(hash, |&row| slice(bytes, rows, row) == text) {
            Some(&row) => Ok(rows[row].1),
            None => make().inspect(|&frame| self.remember(hash, text, frame)),
        }
    }

    fn remember(&mut self, hash: u64, text: &[u8], frame: FrameId) {
        let Self { bytes, rows, index, hasher } = self;
        bytes.extend_from_slice(text);
        let row = rows.len();
        rows.push((bytes.len(), frame));
        index.insert_unique(hash, row, |&row| hasher.hash_one(slice(bytes, rows, row)));
    }
}

#[inline]
fn slice<'a>(bytes: &'a [u8], rows: &[(usize, FrameId)], row: usize) -> &'a [u8] {
    let start = if row == 0 { 0 } else { rows[row - 1].0 };
    &bytes[start..rows[row].0]
}

#[cfg(test)]
mod tests {
    use borehole_model::{Frame, TableFull, Tables};

    use super::*;

    #[test]
    fn a_text_is_taken_apart_once() {
        let mut tables = Tables::default();
        let mut memo = FrameMemo::default();
        let mut made = 0;
        let mut ids = Vec::new();
        for round in 0..2 {
            for number in 0..500 {
                let text = format!("f{number}");
                let make = || -> Result<FrameId, TableFull> {
                    made += 1;
                    let function = tables.intern_string(text.as_bytes())?;
                    tables.intern_frame(&Frame::named(function))
                };
                let id = memo.frame(text.as_bytes(), make).unwrap();
                if round == 0 {
                    ids.push(id);
                } else {
                    assert_eq!(id, ids[number]);
                }
            }
        }
        assert_eq!(made, 500);
    }
}
