//! Continues reading after damage.
//!
//! Frames have neither length nor checksum, so a position to continue at is judged by the bytes there. Damage is
//! handled in this order:
//!
//! 1. A schema that contradicts an earlier one of its id replaces it: the following events were written for it.
//! 2. A header with some wrong bytes that a frame follows is read as if it were intact.
//! 3. A frame that contains an intact header, which a frame follows, has a damaged length and is rejected, unless it
//!    holds a stream as a value: such bytes are confirmed by the bytes after them, and bytes or text by a valid stream
//!    that ends with them.
//! 4. Otherwise the search continues byte by byte, for a flawless header that a frame follows, or for a chain of frames
//!    that fits the batch: known types, defined pool ids, valid text, times near the last. [`ChainJudge`] adds up how
//!    improbable such bytes are by chance.
//!
//! Valid input is read as in strict reading: 1, 2 and 4 begin with a frame that cannot be read.
//!
//! Times are differences between events, so a loss inside a batch shifts those after it: [`Uncertain`] counts them
//! until the time is set again.
//!
//! [`search`](super::search) explains the limit of the search and why it is linear. Headers are searched for once,
//! whatever frames contain them: [`Headers`](super::search::Headers) knows the next one.

use std::io::Read;

use borehole_text::counted;
use borehole_wire::Effort;
use memchr::memmem;

use super::NAME;
use super::batch::Batch;
use super::chain::{ChainJudge, ChainPurpose, Verdict};
use super::fault::{FaultKind, FrameFault};
use super::frame::{self, FrameKind, FrameOutline};
use super::layout::{FieldKind, FrameTag, HEADER, HEADER_BYTES, HEADER_TAG};
use super::read::{Reader, ReaderState};
use super::search::Uncertain;
use crate::{Error, Position};

/// The number of bytes examined after a candidate.
const LOOK_AHEAD: usize = 4096;

/// The number of correct bytes that a header needs for a repair.
const MENDABLE: usize = 3;

impl<R: Read> Reader<R> {
    /// Finds the position to continue at. The failed frame is at the start of the window.
    pub(super) fn resynchronise(&mut self, fault: FrameFault) -> Result<(), Error> {
        let from = self.offset();
        self.search.effort.spend(from, fault.looked_at());
        self.search.effort.work(Effort::PER_DAMAGE);
        let may_repair = self.search.effort.is_left(from);
        if let FaultKind::Conflict { .. } = fault.what
            && may_repair
            && self.adopt_schema()
        {
            self.warn(from, 0, || {
                format!("{}; later events are read with the new schema", fault.what.message())
            });
            return Ok(());
        }
        if may_repair && self.mend_header()? {
            self.warn(from, 0, || "damaged header: read as if it were whole".into());
            return Ok(());
        }
        self.state = self.scan()?;
        if self.state == ReaderState::Inside {
            self.search.damage.get_or_insert(from);
        }
        self.warn(from, self.offset() - from, || fault.what.message());
        Ok(())
    }

    /// Whether another batch begins in the frame at the start of the window, which then has a damaged length. The batch
    /// is a value if it ends with the value, or if the outer batch continues after the frame.
    pub(super) fn swallows_a_batch(&mut self, outline: FrameOutline) -> Result<bool, Error> {
        let len = outline.len;
        let Some(at) = self.batch_within(len)? else { return Ok(false) };
        self.search.effort.spend(self.offset(), len as u64);
        let holder = self.holder(outline, at);
        if matches!(outline.kind, FrameKind::Header { .. }) || holder == Holder::None {
            return Ok(true);
        }
        self.ensure(len + LOOK_AHEAD)?;
        // Events of the type that the frame may define are known only after it is applied.
        let evidence = if matches!(outline.kind, FrameKind::Schema) { 24 } else { 0 };
        let is_confirmed = self.judge(len, ChainPurpose::Confirm, evidence) != Verdict::Implausible;
        // If damage follows, a value that is a stream to its end is enough.
        Ok(!is_confirmed && holder != Holder::Whole)
    }

