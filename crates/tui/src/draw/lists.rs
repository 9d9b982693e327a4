//! Views that are lists: overview, panes, trees, groups, source.

use borehole_analysis::{GroupRow, SortBy};
use borehole_text::{KeptEnd, crop, grouped, percent, percent_of};
use ratatui::layout::Rect;

use crate::app::{App, ProfileView, ScreenPart};
use crate::canvas::{CellCanvas, split_left, split_top};
use crate::groups::{kind_text, value_text};
use crate::theme::TextRole;

impl App {
    /// Formats a share and a name on one line.
    fn entry(&self, value: i64, name: &str, columns: u16) -> String {
        self.entry_of((value, self.data.calls.total()), name, columns)
    }

    fn entry_of(&self, (value, whole): (i64, i64), name: &str, columns: u16) -> String {
        let share = format!("{:>6} ", percent(percent_of(value, whole)));
        let room = usize::from(columns).saturating_sub(share.len());
        if room == 0 { share } else { format!("{share}{}", crop(name, room, self.screen.anchor)) }
    }

    pub(super) fn draw_overview(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let has_cursor = self.screen.part == ScreenPart::Overview;
        let [area, _] = split_left(area, area.width.saturating_sub(1));
        let [title, area] = split_top(area, 1);
        let by = if self.overview.sort == SortBy::SelfWeight { "self" } else { "total" };
        canvas.title(
            title,
            &format!("by {by} · {} rows", grouped(self.overview.shown.len() as u64)),
            has_cursor,
        );
        self.screen.areas.overview = area;
        let (mut list, rows) = (self.overview.list, &self.overview.shown);
        canvas.rows(area, (&mut list, rows.len()), has_cursor, |row| {
            let top = self.overview.rows[rows[row]];
            let by_self = self.overview.sort == SortBy::SelfWeight;
            let weight = if by_self { top.self_weight } else { top.total_weight };
            let is_focus = self.focus.frame == Some(top.frame);
            let role = if is_focus { TextRole::Focus } else { TextRole::Plain };
            (self.entry(weight, &self.data.labels[top.frame], area.width), role)
        });
        self.overview.list = list;
    }

    pub(super) fn draw_panes(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let has_callers = self.focus.frame.is_some();
        let [above, below] = split_top(area, if has_callers { area.height / 2 } else { 0 });
        if has_callers {
            self.draw_pane(canvas, above, ScreenPart::Above);
        }
        let [focus, below] = split_top(below, u16::from(has_callers));
        if let Some(frame) = self.focus.frame {
            let share = |value| percent(percent_of(value, self.data.calls.total()));
            let numbers =
                format!("total {} self {}", share(self.focus.total_weight), share(self.focus.self_weight));
            let text = format!("● {numbers}  {}", self.data.labels[frame]);
            let text = crop(&text, usize::from(focus.width), KeptEnd::Left);
            canvas.line(focus, 0, &text, canvas.colours.style(TextRole::Focus));
        }
        self.draw_pane(canvas, below, ScreenPart::Body);
    }

    fn draw_pane(&mut self, canvas: &mut CellCanvas<'_>, area: Rect, place: ScreenPart) {
        let has_cursor = self.screen.part == place;
        let [title, area] = split_top(area, 1);
        let (what, end) = match place {
            ScreenPart::Above => ("callers", "<root>"),
            _ if self.focus.frame.is_none() => ("entry points", ""),
            _ => ("callees", "<leaf>"),
        };
        canvas.title(title, what, has_cursor);
        let is_above = place == ScreenPart::Above;
        let pane = if is_above { &self.focus.above } else { &self.focus.below };
        let mut list = pane.list;
        canvas.rows(area, (&mut list, pane.len()), has_cursor, |row| {
            let text = pane.row(row).map(|found| {
                let name = found.frame.map_or(end, |frame| &self.data.labels[frame]);
                self.entry(found.weight, name, area.width)
            });
            (text.unwrap_or_default(), TextRole::Plain)
        });
        if is_above {
            (self.focus.above.list, self.screen.areas.above) = (list, area);
        } else {
            (self.focus.below.list, self.screen.areas.body) = (list, area);
        }
    }

    pub(super) fn draw_tree(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let has_cursor = self.screen.part == ScreenPart::Body;
        let [title, area] = split_top(area, 1);
        let is_callees = self.screen.view == ProfileView::Callees;
        let what = match (is_callees, self.focus.frame) {
            (true, None) => "call tree",
            (false, None) => "inverted call tree",
            (true, _) => "callees",
            (false, _) => "callers",
        };
        canvas.title(title, &self.view_title(what), has_cursor);
        self.screen.areas.body = area;
        let outline = if is_callees { &self.focus.callees } else { &self.focus.callers };
        let mut list = outline.list;
        canvas.rows(area, (&mut list, outline.rows().len()), has_cursor, |row| {
            let node = outline.rows()[row];
            let branch = outline.node(node);
            let mark = if outline.is_open(node) { "▾" } else { "▸" };
            // Deep rows keep some room for their names; a number then gives their depth.
            let room = usize::from(area.width) / 2;
            let indent = match branch.depth * 2 {
                columns if columns <= room => " ".repeat(columns),
                _ => format!("{:>room$}", format!("{}:", branch.depth)),
            };
            let text = format!("{indent}{mark} {}", self.data.labels[branch.frame]);
            (self.entry(branch.total_weight, &text, area.width), TextRole::Plain)
        });
        let outline = if is_callees { &mut self.focus.callees } else { &mut self.focus.callers };
        outline.list = list;
    }

    pub(super) fn draw_groups(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let has_cursor = self.screen.part == ScreenPart::Body;
        let [title, area] = split_top(area, 1);
        self.screen.areas.body = area;
        let kinds: Vec<_> = self.group_kinds().iter().map(kind_text).collect();
        let names = kinds.iter().enumerate().map(|(kind, name)| match kind == self.groups.kind {
            true => format!("[{name}]"),
            false => name.clone(),
        });
        let names = names.collect::<Vec<_>>().join("  ");
        let of = if self.focus.frame.is_some() { ", ignoring the focus" } else { "" };
        canvas.title(title, &format!("by {names}{of}"), has_cursor);
        let rows = self.groups.rows.as_deref().unwrap_or_default();
        let whole = rows.iter().fold(0_i64, |sum, row| sum.saturating_add(row.weight));
        let mut list = self.groups.list;
        canvas.rows(area, (&mut list, rows.len()), has_cursor, |row| {
            let GroupRow { value, weight } = &rows[row];
            let name = format!("{}  {}", value_text(value), self.amount(*weight));
            (self.entry_of((*weight, whole), &name, area.width), TextRole::Plain)
        });
        self.groups.list = list;
    }

    pub(super) fn draw_source(&self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let [title, area] = split_top(area, 1);
        let Some(source) = &self.source.view else { return canvas.title(title, "source: no frame", false) };
        canvas.title(title, &source.title(), false);
        for (line, (number, text)) in (0..).zip(source.window(usize::from(area.height))) {
            let is_line = source.line == Some(number);
            let mark = if is_line { '>' } else { ' ' };
            let style = canvas.colours.style(if is_line { TextRole::Focus } else { TextRole::Plain });
            canvas.line(area, line, &format!("{mark}{number:>5} {text}"), style);
        }
    }
}
