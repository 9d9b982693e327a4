//! The parts around the views: header, mini flame graph, status, keys, help.

use borehole_analysis::{Lines, Opcodes, Recursion, Rows, Weight};
use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::draw_keys;
use crate::amount::{grouped, name, percent, with_unit};
use crate::app::{App, PromptKind};
use crate::keymap::Action;
use crate::text::{crop, printable, width};
use crate::theme::Role;

impl App {
    pub(super) fn draw_header(&self, canvas: &mut Canvas<'_>, area: Rect) {
        let all = self.calls.total();
        let summary = self.profile.summary();
        let mut facts = vec![match self.weight {
            Weight::Samples if i64::try_from(summary.matched) != Ok(all) => {
                format!("{} of {} samples", self.amount(all), grouped(summary.matched))
            }
            weight => format!("{} {}", self.amount(all), name(&self.profile.value_type(weight))),
        }];
        let hidden = summary.hidden.iter();
        facts.extend(hidden.map(|(kind, samples)| format!("{} of {kind} hidden", grouped(*samples))));
        facts.extend(self.narrowing());
        canvas.header(area, &self.settings.title, &facts);
    }

    /// Formats an amount with its unit.
    pub(super) fn amount(&self, value: i64) -> String {
        with_unit(value, &self.profile.value_type(self.weight).unit)
    }

    /// The settings that differ from the initial ones, in words.
    fn narrowing(&self) -> Vec<String> {
        let query = &self.settings.query;
        let selection = &self.settings.selection;
        let mut parts = Vec::new();
        parts.extend(selection.time.map(|time| self.range_text(time)));
        parts.extend(self.thread_texts());
        let interpreters = selection.interpreters.iter();
        parts.extend(interpreters.map(|interpreter| format!("interpreter {interpreter}")));
        let labels = selection.labels.iter();
        parts.extend(labels.map(|(key, value)| format!("{}={}", printable(key), printable(value))));
        parts.extend(
            query.keep.as_ref().map(|pattern| format!("match {}", printable(pattern.as_str().as_bytes()))),
        );
        if !self.filter.is_empty() {
            parts.push(format!("/{}", printable(self.filter.as_bytes())));
        }
        let switches = [
            (query.lines == Lines::Together, "no lines"),
            (query.opcodes == Opcodes::Apart, "opcodes"),
            (query.recursion == Recursion::Folded, "recursion folded"),
            (self.libraries_are_one, "libraries collapsed"),
            (query.rows == Rows::Files, "files"),
            (query.rows == Rows::Classes, "classes"),
            (query.rows == Rows::Namespaces, "namespaces"),
            (self.overview.follows, "follow"),
        ];
        parts.extend(switches.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| (*name).to_owned()));
        parts
    }

    pub(super) fn draw_status(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        let text = match (&self.prompt, &self.message) {
            (Some(prompt), _) => {
                let name = match prompt.kind {
                    PromptKind::Filter => "filter rows",
                    PromptKind::Match => "match samples (pattern)",
                    PromptKind::Export => "export to (.svg .folded .pb.gz ...)",
                };
                prompt.line(name, usize::from(area.width))
            }
            (None, Some(message)) => message.clone(),
            (None, None) => self.describe_current(usize::from(area.width)),
        };
        canvas.line(area, 0, &text, canvas.colours.style(Role::Plain));
    }

    /// The numbers of the row under the cursor, and as much of its name as fits.
    fn describe_current(&mut self, columns: usize) -> String {
        let Some(frame) = self.current().or(self.focus.frame) else { return String::new() };
        let text = printable(&self.calls.frame(frame).text(borehole_analysis::Paths::Full));
        let row = self.overview.rows.iter().find(|row| row.frame == frame);
        let (own, total) = row.map_or((0, 0), |row| (row.own, row.total));
        let all = self.calls.total();
        let share = |value| format!("{} {:.1}%", self.amount(value), percent(value, all));
        let numbers = format!("  self {}, total {}", share(own), share(total));
        let room = columns.saturating_sub(width(&numbers)).max(1);
        format!("{}{numbers}", crop(&text, room, self.anchor))
    }

    pub(super) fn draw_footer(&self, canvas: &mut Canvas<'_>, area: Rect) {
        let keys = [
            (Action::Quit, "quit"),
            (Action::Help, "help"),
            (Action::Focus, "focus"),
            (Action::Undo, "undo"),
            (Action::Filter, "filter"),
            (Action::Match, "match"),
            (Action::NextPane, "pane"),
            (Action::Panes, "panes"),
            (Action::Flame, "flame"),
            (Action::Callees, "callees"),
            (Action::Callers, "callers"),
            (Action::Timeline, "time"),
            (Action::HeatMap, "heat"),
            (Action::Groups, "threads"),
            (Action::Source, "source"),
        ];
        let text = self.settings.keymap.footer(&keys, usize::from(area.width));
        canvas.line(area, 0, &text, canvas.colours.style(Role::Bar));
    }

    pub(super) fn draw_help(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        draw_keys(canvas, area, &mut self.help, &self.settings.keymap.help());
    }

    /// The title of the view: its content and its subject.
    pub(super) fn view_title(&self, what: &str) -> String {
        let share = |value| format!("{:.1}%", percent(value, self.calls.total()));
        match self.focus.frame {
            None => what.to_owned(),
            Some(frame) => {
                let (total, own) = (share(self.focus.total), share(self.focus.own));
                format!("{what} · total {total} self {own} · {}", self.labels[frame])
            }
        }
    }
}
