//! Byte strings, each stored once, end to end.
//!
//! A heap has millions of strings, so the data beside their bytes is small: a length per string, and the start of every
//! sixteenth. During interning there is also an index by hash, which stores the hashes so that it can grow without
//! reading the strings, and one by number: keys of lists and integers are many of the strings, and follow each other.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

/// The number of strings per stored start: few enough that their lengths fit in one cache line.
pub(crate) const STRIDE: usize = 16;

/// Strings by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StringColumn {
    bytes: Vec<u8>,
    /// The start of every sixteenth string.
    starts: Vec<usize>,
    lengths: Vec<u32>,
}

impl StringColumn {
    pub(crate) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// The total length of the strings.
    pub(crate) fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a string, truncated to a length of 32 bits.
    fn push(&mut self, string: &[u8]) {
        if self.lengths.len().is_multiple_of(STRIDE) {
            self.starts.push(self.bytes.len());
        }
        let length = u32::try_from(string.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&string[..length as usize]);
        self.lengths.push(length);
    }

    /// The string with this number; empty if there is none.
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        let first = row / STRIDE * STRIDE;
        let (Some(&start), Some(before), Some(&length)) =
            (self.starts.get(row / STRIDE), self.lengths.get(first..row), self.lengths.get(row))
        else {
            return &[];
        };
        let start = start + before.iter().map(|&length| length as usize).sum::<usize>();
        self.bytes.get(start..start + length as usize).unwrap_or_default()
    }

    fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.starts.shrink_to_fit();
        self.lengths.shrink_to_fit();
    }
}

/// Strings with an index, so that equal strings get the same number.
#[derive(Clone, Debug, Default)]
pub(crate) struct StringInterner {
    strings: StringColumn,
    numbers: NumberIndex,
    index: HashTable<StringSlot>,
    hasher: DefaultHashBuilder,
}

/// The upper half of a string's hash, and its number.
#[derive(Clone, Copy, Debug)]
struct StringSlot {
    hash: u32,
    row: u32,
}

/// The rows of the strings that are numbers below [`NumberIndex::END`], in parts.
#[derive(Clone, Debug, Default)]
struct NumberIndex {
    /// The row plus 1 of each number of a part; 0: there is no such string yet.
    parts: Vec<Option<Box<[u32; NumberIndex::PART]>>>,
}

impl NumberIndex {
    /// With more numbers, those that are far from each other would take too much memory.
    const END: usize = 1 << 24;

    /// One page.
    const PART: usize = 1024;

    /// The number of `string`; `None` if it is not one in the form in which PHP writes it, or too large.
    #[inline]
    fn number(string: &[u8]) -> Option<usize> {
        let (b"0" | [b'1'..=b'9', ..]) = string else { return None };
        if string.len() > 8 {
            return None;
        }
        let mut number = 0;
        for digit in string {
            if !digit.is_ascii_digit() {
                return None;
            }
            number = number * 10 + usize::from(digit - b'0');
        }
        (number < Self::END).then_some(number)
    }

    #[inline]
    fn place(&mut self, number: usize) -> &mut u32 {
        let part = number / Self::PART;
        if part >= self.parts.len() {
            self.parts.resize(part + 1, None);
        }
        &mut self.parts[part].get_or_insert_with(|| Box::new([0; Self::PART]))[number % Self::PART]
    }
}

impl StringInterner {
    /// The number of `string`; `None` if there are too many strings.
    pub(crate) fn intern(&mut self, string: &[u8]) -> Option<u32> {
        let Some(number) = NumberIndex::number(string) else { return self.intern_by_hash(string) };
        let place = self.numbers.place(number);
        if *place == 0 {
            let row = u32::try_from(self.strings.len()).ok().filter(|&row| row < u32::MAX)?;
            self.strings.push(string);
            *place = row + 1;
        }
        Some(*place - 1)
    }

    fn intern_by_hash(&mut self, string: &[u8]) -> Option<u32> {
        let hash = (self.hasher.hash_one(string) >> 32) as u32;
        let Self { strings, index, .. } = self;
        let same = |entry: &StringSlot| entry.hash == hash && strings.get(entry.row as usize) == string;
        if let Some(entry) = index.find(spread(hash), same) {
            return Some(entry.row);
        }
        let row = u32::try_from(strings.len()).ok().filter(|&row| row < u32::MAX)?;
        strings.push(string);
        index.insert_unique(spread(hash), StringSlot { hash, row }, |entry| spread(entry.hash));
        Some(row)
    }

    /// The strings without the index.
    pub(crate) fn into_strings(mut self) -> StringColumn {
        self.strings.shrink();
        self.strings
    }
}

/// Derives a 64-bit hash: a table takes positions from the low bits and tags from the highest, so both come from the
/// stored half.
const fn spread(hash: u32) -> u64 {
    (hash as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_one_number_and_all_are_found_again() {
        let mut interner = StringInterner::default();
        let texts: Vec<String> = (0..1000).map(|number| format!("{}", number * number)).collect();
        for (row, text) in texts.iter().enumerate() {
            assert_eq!(interner.intern(text.as_bytes()).map(|row| row as usize), Some(row));
        }
        assert_eq!(interner.intern(b""), Some(1000));
        let others = ["00", "02", "-1", "1x", "x1", "16777215", "16777216", "99999999", "100000000"];
        for (row, text) in (1001..).zip(others) {
            let found = [0, 1].map(|_| interner.intern(text.as_bytes()));
            assert_eq!(found, [Some(row), Some(row)], "{text}");
        }
        assert_eq!(interner.intern(b"998001"), Some(999));
        let strings = interner.into_strings();
        assert_eq!(strings.len(), 1010);
        for (row, text) in texts.iter().enumerate() {
            assert_eq!(strings.get(row), text.as_bytes());
        }
        assert_eq!(strings.get(1000), b"");
        assert_eq!(strings.get(1007), b"16777216");
        assert_eq!(strings.get(1010), b"");
    }
}
