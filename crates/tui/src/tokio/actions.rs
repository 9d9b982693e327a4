//! Handling of keys and the mouse in the explorer of Tokio traces.

use super::lanes::{LaneCell, TimeRange, extent};
use super::rows::{Moment, flag_moment};
use super::{TokioAction, TokioApp, TokioList, TokioPane, TokioPrompt};
use crate::controls::{Request, step_of};
use crate::host::Clipboard;
use crate::input::{Button, TerminalInput};
use crate::list::{CursorStep, LINES_OF_WHEEL};

/// How many times the length of what a row leads to is shown.
const AROUND: i64 = 8;

/// The time shown around a moment without a length.
const AROUND_NS: i64 = 50_000_000;

impl TokioApp {
    /// Handles an input.
    pub fn handle(&mut self, input: &TerminalInput, clipboard: &mut dyn Clipboard) {
        match self.controls.take(input, &self.settings.keymap) {
            Some(Request::Act(action)) => self.act(action, clipboard),
            Some(Request::Typed(prompt, typed)) => {
                self.filter = prompt.filter(typed);
                self.list.cursor = 0;
                self.filter_rows();
            }
            Some(Request::Point(button, column, row)) => self.point(button, column, row),
            None => {}
        }
    }

    fn act(&mut self, action: TokioAction, clipboard: &mut dyn Clipboard) {
        match action {
            TokioAction::Left => self.move_cursor(-1),
            TokioAction::Right => self.move_cursor(1),
            TokioAction::NextPane => {
                self.pane = if self.pane == TokioPane::Lanes { TokioPane::List } else { TokioPane::Lanes };
            }
            TokioAction::Focus => self.focus(),
            TokioAction::Undo => match self.history.pop() {
                Some(range) => self.range = range,
                None => self.controls.say("nothing to go back to"),
            },
            TokioAction::ZoomIn => self.zoom(self.range.length_ns() / 2),
            TokioAction::ZoomOut => self.zoom(self.range.length_ns().saturating_mul(2)),
            TokioAction::ZoomAll => self.show_range(TimeRange::of(self.page())),
            TokioAction::NextFlag => self.visit_flag(true),
            TokioAction::PreviousFlag => self.visit_flag(false),
            TokioAction::Flags => self.look_at(TokioList::Flags),
            TokioAction::Polls => self.look_at(TokioList::Polls),
            TokioAction::Tasks => self.look_at(TokioList::Tasks),
            TokioAction::Spans => self.look_at(TokioList::Spans),
            TokioAction::Filter => self.controls.ask(TokioPrompt::Filter, self.filter.clone()),
            TokioAction::NextProgram => self.next_program(),
            TokioAction::Samples if self.settings.has_samples => self.wants_samples = true,
            TokioAction::Samples => self.controls.say("the trace has no samples"),
            TokioAction::Copy => self.copy(clipboard),
            TokioAction::Clear => {
                self.filter.clear();
                self.filter_rows();
            }
            _ => step_of(action).into_iter().for_each(|step| self.go(step)),
        }
    }

    fn look_at(&mut self, kind: TokioList) {
        self.show_list(kind);
        self.pane = TokioPane::List;
    }

    fn next_program(&mut self) {
        if self.pages.len() < 2 {
            return self.controls.say("the trace has one program");
        }
        self.show_program((self.shown + 1) % self.pages.len());
    }

    fn go(&mut self, step: CursorStep) {
        let screen = i64::from(self.areas.lanes.width.max(1));
        match (self.pane, step) {
            (TokioPane::List, _) => self.list.go(step, self.rows.len()),
            (TokioPane::Lanes, CursorStep::Up | CursorStep::Down) => self.lanes.go(step, self.lane_count()),
            (TokioPane::Lanes, CursorStep::PageUp) => self.move_cursor(-screen),
            (TokioPane::Lanes, CursorStep::PageDown) => self.move_cursor(screen),
            (TokioPane::Lanes, CursorStep::Home) => self.go_to(0),
            (TokioPane::Lanes, CursorStep::End) => self.go_to(self.page().end_ns),
        }
    }

    /// Moves the cursor by so many cells.
    fn move_cursor(&mut self, cells: i64) {
        let cell_ns = (self.range.length_ns() / i64::from(self.areas.lanes.width.max(1))).max(1);
        self.go_to(self.cursor_ns.saturating_add(cells.saturating_mul(cell_ns)));
    }

    /// Moves the cursor to a time, and the range with it where it would leave it.
    fn go_to(&mut self, time_ns: i64) {
        let all = TimeRange::of(self.page());
        self.cursor_ns = time_ns.clamp(all.start_ns, all.end_ns - 1);
        let length_ns = self.range.length_ns();
        let (before_ns, after_ns) =
            (self.range.start_ns - self.cursor_ns, self.cursor_ns - self.range.end_ns);
        let by_ns = if before_ns > 0 { -before_ns } else { (after_ns + 1).max(0) };
        let start_ns = (self.range.start_ns + by_ns).clamp(0, all.end_ns - length_ns);
        self.range = TimeRange { start_ns, end_ns: start_ns + length_ns };
    }

    fn zoom(&mut self, length_ns: i64) {
        self.show_range(TimeRange::around(self.cursor_ns, length_ns, TimeRange::of(self.page())));
    }

