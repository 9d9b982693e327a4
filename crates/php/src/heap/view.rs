//! A borrowed view of the memory of a dump.

use std::borrow::Cow;
use std::ops::Range;

use borehole_process::{Dump, ElfSymbols, ForeignProcess as _, Mappings, MemoryMapping, Words};

use crate::remote::moved;

/// The memory of a dump. Missing memory is `None`, which is not an error of the walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DumpView<'d> {
    pub(crate) dump: &'d Dump,
}

impl<'d> DumpView<'d> {
    pub(crate) const fn new(dump: &'d Dump) -> Self {
        Self { dump }
    }

    pub(crate) fn mappings(self) -> &'d Mappings {
        self.dump.mappings()
    }

    /// Whether the memory at `address` is shared between processes, as opcache's is.
    pub(crate) fn is_shared(self, address: u64) -> bool {
        self.mappings().at(address).is_some_and(|mapping| mapping.shared)
    }

    /// The symbols of each mapped file that has any.
    pub(crate) fn symbols(self) -> impl Iterator<Item = ElfSymbols> + use<'d> {
        let files = self.mappings().iter().filter(|mapping| mapping.shows_file() && mapping.file_offset == 0);
        files.filter_map(move |file| self.dump.symbols(file).ok())
    }

    /// The number of contiguous bytes from `address` on. More may follow.
    pub(crate) fn room(self, address: u64) -> u64 {
        #[cfg(test)]
        read::note(address, 1);
        self.dump.room(address) as u64
    }

    #[inline]
    pub(crate) fn array<const N: usize>(self, address: u64) -> Option<[u8; N]> {
        #[cfg(test)]
        read::note(address, N as u64);
        self.dump.array(address)
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

    pub(crate) fn number(self, address: u64, offset: usize) -> u32 {
        if offset == 0 { 0 } else { self.u32(moved(address, offset)).unwrap_or_default() }
    }

    /// The number of the `length` bytes at `address` that are present.
    pub(crate) fn length(self, address: u64, length: u64) -> u64 {
        self.dump.present(address, usize::try_from(length).unwrap_or(usize::MAX)) as u64
    }

    /// The bytes at `address`, up to `length`, as far as they are present.
    pub(crate) fn bytes(self, address: u64, length: u64) -> Cow<'d, [u8]> {
        #[cfg(test)]
        read::note(address, length);
        self.dump.bytes_up_to(address, usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// The words in the `length` bytes at `address`, as far as they are present.
    pub(crate) fn words(self, address: u64, length: u64) -> Words<'d> {
        #[cfg(test)]
        read::note(address, length);
        self.dump.words(address, length)
    }
}

/// Memory that may refer to blocks of the heap, and the base of its addresses.
pub(crate) struct WritableRegion {
    pub(crate) name: String,
    pub(crate) base: u64,
    pub(crate) range: Range<u64>,
}

/// The writable memory of a process: first that of files, last the machine's stack.
pub(crate) fn writable_regions(view: DumpView<'_>) -> Vec<WritableRegion> {
    let (mut files, mut others, mut stacks) = (Vec::new(), Vec::new(), Vec::new());
    let mut file: Option<(String, u64, u64)> = None;
    for mapping in view.mappings() {
        if mapping.shows_file() {
            let name = file_name(mapping);
            let known = file.take().filter(|(before, ..)| *before == name);
            file = Some((name, known.map_or(mapping.start, |(_, base, _)| base), mapping.end));
        }
        let is_kernels = mapping.path.starts_with(b"[v");
        if !mapping.readable || !mapping.writable || mapping.shared || is_kernels {
            continue;
        }
        let range = mapping.start..mapping.end;
        let region = |name: &str, base| WritableRegion { name: name.to_owned(), base, range: range.clone() };
        match &file {
            // Zero-initialized variables follow those that are in the file.
            Some((name, base, end)) if mapping.shows_file() || *end == range.start => {
                files.push(region(name, *base));
            }
            _ if mapping.path == b"[stack]" => stacks.push(region("stack", range.start)),
            _ if mapping.path == b"[heap]" => others.push(region("heap", range.start)),
            _ => others.push(region("anonymous", 0)),
        }
    }
    files.into_iter().chain(others).chain(stacks).collect()
}

fn file_name(mapping: &MemoryMapping) -> String {
    let name = mapping.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
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
