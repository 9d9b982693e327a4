//! Drawing of the screen of the explorer of Tokio traces.

use borehole_analysis::tokio::TokioPage;
use borehole_text::{KeptEnd, counted, crop, duration, percent, percent_of};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::lanes::{LaneCell, columns};
use super::rows::{moment_text, poll_facts};
use super::{TokioAction, TokioApp, TokioAreas, TokioList, TokioPane};
use crate::canvas::{CellCanvas, split_bottom, split_left, split_top};
use crate::screen::{Explorer, ScreenCells};
use crate::theme::TextRole;

/// The columns of the labels of lanes.
const LABEL: u16 = 17;

/// Shares of a cell, from nothing to all of it.
const LEVELS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// The length from which on a poll is slow, long and critical; as on the page.
const SLOW_NS: u64 = 1_000_000;
const LONG_NS: u64 = 10_000_000;
const CRITICAL_NS: u64 = 50_000_000;

impl Explorer for TokioApp {
    fn draw(&mut self, ScreenCells(buffer): ScreenCells<'_>) {
        let area = buffer.area;
        let Some(mut canvas) = CellCanvas::of_screen(buffer, self.settings.colours) else { return };
        let [header, rest] = split_top(area, 1);
        let [rest, footer] = split_bottom(rest, 1);
        let [rest, status] = split_bottom(rest, 1);
        canvas.header(header, &self.settings.title, &self.facts());
        self.areas = TokioAreas::default();
        if self.controls.shows_help {
            self.controls.draw_help(&mut canvas, rest, &self.settings.keymap.help());
        } else {
            self.draw_panes(&mut canvas, rest);
        }
        let columns = usize::from(status.width);
        let text = self.controls.status(columns, |_| "filter rows").unwrap_or_else(|| self.cursor_facts());
        canvas.line(status, 0, &crop(&text, columns, KeptEnd::Left), canvas.colours.style(TextRole::Plain));
        self.draw_footer(&mut canvas, footer);
    }
}

impl TokioApp {
    /// The number of lanes: the workers, the global queues and the tasks alive.
    pub(super) fn lane_count(&self) -> usize {
        self.page().lanes.len() + self.series().len()
    }

    /// The series below the workers, by name.
    fn series(&self) -> Vec<(&'static str, &[i64])> {
        let page = self.page();
        let series = [("global queue", &page.queue[..]), ("tasks alive", &page.alive[..])];
        series.into_iter().filter(|(_, values)| !values.is_empty()).collect()
    }

    fn facts(&self) -> Vec<String> {
        let page = self.page();
        let mut facts = vec![
            duration(u64::try_from(page.end_ns).unwrap_or(0)),
            counted(page.counts.workers.0, "worker"),
            counted(page.counts.polls.0, "poll"),
            counted(page.flags.len() as u64, "flag"),
        ];
        if self.pages.len() > 1 {
            facts.push(format!("program {} of {}", self.shown + 1, self.pages.len()));
        }
        if !self.filter.is_empty() {
            facts.push(format!("/{}", borehole_text::printable(self.filter.as_bytes())));
        }
        facts
    }

    fn draw_footer(&self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let keys = [
            (TokioAction::Quit, "quit"),
            (TokioAction::Help, "help"),
            (TokioAction::NextPane, "pane"),
            (TokioAction::Focus, "go"),
            (TokioAction::ZoomIn, "in"),
            (TokioAction::ZoomOut, "out"),
            (TokioAction::ZoomAll, "all"),
            (TokioAction::NextFlag, "next flag"),
            (TokioAction::Flags, "flags"),
            (TokioAction::Polls, "polls"),
            (TokioAction::Tasks, "tasks"),
            (TokioAction::Spans, "spans"),
            (TokioAction::Samples, "samples"),
        ];
        let text = self.settings.keymap.footer(&keys, usize::from(area.width));
        canvas.line(area, 0, &text, canvas.colours.style(TextRole::Bar));
    }

    fn draw_panes(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let wanted = u16::try_from(self.lane_count()).unwrap_or(u16::MAX).saturating_add(1);
        let [lanes, list] = split_top(area, wanted.min((area.height / 2).max(3)));
        self.draw_lanes(canvas, lanes);
        self.draw_list(canvas, list);
    }

    fn draw_lanes(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let [ruler, area] = split_top(area, 1);
        let range = self.range;
        let length = duration(u64::try_from(range.length_ns()).unwrap_or(0));
        let text = format!("{length} from {} to {}", moment_text(range.start_ns), moment_text(range.end_ns));
        canvas.title(ruler, &text, self.pane == TokioPane::Lanes);
        let [labels, cells] = split_left(area, LABEL);
        self.areas.lanes = cells;
        let count = self.lane_count();
        for (line, lane) in (0..).zip(self.lanes.window(count, usize::from(area.height))) {
            let is_chosen = lane == self.lanes.cursor;
            let role =
                if is_chosen { TextRole::of_cursor(self.pane == TokioPane::Lanes) } else { TextRole::Dim };
            canvas.line(labels, line, &self.lane_label(lane), canvas.colours.style(role));
            self.draw_lane(canvas, cells, (line, lane));
        }
    }

