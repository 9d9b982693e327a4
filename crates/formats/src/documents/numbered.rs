//! Distinct values, numbered in the order of first appearance.

use std::hash::Hash;

use hashbrown::HashMap;

/// Distinct values and their numbers. A value that equals the last one is found without hashing.
#[derive(Clone, Debug)]
pub(crate) struct Numbered<T> {
    values: Vec<T>,
    index: HashMap<T, usize>,
    latest: usize,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { values: Vec::new(), index: HashMap::new(), latest: 0 }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    /// The number of a value, stored if it is new.
    #[inline]
    pub(crate) fn number(&mut self, value: T) -> usize {
        if self.values.get(self.latest) != Some(&value) {
            self.latest = self.find_or_add(value);
        }
        self.latest
    }

    #[cold]
    fn find_or_add(&mut self, value: T) -> usize {
        let Self { values, index, .. } = self;
        *index.entry(value).or_insert_with_key(|value| {
            values.push(value.clone());
            values.len() - 1
        })
    }
}

impl<T> Numbered<T> {
    /// The values, in the order of their numbers.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }
}
