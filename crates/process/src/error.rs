//! The errors of reading another process.

use std::fmt;

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The process does not exist or has ended.
    Gone,
    /// The system does not allow this process to read the other one.
    Denied,
    /// Nothing is mapped at the address.
    Unmapped,
    /// A file of the process (`maps`, its program, a core file) is invalid.
    Malformed,
    /// The system does not support the request.
    Unsupported,
    /// More memory is needed than the program may hold.
    Memory,
}

/// An error with the failed action and, if there is one, the address.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    address: Option<u64>,
}

impl Error {
    /// Creates an error of `kind` that happened while doing `what`.
    #[must_use]
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), address: None }
    }

    /// Creates the error that nothing is mapped at `address`.
    #[must_use]
    pub fn unmapped(address: u64) -> Self {
        Self { kind: ErrorKind::Unmapped, what: "unmapped memory".to_owned(), address: Some(address) }
    }

    /// The kind of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The address in the other process; `None` if the error is not about an address.
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

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    /// A broken disk.
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
    }
}
