//! The errors of a capture.

use std::{fmt, io};

use borehole_memory::OverBudget;
use borehole_model::TableFull;

/// The reason why a process cannot be sampled or a capture had to end.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The process may not be read, or has ended.
    Process(borehole_process::Error),
    /// The process runs no supported PHP.
    Php(borehole_php::Error),
    /// The process runs no supported Python.
    Python(borehole_python::Error),
    /// The process runs nothing that can be sampled. The text says what it runs.
    OtherProgram(String),
    /// The process cannot be sampled as the options ask. The text says why.
    Unsupported(String),
    /// The output cannot be written.
    Output(io::Error),
    /// There are more distinct names, frames or stacks than a profile can hold.
    Full(TableFull),
}

impl Error {
    /// Whether the process has ended, which is normal and ends its sampling.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        let process = match self {
            Self::Process(error) => Some(error),
            Self::Php(error) => error.process(),
            Self::Python(error) => error.process(),
            Self::OtherProgram(_) | Self::Unsupported(_) | Self::Output(_) | Self::Full(_) => None,
        };
        process.is_some_and(|error| error.kind() == borehole_process::ErrorKind::Gone)
    }

    /// Whether the process runs neither PHP nor Python.
    #[must_use]
    pub fn is_other_program(&self) -> bool {
        match self {
            Self::Php(error) => error.kind() == borehole_php::ErrorKind::NotPhp,
            Self::Python(error) => error.kind() == borehole_python::ErrorKind::NotPython,
            Self::OtherProgram(_) => true,
            Self::Process(_) | Self::Unsupported(_) | Self::Output(_) | Self::Full(_) => false,
        }
    }

    /// Whether the cause may be that the program has just been started: at first the process is another program, and
    /// its state is inconsistent.
    pub(crate) fn may_be_early(&self) -> bool {
        self.is_other_program()
            || matches!(self, Self::Php(error) if error.kind() == borehole_php::ErrorKind::Implausible)
            || matches!(self, Self::Python(error) if error.kind() == borehole_python::ErrorKind::Implausible)
    }

    /// Whether the cause is a budget of memory that is used up.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        match self {
            Self::Output(error) => OverBudget::of(error).is_some(),
            _ => false,
        }
    }

    /// Whether the cause is that there are more distinct names, frames or stacks than a profile can hold.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
            || matches!(self, Self::Php(error) if error.kind() == borehole_php::ErrorKind::TableFull)
            || matches!(self, Self::Python(error) if error.kind() == borehole_python::ErrorKind::TableFull)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(error) => error.fmt(f),
            Self::Php(error) => error.fmt(f),
            Self::Python(error) => error.fmt(f),
            Self::OtherProgram(text) | Self::Unsupported(text) => f.write_str(text),
            Self::Output(error) => error.fmt(f),
            Self::Full(full) => full.fmt(f),
        }
    }
}

// The text already includes the inner error, so there is no `source`.
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

impl From<borehole_python::Error> for Error {
    fn from(error: borehole_python::Error) -> Self {
        Self::Python(error)
    }
}

impl From<TableFull> for Error {
    fn from(full: TableFull) -> Self {
        Self::Full(full)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
