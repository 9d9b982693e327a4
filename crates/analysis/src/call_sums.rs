//! Sample weights by call and by row.

use crate::call_paths::{CallPaths, Summable as _};
use crate::profile::Profile;
use crate::selection::{Selection, Weight};
use crate::tops::TopRow;

/// The weights of the samples of a selection.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallSums {
    /// By call: self weight.
    pub(crate) own: Vec<i64>,
    /// By call: total weight.
    pub(crate) totals: Vec<i64>,
    /// By call: whether it or anything below it has a weight, even if the sum is 0.
    pub(crate) has_weight: Vec<bool>,
    /// The weight of all samples that count.
    pub(crate) all: i64,
}

impl CallSums {
    pub(crate) fn new(paths: &CallPaths, profile: &Profile, selection: &Selection, weight: Weight) -> Self {
        let (mut own, mut has_weight) = (vec![0_i64; paths.len()], vec![false; paths.len()]);
        let mut all = 0_i64;
        profile.each(selection, weight, |pair, _, weight| {
            let Some(call) = paths.of_stack(pair.stack) else { return };
            own[call as usize].add(weight);
            has_weight[call as usize].add(weight != 0);
            all.add(weight);
        });
        Self { totals: paths.totals(&own), has_weight: paths.totals(&has_weight), own, all }
    }

    /// All rows that have a weight, in order of their numbers.
    pub(crate) fn rows(&self, paths: &CallPaths) -> Vec<TopRow> {
        let weighs = paths.by_row(&self.has_weight);
        let sums = paths.by_row(&self.own).into_iter().zip(paths.totals_by_row(&self.totals));
        let rows = sums.enumerate().filter(|&(frame, _)| weighs[frame]);
        rows.map(|(frame, (own, total))| TopRow { frame, own, total }).collect()
    }
}
