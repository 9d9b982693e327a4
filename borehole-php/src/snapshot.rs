//! A consistent copy of the parts of a process that a stack is walked through.
//!
//! One read call copies the memory in which frames stood last time, then the executor's state, then that memory again. What is
//! equal in both copies stood there when the state was copied: the call is not one moment, but of the frames
//! that the state leads to none has changed while it lasted. Frames that came and went meanwhile do no harm. Of callers that
//! were seen so before less is asked (see `prefix`).
//!
//! A place that was not copied is read by itself, with its page. The copy is then no longer consistent; the page is part of the
//! next.
//!
//! Memory: at most [`MOST_BYTES`] twice, in at most [`MOST_RANGES`] ranges, whatever the process holds.

use borehole_process::{Error, Memory, Piece};

use crate::chain::RawFrame;
use crate::layout::{Layout, fixed};
use crate::remote::u64_at;

const PAGE: u64 = 4096;

/// Room for a hundred thousand small frames.
const MOST_BYTES: u64 = 16 << 20;

/// Each range costs a third of a microsecond, twice.
const MOST_RANGES: usize = 48;

/// A range that no stack of so many samples went through is not copied any longer.
const IDLE_SAMPLES: u32 = 8;

/// After so many samples, the ends of a range that no stack went through are not copied any longer.
const TRIMMED_AFTER: u32 = 256;

/// What is copied begins and ends at multiples of this: a KiB takes a fifth of the time that a range takes.
const GRAIN: u64 = 256;

/// With so few pieces nothing is allocated for a sample: a stack in one range, and some functions that come and go.
const FEW_PIECES: usize = 8;

/// The most pages that are read at once when a stack reaches down out of the copy.
const REACH: u64 = 16;

/// Memory that is copied, `offset` bytes behind the start of the copy.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    offset: usize,
    /// The part that stacks went through since it was last trimmed.
    used: (u64, u64),
    idle: u32,
}

impl Range {
    const fn new(start: u64, end: u64) -> Self {
        Self { start, end, offset: 0, used: (u64::MAX, 0), idle: 0 }
    }

    fn len(&self) -> usize {
        usize::try_from(self.end - self.start).expect("ranges are below MOST_BYTES")
    }
}

/// Where in the copy something stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot(usize);

/// Something short that is read between the two copies.
#[derive(Debug)]
pub(crate) struct Extra {
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Snapshot {
    state_address: u64,
    state: Vec<u8>,
    ranges: Vec<Range>,
    /// The ranges, and what was read by itself.
    first: Vec<u8>,
    /// The ranges.
    second: Vec<u8>,
    alone: Vec<Range>,
    last_range: usize,
    last_miss: (u64, u64),
    is_full: bool,
    age: u32,
}

impl Snapshot {
    /// Nothing but `state_length` bytes of the state at `state_address`.
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

    /// Copies everything anew, and `extras` with the state; `false` if something could not be read and is left out next time.
    pub(crate) fn take<'e>(
        &mut self,
        memory: &impl Memory,
        extras: impl Iterator<Item = &'e mut Extra>,
    ) -> Result<bool, Error> {
        self.first.truncate(self.second.len());
        self.alone.clear();
        self.is_full = false;
        let state = Piece { address: self.state_address, into: &mut self.state };
        let extras = extras.map(|extra| Piece { address: extra.address, into: &mut extra.bytes });
        let pieces = pieces_of(&self.ranges, &mut self.first).chain([state]).chain(extras);
        let pieces = pieces.chain(pieces_of(&self.ranges, &mut self.second));
        let (filled, wanted) = read_all(memory, pieces)?;
        if filled < wanted {
            self.forget_unreadable(filled);
        }
        Ok(filled == wanted)
    }

    /// Leaves out the range whose copy ended `filled` bytes into the whole.
    fn forget_unreadable(&mut self, filled: usize) {
        if let Some(at) = self.ranges.iter().position(|range| filled < range.offset + range.len()) {
            self.ranges.remove(at);
            self.lay_out();
        }
    }

    /// The number at `offset` of the state; `None` behind its end.
    pub(crate) fn state(&self, offset: usize) -> Option<u64> {
        u64_at(&self.state, offset)
    }

