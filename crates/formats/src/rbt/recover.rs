//! Continues reading after damage.
//!
//! Events have a length but no checksum, so a position to continue at is judged by the bytes there. [`Plausibility`]
//! adds up evidence over the events that would follow: a known type, an id that is the next to be assigned, a payload
//! that its fields fill exactly. Damage is then handled in this order:
//!
//! 1. A length that disagrees with the fields of its event is repaired if plausible bytes follow the end of the fields.
//! 2. An event with a bad payload that plausible bytes follow is skipped alone.
//! 3. Otherwise the search continues byte by byte after the failed event's first byte, for a flawless header or a
//!    plausible chain of events of the same segment.
//!
//! A segment that lost its header is read all the same, if it is the first, or begins with its first string: whether
//! its samples have times is detected from them.
//!
//! A lost definition leaves a hole that later samples refer to. They keep their weight and time: a stand-in named
//! `<lost …>` replaces the missing part.

use std::io::{ErrorKind, Read};

use memchr::memmem;

use super::NAME;
use super::definitions::{NextIds, Undefined};
use super::event::{Event, Framed, RawEvent};
use super::events::{Place, type_name};
use super::layout::{EventType, HEADER_BYTES, Header, MAGIC, RESERVED_EVENT, RawHeader};
use super::plausibility::{MAX_LOST, Plausibility, Purpose};
use super::read::{Effect, Fault, Reader, Turn};
use crate::envelope::{Envelope, Method};
use crate::member::FIRST_BYTES;
use crate::{Error, Position, Warning};

/// The number of bytes examined after a candidate.
pub(super) const LOOK_AHEAD: usize = 4096;

/// The number of bytes searched for the end of an event whose length is not trusted.
const MENDED_BYTES: usize = 64 << 10;

/// The part of a file between one damage and the next.
pub(super) struct Region {
    /// The index of the damage's warning.
    warning_index: usize,
    samples_before: u64,
}

/// Lost time of lost samples: times are differences between samples, so all later ones are early.
pub(super) struct LostTime {
    /// The offset of the loss.
    offset: u64,
    /// The number of samples with times read since then.
    samples: u64,
    /// The number of samples read at the last count.
    counted: u64,
}

impl<R: Read> Reader<R> {
    /// Applies the last event taken, repairing it if possible.
    pub(super) fn apply_carefully(&mut self) -> Result<Effect, Error> {
        if let Some(error) = self.cut_by_segment()? {
            return Err(error);
        }
        if self.length_is_suspect()? && !self.mend_length()? && self.took_unknown() {
            return Err(self.wrong_length());
        }
        let mut mended = false;
        loop {
            let (fault, error) = match self.apply() {
                Ok(effect) => return Ok(effect),
                Err(failure) => failure,
            };
            let helped = match fault {
                Fault::Undefined(undefined) => self.stand_in(undefined),
                // If a length and a payload disagree, the length is right if plausible bytes follow it.
                Fault::Payload(_) if !mended && !self.plausible_at(self.events.taken)? => {
                    self.mend_length()?
                }
                _ => false,
            };
            mended = true;
            if !helped {
                return Err(error);
            }
        }
    }

    /// The error of an event that contains a segment's header: the event was cut off, and the segment was appended.
    /// Only texts and payloads of unknown types may look like that by chance.
    fn cut_by_segment(&mut self) -> Result<Option<Error>, Error> {
        let Some(raw) = self.events.last_event() else { return Ok(None) };
        let (event_type, type_byte) = (raw.event_type(), raw.type_byte);
        let text = matches!(event_type, Some(EventType::StringDef | EventType::Metadata) | None);
        let end = self.events.taken;
        let mut text_start = raw.payload;
        if text && event_type.is_some() {
            // The string's id, or the length of the key.
            let _ = text_start.varint_wrapping();
        }
        let framing = end - text_start.rest().len();
        self.events.ensure(end.saturating_add(LOOK_AHEAD))?;
        let inside = |at: usize| at >= framing && at + HEADER_BYTES <= end;
        let cuts =
            |&at: &usize| !text || !inside(at) || (self.begins_a_segment(at) && !self.goes_on_behind(end));
        let Some(at) = self.segments_before(end).find(cuts) else { return Ok(None) };
        let offset = self.events.offset();
        let (name, segment) = (type_name(type_byte), offset + at as u64);
        let message = format!("truncated {name}: a segment starts inside, at byte {segment:#x}");
        Ok(Some(Error::truncated(NAME, Position::Byte(offset), message)))
    }

