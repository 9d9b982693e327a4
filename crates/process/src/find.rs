//! Lists the running processes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::{files, guard};

/// A process in the list of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedProcess {
    /// The process number.
    pub id: i32,
    /// The number of the parent process.
    pub parent: i32,
    /// The command line, its arguments separated by spaces.
    pub command: Vec<u8>,
}

/// Lists all processes that run a program, except this one.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn processes() -> Result<Vec<ListedProcess>, Error> {
    let ours = [own(), guard::id()];
    let ids = files::numbers(Path::new("/proc")).map_err(|error| files::of_io(0, "", &error))?;
    // A process may end before its command line is read.
    Ok(ids.into_iter().filter(|&id| !ours.contains(&Some(id))).filter_map(listed).collect())
}

/// The number of this process; `None` without `/proc`.
fn own() -> Option<i32> {
    // `/proc` may belong to another PID namespace.
    fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()
}

/// The processes that this one was started by, except the first process, which adopts others.
#[must_use]
pub fn ancestors() -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut last = own();
    while let Some(stat) = last.and_then(|id| files::stat(id, "stat").ok()) {
        last = (stat.parent > 1 && found.insert(stat.parent)).then_some(stat.parent);
    }
    found
}

/// Reads one process; `None` for kernel threads and ended processes, which have no command line.
#[must_use]
pub fn listed(id: i32) -> Option<ListedProcess> {
    let mut command = files::read(id, "cmdline").ok()?;
    // The title that a process gives itself ends in many zero bytes.
    let length = command.iter().rposition(|&byte| byte != 0)? + 1;
    command.truncate(length);
    for byte in command.iter_mut().filter(|byte| **byte == 0) {
        *byte = b' ';
    }
    let parent = files::stat(id, "stat").ok()?.parent;
    Some(ListedProcess { id, parent, command })
}

/// The process `ancestor` and all its descendants that still run, in order of their numbers.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn descendants(ancestor: i32) -> Result<Vec<i32>, Error> {
    let all = processes()?;
    let mut family = BTreeSet::from([ancestor]);
    let mut has_grown = true;
    while std::mem::take(&mut has_grown) {
        for process in &all {
            has_grown |= family.contains(&process.parent) && family.insert(process.id);
        }
    }
    Ok(all.iter().map(|process| process.id).filter(|id| family.contains(id)).collect())
}

/// The file of the program that a process runs now, which differs from the first one if the process has replaced its
/// program. `None` if the process has ended or this process may not read the link.
#[must_use]
pub fn program(process: i32) -> Option<PathBuf> {
    fs::read_link(files::path(process, "exe")).ok()
}

/// Whether a process of this number exists and has not ended.
#[must_use]
pub fn exists(process: i32) -> bool {
    files::stat(process, "stat").is_ok_and(|stat| stat.state != b'Z')
}
