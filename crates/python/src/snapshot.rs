//! A copy of what a sample needs, taken in one call: the frames, the state of the thread, and the frames again.
//!
//! The process runs on while it is copied. The state says which frame is the current one, at one moment. A frame that is
//! equal in the copies before and behind the state was so at that moment too. So a chain of equal frames that begins at the
//! current frame is a stack that existed.
//!
//! Frames lie in chunks of the thread's own, in generators, on the C stack or anywhere on the heap. The copy does not care: it
//! remembers the ranges of memory in which frames were found. A frame elsewhere is read by itself, and belongs to the ranges
//! from then on.

use borehole_process::{Error, ForeignMemory, MemoryPiece, u64_at};

/// The size of the pages that are read when a frame lies outside the known ranges. Memory is mapped in pages of at least this.
const PAGE: u64 = 4096;

/// Ranges nearer to each other than this are copied as one: a piece costs as much as copying this many bytes.
const NEAR: u64 = 1024;

/// How far a range is copied beyond the last frame in it, because the next call puts its frame there.
const GROWTH: u64 = 512;

/// A range without frames in this many samples is left out.
const OLDEST: u32 = 64;

/// The most bytes that are copied: deeper stacks are given up.
const MOST_BYTES: usize = 8 << 20;

/// A number that is read together with the state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra {
    pub(crate) address: u64,
    pub(crate) bytes: [u8; 16],
}

impl Extra {
    pub(crate) fn at(address: u64) -> Self {
        Self { address, bytes: [0; 16] }
    }
}

#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    /// Its place in the copies.
    offset: usize,
    /// The part in which frames were found since the ranges were laid out; empty if `start > end`.
    used: (u64, u64),
    /// The sample in which a frame was found in it last.
    last_used: u32,
}

impl Range {
    fn new(start: u64, end: u64, now: u32) -> Self {
        Self { start, end, offset: 0, used: (u64::MAX, 0), last_used: now }
    }

    fn len(&self) -> usize {
        usize::try_from(self.end - self.start).unwrap_or(usize::MAX)
    }

    fn contains(&self, start: u64, end: u64) -> bool {
        self.start <= start && end <= self.end
    }

    /// The place of an address in the copies, which is noted as used up to `end`.
    fn place(&mut self, start: u64, end: u64, now: u32) -> usize {
        self.used = (self.used.0.min(start), self.used.1.max(end));
        self.last_used = now;
        self.offset + usize::try_from(start - self.start).unwrap_or_default()
    }
}

/// The place of a frame in the copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FramePlace {
    offset: usize,
    is_twice: bool,
}

/// A copy; see the [module](self).
#[derive(Debug)]
pub(crate) struct Snapshot {
    state_address: u64,
    state: Vec<u8>,
    ranges: Vec<Range>,
    /// The ranges, and then what was read by itself.
    before: Vec<u8>,
    /// The ranges.
    behind: Vec<u8>,
    /// Pages read by themselves, in the copy before.
    alone: Vec<Range>,
    last_range: usize,
    now: u32,
}

/// The result of copying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Whole,
    /// A range could not be read, and will be left out next time.
    Partly,
    /// The state or what is read with it could not be read.
    NoState,
}

impl Snapshot {
    /// An empty copy, with `length` bytes of the state at `address`.
    pub(crate) fn new(address: u64, length: usize) -> Self {
        Self {
            state_address: address,
            state: vec![0; length],
            ranges: Vec::new(),
            before: Vec::new(),
            behind: Vec::new(),
            alone: Vec::new(),
            last_range: 0,
            now: 0,
        }
    }

    /// Copies everything again, and `extras` with the state.
    pub(crate) fn take(&mut self, memory: &impl ForeignMemory, extras: &mut [Extra]) -> Result<Taken, Error> {
        self.now += 1;
        self.before.truncate(self.behind.len());
        self.alone.clear();
        let state = MemoryPiece { address: self.state_address, into: &mut self.state };
        let extras =
            extras.iter_mut().map(|extra| MemoryPiece { address: extra.address, into: &mut extra.bytes });
        let pieces = pieces_of(&self.ranges, &mut self.before).chain([state]).chain(extras);
        let pieces = pieces.chain(pieces_of(&self.ranges, &mut self.behind));
        let (filled, wanted) = read_all(memory, pieces)?;
        if filled == wanted {
            return Ok(Taken::Whole);
        }
        let Some(at) = self.ranges.iter().position(|range| filled < range.offset + range.len()) else {
            return Ok(Taken::NoState);
        };
        self.ranges.remove(at);
        self.lay_out();
        Ok(Taken::Partly)
    }

    pub(crate) fn state(&self) -> &[u8] {
        &self.state
    }

