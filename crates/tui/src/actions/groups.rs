//! The table of groups, and the selection of its rows.

use borehole_analysis::{By, GroupValue, LabelText};
use borehole_model::LaneId;

use crate::app::App;
use crate::list::ScrollList;

impl App {
    /// The kinds of groups that the samples have.
    pub(crate) fn group_kinds(&self) -> Vec<By> {
        let labels = self.data.profile.label_keys().into_iter().map(By::Label);
        let interpreter = self.data.profile.has_interpreters().then_some(By::Interpreter);
        [By::Thread, By::Process].into_iter().chain(interpreter).chain(labels).collect()
    }

    /// Counts the rows of the table, over the selection without its filter on this kind.
    pub(crate) fn fill_groups(&mut self) {
        if self.groups.rows.is_none() {
            let kinds = self.group_kinds();
            self.groups.kind = self.groups.kind.min(kinds.len() - 1);
            let by = &kinds[self.groups.kind];
            let mut selection = self.settings.selection.clone();
            match by {
                By::Thread => {
                    selection.threads.clear();
                    if self.groups.has_process_of_thread {
                        selection.processes.clear();
                    }
                }
                By::Process => selection.processes.clear(),
                By::Label(key) => selection.labels.retain(|(known, _)| known != key),
                By::Interpreter => selection.interpreters.clear(),
                By::File | By::Class => {}
            }
            self.groups.rows = Some(self.data.calls.by(&self.data.profile, &selection, by));
        }
    }

    /// Goes to the next or the previous kind.
    pub(crate) fn turn_groups(&mut self, forwards: bool) {
        let kinds = self.group_kinds().len();
        self.groups.kind = (self.groups.kind + if forwards { 1 } else { kinds - 1 }) % kinds;
        self.groups.list = ScrollList::default();
        self.groups.forget();
        self.fill_groups();
    }

    /// Shows the same kind, or the first if it is gone, with the cursor on the same group if that still exists.
    pub(crate) fn go_to_group(&mut self, (kind, group): &(By, Option<GroupValue>)) {
        self.groups.kind = self.group_kinds().iter().position(|known| known == kind).unwrap_or_default();
        let Some(group) = group else { return };
        self.fill_groups();
        let rows = self.groups.rows.as_deref().unwrap_or_default();
        if let Some(place) = rows.iter().position(|row| row.value.is_same(group)) {
            self.groups.list.cursor = place;
        }
    }

    /// Counts only samples of the group under the cursor; the same row again counts all.
    pub(crate) fn select_group(&mut self) {
        let Some(value) = self.groups.current() else { return };
        let kinds = self.group_kinds();
        let selection = &mut self.settings.selection;
        match (&kinds[self.groups.kind], value) {
            (_, GroupValue::Thread { process, thread, .. }) => self.select_thread(process, thread),
            (_, GroupValue::Process(process)) => {
                self.groups.has_process_of_thread = false;
                toggle(&mut selection.processes, process);
            }
            (_, GroupValue::Interpreter(interpreter)) => toggle(&mut selection.interpreters, interpreter),
            (By::Label(key), GroupValue::Label(text)) => {
                let value = match text {
                    LabelText::Text(text) => text,
                    LabelText::Number(number, _) => number.to_string().into_bytes(),
                };
                toggle(&mut selection.labels, (key.clone(), value));
            }
            _ => return self.say("samples without this property cannot be selected"),
        }
        let cursor = self.groups.list;
        self.reweigh();
        self.fill_groups();
        self.groups.list = cursor;
    }

    /// The selected threads and processes, in words.
    pub(crate) fn thread_texts(&self) -> Vec<String> {
        let selection = &self.settings.selection;
        let of = match selection.processes.first() {
            Some(&process) if self.groups.has_process_of_thread => {
                format!(" of {}", LaneId::of_process(process))
            }
            _ => String::new(),
        };
        let threads = selection.threads.iter().map(|&thread| format!("thread {}{of}", LaneId::of(thread)));
        let processes =
            selection.processes.iter().map(|&process| format!("process {}", LaneId::of_process(process)));
        threads.chain(processes.filter(|_| of.is_empty())).collect()
    }

    /// Counts only samples of a thread of a process; the same thread again counts all.
    fn select_thread(&mut self, process: Option<i64>, thread: u64) {
        let selection = &mut self.settings.selection;
        let came_with_thread = std::mem::take(&mut self.groups.has_process_of_thread);
        let is_there =
            selection.threads == [thread] && process.is_none_or(|process| selection.processes == [process]);
        if came_with_thread {
            selection.processes.clear();
        }
        selection.threads.clear();
        if is_there {
            return;
        }
        selection.threads.push(thread);
        if let Some(process) = process.filter(|process| selection.processes != [*process]) {
            selection.processes = vec![process];
            self.groups.has_process_of_thread = true;
        }
    }
}

/// Selects only this value, or nothing if it was the selection.
fn toggle<T: PartialEq>(selected: &mut Vec<T>, value: T) {
    let is_there = selected.contains(&value);
    selected.clear();
    if !is_there {
        selected.push(value);
    }
}
