//! The memory of the batch under construction.

use super::layout::MAX_VARINT_BYTES;

/// Complete frames, with space after them for the next one.
///
/// Calls take the position to write at and return the position after it, so that it stays in a register: a length in
/// memory would make each value wait for the one before. Uncommitted bytes are overwritten.
#[derive(Default)]
pub(super) struct Buffer {
    /// The memory, all of it writable.
    bytes: Vec<u8>,
    /// The length of the complete frames.
    len: usize,
}

/// The growth of the space: small enough that it is still in the cache when it is written.
const STEP_BYTES: usize = 16 << 10;

impl Buffer {
    /// The complete frames.
    pub(super) fn committed(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The length of the complete frames in bytes.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Marks the bytes before `end` as complete frames.
    #[inline]
    pub(super) fn commit(&mut self, end: usize) {
        self.len = end.min(self.bytes.len());
    }

    /// Removes everything and keeps the memory.
    pub(super) const fn clear(&mut self) {
        self.len = 0;
    }

    /// Swaps the complete frames into `memory`, and continues in its memory.
    pub(super) fn exchange(&mut self, memory: &mut Vec<u8>) {
        std::mem::swap(&mut self.bytes, memory);
        memory.truncate(self.len);
        self.clear();
    }

    #[inline(always)]
    pub(super) fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) -> usize {
        match self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            Some(place) => *place = bytes,
            None => self.put_in_more(at, &bytes),
        }
        at + N
    }

    #[inline(always)]
    pub(super) fn put_slice(&mut self, at: usize, bytes: &[u8]) -> usize {
        let end = at + bytes.len();
        match self.bytes.get_mut(at..end) {
            Some(place) => place.copy_from_slice(bytes),
            None => self.put_in_more(at, bytes),
        }
        end
    }

    #[inline]
    pub(super) fn put_addresses(&mut self, at: usize, addresses: &[u64]) -> usize {
        let end = at + size_of_val(addresses);
        if end > self.bytes.len() {
            self.grow(end);
        }
        let places = self.bytes[at..end].as_chunks_mut().0;
        places.iter_mut().zip(addresses).for_each(|(place, address)| *place = address.to_le_bytes());
        end
    }

    /// Puts bytes after making room.
    #[cold]
    #[inline(never)]
    fn put_in_more(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        self.grow(end);
        self.bytes[at..end].copy_from_slice(bytes);
    }

    #[cold]
    fn grow(&mut self, end: usize) {
        self.bytes.resize(end.max(self.bytes.len() + STEP_BYTES), 0);
    }

    #[inline(always)]
    pub(super) fn put_varint(&mut self, at: usize, value: u64) -> usize {
        match self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            Some(place) => at + put_varint(place, value),
            None => self.put_varint_in_more(at, value),
        }
    }

    #[cold]
    #[inline(never)]
    fn put_varint_in_more(&mut self, at: usize, value: u64) -> usize {
        let mut bytes = [0; MAX_VARINT_BYTES];
        let width = put_varint(&mut bytes, value);
        self.put(at, bytes);
        at + width
    }

    /// The free space after `at`.
    #[inline(always)]
    pub(super) fn room(&mut self, at: usize) -> &mut [u8] {
        self.bytes.get_mut(at..).unwrap_or_default()
    }

    /// The end of the space.
    #[inline(always)]
    pub(super) const fn room_end(&self) -> usize {
        self.bytes.len()
    }

    /// Doubles the free space, so that a frame is rebuilt only a bounded number of times.
    #[cold]
    #[inline(never)]
    pub(super) fn extend_room(&mut self) {
        self.grow(self.bytes.len() + (self.bytes.len() - self.len));
    }

    /// Marks the bytes before `end` as complete frames, and inserts `frames` before those not committed yet.
    pub(super) fn commit_behind(&mut self, frames: &[u8], end: usize) {
        let end = self.put_slice(end, frames);
        self.bytes[self.len..end].rotate_right(frames.len());
        self.len = end;
    }
}

/// Puts a varint at the start of `place`. Returns its length; the bytes after it are arbitrary.
#[inline(always)]
pub(super) fn put_varint(place: &mut [u8; MAX_VARINT_BYTES], value: u64) -> usize {
    let [low, ..] = value.to_le_bytes();
    if value < 1 << 7 {
        place[0] = low;
        return 1;
    }
    if value < 1 << 14 {
        let [high, ..] = (value >> 7).to_le_bytes();
        [place[0], place[1]] = [low | 0x80, high];
        return 2;
    }
    let [first @ .., ninth, tenth] = place;
    if let Some((word, width)) = grouped(value) {
        *first = word.to_le_bytes();
        return width;
    }
    let word = groups(value & 0x00ff_ffff_ffff_ffff) | 0x8080_8080_8080_8080;
    [*first, [*ninth, ..]] = [word.to_le_bytes(), (value >> 56).to_le_bytes()];
    *tenth = 1;
    if *ninth < 0x80 { 9 } else { 10 }
}

/// The bytes of a varint as a word, with their number; `None` if there are more than eight.
#[inline]
const fn grouped(value: u64) -> Option<(u64, usize)> {
    if value >= 1 << 56 {
        return None;
    }
    let groups = groups(value);
    // All bytes except the last have their top bit set.
    let width = 8 - (groups | 1).leading_zeros() / 8;
    let more = (1u64 << (8 * (width - 1))) - 1;
    Some((groups | 0x8080_8080_8080_8080 & more, width as usize))
}

/// The eight lowest groups of seven bits, each in a byte.
#[inline]
const fn groups(value: u64) -> u64 {
    let halves = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
    let pairs = halves & 0x0000_3fff_0000_3fff | (halves & 0x0fff_c000_0fff_c000) << 2;
    pairs & 0x007f_007f_007f_007f | (pairs & 0x3f80_3f80_3f80_3f80) << 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_of_every_length_are_those_of_the_wire() {
        let edges = (0..64).map(|bit| 1u64 << bit).flat_map(|power| [power - 1, power, power + power / 3]);
        for value in edges.chain([u64::MAX]) {
            let (mut buffer, mut expected) = (Buffer::default(), Vec::new());
            borehole_wire::put_varint(&mut expected, value);
            let end = buffer.put_varint(0, value);
            buffer.commit(end);
            assert_eq!(buffer.committed(), expected, "{value:#x}");
        }
    }

    #[test]
    fn frames_go_before_what_was_not_committed() {
        let mut buffer = Buffer::default();
        let at = buffer.put_slice(0, b"first");
        buffer.commit(at);
        let at = buffer.put(at, *b"third");
        buffer.commit_behind(b"second", at);
        assert_eq!(buffer.committed(), b"firstsecondthird");
        let at = buffer.put(at + 6, [0; 2 * STEP_BYTES]);
        buffer.commit(at);
        assert!(buffer.committed().starts_with(b"firstsecondthird\0"));
        buffer.clear();
        assert_eq!(buffer.committed(), b"");
    }
}