    /// The holder of the header `at` bytes into the frame.
    fn holder(&self, outline: FrameOutline, at: usize) -> Holder {
        let FrameKind::Event { row, .. } = outline.kind else { return Holder::Other };
        let bytes = self.window.available();
        let types = self.batch.row(row).types.iter();
        let mut values = types.zip(&self.slots).filter_map(|(field_type, slot)| {
            let range = slot.payload_range(*field_type).filter(|range| range.contains(&at))?;
            Some((bytes.get(range)?, bytes.get(at..slot.payload_range(*field_type)?.end)?, field_type.kind))
        });
        match values.next() {
            // The bytes after the header are outside the value.
            Some((_, stream, _)) if stream.len() <= HEADER_BYTES => Holder::None,
            Some((text, stream, FieldKind::String)) => {
                let is_text = std::str::from_utf8(text).is_ok();
                if is_text && is_whole_stream(stream) { Holder::Whole } else { Holder::None }
            }
            Some((_, stream, _)) if is_whole_stream(stream) => Holder::Whole,
            _ => Holder::Other,
        }
    }

    /// The start of the next batch, if it is in the frame of `len` bytes at the start of the window. A header that only
    /// begins in the frame counts too.
    fn batch_within(&mut self, len: usize) -> Result<Option<usize>, Error> {
        let start = self.offset();
        let end = start.saturating_add(len as u64);
        while !self.search.headers.are_none_in(start, end) {
            if let Some(next) = self.search.headers.next.filter(|&next| next > start) {
                return Ok(usize::try_from(next - start).ok());
            }
            self.ensure(len.saturating_add(HEADER_BYTES + LOOK_AHEAD))?;
            self.search_batch(start + 1);
        }
        Ok(None)
    }

    /// Searches the available bytes for the next batch, from the first unsearched one, but not before `least`.
    fn search_batch(&mut self, least: u64) {
        let from = self.search.headers.searched_until.max(least);
        let (start, bytes) = (self.offset(), self.window.available());
        // The bytes after a header have to be available too.
        let behind = if self.window.has_ended() { 0 } else { HEADER_BYTES + LOOK_AHEAD };
        let searched = bytes.len().saturating_sub(behind);
        let mut at = usize::try_from(from - start).unwrap_or(usize::MAX);
        self.search.headers.next = None;
        self.search.headers.searched_until = from.max(start.saturating_add(searched as u64));
        while let Some(found) = bytes.get(at..).and_then(|bytes| memmem::find(bytes, &HEADER)) {
            at += found;
            if at >= searched {
                return;
            }
            let offset = start + at as u64;
            let (begins, looked_at) =
                begins_a_batch(&bytes[at + HEADER_BYTES..], self.search.effort.is_left(offset));
            self.search.effort.spend(offset, looked_at);
            if begins {
                (self.search.headers.next, self.search.headers.searched_until) = (Some(offset), offset + 1);
                return;
            }
            at += 1;
        }
    }

    /// Redefines a type id by the schema at the start of the window.
    fn adopt_schema(&mut self) -> bool {
        let Some(bytes) = self.window.available().get(1..) else { return false };
        let mut cursor = borehole_wire::Cursor::new(bytes, 0);
        let Ok((type_id, definition)) = frame::schema(&mut cursor) else { return false };
        let len = 1 + bytes.len() - cursor.rest().len();
        self.batch.count_type(len);
        if self.options.limits.check(self.batch.held_bytes()).is_err() {
            return false;
        }
        self.batch.define(type_id, definition);
        self.window.consume(len);
        true
    }

    /// Begins a batch at the start of the window, if most of a header is there and a frame follows.
    fn mend_header(&mut self) -> Result<bool, Error> {
        let bytes = self.ensure(HEADER_BYTES + LOOK_AHEAD)?;
        let Some(header) = bytes.get(..HEADER_BYTES) else { return Ok(false) };
        let right = header.iter().zip(HEADER).filter(|(found, expected)| *found == expected).count();
        if right < MENDABLE {
            return Ok(false);
        }
        let offset = self.offset();
        let behind = &self.window.available()[HEADER_BYTES..];
        let (mended, looked_at) = begins_a_batch(behind, self.search.effort.is_left(offset));
        self.search.effort.spend(offset, looked_at);
        if mended {
            self.state = ReaderState::Mended;
        }
        Ok(mended)
    }