    fn show_range(&mut self, range: TimeRange) {
        if range != self.range {
            self.history.push(std::mem::replace(&mut self.range, range));
        }
    }

    /// Leads to the moment of the row, or to the poll under the cursor.
    fn focus(&mut self) {
        if self.pane == TokioPane::Lanes {
            match self.poll_under_cursor() {
                Some(poll) => {
                    let extent = extent(self.page(), poll);
                    let duration_ns = u64::try_from(extent.length_ns()).unwrap_or(0);
                    self.visit(Moment { time_ns: extent.start_ns, duration_ns, worker: None });
                }
                None => self.controls.say("no poll under the cursor"),
            }
            return;
        }
        let row = self.rows.get(self.list.cursor).copied();
        match row.and_then(|row| self.moment(row)) {
            Some(moment) => {
                self.flag = row.filter(|_| self.kind == TokioList::Flags).or(self.flag);
                self.visit(moment);
                self.pane = TokioPane::Lanes;
            }
            None => self.controls.say("the row has no moment"),
        }
    }

    fn visit(&mut self, moment: Moment) {
        let length_ns = i64::try_from(moment.duration_ns).unwrap_or(i64::MAX).saturating_mul(AROUND);
        let length_ns = if moment.duration_ns == 0 { AROUND_NS } else { length_ns };
        let center_ns = moment.time_ns.saturating_add_unsigned(moment.duration_ns / 2);
        self.show_range(TimeRange::around(center_ns, length_ns, TimeRange::of(self.page())));
        self.cursor_ns = center_ns.clamp(self.range.start_ns, self.range.end_ns - 1);
        let lane = |worker| self.page().lanes.iter().position(|lane| lane.worker == worker);
        if let Some(lane) = moment.worker.and_then(lane) {
            self.lanes.cursor = lane;
        }
    }

    fn visit_flag(&mut self, forward: bool) {
        let count = self.page().flags.len();
        let Some(last) = count.checked_sub(1) else { return self.controls.say("the trace has no flags") };
        let flag = match (self.flag, forward) {
            (None, true) => 0,
            (None, false) => last,
            (Some(flag), true) => (flag + 1) % count,
            (Some(flag), false) => flag.checked_sub(1).unwrap_or(last),
        };
        self.flag = Some(flag);
        if self.kind == TokioList::Flags {
            self.list.cursor = self.rows.iter().position(|&row| row == flag).unwrap_or(self.list.cursor);
        }
        match flag_moment(self.page(), flag) {
            Some(moment) => self.visit(moment),
            None => self.controls.say("the flag has no moment"),
        }
        let evidence = self.page().flags[flag].evidence.clone();
        self.controls.say(format!("{} of {count}: {evidence}", flag + 1));
    }

    /// The poll of the chosen lane under the cursor, or else the longest one in its cell.
    pub(super) fn poll_under_cursor(&self) -> Option<usize> {
        let moment = TimeRange { start_ns: self.cursor_ns, end_ns: self.cursor_ns + 1 };
        let running = self.polls.longest(self.page(), self.lanes.cursor, moment);
        if running.is_some() {
            return running;
        }
        let cells = usize::from(self.areas.lanes.width.max(1));
        let cell = self.range.cell_of(self.cursor_ns, cells)?;
        LaneCell::of(self.page(), self.lanes.cursor, self.range.cell(cell, cells), &self.polls).poll
    }

    fn copy(&mut self, clipboard: &mut dyn Clipboard) {
        let text = match self.pane {
            TokioPane::Lanes => self.cursor_facts(),
            TokioPane::List => {
                self.rows.get(self.list.cursor).map_or_else(String::new, |&row| self.row_text(row))
            }
        };
        let text = text.trim();
        if text.is_empty() {
            return self.controls.say("nothing to copy");
        }
        clipboard.copy(text);
        self.controls.say(format!("copied {text}"));
    }

    fn point(&mut self, button: Button, column: u16, row: u16) {
        let at = (column, row).into();
        if self.areas.lanes.contains(at) {
            self.pane = TokioPane::Lanes;
            let cells = usize::from(self.areas.lanes.width);
            let cell = self.range.cell(usize::from(column - self.areas.lanes.x), cells);
            self.cursor_ns = cell.start_ns;
            match button {
                Button::WheelUp => self.zoom(self.range.length_ns() / 2),
                Button::WheelDown => self.zoom(self.range.length_ns().saturating_mul(2)),
                Button::Press => {
                    let line = usize::from(row - self.areas.lanes.y);
                    self.lanes.cursor =
                        self.lanes.at_line(line, self.lane_count()).unwrap_or(self.lanes.cursor);
                }
            }
        } else if self.areas.list.contains(at) {
            self.pane = TokioPane::List;
            match button {
                Button::WheelUp => (0..LINES_OF_WHEEL).for_each(|_| self.go(CursorStep::Up)),
                Button::WheelDown => (0..LINES_OF_WHEEL).for_each(|_| self.go(CursorStep::Down)),
                Button::Press => {
                    match self.list.at_line(usize::from(row - self.areas.list.y), self.rows.len()) {
                        Some(row) if row == self.list.cursor => self.focus(),
                        Some(row) => self.list.cursor = row,
                        None => {}
                    }
                }
            }
        }
    }
}
