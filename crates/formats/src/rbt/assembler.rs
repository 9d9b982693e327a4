//! Assembles events into records: a sample with its annotations and repeats, metadata, segments.
//!
//! A sample is *pending* until an event shows that it is complete. Records read in the meantime wait until it has been
//! returned.

use std::collections::VecDeque;

use borehole_memory::OverBudget;

use super::annotations::{self, Annotations};
use super::clock::stated_unix_ns;
use super::definitions::Definitions;
use super::event::{DecodedEvent, RawEvent};
use super::indices::{DefinitionKind, StackIndex, StringIndex, Undefined};
use super::layout::{EventType, Header, NAME};
use super::plausibility::SegmentState;
use crate::{Error, Limits, Position, Recovery, Warning};

/// A record of a file.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// A segment begins. Tables, metadata and time start anew.
    Segment(SegmentStart),
    /// A fact about the segment.
    Metadata {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// A sample, or a run of equal ones.
    Sample(StoredSample<'a>),
}

/// The beginning of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentStart {
    /// The contents of the header.
    pub header: Header,
    /// The index of this segment, 0-based.
    pub index: u64,
    /// The offset of its header, in bytes after decompression.
    pub offset: u64,
}

/// A sample, or a run of equal ones, as the file stores it.
#[derive(Clone, Copy, Debug)]
pub struct StoredSample<'a> {
    /// The stack.
    pub stack: StackIndex,
    /// The number of equal samples: 1 plus the repeats of `REPEAT_SAMPLE`.
    pub count: u64,
    /// Microseconds since the previous sample, as stored; `None` if there is no timestamp.
    pub delta_us: Option<i64>,
    /// Microseconds since the segment's start, which is the sum of all differences so far; `None` if there is no
    /// timestamp or the sum overflows.
    pub accumulated_us: Option<i64>,
    /// The process, for a sample that names it.
    pub pid: Option<i64>,
    /// Keys and values. `None`: no annotation event; empty: an annotation event without pairs.
    pub annotations: Option<&'a [(StringIndex, StringIndex)]>,
    /// The definitions that the indices refer to.
    pub definitions: &'a Definitions,
    /// The offset of the sample, in bytes after decompression.
    pub offset: u64,
}

/// A sample event, without the events after it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BareSample {
    pub(super) stack: StackIndex,
    pub(super) pid: Option<i64>,
    pub(super) delta_us: Option<i64>,
    pub(super) offset: u64,
}

/// A [`StoredSample`] without its borrows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SampleCore {
    event: BareSample,
    count: u64,
    accumulated_us: Option<i64>,
    annotated: bool,
    repeated: bool,
}

/// The record that is complete now, without its borrows.
pub(super) enum Completed {
    Segment,
    Metadata,
    Sample,
}

/// A record or failure to be returned after the last sample.
enum WaitingRecord {
    Segment(SegmentStart),
    Metadata(MetadataPair),
    Failure(Error),
}

/// A key and a value.
type MetadataPair = (Vec<u8>, Vec<u8>);

/// The reason why an event cannot be used.
#[derive(Clone, Copy)]
pub(super) enum EventFault {
    Payload(borehole_wire::Error),
    Undefined(Undefined),
    NoSample,
    AfterRepeat,
    Memory(OverBudget),
}

/// Assembles the events of a file into records.
#[derive(Default)]
pub(super) struct Assembler {
    pub(super) definitions: Definitions,
    limits: Limits,
    /// The memory of the segment's metadata, which a caller may have to keep.
    metadata_bytes: usize,
    segment: SegmentStart,
    /// Whether this segment has lost data: ids may then refer to the lost part.
    is_damaged: bool,
    accumulated_us: Option<i64>,
    /// Whether a segment has stated its wall clock since this was last cleared: its times, and later ones, count from that.
    pub(super) has_new_clock: bool,
    /// The number of samples before this segment, and of those with timestamps.
    samples_before: u64,
    timed_before: u64,
    /// The sample that may still get annotations and repeats: it is returned when another record begins.
    pending: Option<SampleCore>,
    /// Its annotations, or those of the next one.
    pub(super) pending_annotations: Annotations,
    /// The records to be returned before the pending sample.
    waiting: VecDeque<WaitingRecord>,
    /// The metadata after the pending sample.
    waiting_for_pending: VecDeque<WaitingRecord>,
    /// The last record completed.
    current: SampleCore,
    current_annotations: Annotations,
    current_metadata: MetadataPair,
    /// The numbers of records completed, and all warnings.
    pub(super) recovery: Recovery,
}

