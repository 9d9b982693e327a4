//! The call paths that are large enough for a page.

use super::{PageLimits, Pruned};
use crate::call_paths::{CallPaths, Summable as _};
use crate::calls::CallSums;

/// Shares below a ten-thousandth are too small to be visible.
const LEAST_SHARE: f64 = 0.0001;

/// A kept path, or all paths that are too small beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptCall {
    pub(super) caller: Option<usize>,
    /// The row of the called function; `None` for combined paths that are too small.
    pub(super) row: Option<usize>,
}

/// All calls with their weights.
pub(super) struct PageTree<'a> {
    pub(super) paths: &'a CallPaths,
    pub(super) sums: &'a CallSums,
    pub(super) depths: Vec<u32>,
}

pub(super) struct KeptPaths {
    pub(super) calls: Vec<KeptCall>,
    /// By call of the tree: the kept call that counts its samples; `None` if it has no samples.
    pub(super) call_of: Vec<Option<usize>>,
    pub(super) pruned: Pruned,
}

impl KeptPaths {
    /// Keeps as many paths as the limits allow.
    pub(super) fn new(tree: &PageTree<'_>, limits: PageLimits) -> Self {
        let mut kept = Self::of_share(tree, limits, LEAST_SHARE);
        while kept.calls.len() > limits.calls && kept.pruned.share < 1.0 {
            kept = Self::of_share(tree, limits, kept.pruned.share * 2.0);
        }
        kept
    }

    /// Keeps the paths with at least this share of all samples.
    // A share does not need more precision than a double has.
    #[expect(clippy::cast_precision_loss)]
    pub(super) fn of_share(tree: &PageTree<'_>, limits: PageLimits, share: f64) -> Self {
        let PageTree { paths, sums, depths } = tree;
        let least = sums.all.unsigned_abs() as f64 * share;
        let mut kept = Self {
            calls: Vec::new(),
            call_of: vec![None; paths.len()],
            pruned: Pruned { share, depth: limits.depth, ..Pruned::default() },
        };
        // By kept call: its callee for all paths that are too small. `small_root` is that of the roots.
        let mut small_below: Vec<Option<usize>> = Vec::new();
        let mut small_root = None;
        for call in paths.ids() {
            let place = call as usize;
            let (total, self_weight) = (sums.total_weights[place], sums.self_weights[place]);
            // The tree has all stacks, including those of samples that were not selected. Below such a call nothing has weight
            // either.
            if !sums.has_weight[place] {
                continue;
            }
            let caller = paths.parent(call).and_then(|caller| kept.call_of[caller as usize]);
            if caller.is_some_and(|caller| kept.calls[caller].row.is_none()) {
                // Everything below a path that is too small is too small.
                kept.call_of[place] = caller;
                kept.leave_out(self_weight);
                continue;
            }
            let is_kept = total.unsigned_abs() as f64 >= least && (depths[place] as usize) < limits.depth;
            let row = is_kept.then(|| paths.row(call));
            if is_kept {
                kept.call_of[place] = Some(kept.calls.len());
                kept.push(KeptCall { caller, row }, &mut small_below);
                continue;
            }
            let small = caller.map_or(&mut small_root, |caller| &mut small_below[caller]);
            let is_first = small.is_none();
            kept.call_of[place] = Some(*small.get_or_insert(kept.calls.len()));
            if is_first {
                kept.push(KeptCall { caller, row }, &mut small_below);
            }
            kept.leave_out(self_weight);
        }
        kept
    }

    fn push(&mut self, call: KeptCall, small_below: &mut Vec<Option<usize>>) {
        self.calls.push(call);
        small_below.push(None);
    }

    fn leave_out(&mut self, self_weight: i64) {
        self.pruned.paths += 1;
        self.pruned.value.add(self_weight);
    }
}
