//! Samples added up: one row for each stack and its samples' properties.
//!
//! Most samples are in long runs that differ only in their stack, so a row is found by comparing the properties with the
//! last ones and looking into a column of the stacks; the hash index is used only when that misses. Rows keep the order
//! of first appearance, so the output is deterministic.

use std::hash::BuildHasher as _;

use borehole_model::StackId;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::documents::numbered::Numbered;
use crate::documents::samples::SampleScope;
use crate::sums::losses::cut_sums;

/// The sums of one stack in one scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackSums {
    pub(super) stack: Option<StackId>,
    pub(super) scope: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct StackRows {
    rows: Vec<StackSums>,
    /// The sums, `stride` per row, of which `width` are used.
    values: Vec<i64>,
    width: usize,
    stride: usize,
    scopes: Numbered<SampleScope>,
    /// By stack: the last row used, plus one; 0 if there is none. The empty stack is at 0.
    latest: Vec<u32>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl StackRows {
    /// The number of the row of `stack` in `scope`; `None` if there are too many rows.
    #[inline]
    pub(super) fn row(&mut self, stack: Option<StackId>, scope: SampleScope) -> Option<usize> {
        let scope = self.scopes.number(scope);
        let slot = stack.map_or(0, |stack| stack.index() + 1);
        if let Some(&latest) = self.latest.get(slot)
            && let Some(row) = (latest as usize).checked_sub(1)
            && self.rows[row].scope == scope
        {
            return Some(row);
        }
        self.find_or_add((stack, scope), slot)
    }

    #[inline]
    pub(super) fn add_value(&mut self, row: usize, column: usize, value: i64) {
        let sum = &mut self.values[row * self.stride + column];
        *sum = sum.saturating_add(value);
    }

    /// Makes room for `width` values in each row.
    pub(super) fn widen(&mut self, width: usize) {
        self.width = self.width.max(width);
        if self.width <= self.stride {
            return;
        }
        // Segments may add one type each, and each time all sums are moved.
        let stride = if self.rows.is_empty() { width } else { width.max(2 * self.stride) };
        let mut values = vec![0; self.rows.len() * stride];
        if self.stride > 0 {
            for (old, new) in self.values.chunks(self.stride).zip(values.chunks_mut(stride)) {
                new[..old.len()].copy_from_slice(old);
            }
        }
        self.values = values;
        self.stride = stride;
    }

    /// The number of sums that overflowed in either direction and were cut.
    pub(super) fn cut_sums(&self) -> u64 {
        cut_sums(self.values.iter().copied())
    }

    pub(super) fn scopes(&self) -> &[SampleScope] {
        self.scopes.values()
    }

    /// The rows with their values, in the order of first appearance.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&StackSums, &[i64])> {
        let values = |row: usize| &self.values[row * self.stride..][..self.width];
        self.rows.iter().enumerate().map(move |(index, row)| (row, values(index)))
    }

    #[cold]
    fn find_or_add(&mut self, key: (Option<StackId>, usize), slot: usize) -> Option<usize> {
        let hash = self.hasher.hash_one(key);
        let Self { rows, index, hasher, .. } = self;
        let key_of = |row: u32| (rows[row as usize].stack, rows[row as usize].scope);
        let row = match index.find(hash, |&row| key_of(row) == key) {
            Some(&row) => row,
            None => {
                let row = u32::try_from(rows.len()).ok().filter(|&row| row < u32::MAX)?;
                index.insert_unique(hash, row, |&row| hasher.hash_one(key_of(row)));
                rows.push(StackSums { stack: key.0, scope: key.1 });
                self.values.resize(self.rows.len() * self.stride, 0);
                row
            }
        };
        if self.latest.len() <= slot {
            self.latest.resize(slot + 1, 0);
        }
        self.latest[slot] = row + 1;
        Some(row as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use borehole_model::{Frame, Tables};

    fn stacks(count: usize) -> Vec<StackId> {
        let mut tables = Tables::default();
        let names = (0..count).map(|index| tables.intern_string(index.to_string().as_bytes()).unwrap());
        let names: Vec<_> = names.collect();
        let frames = names.into_iter().map(|name| tables.intern_frame(&Frame::named(name)).unwrap());
        let frames: Vec<_> = frames.collect();
        frames.into_iter().map(|frame| tables.intern_stack(None, frame).unwrap()).collect()
    }

    #[test]
    fn rows_are_separate_by_stack_and_scope_in_any_order() {
        let stacks = stacks(3);
        let scopes = [1, 2].map(|process| SampleScope { process: Some(process), ..SampleScope::default() });
        let mut rows = StackRows::default();
        rows.widen(2);
        for round in 0..4 {
            for scope in scopes {
                for stack in stacks.iter().copied().map(Some).chain([None]) {
                    let row = rows.row(stack, scope).unwrap();
                    rows.add_value(row, 0, round);
                    rows.add_value(row, 1, 10);
                }
            }
        }
        let sums: Vec<_> = rows.iter().map(|(row, values)| (row.scope, row.stack, values.to_vec())).collect();
        assert_eq!(sums.len(), 8);
        assert!(sums.iter().all(|(_, _, values)| *values == [6, 40]));
        assert_eq!((sums[3].0, sums[3].1), (0, None));
        assert_eq!((sums[4].0, sums[4].1), (1, Some(stacks[0])));
    }

    #[test]
    fn widening_keeps_the_values_of_every_row() {
        let stacks = stacks(2);
        let mut rows = StackRows::default();
        rows.widen(1);
        for (value, &stack) in (5..).zip(&stacks) {
            let row = rows.row(Some(stack), SampleScope::default()).unwrap();
            rows.add_value(row, 0, value);
        }
        rows.widen(3);
        let row = rows.row(Some(stacks[1]), SampleScope::default()).unwrap();
        rows.add_value(row, 2, 9);
        let values: Vec<_> = rows.iter().map(|(_, values)| values.to_vec()).collect();
        assert_eq!(values, [[5, 0, 0], [6, 0, 9]]);
    }
}
