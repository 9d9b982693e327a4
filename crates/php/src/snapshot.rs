//! A consistent copy of the memory that a stack walk needs.
//!
//! One read call copies the memory that held frames last time, then the executor's state, then that memory again. Data that is
//! equal in both copies was there when the state was copied: the call is not atomic, but no frame that the state leads to has
//! changed during it. Frames that came and went meanwhile do no harm. Callers already seen in this way need weaker checks (see
//! `prefix`).
//!
//! A place that was not copied is read separately, with its page. The copy is then no longer consistent; the page is part of
//! the next one.
//!
//! Memory use: at most [`MOST_BYTES`] twice, in at most [`MOST_RANGES`] ranges, whatever the process holds.

use borehole_process::{Error, ForeignMemory, MemoryPiece};

use crate::layout::{Layout, fixed};
use crate::remote::{u32_at, u64_at};

const PAGE: u64 = 4096;

/// Enough for a hundred thousand small frames.
const MOST_BYTES: u64 = 16 << 20;

/// Each range costs a third of a microsecond, twice.
const MOST_RANGES: usize = 48;

/// A range that no stack has used for this number of samples is no longer copied.
const IDLE_SAMPLES: u32 = 8;

/// After this number of samples, the unused ends of a range are no longer copied.
const TRIMMED_AFTER: u32 = 256;

/// Copies begin and end at multiples of this: a KiB takes a fifth of the time that a range takes.
const GRAIN: u64 = 256;

/// Up to this number of pieces, a sample allocates nothing: enough for a stack in one range, and some functions that come and
/// go.
const FEW_PIECES: usize = 8;

/// The maximum number of pages read at once when a stack extends below the copy.
const REACH: u64 = 16;

/// A frame as it is in memory, before its function is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawFrame {
    pub(crate) address: u64,
    pub(crate) function: u64,
    /// The address of its instruction; meaningless for PHP's internal functions.
    pub(crate) op: u64,
    /// The address of its caller's frame.
    pub(crate) previous: u64,
    /// Whether an instruction of the caller's frame is known to have called it.
    pub(crate) is_nested: bool,
    /// Whether the engine's main function was called for it.
    pub(crate) is_entry: bool,
}

impl RawFrame {
    #[inline]
    pub(crate) fn parse(address: u64, bytes: &[u8; fixed::FRAME_SIZE], layout: &Layout) -> Self {
        let at = |offset| u64_at(bytes, offset).unwrap_or_default();
        let call = u32_at(bytes, fixed::FRAME_CALL).unwrap_or_default();
        Self {
            address,
            function: at(fixed::FRAME_FUNCTION),
            op: at(fixed::FRAME_OP),
            previous: at(layout.frame_previous),
            is_nested: layout.frame_top != 0 && call & layout.frame_top == 0,
            is_entry: call & layout.frame_top != 0,
        }
    }
}

/// A range of copied memory, at `offset` in the copy.
#[derive(Clone, Copy, Debug)]
struct CopiedRange {
    start: u64,
    end: u64,
    offset: usize,
    /// The part that stacks used since the range was last trimmed.
    used: (u64, u64),
    idle: u32,
}

impl CopiedRange {
    const fn new(start: u64, end: u64) -> Self {
        Self { start, end, offset: 0, used: (u64::MAX, 0), idle: 0 }
    }

