//! Copies large amounts of memory in few calls.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use borehole_process::{ForeignMemory, MemoryPiece, MemorySpan, page_start};

use crate::error::Error;
use crate::heap::plan::CopyPlan;

/// The result of a copy: the place of each span in the buffer.
#[derive(Debug, Default)]
pub(super) struct CopiedSpans {
    pub(super) placed: Vec<(usize, MemorySpan)>,
    pub(super) unreadable_bytes: u64,
}

/// The maximum size of a piece: larger ones are not copied faster. Threads divide the work between pieces.
const PIECE_BYTES: usize = 2 << 20;

/// The number of pieces in one system call.
const BATCH: usize = 64;

/// The unit in which unreadable memory is left out.
const PAGE_BYTES: usize = 4096;

/// Copying fewer bytes than this takes less time than starting a thread.
const MIN_BYTES_PER_THREAD: usize = 4 << 20;

/// Copies the spans of the plan, one after the other, to `into` from its first whole page on. `into` must be large enough.
pub(super) fn all(
    memory: &(impl ForeignMemory + Sync),
    plan: &CopyPlan,
    into: &mut [u8],
) -> Result<CopiedSpans, Error> {
    let start = page_start(into);
    let pieces = pieces(&plan.spans, start);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(2);
    if threads < 2 || plan.bytes < 2 * MIN_BYTES_PER_THREAD {
        return Ok(copy(memory, &pieces, 0, into)?);
    }
    let half = pieces.partition_point(|(offset, _)| *offset < start + plan.bytes / 2);
    let at = pieces.get(half).map_or(into.len(), |(offset, _)| *offset);
    let (low, high) = into.split_at_mut(at);
    // Whoever comes first copies it: the system may have no thread for it.
    let high = Mutex::new(Some(high));
    let copy_high = || {
        let high = high.lock().unwrap_or_else(PoisonError::into_inner).take();
        high.map(|high| copy(memory, &pieces[half..], at, high))
    };
    let (first, second) = thread::scope(|scope| {
        let second = thread::Builder::new().spawn_scoped(scope, copy_high);
        let first = copy(memory, &pieces[..half], 0, low);
        let second =
            second.ok().and_then(|second| second.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (first, second.or_else(copy_high))
    });
    let (mut first, second) = (first?, second.transpose()?.unwrap_or_default());
    first.placed.extend(second.placed);
    first.unreadable_bytes += second.unreadable_bytes;
    Ok(first)
}

/// Splits spans into pieces of limited size, each with its offset in the buffer; `offset` is the first.
fn pieces(spans: &[MemorySpan], mut offset: usize) -> Vec<(usize, MemorySpan)> {
    let mut pieces = Vec::with_capacity(spans.len());
    for span in spans {
        let mut address = span.address;
        let end = offset + span.length;
        while offset < end {
            let length = PIECE_BYTES.min(end - offset);
            pieces.push((offset, MemorySpan { address, length }));
            offset += length;
            address += length as u64;
        }
    }
    pieces
}

/// Copies pieces to `into`, which begins at the offset `base`.
pub(super) fn copy(
    memory: &impl ForeignMemory,
    pieces: &[(usize, MemorySpan)],
    base: usize,
    into: &mut [u8],
) -> Result<CopiedSpans, borehole_process::Error> {
    let mut copied = CopiedSpans::default();
    let mut left = pieces.to_vec();
    let mut next = 0;
    while next < left.len() {
        let end = left.len().min(next + BATCH);
        let wanted: usize = left[next..end].iter().map(|(_, span)| span.length).sum();
        let mut filled = memory.read_pieces(&mut borrow(&left[next..end], base, into))?;
        let is_all = filled == wanted;
        while next < end && left[next].1.length <= filled {
            copied.placed.push(left[next]);
            filled -= left[next].1.length;
            next += 1;
        }
        if !is_all {
            let (offset, MemorySpan { address, length }) = left[next];
            let read = filled / PAGE_BYTES * PAGE_BYTES;
            if read > 0 {
                copied.placed.push((offset, MemorySpan { address, length: read }));
            }
            let passed = (read + PAGE_BYTES).min(length);
            copied.unreadable_bytes += (passed - read) as u64;
            left[next] =
                (offset + passed, MemorySpan { address: address + passed as u64, length: length - passed });
            next += usize::from(passed == length);
        }
    }
    Ok(copied)
}

/// The parts of `into` for the pieces; `into` begins at the offset `base`.
fn borrow<'b>(pieces: &[(usize, MemorySpan)], base: usize, into: &'b mut [u8]) -> Vec<MemoryPiece<'b>> {
    let (mut rest, mut at) = (into, base);
    let mut borrowed = Vec::with_capacity(pieces.len());
    for &(offset, MemorySpan { address, length }) in pieces {
        let (_, behind) = rest.split_at_mut(offset - at);
        let (into, behind) = behind.split_at_mut(length);
        borrowed.push(MemoryPiece { address, into });
        (rest, at) = (behind, offset + length);
    }
    borrowed
}

#[cfg(test)]
mod tests {
    use borehole_process::Error;

    use super::*;

    /// Memory with some unreadable pages.
    struct Holed(Vec<u64>);

    impl ForeignMemory for Holed {
        fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
            let mut filled = 0;
            for piece in pieces {
                for (byte, address) in piece.into.iter_mut().zip(piece.address..) {
                    if self.0.contains(&(address / 4096)) {
                        return Ok(filled);
                    }
                    *byte = (address / 4096).to_le_bytes()[0];
                    filled += 1;
                }
            }
            Ok(filled)
        }
    }

    #[test]
    fn pages_that_cannot_be_read_are_left_out_and_counted() {
        let spans = [(16, 4), (100, 1), (200, 600)];
        let spans = spans.map(|(page, pages)| MemorySpan { address: page * 4096, length: pages * 4096 });
        let bytes: usize = spans.iter().map(|span| span.length).sum();
        for holes in
            [vec![], vec![16], vec![19], vec![17, 18], vec![100], vec![16, 17, 18, 19, 100, 799], vec![712]]
        {
            let mut into = vec![0xff; bytes];
            let copied = copy(&Holed(holes.clone()), &pieces(&spans, 0), 0, &mut into).unwrap();
            assert_eq!(copied.unreadable_bytes, holes.len() as u64 * 4096);
            let mut pages = Vec::new();
            for (offset, span) in copied.placed {
                for (page, at) in (offset..offset + span.length).step_by(4096).enumerate() {
                    let number = span.address / 4096 + page as u64;
                    assert!(into[at..at + 4096].iter().all(|&byte| byte == number.to_le_bytes()[0]));
                    pages.push(number);
                }
            }
            let all = (16..20).chain(100..101).chain(200..800);
            assert_eq!(pages, all.filter(|page| !holes.contains(page)).collect::<Vec<_>>());
        }
    }
}
