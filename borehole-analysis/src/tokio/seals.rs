//! Whether recorders completed their files.

use super::view::Seal;

/// What files say of themselves, in whatever order they are read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seals {
    /// The last time that a file was described which was not complete yet.
    open_ns: Option<u64>,
    /// The last time that a file was completed.
    sealed_ns: Option<u64>,
    is_incomplete: bool,
}

impl Seals {
    /// A file is described: `is_complete` is what it says of its completion, if it does.
    pub(super) fn described(&mut self, time_ns: u64, is_complete: Option<bool>) {
        match is_complete {
            // What files after it say does not bring back what is missing.
            Some(false) => self.is_incomplete = true,
            Some(true) => self.sealed_ns = self.sealed_ns.max(Some(time_ns)),
            None => self.open_ns = self.open_ns.max(Some(time_ns)),
        }
    }

    /// A process that is killed leaves its last file without a seal, whatever those before it have.
    pub(super) fn seal(&self) -> Seal {
        match self.sealed_ns {
            _ if self.is_incomplete => Seal::Incomplete,
            Some(_) if self.sealed_ns >= self.open_ns => Seal::Complete,
            _ => Seal::Absent,
        }
    }
}
