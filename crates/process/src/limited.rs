//! ELF files whose numbers are not trusted: a budget bounds what is read of them and kept.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use object::{ReadCache, ReadRef};

/// The number of bytes that may still be read and kept.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    left: AtomicU64,
}

impl ByteBudget {
    pub(crate) const fn new(bytes: u64) -> Self {
        Self { left: AtomicU64::new(bytes) }
    }

    /// Takes `bytes` from the budget. Returns whether that many were left; if not, none are left from here on.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let taken =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        if taken.is_err() {
            self.left.store(0, Ordering::Relaxed);
        }
        taken.is_ok()
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

/// A file, of which a budget bounds what is read. Whatever is read twice counts twice.
#[derive(Clone, Copy)]
pub(crate) struct LimitedFile<'a> {
    pub(crate) cache: &'a ReadCache<&'a File>,
    pub(crate) budget: &'a ByteBudget,
}

impl<'a> ReadRef<'a> for LimitedFile<'a> {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if self.budget.take(size) { self.cache.read_bytes_at(offset, size) } else { Err(()) }
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let found = self.cache.read_bytes_at_until(range, delimiter)?;
        if self.budget.take(found.len() as u64) { Ok(found) } else { Err(()) }
    }
}
