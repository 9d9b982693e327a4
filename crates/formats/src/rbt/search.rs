//! Searches for a position to continue at after damage.
//!
//! Events have a length but no checksum, so bytes are judged by [`Plausibility`]: it adds up evidence over the events that
//! would follow, which is a known type, an id that is the next to be assigned, a payload that its fields fill exactly.

use std::io::Read;

use super::event::{DecodedEvent, Framed, RawEvent};
use super::events::{EventReader, LOOK_AHEAD, StreamPlace};
use super::flow::RecordStream;
use super::layout::{EventType, HEADER_BYTES, NAME, RESERVED_EVENT, RawHeader};
use super::plausibility::{Plausibility, SearchPurpose, SegmentState};
use crate::{Error, Position};

/// The number of bytes searched for the end of an event whose length is not trusted.
const EVENT_BYTES: usize = 64 << 10;

/// Searches the window of `events` for events that fit a segment.
pub(super) struct SegmentSearch<'a, R> {
    events: &'a mut EventReader<R>,
    state: SegmentState,
    /// Whether no segment has been read.
    is_first: bool,
}

impl<'a, R: Read> SegmentSearch<'a, R> {
    /// Creates a search for the next events of the segment of `stream`.
    pub(super) const fn new(stream: &'a mut RecordStream<R>) -> Self {
        let RecordStream { events, assembler } = stream;
        let state = assembler.state(events.header.has_timestamps);
        Self { events, state, is_first: assembler.recovery.segments == 0 }
    }

    /// The error of an event that contains a segment's header: the event was cut off, and the segment was appended.
    /// Only texts and payloads of unknown types may look like that by chance.
    pub(super) fn cut_by_segment(&mut self) -> Result<Option<Error>, Error> {
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
        let mut at = 0;
        loop {
            let Some(next) = self.events.segment_between(at + 1, end) else { return Ok(None) };
            at = next;
            if !self.is_effort_left(at) {
                return Ok(None);
            }
            if !text || !inside(at) || (self.begins_a_segment(at) && !self.continues_after(end)) {
                break;
            }
        }
        let offset = self.events.offset();
        let (name, segment) = (EventType::name_of(type_byte), offset + at as u64);
        let message = format!("truncated {name}: another segment starts inside it, at byte {segment:#x}");
        Ok(Some(Error::truncated(NAME, Position::Byte(offset), message)))
    }

    /// Whether the last event taken may have a wrong length: its fields do not confirm it, and the following bytes do
    /// not look like an event.
    pub(super) fn length_is_suspect(&mut self) -> Result<bool, Error> {
        let Some(raw) = self.events.last_event() else { return Ok(false) };
        if is_exact(&raw, self.state.has_timestamps) {
            return Ok(false);
        }
        // The bytes after a wrong length may look like an event of unknown type.
        let purpose =
            if raw.event_type().is_none() { SearchPurpose::AfterUnknown } else { SearchPurpose::Resume };
        let end = self.events.taken;
        self.events.ensure(end.saturating_add(LOOK_AHEAD))?;
        let mut judge = Plausibility::new(self.state, purpose);
        let is_suspect = !self.verdict(&mut judge, end);
        if is_suspect {
            self.events.effort.spend(self.events.offset(), judge.looked_at);
        }
        Ok(is_suspect)
    }

    /// The event at the start of the window with the length of its fields, if that differs and is plausible.
    pub(super) fn corrected_event(&mut self) -> Result<Option<Framed>, Error> {
        let Some(framed) = self.events.front() else { return Ok(None) };
        let end = match EventType::from_byte(framed.type_byte) {
            Some(EventType::StringDef) => self.string_end(framed)?,
            Some(EventType::CompactSample | EventType::RepeatSample) | None => None,
            Some(_) => self.field_end(framed)?,
        };
        Ok(end.map(|end| Framed { end, ..framed }))
    }

    /// Whether the bytes `at` bytes into the window read like the continuation of this segment, the beginning of another,
    /// or the end.
    pub(super) fn is_plausible(&mut self, at: usize, purpose: SearchPurpose) -> Result<bool, Error> {
        self.events.ensure(at.saturating_add(LOOK_AHEAD))?;
        Ok(self.judge(&mut Plausibility::new(self.state, purpose), at))
    }

    /// Whether a header with at most two wrong bytes is at the start of the window, followed by an event.
    pub(super) fn is_almost_a_header(&mut self) -> Result<bool, Error> {
        let bytes = self.events.ensure(HEADER_BYTES + LOOK_AHEAD)?;
        let follows = bytes.get(HEADER_BYTES).copied();
        let event_follows = follows.is_none_or(|byte| EventType::from_byte(byte).is_some());
        let right = RawHeader::at(bytes).map_or(0, |raw| raw.fixed_bytes_right());
        Ok(event_follows && right + 2 >= RawHeader::FIXED_BYTES)
    }

