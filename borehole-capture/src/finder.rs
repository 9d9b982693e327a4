//! Which processes are to be sampled, and attaching to them.

use std::collections::HashMap;
use std::time::Duration;

use borehole_process::{descendants, processes};

use crate::error::Error;
use crate::options::nanoseconds;
use crate::schedule::now_ns;
use crate::subject::Subject;

/// Tells by a command line whether a process is wanted.
pub type IsWanted = Box<dyn Fn(&[u8]) -> bool + Send>;

/// Attaches to the process of this number.
pub type Attach = Box<dyn Fn(i32) -> Result<Box<dyn Subject>, Error> + Send>;

/// Which processes are to be sampled.
pub enum Selection {
    /// This one.
    One(i32),
    /// This one and its descendants.
    Family(i32),
    /// Those whose command lines match, now and later.
    Matching(IsWanted),
}

impl Selection {
    /// The processes that belong to it now.
    fn members(&self) -> Result<Vec<i32>, Error> {
        Ok(match self {
            Self::One(process) => vec![*process],
            Self::Family(process) => descendants(*process)?,
            Self::Matching(is_wanted) => {
                let wanted = processes()?.into_iter().filter(|process| is_wanted(&process.command));
                wanted.map(|process| process.id).collect()
            }
        })
    }
}

/// Finds processes and attaches to them. One that cannot be attached to is tried again, ever more rarely: it may not have
/// got as far yet.
pub struct Finder {
    selection: Selection,
    attach: Attach,
    known: HashMap<i32, State>,
}

enum State {
    Attached,
    Refused { attempts: u32, again_ns: u64 },
}

/// What one look around has found.
#[derive(Default)]
pub struct Found {
    /// Processes that are attached to now.
    pub attached: Vec<Box<dyn Subject>>,
    /// Processes that were not, and why; each is told once it has been tried for a while.
    pub refused: Vec<(i32, Error)>,
}

/// A program that has just been started is not ready yet.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// After so many attempts, which is about half a second, it is told that a process is refused.
const TELL_AFTER: u32 = 6;

impl Finder {
    /// Nothing is looked for yet.
    #[must_use]
    pub fn new(selection: Selection, attach: Attach) -> Self {
        Self { selection, attach, known: HashMap::new() }
    }

    /// Looks around once.
    ///
    /// # Errors
    /// When processes cannot be listed.
    pub fn look(&mut self) -> Result<Found, Error> {
        let members = self.selection.members()?;
        self.known.retain(|process, _| members.contains(process));
        let mut found = Found::default();
        for process in members {
            let attempts = match self.known.get(&process) {
                Some(State::Attached) => continue,
                Some(State::Refused { again_ns, .. }) if now_ns() < *again_ns => continue,
                Some(State::Refused { attempts, .. }) => *attempts + 1,
                None => 1,
            };
            let state = match (self.attach)(process) {
                Ok(subject) => {
                    found.attached.push(subject);
                    State::Attached
                }
                Err(error) => {
                    if attempts == TELL_AFTER {
                        found.refused.push((process, error));
                    }
                    State::Refused { attempts, again_ns: now_ns() + pause_ns(attempts) }
                }
            };
            self.known.insert(process, state);
        }
        Ok(found)
    }

    /// The process is no longer being sampled. If it still runs, it may be found again: it may have become another program.
    pub fn forget(&mut self, process: i32) {
        self.known.remove(&process);
    }

    /// Whether there can be nothing more to find: the one process that was selected is gone.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        match self.selection {
            Selection::One(process) | Selection::Family(process) => {
                !self.known.contains_key(&process) && !borehole_process::exists(process)
            }
            Selection::Matching(_) => false,
        }
    }
}

fn pause_ns(attempts: u32) -> u64 {
    let doubled = FIRST_PAUSE.saturating_mul(1 << (attempts - 1).min(20));
    nanoseconds(doubled.min(LONGEST_PAUSE))
}