    fn len(&self) -> usize {
        usize::try_from(self.end - self.start).expect("ranges are below MOST_BYTES")
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotOffset(usize);

/// A small piece of memory that is read between the two copies.
#[derive(Debug)]
pub(crate) struct Extra {
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A consistent copy; see the [module](self).
#[derive(Debug)]
pub(crate) struct Snapshot {
    state_address: u64,
    state: Vec<u8>,
    ranges: Vec<CopiedRange>,
    /// The ranges, then what was read separately.
    first: Vec<u8>,
    /// The ranges.
    second: Vec<u8>,
    alone: Vec<CopiedRange>,
    last_range: usize,
    last_miss: (u64, u64),
    /// Whether something was not found because too much would have to be copied.
    pub(crate) is_full: bool,
    age: u32,
}

impl Snapshot {
    /// An empty copy, with only `state_length` bytes of the state at `state_address`.
    pub(crate) fn new(state_address: u64, state_length: usize) -> Self {
        Self {
            state_address,
            state: vec![0; state_length],
            ranges: Vec::new(),
            first: Vec::new(),
            second: Vec::new(),
            alone: Vec::new(),
            last_range: 0,
            last_miss: (0, 0),
            is_full: false,
            age: 0,
        }
    }

    /// Copies everything again, and `extras` with the state; `false` if something could not be read and will be left out next
    /// time.
    pub(crate) fn take<'e>(
        &mut self,
        memory: &impl ForeignMemory,
        extras: impl Iterator<Item = &'e mut Extra>,
    ) -> Result<bool, Error> {
        self.first.truncate(self.second.len());
        self.alone.clear();
        self.is_full = false;
        let state = MemoryPiece { address: self.state_address, into: &mut self.state };
        let extras = extras.map(|extra| MemoryPiece { address: extra.address, into: &mut extra.bytes });
        let pieces = pieces_of(&self.ranges, &mut self.first).chain([state]).chain(extras);
        let pieces = pieces.chain(pieces_of(&self.ranges, &mut self.second));
        let (filled, wanted) = read_all(memory, pieces)?;
        if filled < wanted {
            self.forget_unreadable(filled);
        }
        Ok(filled == wanted)
    }

    /// Removes the range whose copy ended `filled` bytes into the whole.
    fn forget_unreadable(&mut self, filled: usize) {
        if let Some(at) = self.ranges.iter().position(|range| filled < range.offset + range.len()) {
            self.ranges.remove(at);
            self.lay_out();
        }
    }

    pub(crate) fn state(&self, offset: usize) -> Option<u64> {
        u64_at(&self.state, offset)
    }

    /// The position of `length` bytes at `address`, read separately if they are not in the copy; `None` if there is no such
    /// memory, or too much would have to be copied.
    pub(crate) fn find(
        &mut self,
        memory: &impl ForeignMemory,
        address: u64,
        length: usize,
    ) -> Result<Option<SnapshotOffset>, Error> {
        if let Some(spot) = self.find_copied(address, length) {
            return Ok(Some(spot));
        }
        let Some(end) = address.checked_add(length as u64) else { return Ok(None) };
        let known = self.alone.iter_mut().rfind(|range| range.start <= address && end <= range.end);
        match known {
            Some(range) => Ok(Some(Self::used(range, address, end))),
            None => self.read_alone(memory, address, end),
        }
    }

    /// The position of `length` bytes at `address`, if they are in both copies.
    #[inline]
    fn find_copied(&mut self, address: u64, length: usize) -> Option<SnapshotOffset> {
        let end = address.checked_add(length as u64)?;
        if let Some(range) = self.ranges.get_mut(self.last_range)
            && range.start <= address
            && end <= range.end
        {
            return Some(Self::used(range, address, end));
        }
        let at = self.ranges.partition_point(|range| range.start <= address).wrapping_sub(1);
        let range = self.ranges.get_mut(at).filter(|range| end <= range.end)?;
        self.last_range = at;
        Some(Self::used(range, address, end))
    }

    fn used(range: &mut CopiedRange, address: u64, end: u64) -> SnapshotOffset {
        range.used = (range.used.0.min(address), range.used.1.max(end));
        let inside = usize::try_from(address - range.start).expect("ranges are below MOST_BYTES");
        SnapshotOffset(range.offset + inside)
    }

    /// Reads the pages from `address` to `end` separately; several pages below too if the last such read was right above.
    /// `None` also if too much has been copied.
    fn read_alone(
        &mut self,
        memory: &impl ForeignMemory,
        address: u64,
        end: u64,
    ) -> Result<Option<SnapshotOffset>, Error> {
        // There are no addresses beyond the last page.
        let Some(end_of_pages) = end.checked_next_multiple_of(PAGE) else { return Ok(None) };
        let start = address - address % PAGE;
        let reach = if self.last_miss.0 == end_of_pages { (self.last_miss.1 * 2).min(REACH) } else { 1 };
        let far = CopiedRange::new(end_of_pages.saturating_sub(reach * PAGE).min(start), end_of_pages);
        for mut range in [far, CopiedRange::new(start, end_of_pages)] {
            range.offset = self.first.len();
            if (range.offset + range.len()) as u64 > MOST_BYTES {
                self.is_full = true;
                continue;
            }
            self.first.resize(range.offset + range.len(), 0);
            let into = &mut self.first[range.offset..];
            let filled = memory.read_pieces(&mut [MemoryPiece { address: range.start, into }])?;
            if filled == range.len() {
                self.last_miss = (range.start, reach);
                let spot = Self::used(&mut range, address, end);
                self.alone.push(range);
                return Ok(Some(spot));
            }
            self.first.truncate(range.offset);
        }
        Ok(None)
    }

    /// Whether the copy contained everything requested.
    pub(crate) fn is_whole(&self) -> bool {
        self.alone.is_empty()
    }

    /// The number of `frames`, up to the first mismatch, that are at their given place in both copies and at their given
    /// instruction in at least one.
    pub(crate) fn count_standing<'f>(
        &mut self,
        frames: impl Iterator<Item = &'f RawFrame>,
        layout: &Layout,
    ) -> usize {
        let mut count = 0;
        for frame in frames {
            let Some(spot) = self.find_copied(frame.address, fixed::FRAME_SIZE) else { break };
            let [first, second] = self.frames(spot, frame.address, layout);
            let is_there =
                |copy: &RawFrame| (copy.function, copy.previous) == (frame.function, frame.previous);
            if !is_there(&first) || !is_there(&second) || (first.op != frame.op && second.op != frame.op) {
                break;
            }
            count += 1;
        }
        count
    }

    /// Whether `frame` is at the same instruction in both copies.
    pub(crate) fn rests(&mut self, frame: &RawFrame, layout: &Layout) -> bool {
        let spot = self.find_copied(frame.address, fixed::FRAME_SIZE);
        spot.is_some_and(|spot| {
            self.frames(spot, frame.address, layout).iter().all(|copy| copy.op == frame.op)
        })
    }

    /// The frame at `spot`, with the address `address`, in both copies. Data only in the first copy counts as unchanged.
    #[inline]
    pub(crate) fn frames(&self, spot: SnapshotOffset, address: u64, layout: &Layout) -> [RawFrame; 2] {
        let nothing = [0; fixed::FRAME_SIZE];
        let first = frame_at(&self.first, spot.0).unwrap_or(&nothing);
        let second = frame_at(&self.second, spot.0).unwrap_or(first);
        [first, second].map(|bytes| RawFrame::parse(address, bytes, layout))
    }

    /// The number `offset` bytes after `spot` in the first copy.
    pub(crate) fn u64(&self, spot: SnapshotOffset, offset: usize) -> u64 {
        u64_at(&self.first, spot.0 + offset).unwrap_or_default()
    }

    /// Whether the eight bytes at `offset` after `spot` are equal in both copies. Data only in the first copy counts as equal;
    /// see [`Self::is_whole`].
    pub(crate) fn is_steady(&self, spot: SnapshotOffset, offset: usize) -> bool {
        let at = spot.0 + offset;
        at >= self.second.len() || u64_at(&self.second, at) == u64_at(&self.first, at)
    }

    /// Adds the memory read separately to the next copies.
    pub(crate) fn keep_alone(&mut self) {
        for range in std::mem::take(&mut self.alone) {
            self.insert(range);
        }
        self.lay_out();
    }

    /// Adds `range` to the others, merging those that touch.
    fn insert(&mut self, mut range: CopiedRange) {
        self.ranges.retain(|other| {
            let touches = other.start <= range.end && range.start <= other.end;
            if touches {
                range.start = range.start.min(other.start);
                range.end = range.end.max(other.end);
                range.used = (range.used.0.min(other.used.0), range.used.1.max(other.used.1));
            }
            !touches
        });
        if self.ranges.len() >= MOST_RANGES {
            let idlest = self.ranges.iter().enumerate().max_by_key(|(_, other)| other.idle);
            if let Some((at, _)) = idlest {
                self.ranges.remove(at);
            }
        }
        let at = self.ranges.partition_point(|other| other.start < range.start);
        self.ranges.insert(at, range);
    }

    /// Ends a sample: forgets memory that stacks no longer use.
    pub(crate) fn grow_older(&mut self) {
        self.age += 1;
        let trim = self.age.is_multiple_of(TRIMMED_AFTER);
        let mut changed = false;
        for range in &mut self.ranges {
            let was_used = range.used.0 < range.used.1;
            if trim && was_used {
                let start = (range.used.0 - range.used.0 % GRAIN).max(range.start);
                let end = range.used.1.next_multiple_of(GRAIN).min(range.end);
                changed |= (range.start, range.end) != (start, end);
                (range.start, range.end) = (start, end);
            }
            range.idle = if was_used { 0 } else { range.idle.saturating_add(1) };
            if trim || range.idle > 0 {
                range.used = (u64::MAX, 0);
            }
        }
        let before = self.ranges.len();
        self.ranges.retain(|range| range.idle <= IDLE_SAMPLES);
        if changed || self.ranges.len() != before {
            self.lay_out();
        }
    }

    fn lay_out(&mut self) {
        let mut offset = 0;
        for range in &mut self.ranges {
            range.offset = offset;
            offset += range.len();
        }
        self.first.resize(offset, 0);
        self.second.resize(offset, 0);
    }
}

/// Reads `pieces` with one call, and returns the number of bytes filled and wanted.
fn read_all<'p>(
    memory: &impl ForeignMemory,
    mut pieces: impl Iterator<Item = MemoryPiece<'p>>,
) -> Result<(usize, usize), Error> {
    let mut few: [MemoryPiece<'p>; FEW_PIECES] =
        std::array::from_fn(|_| MemoryPiece { address: 0, into: &mut [] });
    let mut count = 0;
    for (place, piece) in few.iter_mut().zip(pieces.by_ref()) {
        *place = piece;
        count += 1;
    }
    let wanted = |pieces: &[MemoryPiece<'_>]| pieces.iter().map(|piece| piece.into.len()).sum();
    let Some(next) = pieces.next() else {
        let few = &mut few[..count];
        let wanted = wanted(few);
        return Ok((memory.read_pieces(few)?, wanted));
    };
    let mut many: Vec<MemoryPiece<'p>> = few.into_iter().chain([next]).chain(pieces).collect();
    let wanted = wanted(&many);
    Ok((memory.read_pieces(&mut many)?, wanted))
}

#[inline]
fn frame_at(copy: &[u8], at: usize) -> Option<&[u8; fixed::FRAME_SIZE]> {
    copy.get(at..)?.first_chunk()
}

/// The pieces that copy `ranges` into `copy`, one after the other.
fn pieces_of<'p>(ranges: &[CopiedRange], copy: &'p mut [u8]) -> impl Iterator<Item = MemoryPiece<'p>> {
    let mut rest = copy;
    ranges.iter().map(move |range| {
        let (into, behind) = std::mem::take(&mut rest).split_at_mut(range.len());
        rest = behind;
        MemoryPiece { address: range.start, into }
    })
}
