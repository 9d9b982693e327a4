//! The error of everything that cannot be written.

use std::{error, fmt, io};

/// The reason why data cannot be written: "expected X, found Y". It is the inner error of an [`io::Error`] of
/// the kind [`InvalidInput`](io::ErrorKind::InvalidInput).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(String);

impl Invalid {
    #[cold]
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for Invalid {}

impl From<Invalid> for io::Error {
    fn from(invalid: Invalid) -> Self {
        Self::new(io::ErrorKind::InvalidInput, invalid)
    }
}

/// A count in the wire's form.
#[inline]
pub(super) fn count_u32(count: usize) -> Result<u32, Invalid> {
    u32::try_from(count).map_err(|_| too_large(count))
}

#[cold]
fn too_large(count: usize) -> Invalid {
    Invalid::new(format!("too large: expected at most {}, found {count}", u32::MAX))
}
