//! The flame graph of the focus, and its miniature.

use ratatui::layout::Rect;

use crate::app::{App, ScreenPart};
use crate::canvas::{CellCanvas, split_top};
use crate::flame::{FlameBox, Levels, layout};
use crate::list::CursorStep;
use crate::since::Shift;
use crate::theme::TextRole;

/// The number of levels to lay out to reach one, and one more, so that the cursor can go there.
fn levels_to(distance: i64) -> usize {
    usize::try_from(distance.max(0)).unwrap_or(0).saturating_add(2)
}

/// The index of a level among those on its side of the focus.
fn place_of(level: i64) -> usize {
    usize::try_from(if level < 0 { -1 - level } else { level }).unwrap_or(usize::MAX)
}

impl App {
    /// The levels of the callees, down to one.
    fn flame_below(&mut self, width: usize, deepest: i64) -> Levels {
        let shape = (self.focus.total_weight, width, levels_to(deepest));
        layout(&mut self.focus.callees, &self.data.calls, shape)
    }

    /// The levels of the callers, up to one. The focus itself, which would come first, belongs to the callees.
    fn flame_above(&mut self, width: usize, highest: i64) -> Levels {
        if self.focus.frame.is_none() {
            return Levels::new();
        }
        let shape = (self.focus.total_weight, width, levels_to(highest.saturating_neg()));
        let mut levels = layout(&mut self.focus.callers, &self.data.calls, shape);
        if !levels.is_empty() {
            levels.remove(0);
        }
        levels
    }

    /// The levels on the same side of the focus as a level.
    fn flame_levels(&mut self, level: i64) -> Levels {
        let width = self.screen.flame_width;
        if level < 0 { self.flame_above(width, level) } else { self.flame_below(width, level) }
    }

    /// The boxes of a level.
    fn flame_level(&mut self, level: i64) -> Vec<FlameBox> {
        self.flame_levels(level).into_iter().nth(place_of(level)).unwrap_or_default()
    }

    /// The box of a level at a column, or the nearest one.
    fn flame_box(&mut self, level: i64, column: usize) -> Option<FlameBox> {
        let boxes = self.flame_level(level);
        boxes.into_iter().min_by_key(|found| {
            let end = found.start + found.width - 1;
            column.saturating_sub(end).max(found.start.saturating_sub(column))
        })
    }

    pub(crate) fn flame_current(&mut self) -> Option<usize> {
        let (level, column) = self.focus.flame;
        self.flame_box(level, column).map(|found| found.frame)
    }

    pub(crate) fn go_in_flame(&mut self, step: CursorStep) {
        let (level, column) = self.focus.flame;
        let page = i64::from(self.screen.areas.body.height.max(2)) - 1;
        let target = match step {
            CursorStep::Up => level - 1,
            CursorStep::Down => level + 1,
            CursorStep::PageUp => level - page,
            CursorStep::PageDown => level + page,
            CursorStep::Home => return self.sideways_to(0),
            CursorStep::End => return self.sideways_to(usize::MAX),
        };
        let direction = if target < level { 1 } else { -1 };
        let mut reachable = target;
        self.focus.flame.0 = target;
        while reachable != level && !self.reaches(reachable, column) {
            reachable += direction;
        }
        self.focus.flame.0 = reachable;
    }

    /// Whether a box covers a column of a level.
    fn reaches(&mut self, level: i64, column: usize) -> bool {
        self.flame_level(level).iter().any(|found| found.holds(column))
    }

    /// The calls rows from the focus, or from its caller, to the box under the cursor.
    pub(crate) fn flame_path(&mut self) -> Vec<usize> {
        let (level, column) = self.focus.flame;
        let levels = self.flame_levels(level).into_iter().take(place_of(level).saturating_add(1));
        levels
            .map_while(|boxes| boxes.iter().find(|found| found.holds(column)).map(|found| found.frame))
            .collect()
    }

    /// Puts the cursor on the box at the end of a path, or on the last existing box of the path.
    pub(crate) fn go_to_flame(&mut self, (level, column): (i64, usize), path: &[Option<usize>]) {
        self.focus.flame = (level, column);
        let (mut within, mut reached) = (0..usize::MAX, (0, 0));
        let step = if level < 0 { -1 } else { 1 };
        let mut next = if level < 0 { -1 } else { 0 };
        for (boxes, &frame) in self.flame_levels(level).iter().zip(path) {
            let is_wanted = |found: &&FlameBox| within.contains(&found.start) && Some(found.frame) == frame;
            let Some(found) = boxes.iter().find(is_wanted) else { break };
            within = found.start..found.start + found.width;
            reached = (next, if found.holds(column) { column } else { found.start });
            next += step;
        }
        self.focus.flame = reached;
    }

    fn sideways_to(&mut self, column: usize) {
        if let Some(found) = self.flame_box(self.focus.flame.0, column) {
            self.focus.flame.1 = found.start;
        }
    }

