//! Errors of attaching to CPython and of walking its stacks.

use std::fmt;

use borehole_model::TableFull;

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The process does not run Python.
    NotPython,
    /// The structures of this release or implementation of Python are unknown.
    UnsupportedVersion,
    /// The release is known, but the process's memory contradicts it.
    Implausible,
    /// The process could not be read; see [`Error::process`].
    Process,
    /// The tables of the profile are full.
    TableFull,
}

/// An error of attaching to CPython or of walking its stacks.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    process: Option<borehole_process::Error>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), process: None }
    }

    /// The process could not be read while looking for `what`.
    pub(crate) fn reading(what: &str, process: borehole_process::Error) -> Self {
        Self { kind: ErrorKind::Process, what: what.to_owned(), process: Some(process) }
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The underlying error of reading the process; `None` for other kinds.
    #[must_use]
    pub fn process(&self) -> Option<&borehole_process::Error> {
        self.process.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.process {
            Some(process) if self.what.is_empty() => process.fmt(f),
            Some(process) => write!(f, "{}: {process}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.process.as_ref().map(|process| process as _)
    }
}

impl From<borehole_process::Error> for Error {
    fn from(process: borehole_process::Error) -> Self {
        Self { kind: ErrorKind::Process, what: String::new(), process: Some(process) }
    }
}

impl From<TableFull> for Error {
    fn from(full: TableFull) -> Self {
        Self::new(ErrorKind::TableFull, full.to_string())
    }
}
