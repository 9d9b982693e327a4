//! Values of PHP in another process's memory: numbers, strings and hash tables.
//!
//! Nothing read here is trusted: lengths are capped, and nothing is allocated before its bytes are there.

use borehole_process::{Error, ForeignMemory};
pub(crate) use borehole_process::{mapped, moved, read_some, u32_at, u64_at};

use crate::layout::fixed;

/// The maximum length of a name or path that is kept; the names of PHP's own files and functions are far shorter.
pub(crate) const LONGEST_NAME: usize = 4096;

/// The end of a name that was longer than [`LONGEST_NAME`].
const CUT: &[u8] = "…".as_bytes();

/// The bytes of the `zend_string` at `address`, cut at [`LONGEST_NAME`].
pub(crate) fn string(memory: &impl ForeignMemory, address: u64) -> Result<Vec<u8>, Error> {
    let mut start = [0; fixed::STRING_BYTES + 104];
    let filled = read_some(memory, address, &mut start)?;
    let missing = || Error::unmapped(moved(address, filled));
    let length = u64_at(&start[..filled], fixed::STRING_LENGTH).ok_or_else(missing)?;
    let whole = usize::try_from(length).unwrap_or(usize::MAX);
    let kept = whole.min(LONGEST_NAME);
    let mut bytes = vec![0; kept];
    let end = fixed::STRING_BYTES + kept;
    if end <= filled {
        bytes.copy_from_slice(&start[fixed::STRING_BYTES..end]);
    } else {
        memory.read(moved(address, fixed::STRING_BYTES), &mut bytes)?;
    }
    if kept < whole {
        bytes.extend_from_slice(CUT);
    }
    Ok(bytes)
}

/// The bytes of the C string at `address` up to its NUL, cut at [`LONGEST_NAME`].
pub(crate) fn c_string(memory: &impl ForeignMemory, address: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut part = [0; 256];
    while bytes.len() < LONGEST_NAME {
        let filled = read_some(memory, moved(address, bytes.len()), &mut part)?;
        let part = &part[..filled];
        if let Some(end) = part.iter().position(|&byte| byte == 0) {
            bytes.extend_from_slice(&part[..end]);
            return Ok(bytes);
        }
        if part.is_empty() {
            return Err(Error::unmapped(moved(address, bytes.len())));
        }
        bytes.extend_from_slice(part);
    }
    bytes.extend_from_slice(CUT);
    Ok(bytes)
}

/// A bucket of a hash table with string keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StringBucket {
    /// The value, if it is a pointer.
    pub(crate) pointer: u64,
    /// The type of the value.
    pub(crate) kind: u8,
    pub(crate) hash: u64,
    /// The key's `zend_string`; null if the key is a number.
    pub(crate) key: u64,
}

/// The first `most` used buckets of the `HashTable` at `address`.
pub(crate) fn buckets(
    memory: &impl ForeignMemory,
    address: u64,
    most: usize,
) -> Result<Vec<StringBucket>, Error> {
    let mut table = [0; fixed::TABLE_SIZE];
    memory.read(address, &mut table)?;
    let first = u64_at(&table, fixed::TABLE_BUCKETS).unwrap_or_default();
    let used = u32_at(&table, fixed::TABLE_USED).unwrap_or_default();
    let wanted = usize::try_from(used).unwrap_or(usize::MAX).min(most);
    let mut bytes = vec![0; wanted.saturating_mul(fixed::BUCKET_SIZE)];
    memory.read(first, &mut bytes)?;
    let bucket = |bytes: &[u8]| {
        Some(StringBucket {
            pointer: u64_at(bytes, 0)?,
            kind: *bytes.get(fixed::BUCKET_KIND)?,
            hash: u64_at(bytes, fixed::BUCKET_HASH)?,
            key: u64_at(bytes, fixed::BUCKET_KEY)?,
        })
    };
    let is_used = |bytes: &&[u8]| bytes.get(fixed::BUCKET_KIND).is_some_and(|&kind| kind != 0);
    Ok(bytes.chunks_exact(fixed::BUCKET_SIZE).filter(is_used).filter_map(bucket).collect())
}

/// The hash of a string, as stored in its `zend_string` and in the buckets that have it as their key.
///
/// Source: `zend_inline_hash_func`: DJBX33A, with the highest bit set.
pub(crate) fn hash(string: &[u8]) -> u64 {
    let hash =
        string.iter().fold(5381_u64, |hash, &byte| hash.wrapping_mul(33).wrapping_add(u64::from(byte)));
    hash | 1 << 63
}