    pub(crate) fn sideways_in_flame(&mut self, right: bool) {
        let (level, column) = self.focus.flame;
        let Some(here) = self.flame_box(level, column) else { return };
        let boxes = self.flame_level(level);
        let next = match right {
            true => boxes.iter().find(|found| found.start > here.start),
            false => boxes.iter().rev().find(|found| found.start < here.start),
        };
        if let Some(next) = next {
            self.focus.flame.1 = next.start;
        }
    }

    /// Moves the cursor to a box, if there is one. Returns whether it was there already.
    pub(crate) fn click_in_flame(&mut self, line: usize, column: usize) -> bool {
        let level = self.focus.flame_top.saturating_add(i64::try_from(line).unwrap_or(0));
        let column = column.saturating_sub(usize::from(self.screen.areas.body.x));
        let boxes = self.flame_level(level);
        let Some(found) = boxes.iter().find(|found| found.holds(column)) else { return false };
        let (level_before, column_before) = std::mem::replace(&mut self.focus.flame, (level, column));
        level_before == level && found.holds(column_before)
    }

    pub(super) fn draw_flame(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let [title, area] = split_top(area, 1);
        let name = match self.changes.since {
            Some(_) => format!("flame graph, + red grew, - blue shrank{}", self.uncompared()),
            None => "flame graph".to_owned(),
        };
        canvas.title(title, &self.view_title(&name), self.screen.part == ScreenPart::Body);
        self.screen.areas.body = area;
        let (width, height) = (usize::from(area.width), i64::from(area.height));
        self.screen.flame_width = width;
        // The levels that scrolling to the cursor could show.
        let (cursor, top) = (self.focus.flame.0, self.focus.flame_top);
        let above = self.flame_above(width, cursor.min(top) - height);
        let below = self.flame_below(width, cursor.max(top) + height);
        self.scroll_flame(&above, height);
        for line in 0..area.height {
            let level = self.focus.flame_top + i64::from(line);
            let (levels, place) = if level < 0 { (&above, -level - 1) } else { (&below, level) };
            let boxes = usize::try_from(place).ok().and_then(|place| levels.get(place));
            self.draw_level(canvas, area, line, (level, boxes.map_or(&[][..], Vec::as_slice)));
        }
    }

    /// Scrolls the cursor into view; the levels below the focus stay on the screen if possible.
    fn scroll_flame(&mut self, above: &Levels, height: i64) {
        // Beside sources on a low screen there may be no line, but the cursor still needs a place.
        let height = height.max(1);
        let first = -i64::try_from(above.len()).unwrap_or(0);
        let cursor = self.focus.flame.0;
        // Initially half of the screen is for callers.
        let top = if self.focus.flame_top == 0 { first.max(-height / 2) } else { self.focus.flame_top };
        self.focus.flame_top = top.clamp(cursor - height + 1, cursor.max(first)).max(first);
    }

    fn draw_level(
        &self,
        canvas: &mut CellCanvas<'_>,
        area: Rect,
        line: u16,
        (level, boxes): (i64, &[FlameBox]),
    ) {
        let column = self.focus.flame.1;
        let has_cursor = self.screen.part == ScreenPart::Body && level == self.focus.flame.0;
        let needle = self.filter.to_lowercase();
        for (number, found) in boxes.iter().enumerate() {
            let name = &self.data.calls.frame(found.frame).function;
            let shift = self.changes.since.as_ref().map(|since| since.of(name));
            let label = format!("{}{}", shift.map_or("", Shift::sign), self.data.labels[found.frame]);
            let is_cursor = has_cursor && found.holds(column);
            let style = match () {
                () if is_cursor => canvas.colours.style(TextRole::Cursor),
                () if !needle.is_empty() && label.to_lowercase().contains(&needle) => {
                    canvas.colours.style(TextRole::Found)
                }
                () => {
                    let is_odd = number.is_multiple_of(2) != (level % 2 == 0);
                    match shift {
                        Some(shift) => canvas.colours.change(shift.part, is_odd),
                        None => canvas.colours.flame(name, is_odd),
                    }
                }
            };
            canvas.label(area, line, (found.start, found.width), (&label, style));
        }
    }

    /// Draws the level below the focus in one row; for the whole profile, the first level that branches.
    pub(super) fn draw_strip(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        const DEEPEST: usize = 32;
        let width = usize::from(area.width);
        let levels =
            layout(&mut self.focus.callees, &self.data.calls, (self.focus.total_weight, width, DEEPEST));
        let telling =
            levels.iter().skip(usize::from(self.focus.frame.is_some())).find(|boxes| boxes.len() > 1);
        for (number, found) in telling.or(levels.last()).into_iter().flatten().enumerate() {
            let name = &self.data.calls.frame(found.frame).function;
            let style = canvas.colours.flame(name, number.is_multiple_of(2));
            canvas.label(area, 0, (found.start, found.width), (&self.data.labels[found.frame], style));
        }
    }
}
