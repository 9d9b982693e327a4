//! Reasons why an address has no symbols.

use std::fmt;
use std::io;

use borehole_text::cause;

/// The reason why nothing is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Unresolved {
    /// The file is not there.
    NoFile,
    /// The system does not allow reading the file.
    Denied,
    /// The file is of another build than the addresses.
    OtherBuild,
    /// The file is no ELF file of 64 bits, or is damaged.
    Damaged,
    /// The file needs more memory than allowed.
    TooLarge,
    /// The file has no symbols, and no debug file was found.
    NoSymbols,
    /// The symbols do not cover the address.
    Uncovered,
}

impl Unresolved {
    /// A sentence's end: "the file is missing".
    const fn words(self) -> &'static str {
        match self {
            Self::NoFile => "the file is missing",
            Self::Denied => "the file may not be read",
            Self::OtherBuild => "the file is of another build",
            Self::Damaged => "the file is invalid",
            Self::TooLarge => "the file is too large",
            Self::NoSymbols => "the file has no symbols",
            Self::Uncovered => "no symbol covers the address",
        }
    }
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// Why a module could not be loaded, in full.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) reason: Unresolved,
    pub(crate) text: String,
}

impl Fault {
    pub(crate) fn new(reason: Unresolved, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }

    pub(crate) fn damaged(text: impl Into<String>) -> Self {
        Self::new(Unresolved::Damaged, text)
    }

    /// Explains an error of opening or reading a file.
    pub(crate) fn of_io(error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Unresolved::NoFile,
            io::ErrorKind::PermissionDenied => Unresolved::Denied,
            _ => Unresolved::Damaged,
        };
        Self::new(reason, cause(error))
    }
}
