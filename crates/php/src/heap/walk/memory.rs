//! A borrowed view of the memory of a dump.

use std::borrow::Cow;

use borehole_process::{Dump, Mappings, Memory as _, Target as _};

use crate::remote::moved;

/// The memory of a dump. Missing memory is `None`, which is not an error of the walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'d> {
    dump: &'d Dump,
}

impl<'d> View<'d> {
    pub(crate) const fn new(dump: &'d Dump) -> Self {
        Self { dump }
    }

    /// The whole dump.
    pub(crate) const fn dump(self) -> &'d Dump {
        self.dump
    }

    /// The mappings.
    pub(crate) fn mappings(self) -> &'d Mappings {
        self.dump.mappings()
    }

    /// The contiguous memory from `address` on.
    #[inline]
    pub(crate) fn rest(self, address: u64) -> &'d [u8] {
        #[cfg(test)]
        read::note(address, 1);
        self.dump.rest(address).unwrap_or_default()
    }

    /// The `N` bytes at `address`.
    #[inline]
    pub(crate) fn array<const N: usize>(self, address: u64) -> Option<[u8; N]> {
        #[cfg(test)]
        read::note(address, N as u64);
        self.rest(address).first_chunk().copied().or_else(|| self.split_array(address))
    }

    /// Like [`Self::array`], across adjacent ranges of the dump.
    #[cold]
    fn split_array<const N: usize>(self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.dump.read(address, &mut bytes).ok()?;
        Some(bytes)
    }

    #[inline]
    pub(crate) fn u64(self, address: u64) -> Option<u64> {
        self.array(address).map(u64::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(self, address: u64) -> Option<u32> {
        self.array(address).map(u32::from_le_bytes)
    }

    /// The field of a structure at `address`; 0 if it is missing, or at the offset 0, which means that the release does not
    /// have it.
    pub(crate) fn pointer(self, address: u64, offset: usize) -> u64 {
        if offset == 0 { 0 } else { self.u64(moved(address, offset)).unwrap_or_default() }
    }

    /// Like [`Self::pointer`], for a 32-bit number.
    pub(crate) fn number(self, address: u64, offset: usize) -> u32 {
        if offset == 0 { 0 } else { self.u32(moved(address, offset)).unwrap_or_default() }
    }

    /// The number of the `length` bytes at `address` that are present.
    pub(crate) fn length(self, address: u64, length: u64) -> u64 {
        let mut there = 0;
        while there < length {
            let part = address.checked_add(there).map_or(0, |next| self.rest(next).len() as u64);
            if part == 0 {
                return there;
            }
            there = length.min(there.saturating_add(part));
        }
        there
    }

    /// The bytes at `address`, up to `length`, as far as they are present.
    pub(crate) fn bytes(self, address: u64, length: u64) -> Cow<'d, [u8]> {
        #[cfg(test)]
        read::note(address, length);
        let rest = self.rest(address);
        let wanted = usize::try_from(length).unwrap_or(usize::MAX);
        match rest.get(..wanted) {
            Some(all) => Cow::Borrowed(all),
            None => self.split_bytes(rest, address, wanted),
        }
    }

    #[cold]
    fn split_bytes(self, first: &'d [u8], address: u64, wanted: usize) -> Cow<'d, [u8]> {
        let mut bytes = Vec::new();
        let mut part = first;
        while !part.is_empty() && bytes.len() < wanted {
            bytes.extend_from_slice(&part[..part.len().min(wanted - bytes.len())]);
            part = self.rest(moved(address, bytes.len()));
        }
        Cow::Owned(bytes)
    }
}

/// Records which pages are read, for recordings that contain only these.
#[cfg(test)]
pub(crate) mod read {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    /// The maximum size of a read that is recorded; larger ones are searches for addresses.
    const MOST_BYTES: u64 = 64 << 10;
    const PAGE_BYTES: u64 = 4096;

    thread_local! {
        static PAGES: RefCell<Option<BTreeSet<u64>>> = const { RefCell::new(None) };
    }

    pub(super) fn note(address: u64, length: u64) {
        if length > MOST_BYTES {
            return;
        }
        let last = address.saturating_add(length.max(1) - 1) / PAGE_BYTES;
        PAGES.with_borrow_mut(|pages| {
            if let Some(pages) = pages {
                pages.extend((address / PAGE_BYTES..=last).map(|page| page * PAGE_BYTES));
            }
        });
    }

    /// The pages that `walk` reads.
    pub(crate) fn pages_of(walk: impl FnOnce()) -> BTreeSet<u64> {
        PAGES.set(Some(BTreeSet::new()));
        walk();
        PAGES.take().unwrap_or_default()
    }
}
