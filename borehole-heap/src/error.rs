//! What is wrong with a heap graph, or with the file that holds one.

use std::{error, fmt, io};

/// What is wrong, and where.
///
/// Its text reads "expected X, found Y (rmem, at byte 0x1a40)".
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    format: &'static str,
    offset: Option<u64>,
    message: String,
    source: Option<io::Error>,
}

/// The sort of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input ends in the middle of something.
    Truncated,
    /// The input contradicts its format.
    Malformed,
    /// The input uses a version or a feature that is not supported.
    Unsupported,
    /// More than numbers of 32 bits can count.
    Limit,
    /// Reading or writing failed.
    Io,
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, format: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, format, offset: None, message: message.into(), source: None }))
    }

    #[cold]
    pub(crate) fn malformed(format: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, format, message)
    }

    #[cold]
    pub(crate) fn io(format: &'static str, source: io::Error) -> Self {
        let message = source.to_string();
        Self(Box::new(Inner { kind: ErrorKind::Io, format, offset: None, message, source: Some(source) }))
    }

    /// The same, at byte `offset` of the input.
    #[cold]
    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// The sort of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Where in the input, in bytes from 0; `None` where it is the whole.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Whether the input ends too early.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.0.kind == ErrorKind::Truncated
    }

    /// Whether the input contradicts its format.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        self.0.kind == ErrorKind::Malformed
    }

    /// The failure of reading or writing, where it was one.
    #[must_use]
    pub fn as_io(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { format, offset, message, .. } = &*self.0;
        match offset {
            Some(offset) => write!(f, "{message} ({format}, at byte {offset:#x})"),
            None => write!(f, "{message} ({format})"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}
