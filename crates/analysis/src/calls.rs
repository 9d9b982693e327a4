//! The calls of a profile under a query: the data of call trees, sandwiches, flame graphs and top tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::call_paths::{CallId, CallPaths, Summable as _};
use crate::call_tree::CallTree;
use crate::frame_name::FrameName;
use crate::profile::Profile;
use crate::query::Query;
use crate::selection::{SampleSelection, Weight};

/// A row of a top table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopRow {
    /// The row of the [`Calls`].
    pub frame: usize,
    /// Self weight: that of samples whose leaf it is.
    pub self_weight: i64,
    /// Total weight: that of samples that have it on the stack, each counted once.
    pub total_weight: i64,
}

/// All calls of a profile: its call tree with equal paths merged.
///
/// # Examples
///
/// ```
/// use borehole_analysis::{Calls, Profile, Query, SampleSelection, LazyTree, Weight};
///
/// fn heaviest(profile: &Profile) -> Option<String> {
///     let calls = Calls::new(profile, &Query::default(), &SampleSelection::default(), Weight::Samples);
///     let tree = LazyTree::from_roots(&calls);
///     let root = tree.roots().first()?;
///     Some(format!("{} of {}: {:?}", root.total_weight, calls.total(), calls.frame(root.frame).function))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Calls {
    frames: Vec<Arc<FrameName>>,
    pub(crate) paths: CallPaths,
    pub(crate) sums: CallSums,
    weight: Weight,
}

impl Calls {
    /// Builds the calls of `profile` as `query` shows them, with the weights of the samples in `selection`.
    #[must_use]
    pub fn new(profile: &Profile, query: &Query, selection: &SampleSelection, weight: Weight) -> Self {
        let tables = &profile.tables;
        let tree = CallTree::of_all(tables, query);
        let groups = &tree.groups;
        let shown = |stack| tree.shown(stack, tables);
        let paths = CallPaths::new(tables, groups.len(), shown, |stack| tree.counts(stack));
        let frames = (0..groups.len()).map(|group| groups.name(group).clone()).collect();
        let sums = CallSums::new(&paths, profile, selection, weight);
        Self { frames, paths, sums, weight }
    }

    /// Replaces the weights by those of another selection.
    pub fn weigh(&mut self, profile: &Profile, selection: &SampleSelection, weight: Weight) {
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

    /// The samples behind the weights, by stack and period, ordered by period.
    ///
    /// A weight of time is samples times period; this divides it by the period again.
    pub fn samples(
        &self,
        profile: &Profile,
        selection: &SampleSelection,
    ) -> impl Iterator<Item = StackSamples> {
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

    pub(crate) fn self_weight(&self, call: CallId) -> i64 {
        self.sums.self_weights[call as usize]
    }

    pub(crate) fn total_weight(&self, call: CallId) -> i64 {
        self.sums.total_weights[call as usize]
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

/// The weights of the samples of a selection.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallSums {
    /// By call: self weight.
    pub(crate) self_weights: Vec<i64>,
    /// By call: total weight.
    pub(crate) total_weights: Vec<i64>,
    /// By call: whether it or anything below it has a weight, even if the sum is 0.
    pub(crate) has_weight: Vec<bool>,
    /// The weight of all samples that count.
    pub(crate) all: i64,
}

impl CallSums {
    pub(crate) fn new(
        paths: &CallPaths,
        profile: &Profile,
        selection: &SampleSelection,
        weight: Weight,
    ) -> Self {
        let (mut self_weights, mut has_weight) = (vec![0_i64; paths.len()], vec![false; paths.len()]);
        let mut all = 0_i64;
        profile.each(selection, weight, |pair, _, weight| {
            let Some(call) = paths.of_stack(pair.stack) else { return };
            self_weights[call as usize].add(weight);
            has_weight[call as usize].add(weight != 0);
            all.add(weight);
        });
        let (total_weights, has_weight) = (paths.totals(&self_weights), paths.totals(&has_weight));
        Self { self_weights, total_weights, has_weight, all }
    }

    /// All rows that have a weight, in order of their numbers.
    pub(crate) fn rows(&self, paths: &CallPaths) -> Vec<TopRow> {
        let weighs = paths.by_row(&self.has_weight);
        let sums = paths.by_row(&self.self_weights).into_iter().zip(paths.totals_by_row(&self.total_weights));
        let rows = sums.enumerate().filter(|&(frame, _)| weighs[frame]);
        rows.map(|(frame, (self_weight, total_weight))| TopRow { frame, self_weight, total_weight }).collect()
    }
}
