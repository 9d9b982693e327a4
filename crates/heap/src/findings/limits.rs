//! The limits that several passes share.

/// The minimum size that is called large, in bytes: smaller sizes are normal in any program.
pub(super) const MEBIBYTE: u64 = 1 << 20;

/// The minimum size of a string to report, in bytes.
pub(super) const NOTEWORTHY: u64 = 256 << 10;

/// The maximum number of findings of a kind, and of lines of a finding.
pub(super) const MOST: usize = 5;
