//! The errors of databases.

use std::{error, fmt};

/// An error with its message.
pub struct Error(Box<ErrorText>);

struct ErrorText {
    kind: ErrorKind,
    spent: Option<SpentLimit>,
    message: String,
    source: Option<Box<dyn error::Error + Send + Sync>>,
}

/// The message of [`ErrorKind::Locked`], for all databases.
#[cfg(any(feature = "sqlite", feature = "postgresql", feature = "mysql"))]
pub(crate) const LOCKED: &str = "another program is writing to the database; try again when it has finished";

/// A limit that can be raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpentLimit {
    /// How long to wait: [`Server::with_timeout`](crate::Server::with_timeout) or
    /// [`Database::set_timeout`](crate::Database::set_timeout).
    Time,
    /// The memory of the program.
    Memory,
}

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is not a database, or a database of another shape.
    Unsupported,
    /// The file is a damaged or incomplete database.
    Damaged,
    /// The run, or the database of a server, does not exist.
    Missing,
    /// The run has no such node.
    UnknownNode,
    /// The server does not know the user, or expects another password.
    Denied,
    /// There is no connection to the server, or it was lost.
    Connection,
    /// Another program is writing.
    Locked,
    /// A text is too long for an index.
    TooLong,
    /// The statement is invalid.
    Statement,
    /// Reading or writing failed.
    Io,
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorText { kind, spent: None, message: message.into(), source: None }))
    }

    #[cold]
    pub(crate) fn caused(
        kind: ErrorKind,
        message: impl Into<String>,
        source: impl error::Error + Send + Sync + 'static,
    ) -> Self {
        let source = Some(source.into());
        Self(Box::new(ErrorText { kind, spent: None, message: message.into(), source }))
    }

    /// The error that this build has no SQLite.
    #[cfg(not(feature = "sqlite"))]
    #[must_use]
    pub fn without_sqlite() -> Self {
        Self::new(ErrorKind::Unsupported, "unsupported format: this build has no SQLite support")
    }

    /// The error that `spent` was not enough.
    #[cold]
    pub(crate) fn spending(mut self, spent: SpentLimit) -> Self {
        self.0.spent = Some(spent);
        self
    }

    /// The kind of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The limit that was not enough; `None` if that is not the cause.
    #[must_use]
    pub fn spent(&self) -> Option<SpentLimit> {
        self.0.spent
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        // This error's text includes that of its source.
        self.0.source.as_deref().and_then(error::Error::source)
    }
}
