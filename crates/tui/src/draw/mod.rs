//! Drawing of the screen.

pub(crate) mod canvas;
mod changes;
mod flame;
mod frame;
mod lists;
mod time;

use borehole_text::pad;
use ratatui::layout::Rect;

use crate::app::{App, ProfileView, ScreenPart};
use crate::list::ScrollList;
use crate::screen::{Explorer, ScreenCells};
use crate::theme::TextRole;
use canvas::CellCanvas;

/// The areas of the screen that a mouse can point at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScreenAreas {
    pub(crate) overview: Rect,
    pub(crate) above: Rect,
    pub(crate) body: Rect,
}

impl ScreenAreas {
    /// The area at a cell, and the line in it.
    pub(crate) fn at(&self, column: u16, row: u16) -> Option<(ScreenPart, usize)> {
        let parts = [
            (ScreenPart::Overview, self.overview),
            (ScreenPart::Above, self.above),
            (ScreenPart::Body, self.body),
        ];
        let inside = |area: Rect| area.contains((column, row).into());
        let (place, area) = parts.into_iter().find(|&(_, area)| inside(area))?;
        Some((place, usize::from(row - area.y)))
    }
}

impl Explorer for App {
    fn draw(&mut self, ScreenCells(buffer): ScreenCells<'_>) {
        let area = buffer.area;
        let Some(mut canvas) = CellCanvas::of_screen(buffer, self.settings.colours) else { return };
        let [header, rest] = split_top(area, 1);
        self.draw_header(&mut canvas, header);
        let [strip, rest] = split_top(rest, u16::from(self.screen.has_mini_flame));
        let [rest, footer] = split_bottom(rest, 1);
        let [rest, status] = split_bottom(rest, 1);
        self.draw_footer(&mut canvas, footer);
        if self.controls.shows_help {
            self.screen.areas = ScreenAreas::default();
            self.controls.draw_help(&mut canvas, rest, &self.settings.keymap.help());
        } else {
            self.draw_main(&mut canvas, rest);
        }
        if self.screen.has_mini_flame {
            self.draw_strip(&mut canvas, strip);
        }
        self.draw_status(&mut canvas, status);
    }
}

impl App {
    fn draw_main(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        self.screen.areas = ScreenAreas::default();
        // The view has not been counted yet if the profile has changed and no key was pressed since.
        self.fill();
        let overview = if self.overview.is_visible { overview_width(area.width) } else { 0 };
        let [left, mut right] = split_left(area, overview);
        if overview > 0 {
            self.draw_overview(canvas, left);
        }
        if self.source.is_shown {
            let [rest, source] = split_bottom(right, right.height / 2);
            self.draw_source(canvas, source);
            right = rest;
        }
        match self.screen.view {
            ProfileView::Panes => self.draw_panes(canvas, right),
            ProfileView::Flame => self.draw_flame(canvas, right),
            ProfileView::Callees | ProfileView::Callers => self.draw_tree(canvas, right),
            ProfileView::Timeline => self.draw_timeline(canvas, right),
            ProfileView::HeatMap => self.draw_heat_map(canvas, right),
            ProfileView::Groups => self.draw_groups(canvas, right),
            ProfileView::Changes => self.draw_changes(canvas, right),
        }
    }
}

/// Draws the keys and their actions, in as many columns as fit.
pub(crate) fn draw_keys(canvas: &mut CellCanvas<'_>, area: Rect, list: &mut ScrollList, rows: &[String]) {
    canvas.title(area, "keys (? closes)", true);
    let [_, area] = split_top(area, 1);
    let columns = usize::from(area.width / 39).max(1);
    let lines = rows.len().div_ceil(columns);
    let window = list.page(lines, usize::from(area.height));
    for (line, row) in (0..).zip(window) {
        let cells = (0..columns).filter_map(|column| rows.get(column * lines + row));
        let text: String = cells.map(|cell| pad(cell, 39)).collect();
        canvas.line(area, line, &text, canvas.colours.style(TextRole::Plain));
    }
}

/// The width of the overview: a good third, within bounds.
const fn overview_width(width: u16) -> u16 {
    // Bounded before the multiplication, which overflows for the widest terminals.
    let third = if width > 160 { 160 } else { width } * 3 / 8;
    if third > 60 { 60 } else { third }
}

pub(crate) fn split_top(area: Rect, height: u16) -> [Rect; 2] {
    let height = height.min(area.height);
    let rest = Rect { y: area.y + height, height: area.height - height, ..area };
    [Rect { height, ..area }, rest]
}

pub(crate) fn split_bottom(area: Rect, height: u16) -> [Rect; 2] {
    let height = height.min(area.height);
    split_top(area, area.height - height)
}

pub(crate) fn split_left(area: Rect, width: u16) -> [Rect; 2] {
    let width = width.min(area.width);
    let rest = Rect { x: area.x + width, width: area.width - width, ..area };
    [Rect { width, ..area }, rest]
}
