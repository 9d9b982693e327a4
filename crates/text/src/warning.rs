//! The warnings of all readers.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Position};

/// Something odd or lost in an input.
///
/// # Examples
///
/// ```
/// use borehole_text::{Warning, WarningKind};
///
/// let warning = Warning::truncated("truncated: the last record is incomplete").at(1024).losing(12);
/// assert_eq!((warning.kind, warning.offset, warning.lost_bytes), (WarningKind::Truncated, Some(1024), 12));
/// assert_eq!(warning.input, None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Warning {
    /// The kind.
    pub kind: WarningKind,
    /// The name of the input. `None`: the reader does not know it; whoever opened the input adds it.
    #[cfg_attr(
        feature = "serde",
        serde(serialize_with = "input_name", skip_serializing_if = "Option::is_none")
    )]
    pub input: Option<Arc<str>>,
    /// The position in the input, in bytes after decompression. Text formats give lines in the message instead.
    pub offset: Option<u64>,
    /// The expected and the actual content.
    pub message: String,
    /// The number of bytes that could not be used.
    pub lost_bytes: u64,
    /// The number of samples read between this damage and the next one, or the end. `None`: nothing is damaged here,
    /// reading did not continue after it, or the format's reader does not count them.
    pub saved_samples: Option<u64>,
}

/// The kind of a [`Warning`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A part of the input contradicts its format, or another part.
    #[default]
    Damaged,
    /// The input ends in the middle of something.
    Truncated,
    /// The input uses something that the reader does not understand, and was read without it.
    Unsupported,
    /// A limit was reached, and the rest left out.
    Limit,
    /// Worth knowing, but nothing is damaged or lost.
    Note,
}

impl WarningKind {
    /// The name, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Truncated => "truncated",
            Self::Unsupported => "unsupported",
            Self::Limit => "limit",
            Self::Note => "note",
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for WarningKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(feature = "serde")]
fn input_name<S: serde::Serializer>(input: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&input.as_deref(), serializer)
}

impl From<ErrorKind> for WarningKind {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Truncated => Self::Truncated,
            ErrorKind::Unsupported => Self::Unsupported,
            ErrorKind::Limit | ErrorKind::Memory => Self::Limit,
            _ => Self::Damaged,
        }
    }
}

impl Warning {
    /// A warning about the whole input, without loss.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        let kind = WarningKind::default();
        Self { kind, input: None, offset: None, message: message.into(), lost_bytes: 0, saved_samples: None }
    }

    /// A warning that the input ends in the middle of something.
    #[must_use]
    pub fn truncated(message: impl Into<String>) -> Self {
        Self::new(message).of_kind(WarningKind::Truncated)
    }

    /// The warning of a reader that continues after `error`, at its offset.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        Self::new(error.message()).at(error.offset()).of_kind(error.kind().into())
    }

    /// Sets the kind.
    #[must_use]
    pub fn of_kind(self, kind: WarningKind) -> Self {
        Self { kind, ..self }
    }

    /// Sets the position, if there is one.
    #[must_use]
    pub fn at(self, offset: impl Into<Option<u64>>) -> Self {
        Self { offset: offset.into(), ..self }
    }

    /// Sets the number of bytes that could not be used.
    #[must_use]
    pub fn losing(self, lost_bytes: u64) -> Self {
        Self { lost_bytes, ..self }
    }

    /// Sets the number of samples read after the damage.
    #[must_use]
    pub fn saving(self, saved_samples: impl Into<Option<u64>>) -> Self {
        Self { saved_samples: saved_samples.into(), ..self }
    }

    /// Names the input, unless that is done already.
    #[must_use]
    pub fn in_input(self, name: &Arc<str>) -> Self {
        Self { input: self.input.or_else(|| Some(Arc::clone(name))), ..self }
    }

    /// The error of a reader that stops here, in an input of `format`.
    #[must_use]
    pub fn to_error(&self, format: &'static str) -> Error {
        let position = self.offset.map_or(Position::Whole, Position::Byte);
        Error::malformed(format, position, self.message.as_str())
    }
}
