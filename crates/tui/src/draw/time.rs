//! Views of samples over time.

use borehole_analysis::{HeatMap, Timeline, TimelineRow, Timespan};
use borehole_text::{KeptEnd, crop, grouped};
use ratatui::layout::Rect;

use crate::app::{App, ScreenPart};
use crate::canvas::{CellCanvas, split_bottom, split_left, split_top};
use crate::groups::value_text;
use crate::theme::TextRole;
use crate::time::{TimeAxis, overlap};

/// The bars of a cell, from none to full.
const BARS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// The text for a profile without timestamps. It fits a body of half a terminal of 80 columns.
const NO_TIME: &str = "this profile has no timestamps";

/// The width of thread names, in columns.
const NAMES: u16 = 16;

impl App {
    pub(super) fn draw_timeline(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let [title, area] = split_top(area, 1);
        canvas.title(title, &self.view_title("timeline by thread"), self.screen.part == ScreenPart::Body);
        let Some(timeline) = self.time.timeline.take().flatten() else {
            canvas.line(area, 1, NO_TIME, canvas.colours.style(TextRole::Dim));
            self.time.timeline = Some(None);
            return;
        };
        let [area, axis] = split_bottom(area, 2);
        let [names, chart] = split_left(area, NAMES.min(area.width / 3));
        self.screen.areas.body = chart;
        let Timespan { start_ns, slice_ns, slices, .. } = timeline.span;
        let columns = usize::from(chart.width);
        self.time.lay_out(TimeAxis { start_ns, unit_ns: slice_ns, units: slices, columns });
        let window = self.time.list.window(timeline.rows.len(), usize::from(area.height));
        let most = self.most(&timeline);
        for (line, row) in (0..).zip(window) {
            let thread = &timeline.rows[row];
            let name = crop(
                &value_text(&thread.thread),
                usize::from(names.width).saturating_sub(1).max(1),
                KeptEnd::Left,
            );
            let role = if row == self.time.list.cursor { TextRole::Focus } else { TextRole::Plain };
            canvas.text(names, (line, 0), &name, canvas.colours.style(role));
            self.draw_thread(canvas, chart, line, (thread, most));
        }
        self.draw_axis(canvas, Rect { x: chart.x, width: chart.width, ..axis }, &timeline);
        self.time.timeline = Some(Some(timeline));
    }

    fn columns(&self, row: &TimelineRow) -> Vec<u64> {
        let sum = |column| -> u64 {
            let slices = self.time.axis.units(column);
            let sum = row.slices[slices].iter().fold(0, |sum: i64, &slice| sum.saturating_add(slice));
            u64::try_from(sum).unwrap_or(0)
        };
        (0..self.time.axis.columns).map(sum).collect()
    }

    /// The heaviest cell.
    fn most(&self, timeline: &Timeline) -> u64 {
        timeline.rows.iter().flat_map(|row| self.columns(row)).max().unwrap_or(0)
    }

    fn draw_thread(
        &self,
        canvas: &mut CellCanvas<'_>,
        area: Rect,
        line: u16,
        (row, most): (&TimelineRow, u64),
    ) {
        for (column, value) in (0..).zip(self.columns(row)) {
            let bar = (u128::from(value) * 8).div_ceil(u128::from(most.max(1)));
            let bar = BARS[usize::try_from(bar).unwrap_or(8).min(8)];
            let role = self.role_at(usize::from(column));
            canvas.text(area, (line, column), bar, canvas.colours.style(role));
        }
    }

    /// The style of a column: the cursor, the selection, or neither.
    fn role_at(&self, column: usize) -> TextRole {
        let time = self.time.axis.range(column);
        let selected = self.settings.selection.time.is_some_and(|selected| overlap(selected, time));
        match self.screen.part == ScreenPart::Body && column == self.time.column {
            true => TextRole::Cursor,
            false if self.time.is_being_made(column) => TextRole::Found,
            false if selected => TextRole::Trace,
            false => TextRole::Number,
        }
    }

    fn draw_axis(&self, canvas: &mut CellCanvas<'_>, area: Rect, timeline: &Timeline) {
        let whole = timeline.span.whole();
        let style = canvas.colours.style(TextRole::Dim);
        let (first, last) = (self.moment(whole.start_ns), self.moment(whole.end_ns));
        canvas.text(area, (0, 0), &first, style);
        let end = area.width.saturating_sub(u16::try_from(last.len()).unwrap_or(u16::MAX));
        canvas.text(area, (0, end), &last, style);
        self.draw_here(canvas, area);
    }

    /// Draws the time under the cursor, below an axis.
    fn draw_here(&self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let here = self.time.axis.range(self.time.column);
        let text = format!("at {} (Enter begins and ends a selection)", self.moment(here.start_ns));
        let text = crop(&text, usize::from(area.width), KeptEnd::Left);
        canvas.text(area, (1, 0), &text, canvas.colours.style(TextRole::Dim));
    }

