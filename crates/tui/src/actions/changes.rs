//! Which of the changed functions are shown, and which one is meant.

use std::sync::Arc;

use borehole_analysis::FrameName;
use borehole_analysis::diff::DiffFrame;
use borehole_text::printable;

use crate::app::App;

impl App {
    /// Recomputes which functions are shown: those that match the filter.
    pub(crate) fn refresh_changes(&mut self) {
        let needle = self.filter.to_lowercase();
        let functions = self.settings.diff.as_ref().map_or(&[][..], |diff| &diff.functions);
        let wanted = |&row: &usize| {
            let name = printable(&functions[row].frame.function);
            needle.is_empty() || name.to_lowercase().contains(&needle)
        };
        self.changes.shown = (0..functions.len()).filter(wanted).collect();
    }

    /// The function under the cursor.
    pub(crate) fn changed_function(&self) -> Option<Arc<DiffFrame>> {
        let row = *self.changes.shown.get(self.changes.list.cursor)?;
        Some(self.settings.diff.as_ref()?.functions.get(row)?.frame.clone())
    }

    /// Puts the cursor on a function, if it is shown.
    pub(crate) fn go_to_change(&mut self, wanted: &DiffFrame) {
        let Some(diff) = &self.settings.diff else { return };
        let is_wanted = |&row: &usize| *diff.functions[row].frame == *wanted;
        if let Some(place) = self.changes.shown.iter().position(is_wanted) {
            self.changes.list.cursor = place;
        }
    }

    /// The calls row of the function under the cursor, if it still exists.
    pub(crate) fn changed_frame(&self) -> Option<usize> {
        let function = self.changed_function()?.function.clone();
        self.row_of(&FrameName { function, ..FrameName::default() })
    }

    /// The filters of the other views that do not apply to the comparison, in words.
    pub(crate) fn uncompared(&self) -> String {
        let selection = &self.settings.selection;
        let matches = self.settings.query.keep.as_ref().map(borehole_analysis::Pattern::as_str);
        let narrowed = [
            (matches != self.changes.compared.as_deref(), "the match"),
            (selection.time.is_some(), "the time"),
            (!(selection.threads.is_empty() && selection.processes.is_empty()), "threads"),
            (!selection.interpreters.is_empty(), "interpreters"),
            (!selection.labels.is_empty(), "labels"),
        ];
        let narrowed: Vec<_> = narrowed.iter().filter(|(is_on, _)| *is_on).map(|&(_, name)| name).collect();
        if narrowed.is_empty() { String::new() } else { format!(", ignoring {}", narrowed.join(", ")) }
    }
}