impl Assembler {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The next record that waited for the last sample returned.
    pub(super) fn next_waiting(&mut self) -> Result<Option<Completed>, Error> {
        match self.waiting.pop_front() {
            None => Ok(None),
            Some(WaitingRecord::Segment(start)) => Ok(Some(self.begin(start))),
            Some(WaitingRecord::Metadata(pair)) => {
                self.current_metadata = pair;
                Ok(Some(Completed::Metadata))
            }
            Some(WaitingRecord::Failure(error)) => Err(error),
        }
    }

    /// Takes the header of a segment.
    pub(super) fn header(&mut self, header: Header, offset: u64) -> Result<Option<Completed>, Error> {
        let start = SegmentStart { header, index: self.recovery.segments, offset };
        self.recovery.segments += 1;
        self.after_pending(WaitingRecord::Segment(start))
    }

    /// Takes an event.
    ///
    /// # Errors
    /// If it cannot be used. It has then had no effect.
    pub(super) fn event(&mut self, raw: &RawEvent<'_>) -> Result<Option<Completed>, EventFault> {
        match DecodedEvent::decode(raw, self.segment.header.has_timestamps).map_err(EventFault::Payload)? {
            DecodedEvent::Sample { stack, pid, delta_us } => {
                let stack = self.definitions.stack_index(stack)?;
                let sample = self.core(BareSample { stack, pid, delta_us, offset: raw.offset });
                return Ok(self.release(Some(sample)));
            }
            DecodedEvent::Repeat { count } => self.repeat(count)?,
            DecodedEvent::Annotation { pairs } => {
                // Only annotations that can be used replace earlier ones. The last returned sample needs its own no more.
                annotations::replace(&mut self.current_annotations, pairs, &self.definitions)?;
                self.annotate()?;
            }
            DecodedEvent::Metadata { key, value } => return self.metadata((key.to_vec(), value.to_vec())),
            DecodedEvent::Checkpoint { counts } => self.verify(counts, raw.offset),
            DecodedEvent::SegmentEnd | DecodedEvent::Unknown { .. } => {}
            DecodedEvent::StringDef { id, string } => {
                self.check_memory()?;
                self.definitions.define_string(id, string);
            }
            DecodedEvent::FrameDef { id, frame } => {
                self.check_memory()?;
                self.definitions.define_frame(id, frame)?;
            }
            DecodedEvent::StackDef { id, frames_leaf_first } => {
                self.check_memory()?;
                self.definitions.define_stack(id, frames_leaf_first);
            }
        }
        Ok(None)
    }

    /// Ends the records, after the pending sample.
    pub(super) fn end(&mut self) -> Option<Completed> {
        self.release(None)
    }

    /// Ends the records with `error`, after the pending sample.
    pub(super) fn fail(&mut self, error: Error) -> Result<Option<Completed>, Error> {
        self.after_pending(WaitingRecord::Failure(error))
    }

    /// Returns `sample` with `more` repeats at once, with the pending annotations if it is `annotated`.
    #[inline]
    pub(super) fn complete(&mut self, sample: BareSample, more: u64, annotated: bool) -> SampleCore {
        self.release_annotations(annotated);
        let core = SampleCore { count: more.saturating_add(1), annotated, ..self.core(sample) };
        self.recovery.samples = self.recovery.samples.saturating_add(core.count);
        core
    }

