//! Selects the memory of a process to copy.

use borehole_process::{Mappings, MemoryMapping, MemorySpan, PageSelection, Resident};

use crate::error::Error;
use crate::heap::HeapOptions;

pub(super) struct CopyPlan {
    pub(super) spans: Vec<MemorySpan>,
    pub(super) bytes: usize,
}

/// The size and the alignment of the chunks that PHP's allocator takes from the system, and the alignment of its huge
/// blocks, which are not smaller.
///
/// Source: php-src, `Zend/zend_alloc_sizes.h`, `ZEND_MM_CHUNK_SIZE`.
const CHUNK_BYTES: u64 = 2 << 20;

/// More than the data of PHP with all its extensions.
const MAX_PHP_DATA_BYTES: usize = 128 << 20;

impl CopyPlan {
    /// Selects everything that the process has written and does not share with others.
    pub(super) fn of_memory(
        mappings: &Mappings,
        resident: &mut Resident,
        options: &HeapOptions,
    ) -> Result<Self, Error> {
        Self::of(mappings, resident, |mapping| memory(mapping, options.exclude_heap))
    }

    /// Selects mapped parts of files that the process has not written: either the data of PHP that it has touched, or
    /// everything of all files.
    pub(super) fn of_files(
        mappings: &Mappings,
        resident: &mut Resident,
        options: &HeapOptions,
    ) -> Result<Self, Error> {
        let is_php =
            |path: &[u8]| contains_php(path) || options.is_php.as_ref().is_some_and(|is_php| is_php(path));
        let is_meant = |mapping: &MemoryMapping| {
            let is_file = mapping.readable && !mapping.shared && mapping.shows_file();
            let is_data = !mapping.executable && is_php(&mapping.path);
            (is_file && is_data && !options.include_binary).then_some(PageSelection::Present)
        };
        let mut plan = Self::of(mappings, resident, is_meant)?;
        if options.include_binary {
            plan.add_whole(mappings);
        }
        Ok(plan)
    }

    /// Selects the pages of shared memory that any process has touched.
    pub(super) fn of_shared(mappings: &[MemoryMapping], resident: &mut Resident) -> Result<Self, Error> {
        Self::of(mappings, resident, |_| Some(PageSelection::Shared))
    }

    fn of<'m>(
        mappings: impl IntoIterator<Item = &'m MemoryMapping>,
        resident: &mut Resident,
        pages: impl Fn(&MemoryMapping) -> Option<PageSelection>,
    ) -> Result<Self, Error> {
        let mut spans = Vec::new();
        for mapping in mappings {
            if let Some(pages) = pages(mapping) {
                resident.add(mapping, pages, &mut spans)?;
            }
        }
        Ok(Self::new(spans))
    }

    pub(super) fn new(spans: Vec<MemorySpan>) -> Self {
        let bytes = spans.iter().map(|span| span.length).sum();
        Self { spans, bytes }
    }

    /// Selects the data of PHP's files that a core file leaves out because the files contain it.
    pub(super) fn of_php_data(mappings: &Mappings) -> Self {
        let is_data = |mapping: &&MemoryMapping| {
            mapping.readable && !mapping.executable && !mapping.writable && contains_php(&mapping.path)
        };
        let mut plan = Self { spans: Vec::new(), bytes: 0 };
        for mapping in mappings.iter().filter(is_data) {
            let length = usize::try_from(mapping.end.saturating_sub(mapping.start)).unwrap_or(usize::MAX);
            // Only the core file states their size.
            if length <= MAX_PHP_DATA_BYTES - plan.bytes {
                plan.spans.push(MemorySpan { address: mapping.start, length });
                plan.bytes += length;
            }
        }
        plan
    }

    /// Adds all of all mapped files, whether or not the process has touched it.
    fn add_whole(&mut self, mappings: &Mappings) {
        let is_file = |mapping: &&MemoryMapping| mapping.readable && !mapping.shared && mapping.shows_file();
        for mapping in mappings.iter().filter(is_file) {
            let Ok(length) = usize::try_from(mapping.end - mapping.start) else { continue };
            self.spans.push(MemorySpan { address: mapping.start, length });
            self.bytes += length;
        }
    }
}

/// The pages of a private mapping that can contain data made by PHP.
fn memory(mapping: &MemoryMapping, excludes_heap: bool) -> Option<PageSelection> {
    let is_code = mapping.executable && !mapping.writable;
    // The kernel maps these into each process: `[vvar]`, `[vdso]`.
    let is_kernels = mapping.path.starts_with(b"[v");
    if !mapping.readable || mapping.shared || is_code || is_kernels {
        return None;
    }
    let is_excluded = excludes_heap && !mapping.shows_file() && !may_hold_chunks(mapping);
    (!is_excluded).then_some(PageSelection::Own)
}

/// Whether PHP's allocator can have memory in it.
fn may_hold_chunks(mapping: &MemoryMapping) -> bool {
    let is_of_library = [&b"[heap]"[..], b"[stack"].iter().any(|name| mapping.path.starts_with(name));
    let first = mapping.start.checked_next_multiple_of(CHUNK_BYTES);
    let has_room = first.is_some_and(|first| mapping.end.saturating_sub(first) >= CHUNK_BYTES);
    !is_of_library && has_room
}

fn contains_php(path: &[u8]) -> bool {
    path.windows(3).any(|part| part == b"php")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pages copied of each line of `/proc/PID/maps`, with the C library's heap and without.
    const MAPS: [(&str, Option<PageSelection>, Option<PageSelection>); 14] = {
        let own = Some(PageSelection::Own);
        [
            ("00010000-00020000 r--p 00000000 08:01 1 /usr/bin/php8.2", own, own),
            ("00020000-00030000 r-xp 00010000 08:01 1 /usr/bin/php8.2", None, None),
            ("00030000-00040000 rw-p 00020000 08:01 1 /usr/bin/php8.2", own, own),
            ("00040000-00800000 rw-p 00000000 00:00 0 [heap]", own, None),
            ("10000000-10200000 rw-p 00000000 00:00 0 ", own, own),
            ("10210000-10400000 rw-p 00000000 00:00 0 ", own, None),
            ("10410000-10800000 rw-p 00000000 00:00 0 [anon:zend_alloc]", own, own),
            ("10800000-10900000 ---p 00000000 00:00 0 ", None, None),
            ("20000000-28000000 rw-s 00000000 00:01 7 /dev/zero (deleted)", None, None),
            ("28000000-28100000 r--s 00000000 08:01 9 /usr/share/zoneinfo/posixrules", None, None),
            ("28100000-28200000 rw-s 00000000 00:01 9 /SYSV00000000 (deleted)", None, None),
            ("30000000-30021000 rw-p 00000000 00:00 0 [stack]", own, None),
            ("30100000-30101000 r--p 00000000 00:00 0 [vvar]", None, None),
            ("30200000-30300000 rwxs 00000000 00:01 7 /memfd:opcache (deleted)", None, None),
        ]
    };

    #[test]
    fn what_php_can_have_written_is_copied() {
        for (line, with_heap, without_heap) in MAPS {
            let mappings = Mappings::parse(line.as_bytes()).unwrap();
            let mapping = mappings.iter().next().unwrap();
            assert_eq!((memory(mapping, false), memory(mapping, true)), (with_heap, without_heap), "{line}");
        }
    }
}
