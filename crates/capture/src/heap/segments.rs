//! Finds the shared memory that values refer to.
//!
//! opcache keeps the names, literals, functions and classes of programs in memory that all workers share, and values point
//! into it. Other shared memory may be much larger than the heap, and PHP copies what it takes from there: the entries of
//! APCu, the blocks of shmop and sysvshm, the tables of Swoole.
//!
//! Shared memory is copied after the process runs on, so that the stop takes as long as the heap is large. This is sound
//! because what values refer to there does not change: opcache publishes a script or string when it is complete, and
//! reuses its memory only after a restart, which waits for all requests that may use it to end.

use std::ops::Range;

use borehole_process::{Dump, ForeignMemory, Mappings, MemoryMapping};

/// A piece of shared memory: one mapping, or several with different permissions next to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedSegment {
    pub(super) mappings: Vec<MemoryMapping>,
}

/// The offset of `zend_smm_shared_globals.shared_segments_count`; `shared_segments` is at 0.
///
/// Source: php-src 7.0 to 8.6, `ext/opcache/zend_shared_alloc.h`.
const SEGMENT_COUNT: u64 = 8;

/// The maximum number of segments of opcache: more than it can have, because System V's segments have at least 1 MiB.
const MAX_OPCACHE_SEGMENTS: u64 = 4096;

/// `zend_shared_segment`: `size`, in newer releases `end`, `pos`, `p`.
const SEGMENT_WORDS: usize = 4;

/// `IS_STRING` and `IS_ARRAY`, the types of values that may lie in memory of other processes.
const SHAREABLE_TYPES: Range<u8> = 6..8;

impl SharedSegment {
    /// The shared memory of a process, without mapped files.
    pub(super) fn all(mappings: &Mappings) -> Vec<Self> {
        let mut segments: Vec<Self> = Vec::new();
        for mapping in mappings.iter().filter(|mapping| is_shared_memory(mapping)) {
            match segments.last_mut() {
                Some(segment) if segment.goes_on_with(mapping) => segment.mappings.push(mapping.clone()),
                _ => segments.push(Self { mappings: vec![mapping.clone()] }),
            }
        }
        segments
    }

    fn goes_on_with(&self, next: &MemoryMapping) -> bool {
        self.mappings.last().is_some_and(|last| {
            let next_offset = last.file_offset.checked_add(last.end - last.start);
            last.end == next.start && last.path == next.path && next_offset == Some(next.file_offset)
        })
    }

    fn range(&self) -> Range<u64> {
        let start = self.mappings.first().map_or(0, |first| first.start);
        start..self.mappings.last().map_or(start, |last| last.end)
    }
}

/// Whether it is readable memory that processes share, such as opcache's, and not a file.
fn is_shared_memory(mapping: &MemoryMapping) -> bool {
    let kinds: [&[u8]; 5] = [b"/dev/zero", b"/dev/shm/", b"/memfd:", b"/SYSV", b"[anon_shmem"];
    let is_memory =
        mapping.deleted || mapping.path.is_empty() || kinds.iter().any(|kind| mapping.path.starts_with(kind));
    mapping.readable && mapping.shared && is_memory
}

/// Splits `segments` into those that values may refer to and the others. `dump` has the private memory of the process, and
/// `memory` reads the shared one.
pub(super) fn partition(
    memory: &impl ForeignMemory,
    dump: &Dump,
    segments: Vec<SharedSegment>,
) -> (Vec<SharedSegment>, Vec<SharedSegment>) {
    let starts: Vec<u64> = segments.iter().flat_map(|segment| opcache_segments(memory, segment)).collect();
    let is_opcache = |segment: &SharedSegment| starts.iter().any(|start| segment.range().contains(start));
    let (mut needed, others): (Vec<_>, Vec<_>) = segments.into_iter().partition(is_opcache);
    let referred = referred_to(memory, dump, &others);
    let (referred, others): (Vec<_>, Vec<_>) = others.into_iter().zip(referred).partition(|&(_, is)| is);
    needed.extend(referred.into_iter().map(|(segment, _)| segment));
    (needed, others.into_iter().map(|(segment, _)| segment).collect())
}

/// The first addresses of all segments of opcache, if `segment` is its first: that begins with the list of them.
///
/// Source: php-src, `ext/opcache/zend_shared_alloc.c`, `zend_shared_alloc_startup`.
fn opcache_segments(memory: &impl ForeignMemory, segment: &SharedSegment) -> Vec<u64> {
    let range = segment.range();
    let within = |address: u64| {
        let word = range.contains(&address).then(|| memory.read_u64(address).ok());
        word.flatten()
    };
    let listed = |list: u64, index: u64| {
        let entry = within(list.checked_add(index * 8)?)?;
        let words: [u64; SEGMENT_WORDS] = read_words(memory, range.contains(&entry).then_some(entry)?)?;
        // `p` is the third or the fourth word; the ones before it are sizes.
        words[2..].iter().copied().find(|&address| address > words[0])
    };
    let (Some(list), Some(count)) = (within(range.start), within(range.start + SEGMENT_COUNT)) else {
        return Vec::new();
    };
    let count = (count & u64::from(u32::MAX)).min(MAX_OPCACHE_SEGMENTS);
    let starts: Vec<u64> = (0..count).map_while(|index| listed(list, index)).collect();
    if starts.contains(&range.start) { starts } else { Vec::new() }
}

fn read_words<const N: usize>(memory: &impl ForeignMemory, address: u64) -> Option<[u64; N]> {
    let mut bytes = [[0; 8]; N];
    memory.read(address, bytes.as_flattened_mut()).ok()?;
    Some(bytes.map(u64::from_le_bytes))
}