    /// The record `completed` last.
    pub(super) fn record(&self, completed: &Completed) -> Record<'_> {
        match completed {
            Completed::Sample => Record::Sample(self.sample(self.current)),
            Completed::Segment => Record::Segment(self.segment),
            Completed::Metadata => {
                Record::Metadata { key: &self.current_metadata.0, value: &self.current_metadata.1 }
            }
        }
    }

    /// The completed sample `core`.
    #[inline]
    pub(super) fn sample(&self, core: SampleCore) -> StoredSample<'_> {
        let SampleCore { event: BareSample { stack, pid, delta_us, offset }, count, accumulated_us, .. } =
            core;
        let annotations = core.annotated.then_some(self.current_annotations.as_slice());
        let definitions = &self.definitions;
        StoredSample { stack, count, delta_us, accumulated_us, pid, annotations, definitions, offset }
    }

    /// Whether no record is pending or waiting.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_none() && self.waiting.is_empty()
    }

    pub(super) const fn has_pending(&self) -> bool {
        self.pending.is_some()
    }

    #[inline]
    pub(super) const fn has_timestamps(&self) -> bool {
        self.segment.header.has_timestamps
    }

    /// The state that the next events have to fit, by a header with or without timestamps.
    pub(super) const fn state(&self, has_timestamps: bool) -> SegmentState {
        SegmentState { next: self.definitions.next_ids(), has_timestamps, has_sample: self.has_pending() }
    }

    /// The number of samples read, including a pending one.
    pub(super) fn samples_read(&self) -> u64 {
        self.recovery.samples.saturating_add(self.pending.map_or(0, |pending| pending.count))
    }

    /// Of the samples read, the number of those in segments with timestamps.
    pub(super) fn timed_samples_read(&self) -> u64 {
        let here =
            if self.has_timestamps() { self.samples_read().saturating_sub(self.samples_before) } else { 0 };
        self.timed_before.saturating_add(here)
    }

    /// Notes that this segment has lost data: stand-ins may then replace lost definitions.
    pub(super) const fn lose(&mut self) {
        self.is_damaged = true;
    }

    /// Defines a stand-in for a definition that was lost; returns whether it was.
    pub(super) fn stand_in(&mut self, undefined: Undefined, offset: u64) -> bool {
        let name = if self.is_damaged { self.definitions.stand_in(undefined) } else { None };
        if let Some(name) = &name {
            self.warn(offset, format!("{undefined} was lost and is replaced by {name}"));
        }
        name.is_some()
    }

    /// Adds a warning about something other than lost data.
    pub(super) fn warn(&mut self, offset: u64, message: String) {
        self.recovery.warn(Warning::new(message).at(offset));
    }

    /// Returns the pending sample, then `record`.
    fn after_pending(&mut self, record: WaitingRecord) -> Result<Option<Completed>, Error> {
        let completed = self.release(None);
        self.waiting.push_back(record);
        if completed.is_some() { Ok(completed) } else { self.next_waiting() }
    }

    fn begin(&mut self, start: SegmentStart) -> Completed {
        self.timed_before = self.timed_samples_read();
        self.samples_before = self.recovery.samples;
        self.segment = start;
        self.is_damaged = false;
        self.metadata_bytes = 0;
        self.accumulated_us = Some(0);
        self.definitions.clear();
        Completed::Segment
    }

    /// Returns the pending sample, and puts `next` in its place.
    #[inline]
    fn release(&mut self, next: Option<SampleCore>) -> Option<Completed> {
        let released = std::mem::replace(&mut self.pending, next)?;
        self.current = released;
        self.release_annotations(released.annotated);
        std::mem::swap(&mut self.waiting, &mut self.waiting_for_pending);
        self.recovery.samples = self.recovery.samples.saturating_add(released.count);
        Some(Completed::Sample)
    }

    /// Makes the annotations of the returned sample the current ones.
    #[inline]
    fn release_annotations(&mut self, annotated: bool) {
        if annotated {
            std::mem::swap(&mut self.current_annotations, &mut self.pending_annotations);
        }
    }

    /// A new sample without repeats or annotations.
    #[inline]
    fn core(&mut self, event: BareSample) -> SampleCore {
        let accumulated_us = event.delta_us.and_then(|delta_us| self.accumulate(delta_us, event.offset));
        SampleCore { event, count: 1, accumulated_us, annotated: false, repeated: false }
    }

    #[inline]
    fn accumulate(&mut self, delta_us: i64, offset: u64) -> Option<i64> {
        let before = self.accumulated_us?;
        self.accumulated_us = before.checked_add(delta_us);
        if self.accumulated_us.is_none() {
            self.warn_overflow(before, delta_us, offset);
        }
        self.accumulated_us
    }

    #[cold]
    fn warn_overflow(&mut self, before: i64, delta_us: i64, offset: u64) {
        self.warn(
            offset,
            format!("timestamp overflow: {before} us + {delta_us} us; later times are unknown"),
        );
    }

    fn repeat(&mut self, count: i64) -> Result<(), EventFault> {
        let pending = self.pending.as_mut().ok_or(EventFault::NoSample)?;
        pending.count = pending.count.saturating_add(u64::try_from(count).unwrap_or(0));
        pending.repeated = true;
        Ok(())
    }

    fn annotate(&mut self) -> Result<(), EventFault> {
        let pending = self.pending.as_mut().ok_or(EventFault::NoSample)?;
        if pending.repeated {
            return Err(EventFault::AfterRepeat);
        }
        pending.annotated = true;
        std::mem::swap(&mut self.pending_annotations, &mut self.current_annotations);
        Ok(())
    }

    /// Fails if the definitions and metadata of the segment take more memory than allowed.
    fn check_memory(&self) -> Result<(), EventFault> {
        let held = self.definitions.held_bytes().saturating_add(self.metadata_bytes);
        self.limits.check(held).map_err(EventFault::Memory)
    }

    fn metadata(&mut self, pair: MetadataPair) -> Result<Option<Completed>, EventFault> {
        let is_first = self.samples_read() == self.samples_before;
        self.has_new_clock |= is_first && stated_unix_ns(&pair.0, &pair.1).is_some();
        // A queue has up to twice the places that it needs.
        let bytes = pair.0.capacity() + pair.1.capacity() + 2 * size_of::<WaitingRecord>();
        self.metadata_bytes = self.metadata_bytes.saturating_add(bytes);
        self.check_memory()?;
        if self.pending.is_some() {
            self.waiting_for_pending.push_back(WaitingRecord::Metadata(pair));
            return Ok(None);
        }
        self.current_metadata = pair;
        Ok(Some(Completed::Metadata))
    }

    /// Compares a checkpoint with the records read. Real writers store counts; the specification says largest ids, one
    /// less, which are accepted too.
    fn verify(&mut self, counts: Option<[i64; 3]>, offset: u64) {
        let Some([frames, stacks, samples]) = counts else {
            return self.warn(offset, "invalid CHECKPOINT: expected three numbers".to_owned());
        };
        let next = self.definitions.next_ids();
        let read = self.samples_read().saturating_sub(self.samples_before);
        for (kind, said) in [(DefinitionKind::Frame, frames), (DefinitionKind::Stack, stacks)] {
            let found = next.of(kind);
            if said != found && said != found.saturating_sub(1) {
                self.warn(offset, format!("CHECKPOINT mismatch: expected {said} {kind}s, found {found}"));
            }
        }
        // From 2^63 samples on, the count occupies the sign bit.
        if samples.cast_unsigned() != read {
            self.warn(offset, format!("CHECKPOINT mismatch: expected {samples} samples, found {read}"));
        }
    }
}

impl From<Undefined> for EventFault {
    fn from(undefined: Undefined) -> Self {
        Self::Undefined(undefined)
    }
}

impl EventFault {
    /// The error of `raw`, which cannot be used.
    #[cold]
    pub(super) fn at(self, raw: &RawEvent<'_>) -> Error {
        let (event, position) = (EventType::name_of(raw.type_byte), Position::Byte(raw.offset));
        let reason = match self {
            Self::Payload(error) => format!("payload {error}"),
            Self::Undefined(undefined) => format!("undefined {undefined}"),
            Self::NoSample => "no sample before it in this segment".to_owned(),
            Self::AfterRepeat => "expected before REPEAT_SAMPLE, found after it".to_owned(),
            Self::Memory(over) => {
                return Error::memory(NAME, position, format!("{over} for the definitions of a segment"));
            }
        };
        Error::malformed(NAME, position, format!("invalid {event}: {reason}"))
    }
}
