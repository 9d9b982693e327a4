//! The calls of a profile under a query: what call trees, sandwiches, flame graphs and top tables are made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::call_paths::{CallId, CallPaths, Summable as _};
use crate::call_sums::CallSums;
use crate::call_tree::CallTree;
use crate::frame_name::FrameName;
use crate::profile::Profile;
use crate::query::Query;
use crate::selection::{Selection, Weight};

/// All calls of a profile: the tree of what called what, with equal paths merged.
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
    /// The calls of `profile` as `query` shows them, with the weights of what `selection` takes.
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

    /// What all samples that count weigh.
    #[must_use]
    pub const fn total(&self) -> i64 {
        self.sums.all
    }

    /// What weights are.
    #[must_use]
    pub const fn weight(&self) -> Weight {
        self.weight
    }

    /// What stands in the row of that number.
    #[must_use]
    pub fn frame(&self, row: usize) -> &Arc<FrameName> {
        &self.frames[row]
    }

    /// How many rows there are; some may have no weight.
    #[must_use]
    pub const fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The row of that name.
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

    /// The samples of which the weights are, by stack and by how long each of them stands for: those of one period after
    /// the other.
    ///
    /// A weight of time is not a number of samples: this takes apart what was multiplied.
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

    /// The rows from the root to a call.
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

    /// The calls that nobody made, of those that weigh something.
    pub(crate) fn roots(&self) -> impl Iterator<Item = CallId> {
        self.weighty(self.paths.siblings(0, self.paths.ids().end))
    }

    /// The calls that a call made, of those that weigh something.
    pub(crate) fn callees(&self, call: CallId) -> impl Iterator<Item = CallId> {
        self.weighty(self.paths.siblings(call + 1, self.paths.end(call)))
    }

    fn weighty(&self, calls: impl Iterator<Item = CallId>) -> impl Iterator<Item = CallId> {
        calls.filter(|&call| self.sums.has_weight[call as usize])
    }
}

/// Samples of one stack that stand for equally long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackSamples {
    /// The rows of the calls, from the root to the leaf.
    pub path: Vec<usize>,
    /// How many samples; their value, of profiles that have values.
    pub sum: i64,
    /// How long each stands for; `None` where that is not known.
    pub period_ns: Option<u64>,
}
