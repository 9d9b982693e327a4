//! A file as memory, for readers that need the end of a file before its beginning.

#[cfg(feature = "tachyon")]
use std::cell::Cell;
use std::fs::File;
use std::io::Seek as _;
#[cfg(feature = "tachyon")]
use std::ops::Range;

use memmap2::Mmap;

/// A file, and where in it the input begins.
pub(crate) struct Mappable {
    file: File,
    start: u64,
}

/// So much of a mapped file is given back at once, when it has been read.
#[cfg(feature = "tachyon")]
const GIVEN_BACK_BYTES: usize = 64 << 10;

/// As much as the system maps before a page that is looked at, and more.
///
/// Source: seen of Linux 6.18, which maps the whole piece of its cache that the page is in, of 2 MiB at most on x86-64; before it,
/// `fault_around_bytes`, 64 KiB unless it is told otherwise.
#[cfg(feature = "tachyon")]
const MAPPED_BEFORE_BYTES: usize = 2 << 20;

/// A mapped file that is read from its beginning to its end, and given back behind the reader.
#[cfg(feature = "tachyon")]
pub(crate) struct Passed<'m> {
    mapped: &'m Mapped,
    end: Cell<usize>,
}

#[cfg(feature = "tachyon")]
impl<'m> Passed<'m> {
    /// Nothing has been read so far.
    pub(crate) const fn of(mapped: &'m Mapped) -> Self {
        Self { mapped, end: Cell::new(0) }
    }

    /// The input has been read up to `end`, and nobody looks there again.
    pub(crate) fn up_to(&self, end: usize) {
        if end >= self.end.get() + GIVEN_BACK_BYTES {
            // Where reading goes on, the system maps what stands before, too.
            let begin = self.end.replace(end).saturating_sub(MAPPED_BEFORE_BYTES);
            self.mapped.give_back(begin..end);
        }
    }
}

/// The bytes of a file from where the input begins. Only what is looked at is read, and nothing is copied.
pub(crate) struct Mapped {
    map: Mmap,
    start: usize,
}

impl Mappable {
    /// `file` from where it stands now; `None` if that cannot be told.
    pub(crate) fn here(file: &File) -> Option<Self> {
        let mut file = file.try_clone().ok()?;
        let start = file.stream_position().ok()?;
        Some(Self { file, start })
    }

    /// Maps the file, to be read from end to end; `None` where that does not work, and it has to be read instead.
    #[cfg(feature = "tachyon")]
    pub(crate) fn map(&self) -> Option<Mapped> {
        let mapped = self.map_for_lookup()?;
        give_hints(&mapped.map);
        Some(mapped)
    }

    /// Maps the file, to be looked at here and there.
    #[allow(unsafe_code, reason = "mapping a file is unsafe, because others may change it")]
    pub(crate) fn map_for_lookup(&self) -> Option<Mapped> {
        let start = usize::try_from(self.start).ok()?;
        // SAFETY: the mapping is private and only read from. Readers take any bytes and hold on to no
        // conclusion about bytes that they would read again, so a file that changes underneath gives a wrong
        // profile or an error. One that is made shorter meanwhile ends the program, as for all who map files.
        let map = unsafe { Mmap::map(&self.file) }.ok()?;
        if start > map.len() {
            return None;
        }
        Some(Mapped { map, start })
    }
}

impl Mapped {
    /// Gives back the memory of a part of the input, which is read from the file again by who looks there again.
    #[cfg(feature = "tachyon")]
    #[allow(unsafe_code, reason = "of a mapping that was written to the content would be lost")]
    fn give_back(&self, part: Range<usize>) {
        #[cfg(unix)]
        if part.end <= self.bytes().len() {
            let begin = self.start + part.start;
            // SAFETY: nothing was written to the mapping.
            let _ = unsafe {
                self.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, begin, part.len())
            };
        }
        #[cfg(not(unix))]
        let _ = part;
    }

    /// All bytes of the input.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map[self.start..]
    }
}

/// From here on large pages are worth it.
///
/// Source: the specification of `tachyon`.
#[cfg(all(feature = "tachyon", target_os = "linux"))]
const HUGE_PAGES_FROM: usize = 32 << 20;

/// Tells the system that all of the file will be read in order. Without the hints reading takes longer.
#[cfg(feature = "tachyon")]
fn give_hints(map: &Mmap) {
    #[cfg(unix)]
    for hint in [memmap2::Advice::Sequential, memmap2::Advice::WillNeed] {
        let _ = map.advise(hint);
    }
    #[cfg(target_os = "linux")]
    if map.len() > HUGE_PAGES_FROM {
        let _ = map.advise(memmap2::Advice::HugePage);
    }
    #[cfg(not(unix))]
    let _ = map;
}
