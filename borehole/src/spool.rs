//! Temporary files for what cannot be written or read in the order in which it comes.

use tempfile::SpooledTempFile;

/// How much of a spool stays in memory before it goes to a temporary file.
const IN_MEMORY_BYTES: usize = 256 << 10;

/// An empty one.
pub(crate) fn spool() -> SpooledTempFile {
    tempfile::spooled_tempfile(IN_MEMORY_BYTES)
}
