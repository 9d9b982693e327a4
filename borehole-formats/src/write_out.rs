//! Bytes on their way to an output that may fail for a moment, as a disk does that is full.

use std::io::{self, Write};

/// Writes `bytes` to `output` and empties it. What has been written when an error comes is gone from `bytes`: who tries
/// again writes no byte twice.
///
/// # Errors
/// When the output cannot be written.
#[cold]
pub(crate) fn write_out(output: &mut impl Write, bytes: &mut Vec<u8>) -> io::Result<()> {
    let (mut written, mut outcome) = (0, Ok(()));
    while outcome.is_ok() && written < bytes.len() {
        match output.write(&bytes[written..]) {
            Ok(0) => outcome = Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => outcome = Err(error),
        }
    }
    bytes.drain(..written);
    outcome
}
