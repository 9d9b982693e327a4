//! Memory of ours that is there before it is needed.

#![allow(unsafe_code, reason = "no crate gives this hint for memory that a vector owns")]

/// What the hint is about is a multiple of this.
const PAGE_BYTES: usize = 4096;

/// As many bytes, all of whose pages are in memory: the first write to a fresh page costs more than the copy of what is
/// written to it. In large pages where the system has them: fewer to fault in, and faster to find when they are read.
#[must_use]
pub fn prefaulted(length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    prefer_large_pages(&bytes);
    // Not zero: that could be had, and would be, without a page of it.
    bytes.resize(length, 1);
    bytes
}

/// Asks for large pages below all that `bytes` has room for. A system that has none is none the worse.
pub(crate) fn prefer_large_pages(bytes: &Vec<u8>) {
    let start = bytes.as_ptr().addr();
    let skipped = start.next_multiple_of(PAGE_BYTES) - start;
    let length = bytes.capacity().saturating_sub(skipped) / PAGE_BYTES * PAGE_BYTES;
    if length == 0 {
        return;
    }
    let first = bytes.as_ptr().wrapping_add(skipped).cast_mut().cast();
    // SAFETY: the pages lie within the memory of the vector. The advice changes nothing of what they hold.
    let _ = unsafe { libc::madvise(first, length, libc::MADV_HUGEPAGE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("our own");
        let fields = stat.rsplit(") ").next().expect("fields").split(' ').nth(7);
        fields.expect("faults").parse().expect("a number")
    }

    #[test]
    fn writing_to_it_faults_no_more() {
        let mut bytes = prefaulted(64 << 20);
        let before = faults();
        bytes.fill(2);
        assert!(faults() - before < 100, "{} faults", faults() - before);
        assert!(prefaulted(0).is_empty() && prefaulted(3).len() == 3);
    }
}