    /// Where `length` bytes of `address` are, read by themselves if they are not in the copy; `None` if there is no such
    /// memory, or too much would have to be copied.
    pub(crate) fn find(
        &mut self,
        memory: &impl Memory,
        address: u64,
        length: usize,
    ) -> Result<Option<Spot>, Error> {
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

    /// Where `length` bytes of `address` are in both copies, if they are.
    #[inline]
    fn find_copied(&mut self, address: u64, length: usize) -> Option<Spot> {
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

    fn used(range: &mut Range, address: u64, end: u64) -> Spot {
        range.used = (range.used.0.min(address), range.used.1.max(end));
        let inside = usize::try_from(address - range.start).expect("ranges are below MOST_BYTES");
        Spot(range.offset + inside)
    }

    /// Reads the pages from `address` to `end` by themselves; where the last such read was right above, several below.
    /// `None` also when too much has been copied.
    fn read_alone(&mut self, memory: &impl Memory, address: u64, end: u64) -> Result<Option<Spot>, Error> {
        // Behind the last page nothing has an address.
        let Some(end_of_pages) = end.checked_next_multiple_of(PAGE) else { return Ok(None) };
        let start = address - address % PAGE;
        let reach = if self.last_miss.0 == end_of_pages { (self.last_miss.1 * 2).min(REACH) } else { 1 };
        let far = Range::new(end_of_pages.saturating_sub(reach * PAGE).min(start), end_of_pages);
        for mut range in [far, Range::new(start, end_of_pages)] {
            range.offset = self.first.len();
            if (range.offset + range.len()) as u64 > MOST_BYTES {
                self.is_full = true;
                continue;
            }
            self.first.resize(range.offset + range.len(), 0);
            let into = &mut self.first[range.offset..];
            let filled = memory.read_pieces(&mut [Piece { address: range.start, into }])?;
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

    /// Whether something was not found because too much would have to be copied.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether everything asked for was in the copy.
    pub(crate) fn is_whole(&self) -> bool {
        self.alone.is_empty()
    }

    /// How many of `frames` stand in both copies where they are given, and in one at least at the instruction that is given,
    /// up to the first that does not.
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

    /// The frame at `spot`, which stands at `address`, in both copies. What is in the first copy only counts as steady.
    #[inline]
    pub(crate) fn frames(&self, spot: Spot, address: u64, layout: &Layout) -> [RawFrame; 2] {
        let nothing = [0; fixed::FRAME_SIZE];
        let first = frame_at(&self.first, spot.0).unwrap_or(&nothing);
        let second = frame_at(&self.second, spot.0).unwrap_or(first);
        [first, second].map(|bytes| RawFrame::parse(address, bytes, layout))
    }

    /// The number `offset` bytes behind `spot`, as it was first.
    pub(crate) fn u64(&self, spot: Spot, offset: usize) -> u64 {
        u64_at(&self.first, spot.0 + offset).unwrap_or_default()
    }

    /// Whether the eight bytes `offset` behind `spot` stayed what they were. What is in the first copy only counts as
    /// such: [`Self::is_whole`] tells.
    pub(crate) fn is_steady(&self, spot: Spot, offset: usize) -> bool {
        let at = spot.0 + offset;
        at >= self.second.len() || u64_at(&self.second, at) == u64_at(&self.first, at)
    }

    /// Has what was read by itself copied from now on.
    pub(crate) fn keep_alone(&mut self) {
        for range in std::mem::take(&mut self.alone) {
            self.insert(range);
        }
        self.lay_out();
    }

    /// Puts `range` among the others, and makes one of those that touch.
    fn insert(&mut self, mut range: Range) {
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

    /// Says that a sample is done: forgets what stacks no longer go through.
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

/// Reads `pieces` with one call, and says how many bytes it filled and how many there are to be.
fn read_all<'p>(
    memory: &impl Memory,
    mut pieces: impl Iterator<Item = Piece<'p>>,
) -> Result<(usize, usize), Error> {
    let mut few: [Piece<'p>; FEW_PIECES] = std::array::from_fn(|_| Piece { address: 0, into: &mut [] });
    let mut count = 0;
    for (place, piece) in few.iter_mut().zip(pieces.by_ref()) {
        *place = piece;
        count += 1;
    }
    let wanted = |pieces: &[Piece<'_>]| pieces.iter().map(|piece| piece.into.len()).sum();
    let Some(next) = pieces.next() else {
        let few = &mut few[..count];
        let wanted = wanted(few);
        return Ok((memory.read_pieces(few)?, wanted));
    };
    let mut many: Vec<Piece<'p>> = few.into_iter().chain([next]).chain(pieces).collect();
    let wanted = wanted(&many);
    Ok((memory.read_pieces(&mut many)?, wanted))
}

/// The frame that begins at `at` of a copy.
#[inline]
fn frame_at(copy: &[u8], at: usize) -> Option<&[u8; fixed::FRAME_SIZE]> {
    copy.get(at..)?.first_chunk()
}

/// Where the copies of `ranges` go: into `copy`, one behind the other.
fn pieces_of<'p>(ranges: &[Range], copy: &'p mut [u8]) -> impl Iterator<Item = Piece<'p>> {
    let mut rest = copy;
    ranges.iter().map(move |range| {
        let (into, behind) = std::mem::take(&mut rest).split_at_mut(range.len());
        rest = behind;
        Piece { address: range.start, into }
    })
}
