//! The views over time, in which a stretch of time is selected.

use borehole_analysis::{TimeRange, Timeline};

use crate::amount::time;
use crate::app::{App, View};
use crate::list::{List, Step};

/// The state of the views over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeViews {
    /// What was counted; the inner `None` says that the time of samples is not known.
    pub(crate) timeline: Option<Option<Timeline>>,
    pub(crate) list: List,
    /// The column of the cursor.
    pub(crate) column: usize,
    /// The column at which the selection begins that is being made.
    pub(crate) anchor: Option<usize>,
    /// How many columns there were.
    pub(crate) columns: usize,
}

impl TimeViews {
    /// What was counted does not hold any more.
    pub(crate) fn forget(&mut self) {
        self.timeline = None;
    }

    /// The slices that a column of the screen stands for.
    pub(crate) fn slices(&self, column: usize, slices: usize) -> std::ops::Range<usize> {
        let columns = self.columns.max(1);
        let start = column * slices / columns;
        start..((column + 1) * slices / columns).max(start + 1).min(slices)
    }
}

impl App {
    pub(crate) fn fill_timeline(&mut self) {
        if self.time.timeline.is_none() {
            let timeline = self.calls.timeline(&self.profile, &self.settings.selection, self.focus.frame);
            self.time.timeline = Some(timeline);
        }
    }

    /// Moves the cursor along the time.
    pub(crate) fn go_in_time(&mut self, step: Step) {
        let last = self.time.columns.saturating_sub(1);
        let column = self.time.column;
        self.time.column = match step {
            Step::Up => column.saturating_sub(1),
            Step::Down => (column + 1).min(last),
            Step::PageUp => column.saturating_sub(10),
            Step::PageDown => (column + 10).min(last),
            Step::Home => 0,
            Step::End => last,
        };
    }

    /// The first time begins a selection at the cursor, the second ends it and applies it.
    pub(crate) fn select_time(&mut self) {
        if self.profile.timespan().is_none() {
            return;
        }
        let Some(anchor) = self.time.anchor.take() else {
            self.time.anchor = Some(self.time.column);
            return self.say("selection begun: move, and Enter ends it, Esc drops it");
        };
        let (first, last) = (anchor.min(self.time.column), anchor.max(self.time.column));
        let range = match self.view {
            View::HeatMap => self.heat_range(first, last),
            _ => self.timeline_range(first, last),
        };
        self.select_range(Some(range));
    }

    /// The time of some columns of the timeline.
    pub(crate) fn timeline_range(&self, first: usize, last: usize) -> TimeRange {
        let span = self.profile.timespan();
        let slices = span.map_or(0, |span| span.slices);
        let start = self.time.slices(first, slices).start;
        let end = self.time.slices(last, slices).end.max(start + 1);
        span.map_or(TimeRange { start_ns: 0, end_ns: 0 }, |span| span.range(start..=end - 1))
    }

    /// Counts only samples of that time.
    pub(crate) fn select_range(&mut self, range: Option<TimeRange>) {
        self.settings.selection.time = range;
        let timeline = self.time.timeline.take();
        self.reweigh();
        // They show all of the time in any case.
        self.time.timeline = timeline;
    }
}

/// A stretch of time in words.
pub(crate) fn range_text(range: TimeRange) -> String {
    format!("{} to {}", moment(range.start_ns), moment(range.end_ns))
}

/// A time since the first sample.
pub(crate) fn moment(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", time(ns.unsigned_abs()))
}
