//! Selects the processes to sample, and attaches to them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use borehole_process::{ancestors, descendants, listed, processes, program};

use crate::error::Error;
use crate::options::nanoseconds;
use crate::ready;
use crate::schedule::now_ns;
use crate::subject::Subject;

/// Decides by the command line whether a process is wanted.
pub type IsWanted = Box<dyn Fn(&[u8]) -> bool + Send>;

/// Attaches to the process of this number.
pub type Attach = Box<dyn Fn(i32) -> Result<Box<dyn Subject>, Error> + Send>;

/// A selection of the processes to sample.
pub enum ProcessSelection {
    /// A single process.
    One(i32),
    /// A process and its descendants.
    Family(i32),
    /// All processes, present and future, whose command lines match, except those that this one was started by: their
    /// command lines contain what is searched for.
    Matching(IsWanted),
}

impl ProcessSelection {
    fn members(&self) -> Result<Vec<i32>, Error> {
        Ok(match self {
            Self::One(process) => vec![*process],
            Self::Family(process) => descendants(*process)?,
            Self::Matching(is_wanted) => {
                let starters = ancestors();
                let others = processes()?.into_iter().filter(|process| !starters.contains(&process.id));
                others.filter(|process| is_wanted(&process.command)).map(|process| process.id).collect()
            }
        })
    }

    /// Whether a process that was a member before it was attached to is one now. Meanwhile its number may have become that of
    /// another process.
    fn still_has(&self, process: i32) -> bool {
        match self {
            Self::One(_) => true,
            Self::Family(ancestor) => descendants(*ancestor).is_ok_and(|family| family.contains(&process)),
            Self::Matching(is_wanted) => listed(process).is_some_and(|listed| is_wanted(&listed.command)),
        }
    }
}

/// Finds processes and attaches to them. If it cannot attach to a process, it tries again at growing intervals, because
/// the process may not be ready yet. When the process replaces its program, as a shell does at the end of a script, the
/// attempts start anew.
pub struct Finder {
    selection: ProcessSelection,
    attach: Attach,
    known: HashMap<i32, AttachState>,
}

enum AttachState {
    Attached,
    Refused(FailedAttempts),
}

struct FailedAttempts {
    program: Option<PathBuf>,
    attempts: u32,
    first_ns: u64,
    again_ns: u64,
    /// The error of the last attempt, until it is reported.
    unreported: Option<Error>,
}

impl FailedAttempts {
    fn is_to_be_reported(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.first_ns) >= nanoseconds(ready::LIMIT)
    }

    /// Adds a failed attempt on a process that was running `program`.
    fn again(earlier: Option<AttachState>, program: Option<PathBuf>, now_ns: u64, error: Error) -> Self {
        let (attempts, first_ns, is_reported) = match earlier {
            Some(AttachState::Refused(earlier)) if earlier.program == program => {
                (earlier.attempts, earlier.first_ns, earlier.unreported.is_none())
            }
            _ => (0, now_ns, false),
        };
        let again_ns = now_ns.saturating_add(pause_ns(attempts));
        let unreported = (!is_reported).then_some(error);
        Self { program, attempts: attempts + 1, first_ns, again_ns, unreported }
    }

    fn is_due(&self, process: i32, now_ns: u64) -> bool {
        self.again_ns <= now_ns || self.program != program(process)
    }
}

/// The result of one search.
#[derive(Default)]
#[non_exhaustive]
pub struct SearchOutcome {
    /// The newly attached processes.
    pub attached: Vec<Box<dyn Subject>>,
    /// The processes that could not be attached to, with the reason. Each is reported once, after several attempts.
    pub refused: Vec<(i32, Error)>,
}

const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl Finder {
    /// Creates a finder, without a search yet.
    #[must_use]
    pub fn new(selection: ProcessSelection, attach: Attach) -> Self {
        Self { selection, attach, known: HashMap::new() }
    }

    /// Searches once.
    ///
    /// # Errors
    /// If processes cannot be listed.
    pub fn look(&mut self) -> Result<SearchOutcome, Error> {
        self.look_by(now_ns)
    }

    /// Like [`Self::look`], with another clock.
    fn look_by(&mut self, now_ns: impl Fn() -> u64) -> Result<SearchOutcome, Error> {
        let members = self.selection.members()?;
        // An attached process is sampled until it is forgotten, even if its command line no longer matches.
        self.known
            .retain(|process, state| matches!(state, AttachState::Attached) || members.contains(process));
        let mut found = SearchOutcome::default();
        for process in members {
            let is_due = match self.known.get(&process) {
                Some(AttachState::Attached) => false,
                Some(AttachState::Refused(refusal)) => refusal.is_due(process, now_ns()),
                None => true,
            };
            if is_due {
                self.try_attach(process, &now_ns, &mut found);
            }
        }
        let now_ns = now_ns();
        found.refused = self.take_errors(|refusal| refusal.is_to_be_reported(now_ns));
        Ok(found)
    }

    fn try_attach(&mut self, process: i32, now_ns: impl Fn() -> u64, found: &mut SearchOutcome) {
        let program = program(process);
        let state = match (self.attach)(process) {
            Ok(_) if !self.selection.still_has(process) => return,
            Ok(subject) => {
                found.attached.push(subject);
                AttachState::Attached
            }
            Err(error) => {
                let earlier = self.known.remove(&process);
                AttachState::Refused(FailedAttempts::again(earlier, program, now_ns(), error))
            }
        };
        self.known.insert(process, state);
    }

    /// Takes the refusals not yet reported, when the search ends. Leaves out processes that have ended.
    pub fn unreported(&mut self) -> Vec<(i32, Error)> {
        let mut unreported = self.take_errors(|_| true);
        unreported.retain(|(process, error)| !error.is_gone() && borehole_process::exists(*process));
        unreported
    }

    fn take_errors(&mut self, is_to_be_reported: impl Fn(&FailedAttempts) -> bool) -> Vec<(i32, Error)> {
        let reported = self.known.iter_mut().filter_map(|(&process, state)| match state {
            AttachState::Refused(refusal) if is_to_be_reported(refusal) => {
                Some((process, refusal.unreported.take()?))
            }
            _ => None,
        });
        reported.collect()
    }

    /// Notes that a process is no longer sampled. If it still runs, it may be found again: it may have replaced its program.
    pub fn forget(&mut self, process: i32) {
        self.known.remove(&process);
    }

    /// Whether no more processes can be found, because the selected process is gone.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        match self.selection {
            ProcessSelection::One(process) | ProcessSelection::Family(process) => {
                let is_sampled = matches!(self.known.get(&process), Some(AttachState::Attached));
                !is_sampled && !borehole_process::exists(process)
            }
            ProcessSelection::Matching(_) => false,
        }
    }
}

/// The pause after a failed attempt that follows this many failed ones.
fn pause_ns(attempts: u32) -> u64 {
    let doubled = ready::PAUSE.saturating_mul(1 << attempts.min(20));
    nanoseconds(doubled.min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use borehole_process::ErrorKind;

    use super::*;

    #[test]
    fn a_refusal_is_reported_after_half_a_second_however_rare_the_searches() {
        let attach: Attach = Box::new(|_| Err(borehole_process::Error::new(ErrorKind::Denied, "no").into()));
        let own = std::process::id().try_into().unwrap();
        let mut finder = Finder::new(ProcessSelection::One(own), attach);
        let reported = [0, 300, 600, 900].map(|ms| finder.look_by(|| ms * 1_000_000).unwrap().refused.len());
        assert_eq!(reported, [0, 0, 1, 0]);
        assert!(finder.unreported().is_empty());
    }
}
