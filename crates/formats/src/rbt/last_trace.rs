//! The frames of the last stack written, as the writer received them.
//!
//! Most stacks share most of their callers with the one before. The texts are stored in one piece, in the order of
//! comparison, so that finding the shared callers follows no ids and no pointers.

use super::frame_def::{FrameContent, FrameDef};
use super::trie::{StackPath, WrittenStacks};

#[derive(Default)]
pub(super) struct LastTrace {
    /// The frames, from the root.
    frames: Vec<SeenFrame>,
    texts: Vec<u8>,
}

struct SeenFrame {
    path: StackPath,
    content: FrameContent,
    /// The end of this frame's texts.
    end: usize,
}

impl LastTrace {
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.texts.clear();
    }

    /// The number of callers, from the root, that `frames_leaf_first` shares with this stack, and their path. Removes
    /// the rest.
    pub(super) fn keep_shared(&mut self, frames_leaf_first: &[FrameDef<'_>]) -> (usize, StackPath) {
        let mut at = 0;
        let pairs = self.frames.iter().zip(frames_leaf_first.iter().rev());
        let is_shared = |&(seen, frame): &(&SeenFrame, &FrameDef<'_>)| {
            let texts = self.texts.get(at..seen.end).unwrap_or_default();
            at = seen.end;
            seen.content.is(texts, frame)
        };
        let shared = pairs.take_while(is_shared).count();
        self.frames.truncate(shared);
        let last = self.frames.last();
        self.texts.truncate(last.map_or(0, |seen| seen.end));
        (shared, last.map_or(WrittenStacks::ROOT, |seen| seen.path))
    }

    /// Appends the callee of the last frame; its path from the root is `path`.
    pub(super) fn push(&mut self, frame: &FrameDef<'_>, path: StackPath) {
        let content = FrameContent::keep(frame, &mut self.texts);
        self.frames.push(SeenFrame { path, content, end: self.texts.len() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_shared_with_what_was_cleared_even_without_texts() {
        for name in [&b""[..], b"main"] {
            let frame = &FrameDef::Native { symbol: name, module: name, offset: 0 };
            let mut last = LastTrace::default();
            last.push(frame, WrittenStacks::ROOT);
            assert_eq!(last.keep_shared(std::slice::from_ref(frame)).0, 1);
            last.clear();
            assert_eq!(last.keep_shared(std::slice::from_ref(frame)), (0, WrittenStacks::ROOT));
        }
    }
}
