//! A process and its descendants, while they are ended.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::files;

/// A process and its descendants. A descendant whose parent has ended stays a member.
#[derive(Debug, Default)]
pub(crate) struct Family {
    /// The running members: their start times by number.
    members: BTreeMap<i32, u64>,
    /// The members that were asked to end.
    asked: BTreeSet<i32>,
}

impl Family {
    /// The family of a running process.
    pub(crate) fn of(ancestor: i32) -> Self {
        let mut family = Self::default();
        if let Ok(stat) = files::stat(ancestor, "stat") {
            family.members.insert(ancestor, stat.started);
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
        for &member in self.members.keys().filter(|&&member| self.asked.insert(member)) {
            let _ = kill(Pid::from_raw(member), Signal::SIGTERM);
        }
    }

    pub(crate) fn kill(&self) {
        for &member in self.members.keys() {
            let _ = kill(Pid::from_raw(member), Signal::SIGKILL);
        }
    }

    /// Adds new descendants, and removes members that have ended.
    fn update(&mut self) {
        let ids = files::numbers(Path::new("/proc")).unwrap_or_default();
        let stats = ids.into_iter().filter_map(|id| Some((id, files::stat(id, "stat").ok()?)));
        let running: BTreeMap<i32, files::Stat> = stats.filter(|(_, stat)| stat.state != b'Z').collect();
        // Another process may have the number of a member that has ended.
        self.members.retain(|id, started| running.get(id).is_some_and(|stat| stat.started == *started));
        let mut has_grown = true;
        while std::mem::take(&mut has_grown) {
            for (&id, stat) in &running {
                if self.members.contains_key(&stat.parent) {
                    has_grown |= self.members.insert(id, stat.started).is_none();
                }
            }
        }
    }
}
