//! How much an archive may unpack to.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of bytes that any archive may unpack to.
pub(super) const MIN_ALLOWED_BYTES: u64 = 64 << 20;

/// The number of bytes that an archive may unpack to for each of its own. Deflate makes at most 1,032 of one; profiles as text
/// are seldom compressed to less than a hundredth.
pub(super) const MAX_RATIO: u64 = 200;

/// The bytes of an archive read so far, and those that they were unpacked to.
#[derive(Clone, Debug, Default)]
pub(super) struct Allowance(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    packed: AtomicU64,
    unpacked: AtomicU64,
    is_exceeded: AtomicBool,
}

impl Allowance {
    pub(super) fn add_packed(&self, count: u64) {
        self.0.packed.fetch_add(count, Ordering::Relaxed);
    }

    /// Whether an archive was refused for what it unpacks to.
    pub(super) fn is_exceeded(&self) -> bool {
        self.0.is_exceeded.load(Ordering::Relaxed)
    }

    fn unpack(&self, count: u64) -> io::Result<()> {
        let Counts { packed, unpacked, is_exceeded } = &*self.0;
        // Bytes that were read: no sum of them overflows.
        let unpacked = unpacked.fetch_add(count, Ordering::Relaxed) + count;
        let allowed = packed.load(Ordering::Relaxed).saturating_mul(MAX_RATIO).max(MIN_ALLOWED_BYTES);
        let exceeds = unpacked > allowed;
        if is_exceeded.fetch_or(exceeds, Ordering::Relaxed) || exceeds {
            return Err(io::Error::other("too large"));
        }
        Ok(())
    }
}

/// Counts the bytes of the archive itself.
pub(super) struct Counted<R> {
    input: R,
    allowance: Allowance,
}

impl<R> Counted<R> {
    pub(super) const fn new(input: R, allowance: Allowance) -> Self {
        Self { input, allowance }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(out)?;
        self.allowance.add_packed(count as u64);
        Ok(count)
    }
}

/// Counts unpacked bytes, and ends with an error if they are too many.
pub(super) struct Allowed<R> {
    input: R,
    allowance: Allowance,
}

impl<R> Allowed<R> {
    pub(super) const fn new(input: R, allowance: Allowance) -> Self {
        Self { input, allowance }
    }
}

impl<R: Read> Read for Allowed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(out)?;
        self.allowance.unpack(count as u64)?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unpacks_to_too_much_ends_with_an_error() {
        let allowance = Allowance::default();
        allowance.add_packed(2 << 20);
        let unpack = |count| {
            let input = io::repeat(0).take(count);
            io::copy(&mut Allowed::new(input, allowance.clone()), &mut io::sink())
        };
        assert!(unpack((2 * MAX_RATIO) << 20).is_ok());
        assert!(!allowance.is_exceeded());
        assert!(unpack(1).is_err());
        assert!(allowance.is_exceeded());
    }
}
