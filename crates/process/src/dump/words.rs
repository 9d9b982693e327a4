//! Words of memory, one after the other, whether or not it is packed.

use super::Dump;

/// The words of a part of memory.
#[derive(Clone)]
pub struct Words<'d> {
    dump: &'d Dump,
    /// The address behind the words in `words`, and the number of bytes that are left there.
    next: u64,
    left: u64,
    words: [[u8; WORD_BYTES]; PART_WORDS],
    at: usize,
    count: usize,
}

const WORD_BYTES: usize = 8;

/// The number of words read at once.
const PART_WORDS: usize = 64;

impl<'d> Words<'d> {
    pub(super) fn new(dump: &'d Dump, address: u64, length: u64) -> Self {
        let words = [[0; WORD_BYTES]; PART_WORDS];
        Self { dump, next: address, left: length, words, at: 0, count: 0 }
    }

    #[inline(never)]
    fn read_part(&mut self) {
        let bytes = self.words.as_flattened_mut();
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let read = self.dump.copy(self.next, &mut bytes[..wanted]);
        (self.at, self.count) = (0, read / WORD_BYTES);
        self.left = if read < wanted { 0 } else { self.left - read as u64 };
        self.next = self.next.wrapping_add(read as u64);
    }
}

impl Iterator for Words<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.at == self.count {
            self.read_part();
        }
        let word = *self.words[..self.count].get(self.at)?;
        self.at += 1;
        Some(u64::from_le_bytes(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_before_the_first_that_is_missing() {
        let mut dump = Dump::default();
        dump.insert(0x1000, (0..200_u64).flat_map(u64::to_le_bytes).collect());
        dump.insert(0x1640, [200_u64.to_le_bytes(), [1; 8]].as_flattened()[..12].to_vec());
        let all = |address, length| dump.words(address, length).collect::<Vec<_>>();
        assert_eq!(all(0x1000, u64::MAX), (0..201).collect::<Vec<_>>());
        assert_eq!(all(0x1008, 80), (1..11).collect::<Vec<_>>());
        assert_eq!(all(0x1000, 15), [0]);
        assert_eq!(all(0x900, 80), [] as [u64; 0]);
    }
}
