//! The calls of a profile under a query: the data of call trees, sandwiches, flame graphs and top tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::call_paths::{CallId, CallPaths, Summable as _};
use crate::call_sums::CallSums;
use crate::call_tree::CallTree;
use crate::frame_name::FrameName;
use crate::profile::Profile;
use crate::query::Query;
use crate::selection::{Selection, Weight};

/// All calls of a profile: its call tree with equal paths merged.
///
/// # Examples
///
/// ```
/// use borehole_analysis::{Calls, Profile, Query, Selection, Tree, Weight};
///
/// fn heaviest(profile: &Profile) -> Option<String> {
///     let calls = Calls::new(profile, &Query::default(), &Selection::default(), Weight::Samples);
///     let tree = Tree::from_roots(&calls);
///     let root = tree.roots().first()?;
///     Some(format!("{} of {}: {:?}", root.total, calls.total(), calls.frame(root.frame).function))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Calls {
    frames: Vec<Arc<FrameName>>,
    paths: CallPaths,
    sums: CallSums,
    weight: Weight,
}

impl Calls {
    /// Builds the calls of `profile` as `query` shows them, with the weights of the samples in `selection`.
    #[must_use]
    pub fn new(profile: &Profile, query: &Query, selection: &Selection, weight: Weight) -> Self {
        let tables = &profile.tables;
        let tree = CallTree::of_all(tables, query);
        let groups = tree.groups();
        let shown = |stack| tree.shown(stack, tables);
        let paths = CallPaths::new(tables, groups.len(), shown, |stack| tree.counts(stack));
        let frames = (0..groups.len()).map(|group| groups.name(group).clone()).collect();
        let sums = CallSums::new(&paths, profile, selection, weight);
        Self { frames, paths, sums, weight }
    }

    /// Replaces the weights by those of another selection.
    pub fn weigh(&mut self, profile: &Profile, selection: &Selection, weight: Weight) {
        self.weight = weight;
        self.sums = CallSums::new(&self.paths, profile, selection, weight);
    }

    /// The weight of all samples that count.
    #[must_use]
    pub const fn total(&self) -> i64 {
        self.sums.all
    }

    /// The unit of the weights.
    #[must_use]
    pub const fn weight(&self) -> Weight {
        self.weight
    }

    /// The frame of a row.
    #[must_use]
    pub fn frame(&self, row: usize) -> &Arc<FrameName> {
        &self.frames[row]
    }

    /// The number of rows; some may have no weight.
    #[must_use]
    pub const fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The row with a name; `None` if there is none.
    #[must_use]
    pub fn find(&self, name: &FrameName) -> Option<usize> {
        self.frames.iter().position(|frame| **frame == *name)
    }

    pub(crate) const fn paths(&self) -> &CallPaths {
        &self.paths
    }

    pub(crate) const fn sums(&self) -> &CallSums {
        &self.sums
    }

    /// The samples behind the weights, by stack and period, ordered by period.
    ///
    /// A weight of time is samples times period; this divides it by the period again.
    pub fn samples(&self, profile: &Profile, selection: &Selection) -> impl Iterator<Item = StackSamples> {
        let mut sums: BTreeMap<(Option<u64>, CallId), i64> = BTreeMap::new();
        profile.each(selection, self.weight, |pair, _, weight| {
            let Some(call) = self.paths.of_stack(pair.stack) else { return };
            let period_ns = profile.situations.get(pair.situation).period_ns;
            let of_one = match self.weight {
                _ if profile.situations.get(pair.situation).is_valued => 1,
                Weight::Samples => 1,
                Weight::Value | Weight::OnCpu => {
                    i64::try_from(period_ns.unwrap_or(0)).unwrap_or(i64::MAX).max(1)
                }
            };
            sums.entry((period_ns, call)).or_default().add(weight / of_one);
        });
        sums.into_iter().map(|((period_ns, call), sum)| StackSamples {
            path: self.path(call),
            sum,
            period_ns,
        })
    }

    /// The rows of a call path, root first.
    fn path(&self, call: CallId) -> Vec<usize> {
        let mut path: Vec<usize> = self.paths.leaf_first(call).map(|call| self.paths.row(call)).collect();
        path.reverse();
        path
    }

    pub(crate) fn row(&self, call: CallId) -> usize {
        self.paths.row(call)
    }

    pub(crate) fn own_of(&self, call: CallId) -> i64 {
        self.sums.own[call as usize]
    }

    pub(crate) fn total_of(&self, call: CallId) -> i64 {
        self.sums.totals[call as usize]
    }

    /// The root calls that have a weight.
    pub(crate) fn roots(&self) -> impl Iterator<Item = CallId> {
        self.weighty(self.paths.siblings(0, self.paths.ids().end))
    }

    /// The callees of a call that have a weight.
    pub(crate) fn callees(&self, call: CallId) -> impl Iterator<Item = CallId> {
        self.weighty(self.paths.siblings(call + 1, self.paths.end(call)))
    }

    fn weighty(&self, calls: impl Iterator<Item = CallId>) -> impl Iterator<Item = CallId> {
        calls.filter(|&call| self.sums.has_weight[call as usize])
    }
}

/// Samples of one stack with one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackSamples {
    /// The rows of the call path, root first.
    pub path: Vec<usize>,
    /// The number of samples, or the sum of their values in profiles that have values.
    pub sum: i64,
    /// The time that each sample stands for; `None` if unknown.
    pub period_ns: Option<u64>,
}