/// Whether any value in `dump` refers to a string or an array in each of the segments. Extensions that hand out values in
/// shared memory without a copy exist, such as `immutable_cache`.
fn referred_to(memory: &impl ForeignMemory, dump: &Dump, segments: &[SharedSegment]) -> Vec<bool> {
    let ranges: Vec<Range<u64>> = segments.iter().map(SharedSegment::range).collect();
    let mut is_referred = vec![false; segments.len()];
    let start = ranges.iter().map(|range| range.start).min().unwrap_or_default();
    let end = ranges.iter().map(|range| range.end).max().unwrap_or_default();
    if start == end {
        return is_referred;
    }
    for span in dump.spans() {
        let mut before = 0;
        for word in dump.words(span.address, span.length as u64) {
            let address = std::mem::replace(&mut before, word);
            let [kind, ..] = word.to_le_bytes();
            if !(start..end).contains(&address) || !SHAREABLE_TYPES.contains(&kind) {
                continue;
            }
            let at = ranges.iter().position(|range| range.contains(&address));
            if let Some(at) = at.filter(|&at| !is_referred[at]) {
                is_referred[at] = type_of(memory, address) == Some(kind);
            }
        }
    }
    is_referred
}

/// The type in the header of the string or array at `address`; `None` if it cannot be read.
///
/// Source: php-src 7.0 to 8.6, `Zend/zend_types.h`, `zend_refcounted_h`: the reference count, then the type.
fn type_of(memory: &impl ForeignMemory, address: u64) -> Option<u8> {
    let mut header = [0; 8];
    memory.read(address, &mut header).ok()?;
    Some(header[4])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(lines: &[&str]) -> Vec<SharedSegment> {
        SharedSegment::all(&Mappings::parse(lines.join("\n").as_bytes()).unwrap())
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn parts_of_a_segment_belong_together_and_neighbours_do_not() {
        let all = segments(&[
            "10000-20000 rw-s 00000000 00:01 7 /dev/zero (deleted)",
            "20000-28000 r-xs 00010000 00:01 7 /dev/zero (deleted)",
            "28000-30000 rw-s 00000000 00:01 8 /dev/zero (deleted)",
            "30000-40000 rw-s 00008000 00:01 9 /SYSV00000000 (deleted)",
            "40000-50000 r--s 00000000 08:01 9 /usr/share/zoneinfo/posixrules",
            "50000-60000 rw-s 00000000 00:0e 9 anon_inode:[perf_event]",
            "60000-70000 rw-p 00000000 00:00 0 ",
            "70000-80000 rwxs 00000000 00:01 7 /memfd:opcache (deleted)",
        ]);
        let ranges: Vec<_> = all.iter().map(SharedSegment::range).collect();
        assert_eq!(ranges, [0x10000..0x28000, 0x28000..0x30000, 0x30000..0x40000, 0x70000..0x80000]);
    }

    /// Memory with the header of opcache at 0x10000, as each release has it, and its further segment at 0x30000.
    fn opcache(with_end: bool) -> Dump {
        let mut memory = Dump::default();
        memory.insert(0x10000, words(&[0x10040, 2, 0, 0, 0, 0, 0, 0, 0x10060, 0x10080]));
        let segment = |start: u64| {
            if with_end { words(&[0xfff0, 0xfff0, 0x500, start]) } else { words(&[0xfff0, 0x500, start, 0]) }
        };
        memory.insert(0x10060, segment(0x10000));
        memory.insert(0x10080, segment(0x30000));
        memory.insert(0x20000, words(&[0x20040; 64]));
        memory
    }

    fn four() -> Vec<SharedSegment> {
        let line =
            |start: u64| format!("{start:x}-{:x} rw-s 00000000 00:01 7 /dev/zero (deleted)", start + 0x10000);
        let lines = [0x10000, 0x20000, 0x30000, 0x40000].map(line);
        segments(&lines.each_ref().map(String::as_str))
    }

    #[test]
    fn all_segments_of_opcache_are_found_by_its_list() {
        for with_end in [false, true] {
            let (needed, others) = partition(&opcache(with_end), &Dump::default(), four());
            let starts = |all: &[SharedSegment]| all.iter().map(|one| one.range().start).collect::<Vec<_>>();
            assert_eq!((starts(&needed), starts(&others)), (vec![0x10000, 0x30000], vec![0x20000, 0x40000]));
        }
        assert_eq!(partition(&Dump::default(), &Dump::default(), four()), (Vec::new(), four()));
    }

    #[test]
    fn a_segment_is_needed_if_a_value_refers_to_a_string_or_an_array_in_it() {
        let mut memory = Dump::default();
        // Strings and arrays that nobody counts references of, as PHP 8 marks them.
        memory.insert(0x20100, words(&[0x6 << 32 | 0x40 << 40 | 1]));
        memory.insert(0x40100, words(&[0x7 << 32 | 0x40 << 40 | 2]));
        memory.insert(0x40200, words(&[0x1_0000_0007]));
        let needed = |value: [u64; 2]| {
            let mut dump = Dump::default();
            dump.insert(0x90000, words(&[1, 2, value[0], value[1], 5]));
            let (needed, _) = partition(&memory, &dump, four());
            assert!(needed.len() < 2);
            needed.first().map(|segment| segment.range().start)
        };
        assert_eq!(needed([0x20100, 6]), Some(0x20000));
        assert_eq!(needed([0x40100, 7]), Some(0x40000));
        assert_eq!(needed([0x20100, 7]), None, "a string");
        assert_eq!(needed([0x20100, 500]), None, "a pointer and a length");
        assert_eq!(needed([0x40200, 7]), None, "no header");
        assert_eq!(needed([0x30000, 6]), None, "unreadable");
        assert_eq!(needed([0x80000, 6]), None, "private");
    }
}
