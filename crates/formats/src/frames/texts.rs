//! The texts of frames that a text format writes, each built once while there is room.

use std::ops::Range;

use borehole_model::FrameId;

/// The bytes of texts that are held at once.
const HELD_BYTES: usize = 32 << 20;

/// Texts by frame.
#[derive(Default)]
pub(crate) struct FrameTexts {
    bytes: Vec<u8>,
    texts: Vec<FrameText>,
}

/// The text of a frame.
#[derive(Clone, Default)]
enum FrameText {
    /// It has not been written yet.
    #[default]
    New,
    /// It was written, but is no longer held.
    Dropped,
    Held(Range<usize>),
}

/// Whether a frame is written for the first time, so that what its text lacks is counted once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    First,
    Again,
}

impl Writing {
    /// `count`, but 0 if the frame was written before.
    pub(crate) const fn counted(self, count: u64) -> u64 {
        match self {
            Self::First => count,
            Self::Again => 0,
        }
    }
}

impl FrameTexts {
    /// The text of a frame, which `write` appends if it is not held.
    #[inline]
    pub(crate) fn text(&mut self, id: FrameId, write: impl FnOnce(&mut Vec<u8>, Writing)) -> &[u8] {
        let range = match self.texts.get(id.index()) {
            Some(FrameText::Held(range)) => range.clone(),
            Some(FrameText::Dropped) => self.write(id, Writing::Again, write),
            Some(FrameText::New) | None => self.write(id, Writing::First, write),
        };
        &self.bytes[range]
    }

    #[cold]
    fn write(
        &mut self,
        id: FrameId,
        writing: Writing,
        write: impl FnOnce(&mut Vec<u8>, Writing),
    ) -> Range<usize> {
        if self.bytes.len() > HELD_BYTES {
            self.bytes.clear();
            let held = self.texts.iter_mut().filter(|text| matches!(text, FrameText::Held(_)));
            held.for_each(|text| *text = FrameText::Dropped);
        }
        if self.texts.len() <= id.index() {
            self.texts.resize(id.index() + 1, FrameText::New);
        }
        let start = self.bytes.len();
        write(&mut self.bytes, writing);
        let range = start..self.bytes.len();
        self.texts[id.index()] = FrameText::Held(range.clone());
        range
    }
}