    /// Whether everything asked for was in both copies.
    pub(crate) fn is_whole(&self) -> bool {
        self.alone.is_empty()
    }

    /// The place of `length` bytes at `address`, read by themselves if they are not in the copies. `None` if there is no such
    /// memory, or too much would have to be copied.
    pub(crate) fn find(
        &mut self,
        memory: &impl ForeignMemory,
        address: u64,
        length: usize,
    ) -> Result<Option<FramePlace>, Error> {
        let Some(end) = address.checked_add(length as u64) else { return Ok(None) };
        let now = self.now;
        if let Some(range) = self.ranges.get_mut(self.last_range)
            && range.contains(address, end)
        {
            return Ok(Some(FramePlace { offset: range.place(address, end, now), is_twice: true }));
        }
        let at = self.ranges.partition_point(|range| range.start <= address).wrapping_sub(1);
        if let Some(range) = self.ranges.get_mut(at).filter(|range| range.contains(address, end)) {
            self.last_range = at;
            return Ok(Some(FramePlace { offset: range.place(address, end, now), is_twice: true }));
        }
        if let Some(range) = self.alone.iter_mut().rfind(|range| range.contains(address, end)) {
            return Ok(Some(FramePlace { offset: range.place(address, end, now), is_twice: false }));
        }
        self.read_alone(memory, address, end)
    }

    fn read_alone(
        &mut self,
        memory: &impl ForeignMemory,
        address: u64,
        end: u64,
    ) -> Result<Option<FramePlace>, Error> {
        // There are no addresses beyond the last page.
        let Some(end_of_pages) = end.checked_next_multiple_of(PAGE) else { return Ok(None) };
        let mut range = Range::new(address - address % PAGE, end_of_pages, self.now);
        range.offset = self.before.len();
        if range.offset + range.len() > MOST_BYTES {
            return Ok(None);
        }
        self.before.resize(range.offset + range.len(), 0);
        let into = &mut self.before[range.offset..];
        let filled = memory.read_pieces(&mut [MemoryPiece { address: range.start, into }])?;
        if filled < range.len() {
            self.before.truncate(range.offset);
            return Ok(None);
        }
        let place = FramePlace { offset: range.place(address, end, self.now), is_twice: false };
        self.alone.push(range);
        Ok(Some(place))
    }

    /// A number of the frame at `place`, before and behind the state. Equal for what was read by itself.
    #[inline]
    pub(crate) fn numbers(&self, place: FramePlace, offset: usize) -> Option<[u64; 2]> {
        let before = u64_at(&self.before, place.offset + offset)?;
        let behind = if place.is_twice { u64_at(&self.behind, place.offset + offset)? } else { before };
        Some([before, behind])
    }

    /// Makes what was read by itself part of the ranges, and leaves out old ranges. To be called behind a sample.
    pub(crate) fn learn(&mut self) {
        if self.alone.is_empty() && !self.now.is_multiple_of(OLDEST) {
            return;
        }
        let now = self.now;
        let is_young = |range: &Range| now - range.last_used < OLDEST;
        let all = self.ranges.drain(..).chain(self.alone.drain(..)).filter(is_young);
        let mut kept: Vec<Range> = all
            .map(|range| {
                let (start, end) =
                    if range.used.0 < range.used.1 { range.used } else { (range.start, range.end) };
                // The end of the page is mapped too.
                let page_end = end.next_multiple_of(PAGE);
                Range::new(start, page_end.min(end.saturating_add(GROWTH)), range.last_used)
            })
            .collect();
        kept.sort_unstable_by_key(|range| range.start);
        self.ranges = merged(&kept);
        self.lay_out();
    }

    /// Gives each range its place in the copies.
    fn lay_out(&mut self) {
        let mut offset = 0;
        let is_small = |range: &mut Range| {
            range.offset = offset;
            offset += range.len();
            offset <= MOST_BYTES
        };
        let mut is_small = is_small;
        self.ranges.retain_mut(|range| is_small(range));
        let length = self.ranges.last().map_or(0, |range| range.offset + range.len());
        self.before.clear();
        self.before.resize(length, 0);
        self.behind.clear();
        self.behind.resize(length, 0);
        self.last_range = 0;
    }
}

/// The ranges in order of their addresses, those near to each other as one. Frames further than a page apart stay separate,
/// because the memory between them may not be mapped.
fn merged(ranges: &[Range]) -> Vec<Range> {
    let mut merged: Vec<Range> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(NEAR) => {
                last.end = last.end.max(range.end);
                last.last_used = last.last_used.max(range.last_used);
            }
            _ => merged.push(*range),
        }
    }
    merged
}

