//! Drawing of the screen.

mod changes;
mod flame;
mod frame;
mod lists;
mod time;

use ratatui::layout::Rect;

use crate::app::{App, ProfileView, ScreenAreas};
use crate::canvas::{CellCanvas, split_bottom, split_left, split_top};
use crate::screen::{Explorer, ScreenCells};

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

/// The width of the overview: a good third, within bounds.
const fn overview_width(width: u16) -> u16 {
    // Bounded before the multiplication, which overflows for the widest terminals.
    let third = if width > 160 { 160 } else { width } * 3 / 8;
    if third > 60 { 60 } else { third }
}