    /// Moves the window to the next position at which reading can continue: after its first byte, or where an event is the
    /// first of the input. Also returns whether a segment begins there that has lost its header.
    pub(super) fn next_record(&mut self, purpose: SearchPurpose) -> Result<(StreamPlace, bool), Error> {
        if self.is_first && self.starts_like_a_record(0) && self.is_plausible(0, purpose)? {
            return Ok((StreamPlace::InSegment, false));
        }
        let mut at = 1;
        loop {
            let len = self.events.ensure(2 * LOOK_AHEAD)?.len();
            let last = if self.events.window.has_ended() { len } else { len.saturating_sub(LOOK_AHEAD) };
            while at < last {
                if self.is_effort_left(at)
                    && let Some(found) = self.record_at(at, purpose)?
                {
                    self.events.window.consume(at);
                    return Ok(found);
                }
                at += 1;
            }
            if self.events.window.has_ended() {
                self.events.window.consume(len);
                return Ok((self.events.place, false));
            }
            self.events.window.consume(at - 1);
            at = 1;
        }
    }

    /// Whether the first sample found has a time.
    pub(super) fn first_sample_is_timed(&mut self) -> Result<bool, Error> {
        let bytes = self.events.ensure(EVENT_BYTES)?;
        let mut bytes = &bytes[..bytes.len().min(EVENT_BYTES)];
        while let Ok(framed) = Framed::of(bytes, bytes.len()) {
            let raw = RawEvent::new(bytes, 0, framed);
            if EventType::is_sample(raw.type_byte) {
                return Ok(raw.event_type() != Some(EventType::CompactSample) && is_exact(&raw, true));
            }
            bytes = &bytes[framed.end..];
        }
        Ok(false)
    }

    /// Whether the bytes that look like a segment `at` bytes into the window are one, by the events after their header.
    fn begins_a_segment(&mut self, at: usize) -> bool {
        let bytes = self.bytes_from(at);
        let (Some(raw), Some(events)) = (RawHeader::at(bytes), bytes.get(HEADER_BYTES..)) else {
            return true;
        };
        let state = SegmentState { has_timestamps: raw.header().has_timestamps, ..SegmentState::default() };
        let may_be = is_first_event(events);
        !raw.is_flawless()
            || (may_be && self.judge(&mut Plausibility::new(state, SearchPurpose::Search), at + HEADER_BYTES))
    }

    /// Whether the segment continues after the last event taken, as far as the bytes reach.
    fn continues_after(&mut self, end: usize) -> bool {
        let mut judge = Plausibility::new(self.state, SearchPurpose::Resume);
        if let Some(raw) = self.events.last_event() {
            judge.weigh(&raw);
        }
        self.judge(&mut judge, end)
    }

    /// The end of an event's fields, if its length is not trusted.
    fn field_end(&mut self, framed: Framed) -> Result<Option<usize>, Error> {
        let most = framed.payload.saturating_add(EVENT_BYTES);
        let offset = self.events.offset();
        self.events.ensure(most)?;
        let bytes = self.events.window.available();
        let bytes = &bytes[..bytes.len().min(most)];
        self.events.effort.spend(offset, bytes.len() as u64);
        let raw = RawEvent::new(bytes, offset, Framed { end: bytes.len(), ..framed });
        let mut payload = raw.payload;
        if DecodedEvent::decode_payload(&raw, &mut payload, self.state.has_timestamps).is_err() {
            return Ok(None);
        }
        let end = bytes.len() - payload.rest().len();
        // An event without fields has no definite end.
        let settled = end > framed.payload && end != framed.end;
        let corrected = RawEvent::new(bytes, offset, Framed { end, ..framed });
        let mut judge = Plausibility::new(self.state, SearchPurpose::Search);
        let believable = settled && judge.weigh(&corrected).is_some();
        Ok((believable && self.is_plausible(end, SearchPurpose::Continue)?).then_some(end))
    }

