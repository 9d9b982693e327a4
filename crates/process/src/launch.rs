//! Starts a command to be captured.

use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::{Error, ErrorKind};
use crate::family::Family;
use crate::ptrace;

/// A child process running a command. It may be read even if the system lets processes read only their descendants.
#[derive(Debug)]
pub struct Launched {
    child: Child,
    id: i32,
    /// The exit status, once it has ended and was waited for.
    status: Option<ExitStatus>,
}

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It ended by itself.
    ByItself(ExitStatus),
    /// It ended when it was asked to, with all its descendants.
    Asked(ExitStatus),
    /// It, or a descendant, did not end when it was asked to, and was killed.
    Killed,
    /// It was killed and still runs: it waits for a device.
    StillRuns,
}

/// The interval at which the command is checked for its end.
const STEP: Duration = Duration::from_millis(5);

/// The maximum time for killed processes to end.
const AFTER_KILL: Duration = Duration::from_secs(1);

impl Launched {
    /// Starts a program with its arguments. It inherits standard input and error; `output` is its standard output.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(program: &OsString, arguments: &[OsString], output: Stdio) -> Result<Self, Error> {
        // Otherwise the exit status would be lost if the program that started this one ignores the signal.
        ptrace::heed_ends_of_children();
        let name = program.to_string_lossy();
        let child = Command::new(program).args(arguments).stdout(output).spawn().map_err(|error| {
            let (kind, why) = match error.kind() {
                io::ErrorKind::NotFound => (ErrorKind::Gone, "no such program".to_owned()),
                io::ErrorKind::PermissionDenied => {
                    (ErrorKind::Denied, "it is not a program, or permission is denied".to_owned())
                }
                _ => (ErrorKind::Unsupported, error.to_string()),
            };
            Error::new(kind, format!("cannot start {name}: {why}"))
        })?;
        let id = i32::try_from(child.id())
            .map_err(|_| Error::new(ErrorKind::Unsupported, "process number too large"))?;
        Ok(Self { child, id, status: None })
    }

    /// The process number.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.id
    }

    /// The exit status; `None` while it runs, also while it is stopped.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        // `Child::try_wait` by itself takes a stop by a tracer of this program for the end.
        if self.status.is_none() && ptrace::has_ended(self.id).unwrap_or(false) {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Asks the process to end, and then those of its descendants that it leaves behind. Kills all that still run after
    /// `patience`. If the process has already ended, what it left behind runs on.
    pub fn end(&mut self, patience: Duration) -> Ending {
        if let Some(status) = self.exit_status() {
            return Ending::ByItself(status);
        }
        let mut family = Family::of(self.id);
        // A child keeps its number until it is waited for, so the signal cannot reach another process.
        let _ = kill(Pid::from_raw(self.id), Signal::SIGTERM);
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            let status = self.exit_status();
            match status {
                Some(status) if !family.runs() => return Ending::Asked(status),
                Some(_) => family.ask(),
                None => {}
            }
            thread::sleep(STEP);
        }
        self.kill(&mut family)
    }

    fn kill(&mut self, family: &mut Family) -> Ending {
        let deadline = Instant::now() + AFTER_KILL;
        loop {
            let is_over = self.exit_status().is_some() && !family.runs();
            if is_over || Instant::now() > deadline {
                return if is_over { Ending::Killed } else { Ending::StillRuns };
            }
            family.kill();
            thread::sleep(STEP);
        }
    }
}
