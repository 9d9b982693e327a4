//! Which processes there are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files;

/// A process as the list of them shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its number.
    pub id: i32,
    /// Who started it.
    pub parent: i32,
    /// Its command line, the arguments apart by spaces.
    pub command: Vec<u8>,
}

/// All processes that run a program, but this one.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn processes() -> Result<Vec<Candidate>, Error> {
    let own = std::process::id();
    let ids = files::numbers(Path::new("/proc")).map_err(|error| files::of_io(0, "", &error))?;
    // A process may end between its number and its command line.
    Ok(ids.into_iter().filter(|id| own.try_into() != Ok(*id)).filter_map(candidate).collect())
}

/// `None` for threads of the kernel and for what has ended: they have no command line.
fn candidate(id: i32) -> Option<Candidate> {
    let mut command = files::read(id, "cmdline").ok()?;
    // The title that a process gives itself ends in many zero bytes.
    let length = command.iter().rposition(|&byte| byte != 0)? + 1;
    command.truncate(length);
    for byte in command.iter_mut().filter(|byte| **byte == 0) {
        *byte = b' ';
    }
    let parent = files::stat(id, "stat").ok()?.parent;
    Some(Candidate { id, parent, command })
}

/// The process `ancestor` and whatever it and its descendants have started, as far as it still runs, in order of their
/// numbers.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn descendants(ancestor: i32) -> Result<Vec<i32>, Error> {
    let all = processes()?;
    let mut family = BTreeSet::from([ancestor]);
    loop {
        let before = family.len();
        family.extend(
            all.iter()
                .filter(|process| family.contains(&process.parent))
                .map(|process| process.id)
                .collect::<Vec<_>>(),
        );
        if family.len() == before {
            break;
        }
    }
    Ok(all.iter().map(|process| process.id).filter(|id| family.contains(id)).collect())
}

/// The file of the program that a process runs: another one, after it has replaced its program. `None` if it has ended, or
/// that is not for us to know.
#[must_use]
pub fn program(process: i32) -> Option<PathBuf> {
    fs::read_link(files::path(process, "exe")).ok()
}

/// Whether there is a process of this number that has not ended.
#[must_use]
pub fn exists(process: i32) -> bool {
    files::stat(process, "stat").is_ok_and(|stat| stat.state != b'Z')
}
