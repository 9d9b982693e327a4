//! The view of changes since an earlier profile.

use borehole_analysis::diff::{Amount, DiffMeasure, DiffRow};
use borehole_text::{KeptEnd, crop, printable};
use ratatui::layout::Rect;

use crate::app::{App, ScreenPart};
use crate::canvas::{CellCanvas, split_top};
use crate::theme::TextRole;

impl App {
    pub(super) fn draw_changes(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let has_cursor = self.screen.part == ScreenPart::Body;
        let [title, area] = split_top(area, 1);
        let text = format!("changes; * is significant{}", self.uncompared());
        canvas.title(title, &text, has_cursor);
        let Some(diff) = &self.settings.diff else { return };
        let [head, area] = split_top(area, 1);
        let head_text = format!("{:>9} {:>9} {:>9}   self", "before", "after", "change");
        canvas.line(head, 0, &head_text, canvas.colours.style(TextRole::Dim));
        self.screen.areas.body = area;
        let (mut list, shown) = (self.changes.list, &self.changes.shown);
        canvas.rows(area, (&mut list, shown.len()), has_cursor, |row| {
            let found = &diff.functions[shown[row]];
            let role = match found.self_change.difference() > 0.0 {
                _ if !found.self_change.is_marked => TextRole::Plain,
                true => TextRole::Grown,
                false => TextRole::Shrunk,
            };
            (crop(&entry(found, diff.measure), usize::from(area.width), KeptEnd::Left), role)
        });
        self.changes.list = list;
    }
}

fn entry(row: &DiffRow, measure: DiffMeasure) -> String {
    let value = |amount: Amount| amount_text(amount.value, measure);
    let sign = if row.self_change.difference() < 0.0 { "-" } else { "+" };
    let change = format!("{sign}{}", amount_text(row.self_change.difference().abs(), measure));
    let mark = if row.self_change.is_marked { "*" } else { " " };
    let name = printable(&row.frame.function);
    format!(
        "{:>9} {:>9} {change:>9} {mark} {name}",
        value(row.self_change.before),
        value(row.self_change.after)
    )
}

fn amount_text(value: f64, measure: DiffMeasure) -> String {
    match measure {
        DiffMeasure::Share => format!("{:.2}%", value * 100.0),
        DiffMeasure::Samples => format!("{value:.1}"),
        DiffMeasure::Seconds => format!("{value:.3} s"),
    }
}
