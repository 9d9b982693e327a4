//! What the samples of a profile weigh, by call and by row.

use crate::call_paths::{CallPaths, Summable as _};
use crate::profile::Profile;
use crate::selection::{Selection, Weight};
use crate::tops::TopRow;

/// What the samples of a selection weigh.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallSums {
    /// By call: what the samples weigh that were executing it.
    pub(crate) own: Vec<i64>,
    /// By call: what the samples weigh of it and of all below it.
    pub(crate) totals: Vec<i64>,
    /// By call: whether anything of it or below it weighs something, even if its sum is 0.
    pub(crate) has_weight: Vec<bool>,
    /// What all samples that count weigh.
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

    /// All rows that weigh something, in their order.
    pub(crate) fn rows(&self, paths: &CallPaths) -> Vec<TopRow> {
        let weighs = paths.by_row(&self.has_weight);
        let sums = paths.by_row(&self.own).into_iter().zip(paths.totals_by_row(&self.totals));
        let rows = sums.enumerate().filter(|&(frame, _)| weighs[frame]);
        rows.map(|(frame, (own, total))| TopRow { frame, own, total }).collect()
    }
}