    /// Moves the window to the next position, after its first byte, at which reading can continue.
    fn scan(&mut self) -> Result<ReaderState, Error> {
        let mut at = 1;
        loop {
            self.ensure(2 * LOOK_AHEAD)?;
            let len = self.window.available().len();
            let last = if self.window.has_ended() { len } else { len.saturating_sub(LOOK_AHEAD) };
            while at < last {
                if self.search.effort.is_left(self.offset() + at as u64)
                    && let Some(place) = self.state_at(at)?
                {
                    self.window.consume(at);
                    return Ok(place);
                }
                at += 1;
            }
            if self.window.has_ended() {
                // A candidate may have waited for more bytes than there were.
                let left = self.window.available().len();
                if left > len {
                    continue;
                }
                self.window.consume(left);
                return Ok(self.state);
            }
            self.window.consume(at - 1);
            at = 1;
        }
    }

    /// The kind of frame that may begin at `at`, if any.
    fn state_at(&mut self, at: usize) -> Result<Option<ReaderState>, Error> {
        let offset = self.offset() + at as u64;
        let bytes = self.window.available().get(at..).unwrap_or_default();
        match bytes.first().copied() {
            Some(HEADER_TAG) => {
                let Some(behind) = bytes.strip_prefix(&HEADER) else { return Ok(None) };
                let (begins, looked_at) = begins_a_batch(behind, true);
                self.search.effort.spend(offset, looked_at);
                Ok(begins.then_some(ReaderState::Start))
            }
            Some(byte) if FrameTag::from_byte(byte).is_some() && self.state == ReaderState::Inside => {
                let verdict = match self.judge(at, ChainPurpose::Search, 0) {
                    Verdict::Longer => self.judge_longer(at)?,
                    verdict => verdict,
                };
                Ok((verdict == Verdict::Plausible).then_some(ReaderState::Inside))
            }
            _ => Ok(None),
        }
    }

    /// Judges the bytes `at` bytes into the window, with `evidence` from before.
    fn judge(&mut self, at: usize, purpose: ChainPurpose, evidence: u32) -> Verdict {
        let bytes = self.window.available().get(at..).unwrap_or_default();
        let (bytes, whole) = seen(bytes, self.window.has_ended());
        // The slots of the reader hold the current event.
        let (batch, slots) = (&self.batch, &mut self.search.spare_slots);
        let mut chain = ChainJudge { batch, slots, purpose, evidence, looked_at: 0 };
        let verdict = chain.judge(bytes, whole);
        let looked_at = chain.looked_at;
        self.search.effort.spend(self.offset() + at as u64, looked_at);
        verdict
    }

    /// Like [`judge`](Self::judge), for an event longer than the bytes examined of others: the bytes after it decide.
    fn judge_longer(&mut self, at: usize) -> Result<Verdict, Error> {
        let limit = self.options.limits.frame_bytes;
        loop {
            let offset = self.offset() + at as u64;
            let bytes = self.window.available().get(at..).unwrap_or_default();
            let available = bytes.len();
            match FrameOutline::read(bytes, &self.batch, &mut self.slots) {
                Ok(outline) => {
                    self.search.effort.spend(offset, outline.len as u64);
                    self.ensure(at + outline.len + LOOK_AHEAD)?;
                    return Ok(self.judge(at + outline.len, ChainPurpose::Search, ChainJudge::OF_LONG_EVENT));
                }
                Err(FrameFault { what: FaultKind::Truncated { missing }, at: looked_at }) => {
                    let needed = available.saturating_add(missing);
                    self.search.effort.spend(offset, looked_at);
                    if self.window.has_ended() || needed > limit || !self.search.effort.is_left(offset) {
                        return Ok(Verdict::Implausible);
                    }
                    self.ensure(at.saturating_add(needed.max(available.saturating_mul(2).min(limit))))?;
                }
                Err(fault) => {
                    self.search.effort.spend(offset, fault.looked_at());
                    return Ok(Verdict::Implausible);
                }
            }
        }
    }

