//! The part of a call tree that a page shows.

use std::sync::Arc;

use super::prune::KeptPaths;
use crate::call_paths::CallPaths;
use crate::calls::CallSums;
use crate::diff::DiffFrame;

/// A call path by what its functions are called, the root first.
#[derive(Clone, Copy)]
pub struct CallPattern<'a> {
    /// The number of calls on the path; 0 matches everything.
    pub levels: usize,
    /// Whether the function at a level, from 0, may have this name.
    pub is_called: &'a dyn Fn(usize, &[u8]) -> bool,
}

/// The calls at the end of a path, and everything below them.
pub(super) struct PageScope {
    /// By call: whether it is in the scope.
    is_inside: Vec<bool>,
    levels: u32,
}

impl PageScope {
    pub(super) fn new(paths: &CallPaths, names: &[Arc<DiffFrame>], pattern: CallPattern<'_>) -> Self {
        // By call: the calls of the pattern on its path, as long as all of them match.
        let mut matched: Vec<Option<usize>> = Vec::with_capacity(paths.len());
        for call in paths.ids() {
            let above = paths.parent(call).map_or(Some(0), |caller| matched[caller as usize]);
            matched.push(above.and_then(|level| {
                let name = &names[paths.row(call)].function;
                let is_below = level == pattern.levels;
                (is_below || (pattern.is_called)(level, name)).then(|| (level + 1).min(pattern.levels))
            }));
        }
        let is_inside = matched.into_iter().map(|level| level == Some(pattern.levels)).collect();
        Self { is_inside, levels: u32::try_from(pattern.levels).unwrap_or(u32::MAX) }
    }

    /// Leaves out the weight of all other calls.
    pub(super) fn narrow(&self, sums: &mut CallSums, paths: &CallPaths) {
        let mut has_weight = sums.has_weight.clone();
        let CallSums { self_weights, .. } = sums;
        for ((weight, has_weight), is_inside) in
            self_weights.iter_mut().zip(&mut has_weight).zip(&self.is_inside)
        {
            *weight *= i64::from(*is_inside);
            *has_weight &= is_inside;
        }
        sums.all = self_weights.iter().fold(0, |all: i64, weight| all.saturating_add(*weight));
        sums.total_weights = paths.totals(self_weights);
        sums.has_weight = paths.totals(&has_weight);
    }

    /// The depths of calls, from the first ones in the scope.
    pub(super) fn depths(&self, mut depths: Vec<u32>) -> Vec<u32> {
        depths.iter_mut().for_each(|depth| *depth = depth.saturating_sub(self.levels));
        depths
    }

    /// Leaves out the samples of the callers above.
    pub(super) fn forget_others(&self, kept: &mut KeptPaths) {
        for (call, is_inside) in kept.call_of.iter_mut().zip(&self.is_inside) {
            *call = call.filter(|_| *is_inside);
        }
    }
}
