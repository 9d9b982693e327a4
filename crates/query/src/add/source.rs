//! The identity of an input, and the result of adding it.

use std::io;

use sha2::{Digest as _, Sha256};

/// The properties of an input other than its contents.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// The short name of its format.
    pub format: String,
    /// The SHA-256 of its bytes: an input that is in the lake is not added again.
    pub sha256: [u8; 32],
    /// Its service; `None` to use its metadata.
    pub service: Option<String>,
    /// Its host; `None` to use its metadata.
    pub host: Option<String>,
    /// The start given by the user, in nanoseconds since 1970 (UTC). It applies to inputs that do not record theirs.
    pub began_unix_ns: Option<i64>,
    /// The last modification, in nanoseconds since 1970 (UTC): the fallback for an unknown start.
    pub modified_unix_ns: Option<i64>,
}

/// Computes the [`Source::sha256`] of everything that `reader` returns.
///
/// # Errors
/// If it cannot be read.
pub fn sha256(reader: &mut dyn io::Read) -> io::Result<[u8; 32]> {
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(sum.finalize().into()),
            Ok(count) => sum.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The result of adding an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// The number of samples, with each run counted in full.
    pub samples: u64,
    /// The number of rows in all tables.
    pub rows: u64,
    /// The bytes of all files written.
    pub bytes: u64,
    /// The number of stacks new to the lake.
    pub stacks: u64,
    /// The services of the input.
    pub services: Vec<String>,
    /// The number of samples and events more than a day in the future.
    pub future: u64,
    /// Whether times come from the file's last modification because the input has no dates.
    pub is_dated_by_file: bool,
}
