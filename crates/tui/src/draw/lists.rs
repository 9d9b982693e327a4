//! Views that are lists: overview, panes, trees, groups, source.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::{split_left, split_top};
use crate::amount::{grouped, percent};
use crate::app::{App, Place, View};
use crate::focus::Pane;
use crate::groups::{kind_text, value_text};
use crate::text::crop;
use crate::theme::Role;

impl App {
    /// Formats a share and a name on one line.
    fn entry(&self, value: i64, name: &str, columns: u16) -> String {
        self.entry_of((value, self.calls.total()), name, columns)
    }

    fn entry_of(&self, (value, whole): (i64, i64), name: &str, columns: u16) -> String {
        let share = format!("{:5.1}% ", percent(value, whole));
        let room = usize::from(columns).saturating_sub(share.len());
        if room == 0 { share } else { format!("{share}{}", crop(name, room, self.anchor)) }
    }

    pub(super) fn draw_overview(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        use borehole_analysis::SortBy;
        let has_cursor = self.place == Place::Overview;
        let [area, _] = split_left(area, area.width.saturating_sub(1));
        let [title, area] = split_top(area, 1);
        let by = if self.overview.sort == SortBy::Own { "self" } else { "total" };
        canvas.title(
            title,
            &format!("by {by} · {} rows", grouped(self.overview.shown.len() as u64)),
            has_cursor,
        );
        self.areas.overview = area;
        let window = self.overview.list.window(self.overview.shown.len(), usize::from(area.height));
        for (line, row) in (0..).zip(window) {
            let top = self.overview.rows[self.overview.shown[row]];
            let value = if self.overview.sort == SortBy::Own { top.own } else { top.total };
            let text = self.entry(value, &self.labels[top.frame], area.width);
            let role = match self.focus.frame {
                _ if row == self.overview.list.cursor => Role::of_cursor(has_cursor),
                Some(frame) if frame == top.frame => Role::Focus,
                _ => Role::Plain,
            };
            canvas.line(area, line, &text, canvas.colours.style(role));
        }
    }

    pub(super) fn draw_panes(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        let has_callers = self.focus.frame.is_some();
        let [above, below] = split_top(area, if has_callers { area.height / 2 } else { 0 });
        if has_callers {
            self.draw_pane(canvas, above, Place::Above);
        }
        let [focus, below] = split_top(below, u16::from(has_callers));
        if let Some(frame) = self.focus.frame {
            let share = |value| format!("{:.1}%", percent(value, self.calls.total()));
            let numbers = format!("total {} self {}", share(self.focus.total), share(self.focus.own));
            let text = format!("● {numbers}  {}", self.labels[frame]);
            let text = crop(&text, usize::from(focus.width), crate::text::Anchor::Left);
            canvas.line(focus, 0, &text, canvas.colours.style(Role::Focus));
        }
        self.draw_pane(canvas, below, Place::Body);
    }

    fn draw_pane(&mut self, canvas: &mut Canvas<'_>, area: Rect, place: Place) {
        let has_cursor = self.place == place;
        let [title, area] = split_top(area, 1);
        let (what, end) = match place {
            Place::Above => ("callers", "<root>"),
            _ if self.focus.frame.is_none() => ("entry points", ""),
            _ => ("callees", "<leaf>"),
        };
        canvas.title(title, what, has_cursor);
        let pane: &mut Pane =
            if place == Place::Above { &mut self.focus.above } else { &mut self.focus.below };
        let window = pane.list.window(pane.len(), usize::from(area.height));
        let cursor = pane.list.cursor;
        let rows: Vec<_> = window.filter_map(|row| Some((row, pane.row(row)?))).collect();
        for (line, (row, found)) in (0..).zip(rows) {
            let name = found.frame.map_or(end, |frame| &self.labels[frame]);
            let text = self.entry(found.total, name, area.width);
            let role = if row == cursor { Role::of_cursor(has_cursor) } else { Role::Plain };
            canvas.line(area, line, &text, canvas.colours.style(role));
        }
        match place {
            Place::Above => self.areas.above = area,
            _ => self.areas.body = area,
        }
    }

    pub(super) fn draw_tree(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        let has_cursor = self.place == Place::Body;
        let [title, area] = split_top(area, 1);
        let is_callees = self.view == View::Callees;
        let what = match (is_callees, self.focus.frame) {
            (true, None) => "call tree",
            (false, None) => "inverted call tree",
            (true, _) => "callees",
            (false, _) => "callers",
        };
        canvas.title(title, &self.view_title(what), has_cursor);
        self.areas.body = area;
        let outline = if is_callees { &mut self.focus.callees } else { &mut self.focus.callers };
        let window = outline.list.window(outline.rows().len(), usize::from(area.height));
        let outline = if is_callees { &self.focus.callees } else { &self.focus.callers };
        for (line, row) in (0..).zip(window) {
            let node = outline.rows()[row];
            let branch = outline.node(node);
            let mark = if outline.is_open(node) { "▾" } else { "▸" };
            // Deep rows keep some room for their names; a number then gives their depth.
            let room = usize::from(area.width) / 2;
            let indent = match branch.depth * 2 {
                columns if columns <= room => " ".repeat(columns),
                _ => format!("{:>room$}", format!("{}:", branch.depth)),
            };
            let text = format!("{indent}{mark} {}", self.labels[branch.frame]);
            let text = self.entry(branch.total, &text, area.width);
            let role = if row == outline.list.cursor { Role::of_cursor(has_cursor) } else { Role::Plain };
            canvas.line(area, line, &text, canvas.colours.style(role));
        }
    }

    pub(super) fn draw_groups(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        let has_cursor = self.place == Place::Body;
        let [title, area] = split_top(area, 1);
        self.areas.body = area;
        let kinds: Vec<_> = self.group_kinds().iter().map(kind_text).collect();
        let names = kinds.iter().enumerate().map(|(kind, name)| match kind == self.groups.kind {
            true => format!("[{name}]"),
            false => name.clone(),
        });
        let names = names.collect::<Vec<_>>().join("  ");
        let of = if self.focus.frame.is_some() { ", whatever is in focus" } else { "" };
        canvas.title(title, &format!("by {names}{of}"), has_cursor);
        let rows = self.groups.rows.take().unwrap_or_default();
        let whole = rows.iter().fold(0_i64, |sum, row| sum.saturating_add(row.total));
        let window = self.groups.list.window(rows.len(), usize::from(area.height));
        for (line, row) in (0..).zip(window) {
            let name = format!("{}  {}", value_text(&rows[row].value), self.amount(rows[row].total));
            let text = self.entry_of((rows[row].total, whole), &name, area.width);
            let role = if row == self.groups.list.cursor { Role::of_cursor(has_cursor) } else { Role::Plain };
            canvas.line(area, line, &text, canvas.colours.style(role));
        }
        self.groups.rows = Some(rows);
    }

    pub(super) fn draw_source(&self, canvas: &mut Canvas<'_>, area: Rect) {
        let [title, area] = split_top(area, 1);
        let Some(source) = &self.source else { return canvas.title(title, "source: no frame", false) };
        canvas.title(title, &source.title(), false);
        for (line, (number, text)) in (0..).zip(source.window(usize::from(area.height))) {
            let is_line = source.line == Some(number);
            let mark = if is_line { '>' } else { ' ' };
            let style = canvas.colours.style(if is_line { Role::Focus } else { Role::Plain });
            canvas.line(area, line, &format!("{mark}{number:>5} {text}"), style);
        }
    }
}