    /// The starts of segments, raw or in a member, after the start of the window and before `end`.
    pub(super) fn segments_before(&self, end: usize) -> impl Iterator<Item = usize> {
        let bytes = self.events.window.available().get(1..end).unwrap_or_default();
        let starts = memchr::memchr3_iter(RESERVED_EVENT, FIRST_BYTES[0], FIRST_BYTES[1], bytes);
        starts.map(|at| at + 1).filter(|&at| self.is_segment(at))
    }

    /// Whether the bytes that look like a segment `at` bytes into the window are one, by the events after their header.
    fn begins_a_segment(&self, at: usize) -> bool {
        let bytes = self.events.window.available().get(at..).unwrap_or_default();
        let (Some(raw), Some(events)) = (RawHeader::at(bytes), bytes.get(HEADER_BYTES..)) else {
            return true;
        };
        let has_timestamps = raw.header().has_timestamps;
        let (next, purpose) = (NextIds::default(), Purpose::Search);
        let judge = Plausibility { next, has_timestamps, has_sample: false, purpose, evidence: 0 };
        !raw.is_flawless() || (is_first_event(events) && self.judge(judge, at + HEADER_BYTES))
    }

    /// Whether the segment continues after the last event taken, as far as the bytes reach.
    fn goes_on_behind(&self, end: usize) -> bool {
        let mut judge = self.plausibility(Purpose::Resume);
        if let Some(raw) = self.events.last_event() {
            judge.weigh(&raw);
            judge.evidence = 0;
        }
        self.judge(judge, end)
    }

    /// Whether a segment begins `at` bytes into the window: raw, or in a member.
    fn is_segment(&self, at: usize) -> bool {
        let bytes = self.events.window.available().get(at..).unwrap_or_default();
        bytes.starts_with(&MAGIC) && RawHeader::at(bytes).is_some_and(|raw| raw.is_flawless())
            || self.events.window.member_at(at).is_some_and(holds_a_segment)
    }

    /// Whether the last event taken has an unknown type.
    fn took_unknown(&self) -> bool {
        self.events.last_event().is_some_and(|raw| raw.event_type().is_none())
    }

    fn wrong_length(&self) -> Error {
        let name = self.events.last_event().map_or_else(String::new, |raw| type_name(raw.type_byte));
        let position = Position::Byte(self.events.offset());
        Error::malformed(NAME, position, format!("unexpected {name}: nothing plausible follows it"))
    }

    /// Whether the last event taken may have a wrong length: its fields do not confirm it, and the following bytes do
    /// not look like an event.
    fn length_is_suspect(&mut self) -> Result<bool, Error> {
        let Some(raw) = self.events.last_event() else { return Ok(false) };
        if is_exact(&raw, self.events.header.has_timestamps) {
            return Ok(false);
        }
        // The bytes after a wrong length may look like an event of unknown type.
        let purpose = if raw.event_type().is_none() { Purpose::Continue } else { Purpose::Resume };
        let end = self.events.taken;
        Ok(!self.plausible(end, purpose)?)
    }

