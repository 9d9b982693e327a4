//! Bytes that are nearly right.

use std::iter;

/// Random numbers that are the same on every run: SplitMix64, by Steele, Lea and Flood (2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence that belongs to `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let remainder = self.number().checked_rem(bound as u64).unwrap_or(0);
        // It is smaller than `bound`, so it fits.
        usize::try_from(remainder).unwrap_or_default()
    }

    /// A byte.
    pub const fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[0]
    }

    /// A place in a text of `length` bytes, and a length from there on that is mostly short.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length);
        let longest = if self.below(4) == 0 { length } else { 16 };
        let taken = self.below(longest.min(length - start) + 1);
        start..start + taken
    }
}

/// Changes inputs, a little at a time.
#[derive(Clone, Debug)]
pub struct Mutator {
    random: Random,
    /// Longer inputs are cut.
    longest: usize,
}

/// Bytes that readers take for something: lengths, signs, ends, quotes.
const TELLING: &[u8] = b"\x00\x01\x7f\x80\xff\n\r\t ;:\"'#{}[]<>,-+.0129R";

/// A change that keeps the length.
type Change = fn(&mut Random, &mut [u8]);

/// A change of the length; the last argument is another input.
type Reshape = fn(&mut Random, &mut Vec<u8>, &[u8]);

const CHANGES: &[Change] =
    &[flip_bit, set_byte, set_telling_byte, set_telling_byte, repeat_byte, reverse_range];

const RESHAPES: &[Reshape] = &[insert_bytes, remove_range, duplicate_range, splice, splice, truncate];

impl Mutator {
    /// A mutator whose outputs belong to `seed` and have at most `longest` bytes.
    #[must_use]
    pub const fn new(seed: u64, longest: usize) -> Self {
        Self { random: Random::new(seed), longest }
    }

    /// An input made from one or two of `pool`, by one to eight changes.
    pub fn mutate(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = self.pick(pool).to_vec();
        let other = self.pick(pool);
        for _ in 0..=self.random.below(8) {
            self.change(&mut bytes, other);
        }
        bytes.truncate(self.longest);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let chosen = self.random.below(CHANGES.len() + RESHAPES.len());
        if let Some(change) = CHANGES.get(chosen) {
            change(&mut self.random, bytes);
        } else {
            RESHAPES[chosen - CHANGES.len()](&mut self.random, bytes, other);
        }
    }

    fn pick<'a>(&mut self, pool: &'a [Vec<u8>]) -> &'a [u8] {
        pool.get(self.random.below(pool.len())).map_or(&[], Vec::as_slice)
    }
}

fn flip_bit(random: &mut Random, bytes: &mut [u8]) {
    let at = random.below(bytes.len());
    let bit = 1 << random.below(8);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= bit;
    }
}

fn set_byte(random: &mut Random, bytes: &mut [u8]) {
    let at = random.below(bytes.len());
    let value = random.byte();
    if let Some(byte) = bytes.get_mut(at) {
        *byte = value;
    }
}

fn set_telling_byte(random: &mut Random, bytes: &mut [u8]) {
    let at = random.below(bytes.len());
    let value = TELLING[random.below(TELLING.len())];
    if let Some(byte) = bytes.get_mut(at) {
        *byte = value;
    }
}

fn insert_bytes(random: &mut Random, bytes: &mut Vec<u8>, _other: &[u8]) {
    let at = random.below(bytes.len() + 1);
    let count = 1 + random.below(8);
    let inserted: Vec<u8> = iter::repeat_with(|| random.byte()).take(count).collect();
    bytes.splice(at..at, inserted);
}

fn remove_range(random: &mut Random, bytes: &mut Vec<u8>, _other: &[u8]) {
    let range = random.range(bytes.len());
    bytes.drain(range);
}

fn duplicate_range(random: &mut Random, bytes: &mut Vec<u8>, _other: &[u8]) {
    let copied = bytes[random.range(bytes.len())].to_vec();
    let at = random.below(bytes.len() + 1);
    bytes.splice(at..at, copied);
}

fn repeat_byte(random: &mut Random, bytes: &mut [u8]) {
    let range = random.range(bytes.len());
    let value = TELLING[random.below(TELLING.len())];
    bytes[range].fill(value);
}

fn reverse_range(random: &mut Random, bytes: &mut [u8]) {
    let range = random.range(bytes.len());
    bytes[range].reverse();
}

/// Puts a piece of another input in the place of a piece.
fn splice(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    let replaced = random.range(bytes.len());
    let piece = other[random.range(other.len())].to_vec();
    bytes.splice(replaced, piece);
}

fn truncate(random: &mut Random, bytes: &mut Vec<u8>, _other: &[u8]) {
    bytes.truncate(random.below(bytes.len() + 1));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn outputs(seed: u64, pool: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut mutator = Mutator::new(seed, 100);
        (0..500).map(|_| mutator.mutate(pool)).collect()
    }

    #[test]
    fn a_seed_gives_the_same_inputs_each_time_and_another_gives_others() {
        let pool = [b"RELI profile".to_vec(), b"main;work 3\n".to_vec()];
        assert_eq!(outputs(1, &pool), outputs(1, &pool));
        assert_ne!(outputs(1, &pool), outputs(2, &pool));
    }

    #[test]
    fn inputs_differ_and_keep_to_their_length() {
        let found = outputs(7, &[vec![b'x'; 90], b"y".repeat(40)]);
        assert!(found.iter().all(|bytes| bytes.len() <= 100));
        assert!(found.iter().collect::<BTreeSet<_>>().len() > 400);
    }

    #[test]
    fn nothing_to_begin_with_is_enough() {
        let found = outputs(3, &[]);
        assert!(found.iter().any(|bytes| !bytes.is_empty()));
        assert!(outputs(3, &[Vec::new()]).iter().any(|bytes| !bytes.is_empty()));
    }

    #[test]
    fn every_change_takes_inputs_of_every_small_length() {
        let mut random = Random::new(5);
        for length in (0..20).cycle().take(4000) {
            CHANGES.iter().for_each(|change| change(&mut random, &mut vec![1; length]));
            for reshape in RESHAPES {
                reshape(&mut random, &mut vec![1; length], &[2; 3]);
                reshape(&mut random, &mut vec![1; length], &[]);
            }
        }
    }
}