/// The pieces to read the ranges into `bytes`.
fn pieces_of<'p>(ranges: &'p [Range], bytes: &'p mut [u8]) -> impl Iterator<Item = MemoryPiece<'p>> {
    let mut rest = bytes;
    ranges.iter().map(move |range| {
        let (into, behind) = std::mem::take(&mut rest).split_at_mut(range.len());
        rest = behind;
        MemoryPiece { address: range.start, into }
    })
}

/// The number of pieces in one call.
const PIECES: usize = 64;

/// Reads pieces in as few calls as possible, without an allocation. Returns the bytes read and wanted.
pub(crate) fn read_all<'p>(
    memory: &impl ForeignMemory,
    mut pieces: impl Iterator<Item = MemoryPiece<'p>>,
) -> Result<(usize, usize), Error> {
    let (mut filled, mut wanted) = (0, 0);
    loop {
        let mut count = 0;
        let mut batch: [MemoryPiece<'p>; PIECES] =
            std::array::from_fn(|_| MemoryPiece { address: 0, into: &mut [] });
        for (place, piece) in batch.iter_mut().zip(&mut pieces) {
            wanted += piece.into.len();
            *place = piece;
            count += 1;
        }
        if count == 0 {
            return Ok((filled, wanted));
        }
        filled += memory.read_pieces(&mut batch[..count])?;
        if filled < wanted {
            return Ok((filled, wanted));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory in which each byte is the number of reads so far.
    struct Counting(std::cell::Cell<u8>);

    impl ForeignMemory for Counting {
        fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
            let mut filled = 0;
            for piece in pieces {
                if piece.address >= 0x10_0000 {
                    return Ok(filled);
                }
                self.0.set(self.0.get() + 1);
                piece.into.fill(self.0.get());
                filled += piece.into.len();
            }
            Ok(filled)
        }
    }

    #[test]
    fn a_known_frame_is_copied_before_and_behind_the_state() {
        let memory = Counting(std::cell::Cell::default());
        let mut snapshot = Snapshot::new(0x1000, 8);
        assert_eq!(snapshot.take(&memory, &mut []).unwrap(), Taken::Whole);
        let place = snapshot.find(&memory, 0x8000, 80).unwrap().unwrap();
        assert!(!snapshot.is_whole());
        assert_eq!(snapshot.numbers(place, 0).map(|[before, behind]| before == behind), Some(true));
        snapshot.learn();
        snapshot.take(&memory, &mut []).unwrap();
        let place = snapshot.find(&memory, 0x8000, 80).unwrap().unwrap();
        assert!(snapshot.is_whole());
        let [before, behind] = snapshot.numbers(place, 8).unwrap().map(|number| number & 0xff);
        assert_eq!([before, snapshot.state()[0].into(), behind], [before, before + 1, before + 2]);
    }

    #[test]
    fn frames_near_each_other_are_one_piece_and_old_ones_are_left_out() {
        let memory = Counting(std::cell::Cell::default());
        let mut snapshot = Snapshot::new(0x1000, 8);
        for _ in 0..3 {
            snapshot.take(&memory, &mut []).unwrap();
            for address in [0x8000, 0x8400, 0x8800, 0xc000] {
                snapshot.find(&memory, address, 80).unwrap().unwrap();
            }
            snapshot.learn();
        }
        assert_eq!(snapshot.ranges.len(), 2, "{:?}", snapshot.ranges);
        for _ in 0..2 * OLDEST {
            memory.0.set(0);
            snapshot.take(&memory, &mut []).unwrap();
            snapshot.find(&memory, 0xc000, 80).unwrap().unwrap();
            snapshot.learn();
        }
        assert_eq!(snapshot.ranges.len(), 1, "{:?}", snapshot.ranges);
    }

    #[test]
    fn memory_that_is_gone_is_left_out_next_time() {
        let memory = Counting(std::cell::Cell::default());
        let mut snapshot = Snapshot::new(0x1000, 8);
        snapshot.ranges = vec![Range::new(0x8000, 0x8100, 0), Range::new(0x10_0000, 0x10_0100, 0)];
        snapshot.lay_out();
        assert_eq!(snapshot.take(&memory, &mut []).unwrap(), Taken::Partly);
        assert_eq!(snapshot.take(&memory, &mut []).unwrap(), Taken::Whole);
        assert!(snapshot.find(&memory, 0x10_0000, 80).unwrap().is_none());
        assert!(snapshot.find(&memory, u64::MAX - 8, 80).unwrap().is_none());
        let mut gone = Snapshot::new(0x10_0000, 8);
        assert_eq!(gone.take(&memory, &mut []).unwrap(), Taken::NoState);
    }
}