    /// Moves the end of the event at the start of the window to the end of its fields, if that is plausible.
    fn mend_length(&mut self) -> Result<bool, Error> {
        let Some(framed) = self.events.front() else { return Ok(false) };
        let mended = match EventType::from_byte(framed.type_byte) {
            Some(EventType::StringDef) => self.string_end(framed)?,
            Some(EventType::CompactSample | EventType::RepeatSample) | None => None,
            Some(_) => self.field_end(framed)?,
        };
        let Some(end) = mended else { return Ok(false) };
        let name = type_name(framed.type_byte);
        self.warn_damage(self.events.offset(), 0, format!("invalid length of {name}: mended by its fields"));
        self.segment_damaged = true;
        self.events.retake(Framed { end, ..framed });
        Ok(true)
    }

    /// The end of an event's fields, if its length is not trusted.
    fn field_end(&mut self, framed: Framed) -> Result<Option<usize>, Error> {
        let most = framed.payload.saturating_add(MENDED_BYTES);
        self.events.ensure(most)?;
        let bytes = self.events.window.available();
        let bytes = &bytes[..bytes.len().min(most)];
        let whole = Framed { end: bytes.len(), ..framed };
        let raw = RawEvent::new(bytes, self.events.offset(), whole);
        let mut payload = raw.payload;
        let has_timestamps = self.events.header.has_timestamps;
        if Event::decode_payload(&raw, &mut payload, has_timestamps).is_err() {
            return Ok(None);
        }
        let end = bytes.len() - payload.rest().len();
        // An event without fields has no definite end.
        let settled = end > framed.payload && end != framed.end;
        let mended = RawEvent::new(bytes, self.events.offset(), Framed { end, ..framed });
        let believable = settled && self.plausibility(Purpose::Search).weigh(&mended).is_some();
        Ok((believable && self.plausible_at(end)?).then_some(end))
    }

