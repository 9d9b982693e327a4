//! Starts a command to be captured.

use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::{Error, ErrorKind};

/// A child process running a command. It may be read even if the system lets processes read only their descendants.
#[derive(Debug)]
pub struct Launched {
    child: Child,
    id: i32,
}

impl Launched {
    /// Starts a program with its arguments. It inherits standard input and error; `output` is its standard output.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(program: &OsString, arguments: &[OsString], output: Stdio) -> Result<Self, Error> {
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
        Ok(Self { child, id })
    }

    /// The process number.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.id
    }

    /// The exit status; `None` while it runs.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks the process to end, and waits for at most `patience`. Returns the exit status, `None` if it still runs.
    pub fn end(&mut self, patience: Duration) -> Option<ExitStatus> {
        // A child keeps its number until it is waited for, so the signal cannot reach another process.
        if self.exit_status().is_none() {
            let _ = kill(Pid::from_raw(self.id), Signal::SIGTERM);
        }
        let deadline = Instant::now() + patience;
        loop {
            let status = self.exit_status();
            if status.is_some() || Instant::now() > deadline {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
