//! The parts around the views: header, mini flame graph, status, keys, help.

use borehole_analysis::{LineRows, OpcodeRows, Recursion, RowKind, Weight};
use borehole_text::{crop, grouped, percent, percent_of, printable, width, with_unit};
use ratatui::layout::Rect;

use crate::amount::name;
use crate::app::{App, ProfilePrompt};
use crate::canvas::CellCanvas;
use crate::keymap::Action;
use crate::theme::TextRole;

impl App {
    pub(super) fn draw_header(&self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let all = self.data.calls.total();
        let summary = self.data.profile.summary();
        let mut facts = vec![match self.data.weight {
            Weight::Samples if i64::try_from(summary.matched) != Ok(all) => {
                format!("{} of {} samples", self.amount(all), grouped(summary.matched))
            }
            weight => format!("{} {}", self.amount(all), name(&self.data.profile.value_type(weight))),
        }];
        let hidden = summary.hidden.iter();
        facts.extend(hidden.map(|(kind, samples)| format!("{} of {kind} hidden", grouped(*samples))));
        facts.extend(self.narrowing());
        canvas.header(area, &self.settings.title, &facts);
    }

    /// Formats an amount with its unit.
    pub(super) fn amount(&self, value: i64) -> String {
        with_unit(value, &self.data.profile.value_type(self.data.weight).unit)
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
            (query.lines == LineRows::Together, "no lines"),
            (query.opcodes == OpcodeRows::Apart, "opcodes"),
            (query.recursion == Recursion::Folded, "recursion folded"),
            (self.data.libraries_are_one, "libraries collapsed"),
            (query.rows == RowKind::Files, "files"),
            (query.rows == RowKind::Classes, "classes"),
            (query.rows == RowKind::Namespaces, "namespaces"),
            (self.overview.follows, "follow"),
        ];
        parts.extend(switches.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| (*name).to_owned()));
        parts
    }

    pub(super) fn draw_status(&mut self, canvas: &mut CellCanvas<'_>, area: Rect) {
        let columns = usize::from(area.width);
        let name = |kind| match kind {
            ProfilePrompt::Filter => "filter rows",
            ProfilePrompt::Match => "match samples (pattern)",
            ProfilePrompt::Export => "export to (.svg .folded .pb.gz ...)",
        };
        let text = match self.controls.status(columns, name) {
            Some(text) => text,
            None => self.describe_current(columns),
        };
        canvas.line(area, 0, &text, canvas.colours.style(TextRole::Plain));
    }

    /// The numbers of the row under the cursor, and as much of its name as fits.
    fn describe_current(&mut self, columns: usize) -> String {
        let Some(frame) = self.current().or(self.focus.frame) else { return String::new() };
        let text = printable(&self.data.calls.frame(frame).text(borehole_analysis::PathStyle::Full));
        let row = self.overview.rows.iter().find(|row| row.frame == frame);
        let (self_weight, total_weight) = row.map_or((0, 0), |row| (row.self_weight, row.total_weight));
        let all = self.data.calls.total();
        let share = |value| format!("{} {}", self.amount(value), percent(percent_of(value, all)));
        let numbers = format!("  self {}, total {}", share(self_weight), share(total_weight));
        let room = columns.saturating_sub(width(&numbers)).max(1);
        format!("{}{numbers}", crop(&text, room, self.screen.anchor))
    }

    pub(super) fn draw_footer(&self, canvas: &mut CellCanvas<'_>, area: Rect) {
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
        canvas.line(area, 0, &text, canvas.colours.style(TextRole::Bar));
    }

    /// The title of the view: its content and its subject.
    pub(super) fn view_title(&self, what: &str) -> String {
        let share = |value| percent(percent_of(value, self.data.calls.total()));
        match self.focus.frame {
            None => what.to_owned(),
            Some(frame) => {
                let (total, self_) = (share(self.focus.total_weight), share(self.focus.self_weight));
                format!("{what} · total {total} self {self_} · {}", self.data.labels[frame])
            }
        }
    }
}
