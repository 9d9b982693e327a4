//! Samples by thread, process and label: a table whose rows can be selected.

use borehole_analysis::{By, GroupRow, GroupValue};
use borehole_text::printable;

use crate::list::ScrollList;

/// The table.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupTable {
    /// The kind of group, as an index of those that the samples have.
    pub(crate) kind: usize,
    pub(crate) rows: Option<Vec<GroupRow>>,
    pub(crate) list: ScrollList,
    /// Whether the process was selected along with a thread, because thread ids are unique only within a process.
    pub(crate) has_process_of_thread: bool,
}

impl GroupTable {
    /// Discards outdated counts.
    pub(crate) fn forget(&mut self) {
        self.rows = None;
    }

    /// The group under the cursor, if the table has been shown.
    pub(crate) fn current(&self) -> Option<GroupValue> {
        Some(self.rows.as_ref()?.get(self.list.cursor)?.value.clone())
    }
}

/// The name of a group.
pub(crate) fn value_text(value: &GroupValue) -> String {
    value.text(printable).unwrap_or_else(|| "(unknown)".to_owned())
}

/// The name of a kind of group.
pub(crate) fn kind_text(by: &By) -> String {
    match by {
        By::Label(key) => printable(key),
        By::Process => "process".to_owned(),
        By::Thread => "thread".to_owned(),
        By::Interpreter => "interpreter".to_owned(),
        By::File | By::Class => String::new(),
    }
}
