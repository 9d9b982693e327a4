//! What can go wrong with a capture.

use std::{fmt, io};

/// Why a process cannot be sampled, or a capture had to end.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The process may not be read, or has ended.
    Process(borehole_process::Error),
    /// It runs no PHP that is understood.
    Php(borehole_php::Error),
    /// What was sampled cannot be written.
    Output(io::Error),
}

impl Error {
    /// Whether the process has ended: nothing is wrong, there is only nothing more to see.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        let process = match self {
            Self::Process(error) => Some(error),
            Self::Php(error) => error.process(),
            Self::Output(_) => None,
        };
        process.is_some_and(|error| error.kind() == borehole_process::ErrorKind::Gone)
    }

    /// Whether the process runs no PHP.
    #[must_use]
    pub fn is_other_program(&self) -> bool {
        matches!(self, Self::Php(error) if error.kind() == borehole_php::ErrorKind::NotPhp)
    }

    /// Whether a program that has just been started may be why: it is another one at first, and its state makes no sense.
    pub(crate) fn may_be_early(&self) -> bool {
        let Self::Php(error) = self else { return false };
        matches!(error.kind(), borehole_php::ErrorKind::NotPhp | borehole_php::ErrorKind::Implausible)
    }

    /// Whether there are more distinct names, frames or stacks than a profile can hold.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Php(error) if error.kind() == borehole_php::ErrorKind::TableFull)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(error) => error.fmt(f),
            Self::Php(error) => error.fmt(f),
            Self::Output(error) => error.fmt(f),
        }
    }
}

// Its text says all of it: what is behind it is no further source.
impl std::error::Error for Error {}

impl From<borehole_process::Error> for Error {
    fn from(error: borehole_process::Error) -> Self {
        Self::Process(error)
    }
}

impl From<borehole_php::Error> for Error {
    fn from(error: borehole_php::Error) -> Self {
        Self::Php(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
