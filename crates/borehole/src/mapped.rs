//! Files mapped into memory, for readers that need the end of a file before its beginning.

use std::cell::Cell;
use std::fs::File;
use std::io::Seek as _;
use std::ops::Range;

use memmap2::Mmap;

/// A file, and the offset of the input in it.
pub(crate) struct Mappable {
    file: File,
    start: u64,
}

/// How much of a mapped file is released at once, after it has been read.
const GIVEN_BACK_BYTES: usize = 64 << 10;

/// At least as much as the kernel maps before an accessed page.
///
/// Source: observed on Linux 6.18, which maps the whole piece of the page cache that contains the page, at most 2 MiB on x86-64.
/// Earlier versions map `fault_around_bytes`, by default 64 KiB.
const MAPPED_BEFORE_BYTES: usize = 2 << 20;

/// A mapped file that is read from start to end, and released behind the reader.
pub(crate) struct Passed<'m> {
    mapped: &'m Mapped,
    end: Cell<usize>,
}

impl<'m> Passed<'m> {
    /// Creates the state in which nothing has been read.
    pub(crate) const fn of(mapped: &'m Mapped) -> Self {
        Self { mapped, end: Cell::new(0) }
    }

    /// Releases the input up to `end`, which will not be read again.
    pub(crate) fn up_to(&self, end: usize) {
        if end >= self.end.get() + GIVEN_BACK_BYTES {
            // The kernel has also mapped pages before the previous end, where reading continued.
            let begin = self.end.replace(end).saturating_sub(MAPPED_BEFORE_BYTES);
            self.mapped.give_back(begin..end);
        }
    }
}

/// The bytes of a file from the start of the input. Only accessed pages are read, and nothing is copied.
pub(crate) struct Mapped {
    map: Mmap,
    start: usize,
}

impl Mappable {
    /// Takes `file` from its current position; `None` if that is unknown.
    pub(crate) fn here(file: &File) -> Option<Self> {
        let mut file = file.try_clone().ok()?;
        let start = file.stream_position().ok()?;
        Some(Self { file, start })
    }

    /// The whole file, at its beginning; `None` if the input begins further on.
    #[cfg(feature = "archives")]
    pub(crate) fn whole(mut self) -> Option<File> {
        self.file.rewind().ok().filter(|()| self.start == 0)?;
        Some(self.file)
    }

    /// Maps the file for sequential reading; `None` if that fails and the file has to be read instead.
    pub(crate) fn map(&self) -> Option<Mapped> {
        let mapped = self.map_for_lookup()?;
        give_hints(&mapped.map);
        Some(mapped)
    }

    /// Maps the file for random access.
    #[allow(unsafe_code, reason = "mapping a file is unsafe, because others may change it")]
    pub(crate) fn map_for_lookup(&self) -> Option<Mapped> {
        let start = usize::try_from(self.start).ok()?;
        // SAFETY: the mapping is shared and only read. Readers accept any bytes and do not rely on bytes that they
        // would read again, so a file that changes meanwhile causes a wrong profile or an error. A file that is
        // truncated meanwhile ends the program (SIGBUS), as for every program that maps files; a private mapping would
        // not change that. `Source::path`, `Source::file` and `HeapFile::open` say so.
        let map = unsafe { Mmap::map(&self.file) }.ok()?;
        if start > map.len() {
            return None;
        }
        Some(Mapped { map, start })
    }
}

impl Mapped {
    /// Releases the memory of a part of the input. It is read from the file again if it is accessed again.
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

/// The size from which huge pages are worthwhile.
///
/// Source: the specification of `tachyon`.
#[cfg(target_os = "linux")]
const HUGE_PAGES_FROM: usize = 32 << 20;

/// Tells the kernel that the whole file will be read in order. Without these hints, reading takes longer.
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
