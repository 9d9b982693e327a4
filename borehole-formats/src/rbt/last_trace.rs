//! The trace written last, frame by frame, as the writer was given it.
//!
//! Most traces share most of their callers with the one before. Its texts stand in one piece, in the order in
//! which they are compared, so that finding out what is shared follows no ids and no pointers.

use super::frame_content::FrameContent;
use super::trie::{Path, Stacks};
use super::write::FrameDef;

#[derive(Default)]
pub(super) struct LastTrace {
    /// From the root.
    frames: Vec<Seen>,
    texts: Vec<u8>,
}

struct Seen {
    path: Path,
    content: FrameContent,
    /// Where the texts of this frame end.
    end: usize,
}

impl LastTrace {
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.texts.clear();
    }

    /// How many callers, from the root, `frames_leaf_first` shares with this trace, and their path. What is not
    /// shared is forgotten.
    pub(super) fn keep_shared(&mut self, frames_leaf_first: &[FrameDef<'_>]) -> (usize, Path) {
        let mut at = 0;
        let pairs = self.frames.iter().zip(frames_leaf_first.iter().rev());
        let is_shared = |&(seen, frame): &(&Seen, &FrameDef<'_>)| {
            let texts = self.texts.get(at..seen.end).unwrap_or_default();
            at = seen.end;
            seen.content.is(texts, frame)
        };
        let shared = pairs.take_while(is_shared).count();
        self.frames.truncate(shared);
        let last = self.frames.last();
        self.texts.truncate(last.map_or(0, |seen| seen.end));
        (shared, last.map_or(Stacks::ROOT, |seen| seen.path))
    }

    /// Adds the callee of the last frame, whose path from the root is `path`.
    pub(super) fn push(&mut self, frame: &FrameDef<'_>, path: Path) {
        let content = FrameContent::keep(frame, &mut self.texts);
        self.frames.push(Seen { path, content, end: self.texts.len() });
    }
}
