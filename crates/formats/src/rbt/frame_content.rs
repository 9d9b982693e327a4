//! The contents of a frame, stored for a fast comparison with the next frame.

use super::write::FrameDef;

/// The contents of a frame without its texts, which are stored elsewhere in one piece: comparing follows no ids and no
/// pointers.
#[derive(Clone, Copy)]
pub(super) struct FrameContent {
    lengths: [usize; 5],
    number: (i64, bool),
}

impl FrameContent {
    /// Stores `frame`, appending its strings to `texts`.
    pub(super) fn keep(frame: &FrameDef<'_>, texts: &mut Vec<u8>) -> Self {
        let strings = frame.strings();
        for text in strings {
            texts.extend_from_slice(text);
        }
        Self { lengths: strings.map(<[u8]>::len), number: frame.number() }
    }

    /// Whether this frame, whose texts are `texts`, equals `frame`. An empty opcode equals none, as in reli.
    #[inline(always)]
    pub(super) fn is(&self, texts: &[u8], frame: &FrameDef<'_>) -> bool {
        // Unrolled: a loop over the five would put them on the stack first.
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

/// Whether the first `length` bytes of `texts` are `wanted`; removes them.
#[inline(always)]
fn follows(texts: &mut &[u8], length: usize, wanted: &[u8]) -> bool {
    if length != wanted.len() {
        return false;
    }
    let Some((text, rest)) = texts.split_at_checked(length) else { return false };
    *texts = rest;
    is_same(text, wanted)
}

/// Whether two texts of one length are equal. Names and paths are short: a call of `memcmp` takes longer than comparing
/// both ends.
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