    /// Counts an event whose time is right only if nothing was lost.
    #[cold]
    pub(super) fn count_uncertain(&mut self, timestamp_ns: Option<u64>) {
        let offset = self.offset();
        if let (Some(_), Some(damage)) = (timestamp_ns, self.search.damage) {
            self.search.uncertain.get_or_insert(Uncertain { damage, first: offset, events: 0 }).events += 1;
        }
    }

    /// Notes that times are right again from here on.
    pub(super) fn end_uncertain(&mut self) {
        self.search.damage = None;
        let Some(Uncertain { damage, first, events }) = self.search.uncertain.take() else { return };
        self.warn(first, 0, || {
            let (times, are) = if events == 1 { ("time", "is") } else { ("times", "are") };
            let of = counted(events, "event");
            format!("{times} of {of} after the damage at byte {damage:#x} {are} early by an unknown time")
        });
    }

    /// After the end of the data: whether it was only the end of a damaged member, with more to read after it.
    pub(super) fn go_on_after_damage(&mut self) -> Result<bool, Error> {
        if !self.options.is_lenient() {
            return Ok(false);
        }
        let offset = self.offset();
        let Some(passed) = self.window.past_damage() else { return Ok(false) };
        let passed = passed.map_err(|error| Error::io(NAME, Position::Byte(offset), error))?;
        let method = self.window.envelope().method();
        self.warn(offset, passed, || format!("compressed bytes passed over after a damaged {method}"));
        self.search.headers.forget(offset);
        // The following part was written separately, so it begins with a header.
        self.state = ReaderState::Start;
        Ok(!self.ensure(1)?.is_empty())
    }
}

/// The holder of a header in the middle of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// A value that cannot hold it: text or a stream that is not valid, or a value that ends with the header.
    None,
    /// A value that is a valid stream to its end.
    Whole,
    /// A value that may hold anything.
    Other,
}

/// Whether `bytes` are a valid stream, to their end.
fn is_whole_stream(mut bytes: &[u8]) -> bool {
    let (mut batch, mut slots) = (Batch::default(), Vec::new());
    while !bytes.is_empty() {
        let Ok(outline) = FrameOutline::read(bytes, &batch, &mut slots) else { return false };
        let (frame, rest) = bytes.split_at(outline.len);
        if !matches!(outline.apply(frame, &mut batch), Ok(None)) {
            return false;
        }
        bytes = rest;
    }
    true
}

/// The part of `bytes` to examine, and whether it reaches to the end of the input.
fn seen(bytes: &[u8], has_ended: bool) -> (&[u8], bool) {
    match bytes.get(..LOOK_AHEAD) {
        Some(bytes) => (bytes, false),
        None => (bytes, has_ended),
    }
}

/// Whether `bytes` begin with a frame that can follow a header, before any definitions, and the number of bytes
/// examined. Unless it `may_look`, only the tag is examined.
fn begins_a_batch(bytes: &[u8], may_look: bool) -> (bool, u64) {
    if !may_look {
        let tag = bytes.first().copied().and_then(FrameTag::from_byte);
        return (bytes.is_empty() || tag.is_some_and(|tag| tag != FrameTag::Event), 1);
    }
    let nothing = Batch::default();
    match FrameOutline::read(&bytes[..bytes.len().min(LOOK_AHEAD)], &nothing, &mut Vec::new()) {
        Ok(outline) => {
            let begins = !matches!(outline.kind, FrameKind::Header { .. }) || bytes.starts_with(&HEADER);
            (begins, outline.len as u64)
        }
        Err(fault) => (matches!(fault.what, FaultKind::Truncated { .. }), fault.looked_at()),
    }
}
