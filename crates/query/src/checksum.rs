//! Checksums of inputs and files.

use std::io;

use sha2::{Digest as _, Sha256};

use crate::journal::Sum;

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

/// The checksums of the beginnings of an input, by which a file that has grown is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentPrefixes {
    /// The length of the input.
    pub(crate) bytes: u64,
    /// The checksums of the first 1,024 bytes, of the first 2,048, and so on.
    pub(crate) sums: Vec<Sum>,
}

impl ContentPrefixes {
    /// The length of the shortest beginning. Shorter inputs have none.
    const SHORTEST: u64 = 1024;

    /// The checksum of the longest beginning.
    pub(crate) fn longest(&self) -> Option<Sum> {
        self.sums.last().copied()
    }
}

/// Computes the SHA-256 of everything that `reader` returns, and those of its beginnings.
///
/// # Errors
/// If it cannot be read.
pub fn content_sums(reader: &mut dyn io::Read) -> io::Result<([u8; 32], ContentPrefixes)> {
    let (mut sum, mut prefixes) = (Sha256::new(), ContentPrefixes::default());
    let mut next = ContentPrefixes::SHORTEST;
    let mut buffer = vec![0; 1 << 16];
    loop {
        // No read goes past the end of a beginning.
        let most = buffer.len().min(usize::try_from(next - prefixes.bytes).unwrap_or(usize::MAX));
        match reader.read(&mut buffer[..most]) {
            Ok(0) => return Ok((sum.finalize().into(), prefixes)),
            Ok(count) => {
                sum.update(&buffer[..count]);
                prefixes.bytes += count as u64;
                if prefixes.bytes == next {
                    prefixes.sums.push(input_sum(&sum.clone().finalize().into()));
                    next = next.saturating_mul(2);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The checksum by which commits know an input: half of its SHA-256.
pub(crate) fn input_sum(sha256: &[u8; 32]) -> Sum {
    let mut sum = Sum::default();
    sum.copy_from_slice(&sha256[..size_of::<Sum>()]);
    sum
}

/// The checksum of an input in hexadecimal, as commits and rows name it.
pub(crate) fn input_id(sha256: &[u8; 32]) -> String {
    hex(&input_sum(sha256))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn beginnings_of_a_file_that_grows_are_known() {
        let of = |length: u64| content_sums(&mut io::repeat(7).take(length)).unwrap();
        let (whole, grown) = of(5000);
        assert_eq!(whole, sha256(&mut io::repeat(7).take(5000)).unwrap());
        assert_eq!((grown.bytes, grown.sums.len()), (5000, 3));
        assert_eq!(of(3000).1.longest(), Some(grown.sums[1]));
        assert_eq!(grown.sums[2], input_sum(&of(4096).0));
        assert_eq!(of(1023).1.longest(), None);
    }
}
