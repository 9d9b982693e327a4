//! Frames by the text that named them, so that a repeated text is parsed once.
//!
//! All texts are stored end to end; the hash table holds their positions. One look-up here replaces three in the
//! tables.

use std::hash::{BuildHasher as _, Hasher as _};
use std::ops::Range;

use borehole_model::FrameId;
use hashbrown::{DefaultHashBuilder, HashTable};

/// A map from texts to frames.
#[derive(Default)]
pub(crate) struct FrameMemo {
    bytes: Vec<u8>,
    entries: HashTable<MemoEntry>,
    hasher: DefaultHashBuilder,
}

struct MemoEntry {
    text: Range<usize>,
    frame: FrameId,
}

impl FrameMemo {
    /// The frame that `text` names, created by `make` if the text is new.
    #[inline]
    pub(crate) fn frame<E>(
        &mut self,
        text: &[u8],
        make: impl FnOnce() -> Result<FrameId, E>,
    ) -> Result<FrameId, E> {
        let hash = hash(&self.hasher, text);
        match self.entries.find(hash, |entry| self.bytes[entry.text.clone()] == *text) {
            Some(entry) => Ok(entry.frame),
            None => make().inspect(|&frame| self.remember(hash, text, frame)),
        }
    }

    fn remember(&mut self, hash_of_text: u64, text: &[u8], frame: FrameId) {
        let Self { bytes, entries, hasher } = self;
        let start = bytes.len();
        bytes.extend_from_slice(text);
        let entry = MemoEntry { text: start..bytes.len(), frame };
        entries.insert_unique(hash_of_text, entry, |entry| hash(hasher, &bytes[entry.text.clone()]));
    }
}

/// The hash of the bytes alone, without a length prefix.
#[inline]
fn hash(hasher: &DefaultHashBuilder, text: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(text);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use borehole_model::{Frame, TableFull, Tables};

    use super::*;

    #[test]
    fn a_text_is_parsed_once() {
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
