//! The fast path through the bulk of a file.
//!
//! A sample is complete when the next record can neither annotate nor repeat it. In general that is known only after
//! reading the next record, but usually the next sample is already in the window. Then the sample is returned at once,
//! without saving any state. The decoders are the same.

use std::io::Read;

use borehole_wire::Cursor;

use super::annotations::{self, Annotations};
use super::assembler::{Assembler, BareSample, SampleCore};
use super::definitions::Definitions;
use super::event::{DecodedEvent, RawEvent, SampleFields};
use super::events::EventReader;
use super::layout::EventType;

/// The events of a file, and the records that they become.
pub(super) struct RecordStream<R> {
    pub(super) events: EventReader<R>,
    pub(super) assembler: Assembler,
}

impl<R: Read> RecordStream<R> {
    /// Takes the sample at the start of the window, if it is plain, complete and entirely available.
    #[inline]
    pub(super) fn complete_sample(&mut self) -> Option<SampleCore> {
        let mut ahead = self.ahead();
        let sample = ahead.plain_sample()?;
        if ahead.is_at_annotation() {
            let left = ahead.bytes.rest().len();
            return self.complete_annotated(sample, left);
        }
        let more = ahead.repeats()?;
        let left = ahead.left_at_sample()?;
        if self.events.options.is_lenient() && !self.is_plain_at(left) {
            return None;
        }
        self.events.pass_to(left);
        Some(self.assembler.complete(sample, more, false))
    }

    /// Like [`complete_sample`](Self::complete_sample), for `sample`, whose annotation begins `left` bytes before the
    /// end of the window.
    fn complete_annotated(&mut self, sample: BareSample, left: usize) -> Option<SampleCore> {
        let mut annotations = std::mem::take(&mut self.assembler.pending_annotations);
        let more = self.ahead_from(left).and_then(|mut ahead| {
            ahead.annotation(&mut annotations)?;
            Some((ahead.repeats()?, ahead.left_at_sample()?))
        });
        self.assembler.pending_annotations = annotations;
        let (more, left) = more?;
        if self.events.options.is_lenient() {
            let end = self.passed_at(left);
            if !self.is_plain_at(left) || self.events.segment_between(1, end).is_some() {
                return None;
            }
        }
        self.events.pass_to(left);
        Some(self.assembler.complete(sample, more, true))
    }

    /// Whether the record after the last one can neither annotate nor repeat the pending sample.
    pub(super) fn is_superseded(&mut self) -> bool {
        self.events.leave();
        let left = self.ahead().left_at_sample();
        self.events.is_flowing()
            && left.is_some_and(|left| !self.events.options.is_lenient() || self.is_plain_at(left))
    }

    /// Whether a sample begins `left` bytes before the end of the window, and not a damaged event of another type.
    #[inline(never)]
    fn is_plain_at(&self, left: usize) -> bool {
        self.ahead_from(left).is_some_and(|mut ahead| ahead.plain_sample().is_some())
    }

    /// The number of bytes of the window before its last `left` ones.
    #[inline]
    fn passed_at(&self, left: usize) -> usize {
        self.events.ahead().rest().len() - left
    }

    /// The bytes ahead, from `left` bytes before the end of the window on.
    #[inline]
    fn ahead_from(&self, left: usize) -> Option<Ahead<'_>> {
        let mut ahead = self.ahead();
        ahead.bytes.bytes(self.passed_at(left)).ok()?;
        Some(ahead)
    }

    #[inline]
    fn ahead(&self) -> Ahead<'_> {
        Ahead {
            bytes: self.events.ahead(),
            has_timestamps: self.assembler.has_timestamps(),
            definitions: &self.assembler.definitions,
            max_payload: self.events.options.limits.payload_bytes,
        }
    }
}

/// The available bytes, with the state needed to read them.
#[derive(Clone, Copy)]
struct Ahead<'a> {
    bytes: Cursor<'a>,
    has_timestamps: bool,
    definitions: &'a Definitions,
    max_payload: usize,
}

impl Ahead<'_> {
    /// Takes a sample, if it is simple.
    #[expect(clippy::inline_always, reason = "every sample of a file passes here, in registers if in line")]
    #[inline(always)]
    fn plain_sample(&mut self) -> Option<BareSample> {
        let raw = RawEvent::read(&mut self.bytes, self.max_payload).ok()?;
        let SampleFields { stack, pid, delta_us } = SampleFields::of(&raw, self.has_timestamps)?;
        let stack = self.definitions.sampled(stack)?;
        Some(BareSample { stack, pid, delta_us, offset: raw.offset })
    }

    /// Takes a simple annotation of the sample before it, and replaces `annotations`.
    #[inline]
    fn annotation(&mut self, annotations: &mut Annotations) -> Option<()> {
        let raw = RawEvent::read(&mut self.bytes, self.max_payload).ok()?;
        let mut payload = raw.payload;
        let event = DecodedEvent::decode_payload(&raw, &mut payload, self.has_timestamps).ok()?;
        let DecodedEvent::Annotation { pairs } = event else { return None };
        if !payload.is_empty() {
            return None;
        }
        annotations::replace(annotations, pairs, self.definitions).ok()
    }

    /// Takes a repeat of the sample before it; returns the number of repeats.
    #[inline]
    fn repeats(&mut self) -> Option<u64> {
        if self.bytes.peek() != Some(EventType::RepeatSample as u8) {
            return Some(0);
        }
        let raw = RawEvent::read(&mut self.bytes, 0).ok()?;
        Some(u64::try_from(raw.value).unwrap_or(0))
    }

    /// The number of bytes left, if the next sample begins here.
    #[inline]
    fn left_at_sample(&self) -> Option<usize> {
        self.bytes.peek().is_some_and(EventType::is_sample).then(|| self.bytes.rest().len())
    }

    #[inline]
    fn is_at_annotation(&self) -> bool {
        self.bytes.peek() == Some(EventType::SampleAnnotation as u8)
    }
}
