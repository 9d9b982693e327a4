//! Checksums of inputs and files.

use std::io;

use sha2::{Digest as _, Sha256};

/// Computes the SHA-256 of everything that `reader` returns.
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

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of an input in commits: half of its SHA-256, in hexadecimal.
pub(crate) fn input_id(sha256: &[u8; 32]) -> String {
    hex(&sha256[..16])
}
