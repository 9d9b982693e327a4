//! Numbers in copied memory, and moved addresses.

use borehole_process::{Error, ErrorKind};

#[inline]
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

/// `address` plus `offset`, wrapping like the pointers that it stands for.
#[inline]
pub(crate) const fn moved(address: u64, offset: usize) -> u64 {
    address.wrapping_add(offset as u64)
}

/// Turns an error of unmapped memory into `None`: the data is gone, or never existed.
pub(crate) fn mapped<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::Unmapped => Ok(None),
        Err(error) => Err(error),
    }
}
