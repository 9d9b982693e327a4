//! Samples over time, one row for each lane: a thread and, if there are several, an interpreter.

use std::cmp::Reverse;

use hashbrown::{HashMap, HashSet};

use crate::calls::Calls;
use crate::profile::situations::SituationId;
use crate::profile::slices::Pair;
use crate::profile::{Profile, Timespan};
use crate::selection::{SampleSelection, Weight};
use crate::view::GroupValue;

/// Samples of threads over time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeline {
    /// The covered time; its slices are those of each row.
    pub span: Timespan,
    /// The threads, heaviest first.
    pub rows: Vec<TimelineRow>,
}

/// A thread over time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimelineRow {
    /// The thread.
    pub thread: GroupValue,
    /// The interpreter; `None` unless the profile has several.
    pub interpreter: Option<u64>,
    /// The weight of its samples that have a timestamp.
    pub weight: i64,
    /// The weight in each slice.
    pub slices: Vec<i64>,
}

impl Timeline {
    /// Joins slices so that at most `most` remain. The number joined into each is a power of two.
    #[must_use]
    pub fn joined(mut self, most: usize) -> Self {
        let joined = self.span.join(most);
        for row in &mut self.rows {
            let sum = |slices: &[i64]| slices.iter().copied().fold(0, i64::saturating_add);
            row.slices = row.slices.chunks(joined).map(sum).collect();
        }
        self
    }
}

/// The maximum number of slices of all threads together. With thousands of threads, each has fewer and wider slices.
const MOST_SLICES: usize = 1 << 22;

impl Profile {
    fn thread_count(&self) -> usize {
        let threads = self.situations.iter().map(|at| (at.source, at.process, at.thread, at.interpreter));
        threads.collect::<HashSet<_>>().len()
    }

    /// The samples of a selection over time; `None` if no sample has a timestamp.
    #[must_use]
    pub fn timeline(&self, selection: &SampleSelection, weight: Weight) -> Option<Timeline> {
        let time = selection.time.or_else(|| Some(self.timespan()?.whole()));
        self.lay_out(&SampleSelection { time, ..selection.clone() }, weight, |_| true)
    }

    /// The samples of a selection with a time range that pass `counts`, over the whole time of the profile.
    fn lay_out(
        &self,
        selection: &SampleSelection,
        weight: Weight,
        counts: impl Fn(&Pair) -> bool,
    ) -> Option<Timeline> {
        let whole = self.timespan()?;
        let mut span = whole;
        let joined = span.join(MOST_SLICES / self.thread_count().max(1));
        let mut rows: Vec<TimelineRow> = Vec::new();
        let mut of_situation: HashMap<SituationId, usize> = HashMap::new();
        let mut of_lane: HashMap<(GroupValue, Option<u64>), usize> = HashMap::new();
        let has_interpreters = self.has_interpreters();
        self.each(selection, weight, |pair, slice, weight| {
            let Some(place) = slice.and_then(|slice| whole.place(slice)).filter(|_| counts(pair)) else {
                return;
            };
            let row = *of_situation.entry(pair.situation).or_insert_with(|| {
                let situation = self.situations.get(pair.situation);
                let interpreter = situation.interpreter.filter(|_| has_interpreters);
                let lane = (self.thread_of(situation), interpreter);
                *of_lane.entry(lane).or_insert_with_key(|(thread, interpreter)| {
                    let (thread, interpreter) = (thread.clone(), *interpreter);
                    rows.push(TimelineRow { thread, interpreter, weight: 0, slices: vec![0; span.slices] });
                    rows.len() - 1
                })
            });
            let TimelineRow { weight: sum, slices, .. } = &mut rows[row];
            for sum in [sum, &mut slices[place / joined]] {
                *sum = sum.saturating_add(weight);
            }
        });
        rows.sort_by_key(|row| Reverse(row.weight));
        Some(Timeline { span, rows })
    }
}

impl Calls {
    /// The samples that count over the whole time, by thread; with a frame, only those that have it on their stack.
    ///
    /// The selection's time range is ignored. `None` if no sample has a timestamp.
    #[must_use]
    pub fn timeline(
        &self,
        profile: &Profile,
        selection: &SampleSelection,
        frame: Option<usize>,
    ) -> Option<Timeline> {
        let selection = SampleSelection { time: Some(profile.timespan()?.whole()), ..selection.clone() };
        let with_frame = frame.map(|frame| self.at_or_below(frame));
        profile.lay_out(&selection, self.weight(), |pair| {
            let call = self.paths.of_stack(pair.stack);
            call.is_some_and(|call| with_frame.as_ref().is_none_or(|with_frame| with_frame[call as usize]))
        })
    }

    /// By call: whether a frame is on its stack.
    fn at_or_below(&self, frame: usize) -> Vec<bool> {
        let paths = &self.paths;
        let mut found = vec![false; paths.len()];
        let mut end = 0;
        for (call, found) in paths.ids().zip(&mut found) {
            if call >= end && self.paths.row(call) == frame {
                end = paths.end(call);
            }
            *found = call < end;
        }
        found
    }
}
