//! The trace written last, frame by frame, as the writer was given it.
//!
//! Most traces share most of their callers with the one before. Its texts stand in one piece, in the order in
//! which they are compared, so that finding out what is shared follows no ids and no pointers.

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
    lengths: [usize; 5],
    number: (i64, bool),
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
            seen.is(texts, frame)
        };
        let shared = pairs.take_while(is_shared).count();
        self.frames.truncate(shared);
        let last = self.frames.last();
        self.texts.truncate(last.map_or(0, |seen| seen.end));
        (shared, last.map_or(Stacks::ROOT, |seen| seen.path))
    }

    /// Adds the callee of the last frame, whose path from the root is `path`.
    pub(super) fn push(&mut self, frame: &FrameDef<'_>, path: Path) {
        let texts = frame.strings();
        for text in texts {
            self.texts.extend_from_slice(text);
        }
        let end = self.texts.len();
        self.frames.push(Seen { path, lengths: texts.map(<[u8]>::len), number: frame.number(), end });
    }
}

impl Seen {
    /// Whether this frame, whose texts are `texts`, is `frame`.
    #[inline(always)]
    fn is(&self, texts: &[u8], frame: &FrameDef<'_>) -> bool {
        // Written out: a loop over the five would put them on the stack first.
        let [namespace, class, method, file, opcode] = frame.strings();
        let lengths = &self.lengths;
        let mut rest = texts;
        self.number == frame.number()
            && follows(&mut rest, lengths[0], namespace)
            && follows(&mut rest, lengths[1], class)
            && follows(&mut rest, lengths[2], method)
            && follows(&mut rest, lengths[3], file)
            && follows(&mut rest, lengths[4], opcode)
    }
}

/// Whether the first `length` of `texts` are `wanted`; they are taken off.
#[inline(always)]
fn follows(texts: &mut &[u8], length: usize, wanted: &[u8]) -> bool {
    if length != wanted.len() {
        return false;
    }
    let Some((text, rest)) = texts.split_at_checked(length) else { return false };
    *texts = rest;
    is_same(text, wanted)
}

/// Whether two texts of one length are equal. Names and paths are short, and for those a call of `memcmp`
/// takes longer than looking at both ends.
#[inline(always)]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    match other.len() {
        0 => true,
        1..4 => one.iter().eq(other),
        4..8 => have_same_ends::<4>(one, other),
        8..16 => have_same_ends::<8>(one, other),
        16..=32 => have_same_ends::<16>(one, other),
        33..=64 => have_same_ends::<32>(one, other),
        65..=96 => have_same_ends::<32>(one, other) && one[32..64] == other[32..64],
        _ => one == other,
    }
}

/// Whether the first and the last `N` bytes are equal.
#[inline(always)]
fn have_same_ends<const N: usize>(one: &[u8], other: &[u8]) -> bool {
    one.first_chunk::<N>() == other.first_chunk() && one.last_chunk::<N>() == other.last_chunk()
}
