//! What can go wrong with another process.

use std::{fmt, io};

/// Why a process could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such process, or it has ended.
    Gone,
    /// The system does not let this process look into that one.
    Denied,
    /// Nothing is mapped at the address.
    Unmapped,
    /// A file of the process (`maps`, its program, a core file) is not what it should be.
    Malformed,
    /// The system cannot do what was asked.
    Unsupported,
}

/// An error with what was being done and, where there is one, the address.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    address: Option<u64>,
}

impl Error {
    /// An error of `kind` while doing `what`.
    #[must_use]
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), address: None }
    }

    /// Nothing is mapped at `address`.
    #[must_use]
    pub fn unmapped(address: u64) -> Self {
        Self { kind: ErrorKind::Unmapped, what: "unmapped memory".to_owned(), address: Some(address) }
    }

    /// Which kind of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where in the other process, if the error is about a place there.
    #[must_use]
    pub fn address(&self) -> Option<u64> {
        self.address
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.address.map_or(Ok(()), |address| write!(f, " (at address {address:#x})"))
    }
}

impl std::error::Error for Error {}

/// What the operating system says, as our own messages are written: lower case, without its number. `borehole_model::shown::cause`
/// says it so too, of which nothing is known here.
pub(crate) fn said(error: &io::Error) -> String {
    let text = error.to_string();
    let mut text = text.split(" (os error").next().unwrap_or(&text).to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// A disk that is broken.
    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(libc::EIO))
        }
    }

    #[test]
    fn what_the_system_says_reads_as_our_own_words() {
        let error = crate::Dump::read(Broken).unwrap_err();
        assert_eq!(error.to_string(), "dump: input/output error");
        let custom = io::Error::other("expected more");
        assert_eq!(said(&custom), "expected more");
    }
}