    /// The end of a string whose length is not trusted: before the first plausible event in it.
    fn string_end(&mut self, framed: Framed) -> Result<Option<usize>, Error> {
        let most = framed.end.min(framed.payload.saturating_add(EVENT_BYTES));
        let end = most.min(self.events.ensure(most)?.len());
        for at in framed.payload + 1..end {
            if !self.is_effort_left(at) {
                break;
            }
            if self.events.is_segment(at)
                || self.starts_like_a_record(at) && self.is_plausible(at, SearchPurpose::Search)?
            {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// The kind of record that may begin at `at`, if any, and whether it is the first of a segment without a header.
    fn record_at(&mut self, at: usize, purpose: SearchPurpose) -> Result<Option<(StreamPlace, bool)>, Error> {
        if self.events.is_segment(at) {
            return Ok(Some((StreamPlace::Start, false)));
        }
        if !self.starts_like_a_record(at) {
            return Ok(None);
        }
        let continues = self.is_plausible(at, purpose)?;
        let lost_header = !continues && self.begins_without_header(at);
        Ok((continues || lost_header).then_some((StreamPlace::InSegment, lost_header)))
    }

    /// Whether a segment that lost its header begins `at` bytes into the window, with the first of its strings.
    fn begins_without_header(&mut self, at: usize) -> bool {
        let [string_def, _, 0, ..] = self.bytes_from(at) else { return false };
        let state = SegmentState { has_timestamps: self.state.has_timestamps, ..SegmentState::default() };
        *string_def == EventType::StringDef as u8
            && self.judge(&mut Plausibility::new(state, SearchPurpose::SearchCut), at)
    }

    fn starts_like_a_record(&self, at: usize) -> bool {
        let byte = self.bytes_from(at).first().copied();
        byte.is_some_and(|byte| EventType::from_byte(byte).is_some() || byte == RESERVED_EVENT)
    }

    /// Whether the bytes `at` bytes into the window may be examined.
    fn is_effort_left(&self, at: usize) -> bool {
        self.events.effort.is_left(self.events.offset() + at as u64)
    }

    /// The verdict of `judge` on the events `at` bytes into the window, which counts as effort.
    fn judge(&mut self, judge: &mut Plausibility, at: usize) -> bool {
        let verdict = self.verdict(judge, at);
        self.events.effort.spend(self.events.offset() + at as u64, judge.looked_at);
        verdict
    }

    /// The verdict of `judge` on the events `at` bytes into the window.
    fn verdict(&self, judge: &mut Plausibility, at: usize) -> bool {
        let bytes = self.bytes_from(at);
        match bytes.get(..LOOK_AHEAD) {
            Some(bytes) => judge.of(bytes, false),
            None => judge.of(bytes, self.events.window.has_ended()),
        }
    }

    /// The bytes from `at` bytes into the window on.
    fn bytes_from(&self, at: usize) -> &[u8] {
        self.events.window.available().get(at..).unwrap_or_default()
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

/// Whether the fields of `raw` fill its payload exactly, so that its length can be trusted.
fn is_exact(raw: &RawEvent<'_>, has_timestamps: bool) -> bool {
    let mut payload = raw.payload;
    match DecodedEvent::decode_payload(raw, &mut payload, has_timestamps) {
        Ok(DecodedEvent::StringDef { .. } | DecodedEvent::Unknown { .. } | DecodedEvent::SegmentEnd)
        | Err(_) => false,
        Ok(_) => payload.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use borehole_wire::Effort;

    use super::super::layout::Header;
    use super::super::read::Reader;
    use crate::ReadOptions;

    const LEN: usize = 256 << 10;

    /// The number of bytes examined in vain, per byte of a segment that consists of `piece`.
    fn looked_at(piece: &[u8]) -> f64 {
        let mut bytes = Header::default().encode().to_vec();
        while bytes.len() < LEN {
            bytes.extend_from_slice(piece);
        }
        let mut reader = Reader::with_options(bytes.as_slice(), ReadOptions::lenient());
        while reader.next_record().unwrap().is_some() {}
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let ratio = reader.effort().spent().saturating_sub(Effort::START) as f64 / bytes.len() as f64;
        ratio
    }

    #[test]
    fn no_input_is_looked_at_more_often_than_so() {
        let crafted: [(&str, &[u8]); 9] = [
            ("frames of zstd that are no frames", &[0x28, 0xb5, 0x2f, 0xfd]),
            ("frames of zstd with a long block", &[0x28, 0xb5, 0x2f, 0xfd, 0, 0x68, 0x84, 0x3e, 0, 0x55]),
            ("members of gzip", &[0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 3, 0xff, 0xff]),
            ("headers and a wrong type", b"RELI\x01\0\0\0\0\0\0\0\0\0\0\0\xff"),
            ("ends of segments", &[5, 0]),
            ("stacks of 2,000 frames", &[2, 0xd0, 0x0f]),
            ("strings of 2,000 bytes", &[10, 0xd0, 0x0f]),
            ("strings to the end", &[10, 0xff, 0xff, 0x7f, 0]),
            ("strings of the next id", &[10, 2, 0, b'a', 10, 2, 1, b'b', 0xff]),
        ];
        for (name, piece) in crafted {
            let ratio = looked_at(piece);
            // One attempt beyond the limit may reach to the end.
            assert!(ratio <= 2.0 * Effort::PER_BYTE as f64 + 2.0, "{name}: {ratio}");
        }
    }
}