    /// The end of a string whose length is not trusted: before the first plausible event in it.
    fn string_end(&mut self, framed: Framed) -> Result<Option<usize>, Error> {
        let most = framed.end.min(framed.payload.saturating_add(MENDED_BYTES));
        let end = most.min(self.events.ensure(most)?.len());
        for at in framed.payload + 1..end {
            if self.is_segment(at) || self.starts_like_a_record(at) && self.plausible(at, Purpose::Search)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Defines a stand-in for a lost definition that is referred to.
    fn stand_in(&mut self, Undefined { what, id }: Undefined) -> bool {
        let next = self.definitions.next_ids();
        let bound = match what {
            "string" => next.string,
            "frame" => next.frame,
            _ => next.stack,
        };
        let believable = self.segment_damaged && (0..bound.saturating_add(MAX_LOST)).contains(&id);
        if believable {
            self.definitions.define_stand_in(what, id);
            let message = format!("{what} {id} was lost: <lost {what} {id}> takes its place");
            self.warn(self.events.offset(), message);
        }
        believable
    }

    /// Finds the position to continue at after `error`. The failed record is at the start of the window.
    pub(super) fn resynchronise(&mut self, error: &Error) -> Result<(), Error> {
        self.keep_warnings();
        let from = self.events.offset();
        let skip = std::mem::take(&mut self.events.taken);
        let before = self.events.place;
        let is_definition = skip > 0
            && self.events.last_event().and_then(|raw| raw.event_type()).is_some()
            && self.events.last_event().is_some_and(|raw| !EventType::is_sample(raw.type_byte));
        let place = if skip > 0 && !error.is_truncated() && self.plausible(skip, Purpose::Resume)? {
            self.events.window.consume(skip);
            Place::InSegment
        } else if self.mend_front(error)? {
            return Ok(());
        } else {
            self.scan(if error.is_truncated() { Purpose::SearchCut } else { Purpose::Search })?
        };
        self.segment_damaged = true;
        self.events.resume(place);
        let lost_bytes = self.events.offset() - from;
        // If a header was expected, no more than that may be lost, and a lost definition loses no time.
        let is_alone = is_definition && lost_bytes == skip as u64;
        if (before == Place::InSegment && !is_alone) || lost_bytes > HEADER_BYTES as u64 {
            self.lose_time(from);
        }
        self.warn_damage(from, lost_bytes, error.message().to_owned());
        Ok(())
    }

    /// Begins a segment that lost its header, if its events are at the start of the window.
    pub(super) fn stand_in_segment(&mut self) -> Result<Option<Turn>, Error> {
        let is_first = self.events.place == Place::InSegment && self.recovery.segments == 0;
        if !std::mem::take(&mut self.lost_header) && !is_first {
            return Ok(None);
        }
        let has_timestamps = self.first_sample_is_timed()?;
        self.events.header = Header { has_timestamps, ..self.events.header };
        let turn = self.header(self.events.header);
        self.segment_damaged = true;
        Ok(turn)
    }

    /// Whether the first sample found has a time.
    fn first_sample_is_timed(&mut self) -> Result<bool, Error> {
        let bytes = self.events.ensure(MENDED_BYTES)?;
        let mut bytes = &bytes[..bytes.len().min(MENDED_BYTES)];
        while let Ok(framed) = Framed::of(bytes, bytes.len()) {
            let raw = RawEvent::new(bytes, 0, framed);
            if EventType::is_sample(raw.type_byte) {
                return Ok(raw.event_type() != Some(EventType::CompactSample) && is_exact(&raw, true));
            }
            bytes = &bytes[framed.end..];
        }
        Ok(false)
    }

    /// Notes that samples were lost, and their time with them.
    fn lose_time(&mut self, offset: u64) {
        let counted = self.samples_read();
        self.lost_time.get_or_insert(LostTime { offset, samples: 0, counted });
    }

    /// Counts the samples of the segment with unknown times.
    pub(super) fn count_lost_time(&mut self) {
        let (read, has_timestamps) = (self.samples_read(), self.segment.header.has_timestamps);
        if let Some(lost) = &mut self.lost_time {
            let more = if has_timestamps { read.saturating_sub(lost.counted) } else { 0 };
            lost.samples = lost.samples.saturating_add(more);
            lost.counted = read;
        }
    }

    /// Warns of the samples with unknown times.
    pub(super) fn warn_of_lost_time(&mut self) {
        self.count_lost_time();
        let Some(LostTime { offset, samples: samples @ 1.., .. }) = self.lost_time else { return };
        let (times, of, are) = match samples {
            1 => ("time", "1 sample".to_owned(), "is"),
            more => ("times", format!("{more} samples"), "are"),
        };
        let message =
            format!("{times} of {of} after the damage at byte {offset:#x} {are} early by an unknown time");
        self.recovery.warn(Warning::new(message).at(offset));
    }

    /// Repairs the start of the window itself: a header that is almost right, or an event whose length exceeds the
    /// input or the limit.
    fn mend_front(&mut self, error: &Error) -> Result<bool, Error> {
        self.events.ensure(HEADER_BYTES + LOOK_AHEAD)?;
        let bytes = self.events.window.available();
        let whole = !error.is_truncated() && bytes.len() >= HEADER_BYTES;
        if whole && almost_a_header(bytes) {
            self.warn_damage(
                self.events.offset(),
                0,
                "damaged segment header: read as if it were whole".into(),
            );
            self.events.trust_header();
            return Ok(true);
        }
        if self.events.place == Place::InSegment
            && self.events.last_event().is_none()
            && self.mend_length()?
        {
            self.events.resume(Place::InSegment);
            self.events.give_again();
            return Ok(true);
        }
        Ok(false)
    }

    /// Moves the window to the next position, after its first byte, at which reading can continue.
    fn scan(&mut self, purpose: Purpose) -> Result<Place, Error> {
        let before = self.events.place;
        if self.recovery.segments == 0 && self.starts_like_a_record(0) && self.plausible(0, purpose)? {
            return Ok(Place::InSegment);
        }
        let mut at = 1;
        loop {
            self.events.ensure(2 * LOOK_AHEAD)?;
            let len = self.events.window.available().len();
            let last = if self.events.window.has_ended() { len } else { len.saturating_sub(LOOK_AHEAD) };
            while at < last {
                if let Some(place) = self.place_at(at, purpose)? {
                    self.events.window.consume(at);
                    return Ok(place);
                }
                at += 1;
            }
            if self.events.window.has_ended() {
                self.events.window.consume(len);
                return Ok(before);
            }
            self.events.window.consume(at - 1);
            at = 1;
        }
    }

    /// The kind of record that may begin at `at`, if any.
    fn place_at(&mut self, at: usize, purpose: Purpose) -> Result<Option<Place>, Error> {
        if self.is_segment(at) {
            return Ok(Some(Place::Start));
        }
        if !self.starts_like_a_record(at) {
            return Ok(None);
        }
        let goes_on = self.plausible(at, purpose)?;
        self.lost_header = !goes_on && self.begins_without_header(at);
        Ok((goes_on || self.lost_header).then_some(Place::InSegment))
    }

    /// Whether a segment that lost its header begins `at` bytes into the window, with the first of its strings.
    fn begins_without_header(&self, at: usize) -> bool {
        let bytes = self.events.window.available().get(at..).unwrap_or_default();
        let [string_def, _, 0, ..] = bytes else { return false };
        let (next, has_timestamps) = (NextIds::default(), self.events.header.has_timestamps);
        let purpose = Purpose::SearchCut;
        let judge = Plausibility { next, has_timestamps, has_sample: false, purpose, evidence: 0 };
        *string_def == EventType::StringDef as u8 && self.judge(judge, at)
    }

    fn starts_like_a_record(&self, at: usize) -> bool {
        let byte = self.events.window.available().get(at).copied();
        byte.is_some_and(|byte| EventType::from_byte(byte).is_some() || byte == RESERVED_EVENT)
    }

    /// Whether the bytes `at` bytes into the window, after an event, read like the continuation of this segment, the
    /// beginning of another, or the end.
    fn plausible_at(&mut self, at: usize) -> Result<bool, Error> {
        self.plausible(at, Purpose::Continue)
    }

    fn plausible(&mut self, at: usize, purpose: Purpose) -> Result<bool, Error> {
        self.events.ensure(at.saturating_add(LOOK_AHEAD))?;
        Ok(self.judge(self.plausibility(purpose), at))
    }

    /// The verdict of `judge` on the events `at` bytes into the window.
    fn judge(&self, judge: Plausibility, at: usize) -> bool {
        let window = &self.events.window;
        let bytes = window.available().get(at..).unwrap_or_default();
        match bytes.get(..LOOK_AHEAD) {
            Some(bytes) => judge.of(bytes, false),
            None => judge.of(bytes, window.has_ended()),
        }
    }

    fn plausibility(&self, purpose: Purpose) -> Plausibility {
        let next = self.definitions.next_ids();
        let has_timestamps = self.events.header.has_timestamps;
        Plausibility { next, has_timestamps, has_sample: self.has_pending(), purpose, evidence: 0 }
    }

    fn warn_damage(&mut self, offset: u64, lost_bytes: u64, message: String) {
        self.damage(Warning::new(message).at(offset).losing(lost_bytes));
    }

    /// Keeps the warnings of the events, all of them damage.
    pub(super) fn keep_warnings(&mut self) {
        for warning in self.events.take_warnings() {
            if self.options.is_lenient() {
                self.damage(warning);
            } else {
                self.recovery.warn(warning);
            }
        }
    }

    /// Keeps a warning that is not damage, or that follows from an earlier one.
    pub(super) fn warn(&mut self, offset: u64, message: String) {
        self.recovery.warn(Warning::new(message).at(offset));
    }

    /// Keeps `warning`, which begins a region and ends the one before.
    fn damage(&mut self, warning: Warning) {
        let samples_before = self.samples_read();
        self.end_region(samples_before);
        let warning_index = self.recovery.warnings.len();
        self.region = Some(Region { warning_index, samples_before });
        self.recovery.warn(warning);
    }

    /// Adds the number of samples read in the region to the warning that began it.
    pub(super) fn end_region(&mut self, samples_read: u64) {
        let Some(Region { warning_index, samples_before }) = self.region.take() else { return };
        // Only a limited number of warnings is kept.
        if let Some(warning) = self.recovery.warnings.get_mut(warning_index) {
            warning.saved_samples = Some(samples_read.saturating_sub(samples_before));
        }
    }

    /// After the end of the data: whether it was only the end of a damaged member, with more to read after it.
    pub(super) fn go_on_after_damage(&mut self) -> Result<bool, Error> {
        if !self.options.is_lenient() {
            return Ok(false);
        }
        let offset = self.events.offset();
        let io = |error| Error::io(NAME, Position::Byte(offset), error);
        let passed = match self.events.window.past_damage() {
            None => return Ok(false),
            Some(passed) => passed.map_err(io)?,
        };
        self.keep_warnings();
        let method = self.events.window.envelope().method();
        let message = format!("compressed bytes passed over after a damaged {method}");
        self.warn_damage(offset, passed, message);
        self.lose_time(offset);
        self.events.resume(Place::Start);
        Ok(!self.events.ensure(1)?.is_empty())
    }
}

/// Whether `bytes` may be the first event of a segment: it defines the id 0.
fn is_first_event(bytes: &[u8]) -> bool {
    let Ok(framed) = Framed::of(bytes, bytes.len()) else { return true };
    match EventType::from_byte(framed.type_byte) {
        Some(EventType::StringDef | EventType::StackDef) => bytes.get(framed.payload) == Some(&0),
        Some(EventType::Metadata | EventType::Checkpoint | EventType::SegmentEnd) => true,
        _ => false,
    }
}

/// Whether a member that begins with a segment's header is at the start of `bytes`. For a frame with a first block
/// longer than that, its magic number has to suffice.
pub(super) fn holds_a_segment(bytes: &[u8]) -> bool {
    let mut header = [0; HEADER_BYTES];
    let read = Envelope::new(&bytes[..bytes.len().min(LOOK_AHEAD)]).read_exact(&mut header);
    match read {
        Ok(()) => RawHeader::at(&header).is_some_and(|raw| raw.is_flawless()),
        Err(error) => Method::of(bytes) == Some(Method::Zstd) && error.kind() == ErrorKind::UnexpectedEof,
    }
}

/// Whether the fields of `raw` fill its payload exactly, so that its length can be trusted.
fn is_exact(raw: &RawEvent<'_>, has_timestamps: bool) -> bool {
    let mut payload = raw.payload;
    match Event::decode_payload(raw, &mut payload, has_timestamps) {
        Ok(Event::StringDef { .. } | Event::Unknown { .. } | Event::SegmentEnd) | Err(_) => false,
        Ok(_) => payload.is_empty(),
    }
}

/// A header with at most two wrong bytes, followed by an event.
fn almost_a_header(bytes: &[u8]) -> bool {
    let follows = bytes.get(HEADER_BYTES).copied();
    let event_follows = follows.is_none_or(|byte| EventType::from_byte(byte).is_some());
    event_follows
        && RawHeader::at(bytes).is_some_and(|raw| raw.fixed_bytes_right() + 2 >= RawHeader::FIXED_BYTES)
}

/// The first flawless header after the start of `bytes`.
pub(super) fn find_header(bytes: &[u8]) -> Option<usize> {
    memmem::find_iter(bytes, &MAGIC)
        .filter(|&at| at > 0)
        .find(|&at| bytes.get(at..).and_then(RawHeader::at).is_some_and(|raw| raw.is_flawless()))
}
