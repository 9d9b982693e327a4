//! The view of changes since an earlier profile.

use borehole_analysis::diff::{Amount, DiffRow, Measure};
use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::split_top;
use crate::app::{App, Place};
use crate::text::{Anchor, crop, printable};
use crate::theme::Role;

impl App {
    pub(super) fn draw_changes(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        let has_cursor = self.place == Place::Body;
        let [title, area] = split_top(area, 1);
        let count = self.changes.shown.len();
        let window = self.changes.list.window(count, usize::from(area.height.saturating_sub(1)));
        let text = format!("what changed; * is more than noise{}", self.uncompared());
        canvas.title(title, &text, has_cursor);
        let Some(diff) = &self.settings.diff else { return };
        let [head, area] = split_top(area, 1);
        let head_text = format!("{:>9} {:>9} {:>9}   self", "before", "after", "change");
        canvas.line(head, 0, &head_text, canvas.colours.style(Role::Dim));
        self.areas.body = area;
        for (line, row) in (0..).zip(window) {
            let found = &diff.functions[self.changes.shown[row]];
            let text = crop(&entry(found, diff.measure), usize::from(area.width), Anchor::Left);
            let role = match found.own.difference() > 0.0 {
                _ if row == self.changes.list.cursor => Role::of_cursor(has_cursor),
                _ if !found.own.is_marked => Role::Plain,
                true => Role::Grown,
                false => Role::Shrunk,
            };
            canvas.line(area, line, &text, canvas.colours.style(role));
        }
    }
}

fn entry(row: &DiffRow, measure: Measure) -> String {
    let value = |amount: Amount| amount_text(amount.value, measure);
    let sign = if row.own.difference() < 0.0 { "-" } else { "+" };
    let change = format!("{sign}{}", amount_text(row.own.difference().abs(), measure));
    let mark = if row.own.is_marked { "*" } else { " " };
    let name = printable(&row.frame.function);
    format!("{:>9} {:>9} {change:>9} {mark} {name}", value(row.own.before), value(row.own.after))
}

fn amount_text(value: f64, measure: Measure) -> String {
    match measure {
        Measure::Share => format!("{:.2}%", value * 100.0),
        Measure::Samples => format!("{value:.1}"),
        Measure::Seconds => format!("{value:.3} s"),
    }
}
