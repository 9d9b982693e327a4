//! Samples over time, a lane for each thread.

use std::cmp::Reverse;

use hashbrown::HashMap;

use crate::calls::{CallId, Calls};
use crate::profile::situations::SituationId;
use crate::profile::{Profile, Timespan};
use crate::selection::Selection;
use crate::view::GroupValue;

/// Samples over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Lanes {
    /// The time that the slices cover.
    pub span: Timespan,
    /// The threads, the heaviest first.
    pub rows: Vec<Lane>,
}

/// The samples of a thread over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// The thread.
    pub thread: GroupValue,
    /// What all its samples weigh.
    pub total: u64,
    /// What those of each slice weigh.
    pub slices: Vec<u64>,
}

impl Calls {
    /// The samples that count over all of the time, by thread; with a frame, those that have it on their stack. The
    /// selection's time is left aside. `None` where the time of samples is not known.
    #[must_use]
    pub fn lanes(&self, profile: &Profile, selection: &Selection, frame: Option<usize>) -> Option<Lanes> {
        let span = profile.timespan()?;
        let selection = Selection { time: Some(span.whole()), ..selection.clone() };
        let with_frame = frame.map(|frame| self.at_or_below(frame));
        let first = span.start_ns >> span.slice_ns.trailing_zeros();
        let mut rows: Vec<Lane> = Vec::new();
        let mut of_situation: HashMap<SituationId, usize> = HashMap::new();
        profile.each(&selection, self.weight(), |pair, slice, weight| {
            let Some(call) = self.call_of(pair.stack) else { return };
            if with_frame.as_ref().is_some_and(|with_frame| !with_frame[call as usize]) {
                return;
            }
            let row = *of_situation.entry(pair.situation).or_insert_with(|| {
                let thread = profile.thread_of(profile.situations.get(pair.situation));
                rows.iter().position(|row| row.thread == thread).unwrap_or_else(|| {
                    rows.push(Lane { thread, total: 0, slices: vec![0; span.slices] });
                    rows.len() - 1
                })
            });
            let place = slice.and_then(|slice| usize::try_from(slice - first).ok());
            let lane = &mut rows[row];
            lane.total = lane.total.saturating_add(weight);
            if let Some(sum) = place.and_then(|place| lane.slices.get_mut(place)) {
                *sum = sum.saturating_add(weight);
            }
        });
        rows.sort_by_key(|row| Reverse(row.total));
        Some(Lanes { span, rows })
    }

    /// By call: whether a frame is on its stack.
    fn at_or_below(&self, frame: usize) -> Vec<bool> {
        let mut found = vec![false; self.len()];
        let mut end = 0;
        for (call, found) in (0..CallId::try_from(self.len()).unwrap_or(CallId::MAX)).zip(&mut found) {
            if call >= end && self.row(call) == frame {
                end = self.end(call);
            }
            *found = call < end;
        }
        found
    }
}
