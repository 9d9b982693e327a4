//! Distinct rows and slices, numbered in order of first appearance.
//!
//! The hash indexes hold row numbers only and compare through the stored rows. Slices are stored end to end.

use std::hash::{BuildHasher as _, Hash};

use borehole_memory::HeldBytes as _;
use hashbrown::{DefaultHashBuilder, HashTable};

/// Distinct slices, numbered in order of first appearance: strings as bytes, stacks as addresses.
///
/// # Examples
///
/// ```
/// let mut stacks = borehole_model::Distinct::default();
/// assert_eq!([&[7, 9][..], &[], &[7, 9]].map(|stack| stacks.intern(stack)), [Some(0), Some(1), Some(0)]);
/// assert_eq!(stacks.get(0), [7, 9]);
/// ```
#[derive(Clone, Debug)]
pub struct Distinct<T> {
    items: Vec<T>,
    ends: Vec<usize>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        let hasher = DefaultHashBuilder::default();
        Self { items: Vec::new(), ends: Vec::new(), index: HashTable::new(), hasher }
    }
}

impl<T: Copy + Eq + Hash> Distinct<T> {
    /// The number of a slice, stored if it is new; `None` if no number is left. Numbers are below 2^32 - 1.
    pub fn intern(&mut self, slice: &[T]) -> Option<u32> {
        let hash = self.hasher.hash_one(slice);
        let found = self.index.find(hash, |&row| of_row(&self.items, &self.ends, row as usize) == slice);
        if let Some(&row) = found {
            return Some(row);
        }
        let row = next_row(self.ends.len())?;
        self.items.extend_from_slice(slice);
        self.ends.push(self.items.len());
        let Self { items, ends, index, hasher } = self;
        index.insert_unique(hash, row, |&row| hasher.hash_one(of_row(items, ends, row as usize)));
        Some(row)
    }

    /// The number of a stored slice; `None` if it is not stored.
    #[must_use]
    pub fn find(&self, slice: &[T]) -> Option<u32> {
        let hash = self.hasher.hash_one(slice);
        self.index.find(hash, |&row| self.get(row as usize) == slice).copied()
    }

    /// The slice with a number.
    ///
    /// # Panics
    /// If no slice has this number.
    #[inline]
    #[must_use]
    pub fn get(&self, row: usize) -> &[T] {
        of_row(&self.items, &self.ends, row)
    }

    /// All slices, in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.items[start..end])
    }
}

impl<T> Distinct<T> {
    /// The number of slices.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.ends.len()
    }

    /// The memory that the slices have allocated, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.items.held_bytes() + self.ends.held_bytes() + self.index.allocation_size()
    }

    /// The total length of all slices.
    pub(crate) const fn item_count(&self) -> usize {
        self.items.len()
    }
}

/// Distinct rows, numbered in order of first appearance.
///
/// # Examples
///
/// ```
/// let mut rows = borehole_model::InternedRows::default();
/// assert_eq!(["f", "g", "f"].map(|row| rows.intern(&row)), [Some(0), Some(1), Some(0)]);
/// assert_eq!(rows.rows(), ["f", "g"]);
/// ```
#[derive(Clone, Debug)]
pub struct InternedRows<T> {
    rows: Vec<T>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<T> Default for InternedRows<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), index: HashTable::new(), hasher: DefaultHashBuilder::default() }
    }
}

impl<T: Clone + Eq + Hash> InternedRows<T> {
    /// The number of a row, stored if it is new; `None` if no number is left. Numbers are below 2^32 - 1.
    pub fn intern(&mut self, row: &T) -> Option<u32> {
        let Self { rows, index, hasher } = self;
        let hash = hasher.hash_one(row);
        if let Some(&known) = index.find(hash, |&known| rows[known as usize] == *row) {
            return Some(known);
        }
        let number = next_row(rows.len())?;
        rows.push(row.clone());
        index.insert_unique(hash, number, |&known| hasher.hash_one(&rows[known as usize]));
        Some(number)
    }
}

impl<T> InternedRows<T> {
    /// All rows, by their numbers.
    #[inline]
    #[must_use]
    pub const fn rows(&self) -> &[T] {
        self.rows.as_slice()
    }

    /// The memory that the rows have allocated, in bytes. What a row has allocated itself is not among it.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.rows.held_bytes() + self.index.allocation_size()
    }
}

/// The number of the next of `count` rows; the largest number stays free for an absent row.
fn next_row(count: usize) -> Option<u32> {
    u32::try_from(count).ok().filter(|&row| row < u32::MAX)
}

#[inline]
fn of_row<'a, T>(items: &'a [T], ends: &[usize], row: usize) -> &'a [T] {
    let start = if row == 0 { 0 } else { ends[row - 1] };
    &items[start..ends[row]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_stored_once_and_where_it_ends_makes_a_difference() {
        let mut texts = Distinct::default();
        let numbers = ["ab", "c", "", "a", "bc", "c", ""].map(|text| texts.intern(text.as_bytes()).unwrap());
        assert_eq!(numbers, [0, 1, 2, 3, 4, 1, 2]);
        assert_eq!(texts.iter().collect::<Vec<_>>(), [&b"ab"[..], b"c", b"", b"a", b"bc"]);
        assert_eq!((texts.count(), texts.item_count()), (5, 6));
        assert_eq!((texts.find(b"bc"), texts.find(b"b"), texts.get(4)), (Some(4), None, &b"bc"[..]));
    }
}
