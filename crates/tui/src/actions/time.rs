//! The cursor over time, and the selection of a time range.

use borehole_analysis::TimeRange;

use crate::app::App;
use crate::list::CursorStep;
use crate::time::moment;

impl App {
    pub(crate) fn fill_timeline(&mut self) {
        if self.time.timeline.is_none() {
            let timeline =
                self.data.calls.timeline(&self.data.profile, &self.settings.selection, self.focus.frame);
            self.time.timeline = Some(timeline);
        }
    }

    /// Moves the cursor along the time.
    pub(crate) fn go_in_time(&mut self, step: CursorStep) {
        let column = self.time.column;
        self.time.go_to(match step {
            CursorStep::Up => column.saturating_sub(1),
            CursorStep::Down => column + 1,
            CursorStep::PageUp => column.saturating_sub(10),
            CursorStep::PageDown => column + 10,
            CursorStep::Home => 0,
            CursorStep::End => usize::MAX,
        });
    }

    /// Begins a selection at the cursor; the second call ends and applies it.
    pub(crate) fn select_time(&mut self) {
        if self.data.profile.timespan().is_none() || self.time.axis.units == 0 {
            return;
        }
        let range = self.time.being_made();
        if range.is_none() {
            self.time.anchor = Some(self.time.axis.range(self.time.column));
            return self.say("selection started: move the cursor, then Enter selects and Esc cancels");
        }
        self.time.anchor = None;
        self.select_range(range);
    }

    /// Counts only samples of that time range.
    pub(crate) fn select_range(&mut self, range: Option<TimeRange>) {
        self.settings.selection.time = range;
        let timeline = self.time.timeline.take();
        self.reweigh();
        // The views over time show all of it in any case.
        self.time.timeline = timeline;
    }

    /// A time range in words.
    pub(crate) fn range_text(&self, range: TimeRange) -> String {
        format!("{} to {}", self.moment(range.start_ns), self.moment(range.end_ns))
    }

    /// A time since the first sample, in the precision of the profile.
    pub(crate) fn moment(&self, ns: i64) -> String {
        moment(ns, self.data.profile.timespan().map_or(1, |span| span.slice_ns))
    }
}
