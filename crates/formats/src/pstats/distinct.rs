//! Distinct rows with numbers.

use std::hash::{BuildHasher as _, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::row_sums::row_number;

/// Stores each distinct row once, numbered in order of first appearance.
pub(super) struct Distinct<T> {
    rows: Vec<T>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), index: HashTable::new(), hasher: DefaultHashBuilder::default() }
    }
}

impl<T: Hash + Eq> Distinct<T> {
    /// The number of `row`, which is new if the row is.
    pub(super) fn number(&mut self, row: T) -> u32 {
        let Self { rows, index, hasher } = self;
        let hash = hasher.hash_one(&row);
        if let Some(&known) = index.find(hash, |&known| rows[known as usize] == row) {
            return known;
        }
        let number = row_number(rows.len());
        rows.push(row);
        index.insert_unique(hash, number, |&known| hasher.hash_one(&rows[known as usize]));
        number
    }

    /// All rows, by their numbers.
    pub(super) fn rows(&self) -> &[T] {
        &self.rows
    }
}