    fn lane_label(&self, lane: usize) -> String {
        let page = self.page();
        let Some(worker) = page.lanes.get(lane) else {
            let series = self.series();
            return format!(" {}", series.get(lane - page.lanes.len()).map_or("", |series| series.0));
        };
        let columns = columns(page.grid, self.range);
        let busy: u64 = worker.busy_ns.get(columns.clone()).unwrap_or_default().iter().sum();
        let all = (columns.len() as u64).saturating_mul(page.grid.column_ns).max(1);
        format!(" worker {:<3}{:>5}", worker.worker, percent(percent_of(busy.min(all), all)))
    }

    fn draw_lane(&self, canvas: &mut CellCanvas<'_>, area: Rect, (line, lane): (u16, usize)) {
        let page = self.page();
        let cells = usize::from(area.width);
        let series = self.series();
        let values =
            lane.checked_sub(page.lanes.len()).and_then(|row| series.get(row)).map(|series| series.1);
        let most = values.and_then(|values| values.iter().max()).copied().unwrap_or(0);
        let cursor = self.range.cell_of(self.cursor_ns, cells);
        for cell in 0..cells {
            let range = self.range.cell(cell, cells);
            let (text, style) = match values {
                Some(values) => {
                    let value = values.get(columns(page.grid, range)).and_then(|cell| cell.iter().max());
                    (level_of(value.copied().unwrap_or(0), most), canvas.colours.style(TextRole::Number))
                }
                None => poll_cell(canvas, page, LaneCell::of(page, lane, range, &self.polls)),
            };
            let is_cursor = Some(cell) == cursor;
            let style = if is_cursor { style.add_modifier(Modifier::REVERSED) } else { style };
            let column = u16::try_from(cell).unwrap_or(u16::MAX);
            canvas.text(area, (line, column), text, style);
        }
    }

    fn draw_list(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let [title, rest] = split_top(area, 1);
        let has_cursor = self.pane == TokioPane::List;
        canvas.title(title, &self.list_title(), has_cursor);
        let [heading, rest] = split_top(rest, 1);
        canvas.line(heading, 0, self.heading(), canvas.colours.style(TextRole::Dim));
        self.areas.list = rest;
        let mut list = self.list;
        canvas.rows(rest, (&mut list, self.rows.len()), has_cursor, |place| {
            let text = self.rows.get(place).map_or_else(String::new, |&row| self.row_text(row));
            (crop(&text, usize::from(rest.width), KeptEnd::Left), TextRole::Plain)
        });
        self.list = list;
        if self.rows.is_empty() {
            canvas.line(rest, 0, "  no rows", canvas.colours.style(TextRole::Dim));
        }
    }

    fn list_title(&self) -> String {
        let counts = self.page().counts;
        let (shown, of) = (self.rows.len() as u64, self.row_count() as u64);
        let (name, all) = match self.kind {
            TokioList::Flags => ("flags", of),
            TokioList::Polls => ("longest polls", counts.polls.0),
            TokioList::Tasks => ("tasks", counts.tasks.0),
            TokioList::Spans => ("longest spans", counts.spans.0),
        };
        let shown = borehole_text::grouped(shown);
        if self.rows.len() as u64 == all {
            format!("{name} · {shown}")
        } else {
            format!("{name} · {shown} of {}", borehole_text::grouped(all))
        }
    }

    /// The facts about the moment under the cursor, in one line.
    pub(super) fn cursor_facts(&self) -> String {
        let page = self.page();
        let Some(worker) = page.lanes.get(self.lanes.cursor) else { return self.series_facts() };
        match self.poll_under_cursor() {
            Some(poll) => format!("worker {}: {}", worker.worker, poll_facts(page, poll)),
            None => format!("worker {} at {}: no poll", worker.worker, moment_text(self.cursor_ns)),
        }
    }

    fn series_facts(&self) -> String {
        let series = self.series();
        let row = self.lanes.cursor.saturating_sub(self.page().lanes.len());
        let Some((name, values)) = series.get(row) else { return String::new() };
        let cells = usize::from(self.areas.lanes.width.max(1));
        let cell = self.range.cell_of(self.cursor_ns, cells).unwrap_or(0);
        let values = values.get(columns(self.page().grid, self.range.cell(cell, cells)));
        let most = values.and_then(|values| values.iter().max()).copied().unwrap_or(0);
        format!("{name} at {}: at most {most}", moment_text(self.cursor_ns))
    }
}

/// A cell of a worker: as high as it was busy, coloured by the longest poll.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a cell")]
fn poll_cell(canvas: &CellCanvas<'_>, page: &TokioPage, cell: LaneCell) -> (&'static str, Style) {
    let level = ((cell.busy * 8.0).ceil() as usize).min(8);
    if level == 0 {
        let text = if cell.is_parked { "·" } else { " " };
        return (text, canvas.colours.style(TextRole::Dim));
    }
    let longest_ns = cell.poll.and_then(|poll| page.polls.duration_ns.get(poll)).copied().unwrap_or(0);
    let role = match longest_ns {
        ..SLOW_NS => TextRole::Number,
        SLOW_NS..LONG_NS => TextRole::Plain,
        LONG_NS..CRITICAL_NS => TextRole::Focus,
        CRITICAL_NS.. => TextRole::Grown,
    };
    (LEVELS[level], canvas.colours.style(role))
}

/// The height of a value among values of at most `most`.
fn level_of(value: i64, most: i64) -> &'static str {
    if value <= 0 || most <= 0 {
        return LEVELS[0];
    }
    let level = (i128::from(value) * 8 + i128::from(most) - 1) / i128::from(most);
    LEVELS[usize::try_from(level).unwrap_or(8).min(8)]
}