    /// Draws seconds from left to right and the offset in the second from bottom to top, as many of both as fit.
    pub(super) fn draw_heat_map(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let [title, area] = split_top(area, 1);
        // The map is computed while the profile is read, and holds only the times of samples.
        let columns = match self.data.heat.column_ns / 1_000_000_000 {
            0 | 1 => "second by offset in it".to_owned(),
            seconds => format!("{} seconds by offset in them", grouped(seconds)),
        };
        let samples = match self.data.heat.without_time {
            0 => "all samples".to_owned(),
            count => format!("all samples except {} without timestamps", grouped(count)),
        };
        canvas.title(title, &format!("heat map, {samples}: {columns}"), self.screen.part == ScreenPart::Body);
        let [chart, axis] = split_bottom(area, 2);
        let cells = HeatCells::of(&self.data.heat, chart);
        if cells.columns.is_empty() {
            canvas.line(area, 1, NO_TIME, canvas.colours.style(TextRole::Dim));
            return;
        }
        self.screen.areas.body = chart;
        self.time.lay_out(cells.axis);
        for (column, values) in cells.columns.iter().enumerate() {
            let is_chosen = column == self.time.column || self.time.is_being_made(column);
            let column = u16::try_from(column).unwrap_or(u16::MAX);
            for (line, &value) in (0..).zip(values.iter().rev()) {
                cells.draw(canvas, chart, (line, column), (value, is_chosen));
            }
        }
        self.draw_here(canvas, axis);
    }
}

/// The shades of a cell, from none to full.
const SHADES: [&str; 5] = [" ", "░", "▒", "▓", "█"];

/// A heat map in the cells of a screen.
struct HeatCells {
    /// The times of the columns: never less than one column of the map.
    axis: TimeAxis,
    /// The cells of each column, from the start of a second on.
    columns: Vec<Vec<u64>>,
    most: u64,
}

impl HeatCells {
    fn of(map: &HeatMap, area: Rect) -> Self {
        let units = map.columns();
        let columns = usize::from(area.width).min(units);
        let axis = TimeAxis { start_ns: map.start_ns, unit_ns: map.column_ns, units, columns };
        let down = usize::from(area.height).min(map.rows);
        let cells = |column| {
            let mut cells = vec![0_u64; down];
            for place in if down > 0 { axis.units(column) } else { 0..0 } {
                for (row, &count) in map.column(place).iter().enumerate() {
                    let sum = &mut cells[row * down / map.rows];
                    *sum = sum.saturating_add(count);
                }
            }
            cells
        };
        let columns: Vec<Vec<u64>> = (0..columns).map(cells).collect();
        let most = columns.iter().flatten().copied().max().unwrap_or(0);
        Self { axis, columns, most }
    }

    fn draw(&self, canvas: &mut CellCanvas<'_>, area: Rect, at: (u16, u16), (value, is_chosen): (u64, bool)) {
        let share = u128::from(value) * 255 / u128::from(self.most.max(1));
        let share = u8::try_from(share).unwrap_or(u8::MAX);
        let shade = usize::from(share).div_ceil(64).max(usize::from(value > 0)).min(4);
        let (mark, style) = match (value, is_chosen) {
            (0, true) => ("·", canvas.colours.style(TextRole::Trace)),
            (0, false) => (" ", canvas.colours.style(TextRole::Plain)),
            _ => (SHADES[shade], canvas.colours.heat(share)),
        };
        canvas.text(area, at, mark, style);
    }
}

impl App {
    /// Moves the cursor to a column of the screen, or to the last one that has a time. Returns whether it was there already.
    pub(crate) fn click_in_time(&mut self, column: usize) -> bool {
        let before = self.time.column;
        self.time.go_to(column.saturating_sub(usize::from(self.screen.areas.body.x)));
        self.time.column == before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_the_heat_map_is_of_the_time_that_it_selects() {
        const ALL: usize = 10;
        for across in 1..=12 {
            for place in 0..ALL {
                let mut samples = vec![0; ALL];
                samples[place] = 1;
                let column_ns = 1_000_000_000;
                let map = HeatMap { start_ns: -5, column_ns, rows: 1, samples, without_time: 0 };
                let cells = HeatCells::of(&map, Rect::new(0, 0, across, 4));
                let column = cells.columns.iter().position(|values| values == &[1]).unwrap();
                let time = cells.axis.range(column);
                let start_ns = i64::try_from(place).unwrap() * 1_000_000_000 - 5;
                assert!(
                    time.start_ns <= start_ns && start_ns + 1_000_000_000 <= time.end_ns,
                    "{place} {across}"
                );
            }
        }
    }
}
