//! How many samples each thread has over time.

use crate::profile::Profile;
use crate::profile::Timespan;
use crate::selection::{Selection, Weight};
use crate::view::GroupValue;

/// Samples of threads over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The time, in as many slices as each row has numbers.
    pub span: Timespan,
    /// The threads, those with the most samples first.
    pub rows: Vec<TimelineRow>,
}

/// A thread over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineRow {
    /// The thread.
    pub thread: GroupValue,
    /// Its samples that say when they were taken.
    pub samples: u64,
    /// Those of each slice.
    pub slices: Vec<u64>,
}

impl Profile {
    /// The timeline of what a selection takes, in at most `most` slices; `None` where no sample says when it was taken.
    #[must_use]
    pub fn timeline(&self, selection: &Selection, most: usize) -> Option<Timeline> {
        let whole = self.timespan()?;
        let joined = whole.slices.div_ceil(most.max(1)).next_power_of_two();
        let span = Timespan {
            slice_ns: whole.slice_ns.saturating_mul(joined as u64),
            slices: whole.slices.div_ceil(joined),
            ..whole
        };
        let selection = Selection { time: selection.time.or(Some(whole.whole())), ..selection.clone() };
        let first = whole.start_ns.div_euclid(i64::try_from(whole.slice_ns).unwrap_or(i64::MAX));
        let mut rows: Vec<TimelineRow> = Vec::new();
        let mut row_of: Vec<Option<usize>> = vec![None; self.situations.iter().count()];
        self.each(&selection, Weight::Samples, |pair, slice, count| {
            let situation = pair.situation as usize;
            let row = *row_of[situation].get_or_insert_with(|| {
                let thread = self.thread_of(self.situations.get(pair.situation));
                rows.iter().position(|row| row.thread == thread).unwrap_or_else(|| {
                    rows.push(TimelineRow { thread, samples: 0, slices: vec![0; span.slices] });
                    rows.len() - 1
                })
            });
            let place = slice.and_then(|slice| usize::try_from(slice - first).ok());
            if let Some(sum) = place.and_then(|place| rows[row].slices.get_mut(place / joined)) {
                *sum = sum.saturating_add(count);
                rows[row].samples = rows[row].samples.saturating_add(count);
            }
        });
        rows.sort_by_key(|row| std::cmp::Reverse(row.samples));
        Some(Timeline { span, rows })
    }
}
