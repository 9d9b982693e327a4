//! A process that is never mistaken for a later one of the same number.

use std::os::fd::OwnedFd;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::Error;
use crate::files::{self, Stat};
use crate::pidfd;

/// A process, as it was found. Its number is reused only after it has ended, so whatever was read by its number belongs to
/// it if it has not ended *afterwards*: see [`checked`](Self::checked).
#[derive(Debug)]
pub(crate) struct ProcessHandle {
    id: i32,
    started: u64,
    /// `None` where Linux is older than 5.3 or a sandbox forbids the call. Then the start times of processes tell them
    /// apart, which are in hundredths of a second.
    descriptor: Option<OwnedFd>,
}

impl ProcessHandle {
    /// The process that has this number now.
    ///
    /// # Errors
    /// If there is none, or it has ended.
    pub(crate) fn open(id: i32) -> Result<Self, Error> {
        let descriptor = pidfd::open(id);
        if descriptor.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH)) {
            return Err(files::gone(id));
        }
        let Stat { state, started, .. } = files::stat(id, "stat")?;
        if state == b'Z' {
            return Err(files::gone(id));
        }
        let handle = Self { id, started, descriptor: descriptor.ok() };
        handle.check()?;
        Ok(handle)
    }

    /// The process number.
    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    /// # Errors
    /// If the process has ended.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let has_ended = match &self.descriptor {
            Some(descriptor) => pidfd::has_ended(descriptor),
            None => !self.is_running(),
        };
        if has_ended { Err(files::gone(self.id)) } else { Ok(()) }
    }

    /// Returns what was read by the number of the process, if that was this process.
    ///
    /// # Errors
    /// The error of reading, or that the process has ended meanwhile.
    pub(crate) fn checked<T>(&self, read: Result<T, Error>) -> Result<T, Error> {
        self.check().and(read)
    }

    /// Reads a file in `/proc/PID`.
    ///
    /// # Errors
    /// If it cannot be read, or the process has ended.
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        self.checked(files::read(self.id, name))
    }

    /// The threads, the main thread first.
    ///
    /// # Errors
    /// If the process has ended.
    pub(crate) fn threads(&self) -> Result<Vec<i32>, Error> {
        self.checked(files::threads(self.id))
    }

    /// Whether a thread of this number is one of the process.
    pub(crate) fn has_thread(&self, thread: i32) -> bool {
        files::path(self.id, &format!("task/{thread}")).symlink_metadata().is_ok() && self.check().is_ok()
    }

    /// Whether the process has not ended. Its main thread has not either.
    pub(crate) fn is_running(&self) -> bool {
        let stat = files::stat(self.id, "stat");
        stat.is_ok_and(|stat| stat.started == self.started && stat.state != b'Z')
            && self.descriptor.as_ref().is_none_or(|descriptor| !pidfd::has_ended(descriptor))
    }

    /// Sends a signal to the process, and to no other.
    pub(crate) fn signal(&self, signal: Signal) {
        match &self.descriptor {
            Some(descriptor) => drop(pidfd::signal(descriptor, signal as i32)),
            None if self.is_running() => drop(kill(Pid::from_raw(self.id), signal)),
            None => {}
        }
    }
}
