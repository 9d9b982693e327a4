//! Whether recorders completed their files.

use super::view::Seal;

/// The files' own records of their completion, in any order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seals {
    /// The last time at which an incomplete file was described.
    open_ns: Option<u64>,
    /// The last time at which a file was completed.
    sealed_ns: Option<u64>,
    is_incomplete: bool,
}

impl Seals {
    /// Adds the description of a file; `is_complete` is its own record of completion, if it has one.
    pub(super) fn described(&mut self, time_ns: u64, is_complete: Option<bool>) {
        match is_complete {
            // Later files cannot restore what is missing.
            Some(false) => self.is_incomplete = true,
            Some(true) => self.sealed_ns = self.sealed_ns.max(Some(time_ns)),
            None => self.open_ns = self.open_ns.max(Some(time_ns)),
        }
    }

    /// The seal of all files: a killed process leaves its last file without one, whatever the earlier files have.
    pub(super) fn seal(&self) -> Seal {
        match self.sealed_ns {
            _ if self.is_incomplete => Seal::Incomplete,
            Some(_) if self.sealed_ns >= self.open_ns => Seal::Complete,
            _ => Seal::Absent,
        }
    }
}
