//! Numbers in copied memory, and addresses in memory that may be gone.

use crate::error::{Error, ErrorKind};
use crate::memory::{ForeignMemory, MemoryPiece};

/// The little-endian number of eight bytes at `offset`; `None` if `bytes` ends before it does.
#[inline]
#[must_use]
pub fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

/// The little-endian number of four bytes at `offset`; `None` if `bytes` ends before it does.
#[inline]
#[must_use]
pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

/// `address` plus `offset`, wrapping like the pointers that it stands for.
#[inline]
#[must_use]
pub const fn moved(address: u64, offset: usize) -> u64 {
    address.wrapping_add(offset as u64)
}

/// Reads into `into` from `address` until memory ends, and returns the number of bytes read.
///
/// # Errors
/// If the process is gone or may not be read.
pub fn read_some(memory: &impl ForeignMemory, address: u64, into: &mut [u8]) -> Result<usize, Error> {
    memory.read_pieces(&mut [MemoryPiece { address, into }])
}

/// Turns an error of unmapped memory into `None`: the data is gone, or never existed.
///
/// # Errors
/// Any other error.
pub fn mapped<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::Unmapped => Ok(None),
        Err(error) => Err(error),
    }
}
