//! Runs of equal samples in text without counts, where they are written out in full.

use std::io;

/// The longest run of equal samples that is written: longer ones would fill the disk, because the text has no counts. It is
/// far more than a profiler takes in a day.
pub const LONGEST_RUN: u64 = 10_000_000;

/// The longest text of a sample that is held, in bytes: equal samples in a row are then built once.
pub(crate) const LONGEST_HELD: usize = 1 << 20;

/// Checks the length of a run.
///
/// # Errors
/// If the run is too long.
pub(crate) fn check(count: u64, format: &str) -> io::Result<()> {
    if count <= LONGEST_RUN { Ok(()) } else { Err(too_long_a_run(count, format)) }
}

#[cold]
fn too_long_a_run(count: u64, format: &str) -> io::Error {
    let message = format!(
        "too many equal samples for {format} text, which has no counts: expected at most {LONGEST_RUN}, found {count}; \
         write rbt or folded instead"
    );
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
