//! Writes to an output that may fail for a while, such as a full disk.

use std::io::{self, Write};

/// Writes `bytes` to `output` and empties it. On an error, the bytes already written are gone from `bytes`, so a retry
/// writes no byte twice.
///
/// # Errors
/// If the output cannot be written.
#[cold]
pub fn write_out(output: &mut impl Write, bytes: &mut Vec<u8>) -> io::Result<()> {
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
