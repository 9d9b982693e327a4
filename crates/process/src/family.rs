//! A process and its descendants, while they are ended.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nix::sys::signal::Signal;

use crate::files;
use crate::handle::ProcessHandle;

/// A process and its descendants. A descendant whose parent has ended stays a member.
#[derive(Debug, Default)]
pub(crate) struct Family {
    /// The running members by number.
    members: BTreeMap<i32, ProcessHandle>,
    /// The members that were asked to end.
    asked: BTreeSet<i32>,
}

impl Family {
    /// The family of a running process.
    pub(crate) fn of(ancestor: i32) -> Self {
        let mut family = Self::default();
        if let Ok(handle) = ProcessHandle::open(ancestor) {
            family.members.insert(ancestor, handle);
            family.update();
        }
        family
    }

    /// Whether a member still runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.update();
        !self.members.is_empty()
    }

    /// Asks every member once to end.
    pub(crate) fn ask(&mut self) {
        for (_, member) in self.members.iter().filter(|(id, _)| self.asked.insert(**id)) {
            member.signal(Signal::SIGTERM);
        }
    }

    pub(crate) fn kill(&self) {
        for member in self.members.values() {
            member.signal(Signal::SIGKILL);
        }
    }

    fn is_new_child(&self, id: i32, parent: i32) -> bool {
        self.members.contains_key(&parent) && !self.members.contains_key(&id)
    }

    /// Adds a process, if it is still a child of a member. Returns whether it is.
    fn add(&mut self, id: i32) -> bool {
        let Ok(handle) = ProcessHandle::open(id) else { return false };
        let parent = files::stat(id, "stat").map(|stat| stat.parent);
        let is_member = handle.checked(parent).is_ok_and(|parent| self.members.contains_key(&parent));
        is_member && self.members.insert(id, handle).is_none()
    }

    /// Adds new descendants, and removes members that have ended.
    fn update(&mut self) {
        let ids = files::numbers(Path::new("/proc")).unwrap_or_default();
        let stats = ids.into_iter().filter_map(|id| Some((id, files::stat(id, "stat").ok()?)));
        let running: BTreeMap<i32, files::Stat> = stats.filter(|(_, stat)| stat.state != b'Z').collect();
        // Another process may have the number of a member that has ended.
        self.members.retain(|_, member| member.is_running());
        let mut has_grown = true;
        while std::mem::take(&mut has_grown) {
            for (&id, stat) in &running {
                has_grown |= self.is_new_child(id, stat.parent) && self.add(id);
            }
        }
    }
}
