//! What an input is, and what became of it.

use std::io;

use sha2::{Digest as _, Sha256};

/// What an input is, beside what is in it.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// What it is called.
    pub name: String,
    /// Its format, by its short name.
    pub format: String,
    /// The SHA-256 of its bytes: an input that is in the lake is not added again.
    pub sha256: [u8; 32],
    /// The service that it is of; `None` to go by its metadata.
    pub service: Option<String>,
    /// The machine that it is of; `None` to go by its metadata.
    pub host: Option<String>,
    /// When it began, in nanoseconds since 1970 (UTC), if the user says it. It holds for inputs that do not record it.
    pub began_unix_ns: Option<i64>,
    /// When it was written last: what else is known of when it began.
    pub modified_unix_ns: Option<i64>,
}

/// The checksum of all that `reader` gives: for [`Source::sha256`].
///
/// # Errors
/// When it cannot be read.
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

/// What became of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Samples, runs in full.
    pub samples: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes of all files that were written.
    pub bytes: u64,
    /// Stacks that the lake did not know.
    pub stacks: u64,
    /// The services that it is of.
    pub services: Vec<String>,
    /// Samples and events later than now by more than a day.
    pub future: u64,
    /// Where times are from that the input itself does not date: the time when it was written last.
    pub is_dated_by_file: bool,
}
