//! Segments, metadata and samples, pulled in order.

use std::collections::VecDeque;
use std::io::Read;

use super::NAME;
use super::annotations::{self, Annotations};
use super::definitions::{Definitions, StackRef, StringRef, Undefined};
use super::event::{Event, RawEvent};
use super::events::{Events, Step, type_name};
use super::layout::Header;
use super::recover::{LostTime, Region};
use crate::{Error, ErrorKind, Position, ReadOptions, Recovery};

/// Reads segments, metadata and samples.
///
/// It accepts everything that reli's strict reader accepts, sample for sample. In addition, a cut-off end loses no
/// complete record: it is the end of the data, with a warning in [`Reader::recovery`].
///
/// Memory is bounded by one event and by the definitions of one segment. Nothing is allocated per sample.
pub struct Reader<R> {
    pub(super) events: Events<R>,
    pub(super) definitions: Definitions,
    pub(super) options: ReadOptions,
    pub(super) recovery: Recovery,
    /// The sample that may still get annotations and repeats: it is returned when another record begins.
    pending: Option<Core>,
    pub(super) pending_annotations: Annotations,
    current: Core,
    current_annotations: Annotations,
    /// Metadata after the pending sample; the first `metadata_ready` entries were before it.
    metadata: VecDeque<(Vec<u8>, Vec<u8>)>,
    metadata_ready: usize,
    /// The size of the segment's metadata, which a caller may have to keep.
    metadata_bytes: usize,
    metadata_out: (Vec<u8>, Vec<u8>),
    held: Held,
    pub(super) segment: SegmentStart,
    /// The number of samples before this segment.
    samples_before: u64,
    accumulated_us: Option<i64>,
    /// Whether the next sample follows directly: no record is pending or waiting.
    pub(super) in_flow: bool,
    /// Whether this segment has lost data: references may then be to the lost part.
    pub(super) segment_damaged: bool,
    pub(super) region: Option<Region>,
    pub(super) lost_time: Option<LostTime>,
    /// Whether the segment at the position where reading continues has lost its header.
    pub(super) lost_header: bool,
}

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
    Sample(Sample<'a>),
}

/// The beginning of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
pub struct Sample<'a> {
    /// The stack.
    pub stack: StackRef,
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
    pub annotations: Option<&'a [(StringRef, StringRef)]>,
    /// The definitions that the references refer to.
    pub definitions: &'a Definitions,
    /// The offset of the sample, in bytes after decompression.
    pub offset: u64,
}

/// A sample without its borrows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Core {
    stack: StackRef,
    count: u64,
    delta_us: Option<i64>,
    accumulated_us: Option<i64>,
    pid: Option<i64>,
    offset: u64,
    annotated: bool,
    repeated: bool,
}

/// A record or failure that waits until the pending sample has been returned.
enum Held {
    Nothing,
    Segment(SegmentStart),
    Failure(Error),
}

/// A record without its borrows.
pub(super) enum Turn {
    Segment,
    Metadata,
    Sample,
}

/// The effect of an event other than defining something.
pub(super) enum Effect {
    Nothing,
    Sample(PlainSample),
    Repeat(i64),
    Annotated,
    Metadata(Vec<u8>, Vec<u8>),
    Checkpoint { counts: Option<[i64; 3]>, offset: u64 },
}

/// A sample that is complete except for the records after it.
#[derive(Clone, Copy)]
pub(super) struct PlainSample {
    pub(super) stack: StackRef,
    pub(super) pid: Option<i64>,
    pub(super) delta_us: Option<i64>,
    pub(super) offset: u64,
}

/// The reason why an event cannot be used.
#[derive(Clone, Copy)]
pub(super) enum Fault {
    Payload(borehole_wire::Error),
    Undefined(Undefined),
    NoSample,
    AfterRepeat,
    TooManyDefinitions,
}

impl<R: Read> Reader<R> {
    /// Reads `input` strictly: raw, compressed, or segments of all kinds one after the other.
    pub fn new(input: R) -> Self {
        Self::with_options(input, ReadOptions::default())
    }

    /// Reads `input` with `options`.
    pub fn with_options(input: R, options: ReadOptions) -> Self {
        let nothing = Core {
            stack: StackRef::default(),
            count: 0,
            delta_us: None,
            accumulated_us: None,
            pid: None,
            offset: 0,
            annotated: false,
            repeated: false,
        };
        let header = Header { has_timestamps: false, period_us: 0 };
        Self {
            events: Events::new(input, options),
            definitions: Definitions::default(),
            options,
            recovery: Recovery::default(),
            pending: None,
            pending_annotations: Vec::new(),
            current: nothing,
            current_annotations: Vec::new(),
            metadata: VecDeque::new(),
            metadata_ready: 0,
            metadata_bytes: 0,
            metadata_out: Default::default(),
            held: Held::Nothing,
            segment: SegmentStart { header, index: 0, offset: 0 },
            samples_before: 0,
            accumulated_us: Some(0),
            in_flow: false,
            segment_damaged: false,
            region: None,
            lost_time: None,
            lost_header: false,
        }
    }

    /// The next record; `None` at the end, and after an error.
    ///
    /// # Errors
    /// If the input cannot be read or contradicts the format. All samples before that position have been returned. With
    /// lenient options only the former is an error.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        if self.in_flow
            && let Some(sample) = self.complete_sample()
        {
            return Ok(Some(Record::Sample(self.sample(sample))));
        }
        self.any_record()
    }

    /// The next record by the general path.
    pub(super) fn any_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        self.in_flow = false;
        let turn = self.turn()?;
        self.in_flow = self.pending.is_none() && !self.has_waiting() && self.events.is_flowing();
        if self.in_flow {
            self.events.leave();
        }
        Ok(turn.map(|turn| match turn {
            Turn::Sample => Record::Sample(self.sample(self.current)),
            Turn::Segment => Record::Segment(self.segment),
            Turn::Metadata => Record::Metadata { key: &self.metadata_out.0, value: &self.metadata_out.1 },
        }))
    }

    /// The numbers of records read so far, and the warnings.
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The numbers of records read, and the warnings.
    pub fn into_recovery(mut self) -> Recovery {
        self.end_region(self.recovery.samples);
        self.warn_of_lost_time();
        let mut recovery = self.recovery;
        self.events.padding().into_iter().for_each(|note| recovery.note(note));
        recovery
    }

    #[inline]
    pub(super) fn sample(&self, core: Core) -> Sample<'_> {
        let Core { stack, count, delta_us, accumulated_us, pid, offset, annotated, .. } = core;
        let annotations = annotated.then_some(self.current_annotations.as_slice());
        let definitions = &self.definitions;
        Sample { stack, count, delta_us, accumulated_us, pid, annotations, definitions, offset }
    }

    fn turn(&mut self) -> Result<Option<Turn>, Error> {
        if let Some(turn) = self.waiting()? {
            return Ok(Some(turn));
        }
        loop {
            if self.pending.is_some() && self.is_superseded() {
                return Ok(self.release(None));
            }
            let turn = match self.events.advance() {
                Ok(Some(Step::Event(_))) => self.event(),
                Ok(Some(Step::Header(header))) => Ok(self.header(header)),
                Ok(None) if self.go_on_after_damage()? => Ok(None),
                Ok(None) => return Ok(self.end()),
                Err(error) => self.failed(error),
            };
            match turn {
                Ok(None) => {}
                turn => return turn,
            }
        }
    }

    /// Applies the last event taken, whatever it is.
    fn event(&mut self) -> Result<Option<Turn>, Error> {
        let effect = if self.options.is_lenient() {
            self.apply_carefully()
        } else {
            self.apply().map_err(|(_, error)| error)
        };
        effect.and_then(|effect| self.take_effect(effect)).or_else(|error| self.failed(error))
    }

    /// The record that waited for the last sample returned.
    fn waiting(&mut self) -> Result<Option<Turn>, Error> {
        if self.metadata_ready > 0
            && let Some(metadata) = self.metadata.pop_front()
        {
            self.metadata_ready -= 1;
            self.metadata_out = metadata;
            return Ok(Some(Turn::Metadata));
        }
        match std::mem::replace(&mut self.held, Held::Nothing) {
            Held::Nothing => Ok(None),
            Held::Segment(start) => Ok(Some(self.begin(start))),
            Held::Failure(error) => Err(error),
        }
    }

    fn has_waiting(&self) -> bool {
        self.metadata_ready > 0 || !matches!(self.held, Held::Nothing)
    }

    /// Returns the pending sample, and puts `next` in its place.
    #[inline]
    fn release(&mut self, next: Option<Core>) -> Option<Turn> {
        let released = std::mem::replace(&mut self.pending, next)?;
        self.current = released;
        self.release_annotations(released.annotated);
        self.metadata_ready = self.metadata.len();
        self.recovery.samples = self.recovery.samples.saturating_add(released.count);
        Some(Turn::Sample)
    }

    /// Makes the annotations of the returned sample the current ones.
    #[inline]
    fn release_annotations(&mut self, annotated: bool) {
        if annotated {
            std::mem::swap(&mut self.current_annotations, &mut self.pending_annotations);
        }
    }

    /// `sample` with `more` repeats, returned at once, with the pending annotations if it is `annotated`.
    #[inline]
    pub(super) fn give_out(&mut self, sample: PlainSample, more: u64, annotated: bool) -> Core {
        self.release_annotations(annotated);
        let core = Core { count: more.saturating_add(1), annotated, ..self.begin_sample(sample) };
        self.recovery.samples = self.recovery.samples.saturating_add(core.count);
        core
    }

    pub(super) fn header(&mut self, header: Header) -> Option<Turn> {
        let start = SegmentStart { header, index: self.recovery.segments, offset: self.events.offset() };
        self.recovery.segments += 1;
        match self.release(None) {
            None => Some(self.begin(start)),
            turn => {
                self.held = Held::Segment(start);
                turn
            }
        }
    }

    fn begin(&mut self, start: SegmentStart) -> Turn {
        self.count_lost_time();
        self.segment = start;
        self.samples_before = self.recovery.samples;
        self.segment_damaged = false;
        self.metadata_bytes = 0;
        self.accumulated_us = Some(0);
        self.definitions.clear();
        Turn::Segment
    }

    fn end(&mut self) -> Option<Turn> {
        self.keep_warnings();
        self.release(None)
    }

    /// Ends the reading with `error`, or, when lenient, finds the position to continue at.
    #[cold]
    fn failed(&mut self, error: Error) -> Result<Option<Turn>, Error> {
        if self.options.is_lenient() && !error.is_io() {
            self.resynchronise(&error)?;
            return self.stand_in_segment();
        }
        self.keep_warnings();
        self.events.stop();
        match self.release(None) {
            None => Err(error),
            turn => {
                self.held = Held::Failure(error);
                Ok(turn)
            }
        }
    }

    /// A new sample without repeats or annotations.
    #[inline]
    fn begin_sample(&mut self, sample: PlainSample) -> Core {
        let PlainSample { stack, pid, delta_us, offset } = sample;
        let accumulated_us = delta_us.and_then(|delta| self.accumulate(delta, offset));
        let (annotated, repeated) = (false, false);
        Core { stack, count: 1, delta_us, accumulated_us, pid, offset, annotated, repeated }
    }

    fn take_effect(&mut self, effect: Effect) -> Result<Option<Turn>, Error> {
        match effect {
            Effect::Nothing => Ok(None),
            Effect::Sample(sample) => {
                let core = self.begin_sample(sample);
                Ok(self.release(Some(core)))
            }
            Effect::Repeat(count) => self.repeat(count).map(|()| None),
            Effect::Annotated => self.annotate().map(|()| None),
            Effect::Metadata(key, value) => self.metadata(key, value),
            Effect::Checkpoint { counts, offset } => {
                self.verify(counts, offset);
                Ok(None)
            }
        }
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
        self.warn(offset, format!("time overflows: {before} us and {delta_us} us; unknown from here on"));
    }

    fn repeat(&mut self, count: i64) -> Result<(), Error> {
        let offset = self.events.offset();
        let Some(pending) = &mut self.pending else {
            return Err(Fault::NoSample.error("REPEAT_SAMPLE", offset));
        };
        pending.count = pending.count.saturating_add(u64::try_from(count).unwrap_or(0));
        pending.repeated = true;
        Ok(())
    }

    fn annotate(&mut self) -> Result<(), Error> {
        let offset = self.events.offset();
        let fault = match &mut self.pending {
            None => Fault::NoSample,
            Some(pending) if pending.repeated => Fault::AfterRepeat,
            Some(pending) => {
                pending.annotated = true;
                return Ok(());
            }
        };
        Err(fault.error("SAMPLE_ANNOTATION", offset))
    }

    fn metadata(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<Option<Turn>, Error> {
        let bytes = key.len() + value.len() + size_of::<(Vec<u8>, Vec<u8>)>();
        self.metadata_bytes = self.metadata_bytes.saturating_add(bytes);
        if self.metadata_bytes > self.options.limits.definition_bytes {
            return Err(Fault::TooManyDefinitions.error("METADATA", self.events.offset()));
        }
        if self.pending.is_some() {
            self.metadata.push_back((key, value));
            return Ok(None);
        }
        self.metadata_out = (key, value);
        Ok(Some(Turn::Metadata))
    }

    /// Compares a checkpoint with the records read. Real writers store counts; the specification says largest ids, one
    /// less, which are accepted too.
    fn verify(&mut self, counts: Option<[i64; 3]>, offset: u64) {
        let Some([frames, stacks, samples]) = counts else {
            return self.warn(offset, "invalid CHECKPOINT: expected three numbers".to_owned());
        };
        let next = self.definitions.next_ids();
        let read = self.samples_read().saturating_sub(self.samples_before);
        for (what, said, found) in [("frames", frames, next.frame), ("stacks", stacks, next.stack)] {
            if said != found && said != found.saturating_sub(1) {
                self.warn(offset, format!("CHECKPOINT differs: expected {said} {what}, found {found}"));
            }
        }
        // From 2^63 samples on, the count occupies the sign bit.
        if samples.cast_unsigned() != read {
            self.warn(offset, format!("CHECKPOINT differs: expected {samples} samples, found {read}"));
        }
    }

    /// Applies the last event taken.
    pub(super) fn apply(&mut self) -> Result<Effect, (Fault, Error)> {
        let Some(raw) = self.events.last_event() else { return Ok(Effect::Nothing) };
        let Self { segment, definitions, pending_annotations, options, .. } = self;
        let limit = options.limits.definition_bytes;
        apply(&raw, segment.header.has_timestamps, definitions, pending_annotations, limit)
            .map_err(|fault| (fault, fault.at(&raw)))
    }

    /// The number of samples read, including a pending one.
    pub(super) fn samples_read(&self) -> u64 {
        self.recovery.samples.saturating_add(self.pending.map_or(0, |pending| pending.count))
    }

    pub(super) const fn has_pending(&self) -> bool {
        self.pending.is_some()
    }
}

/// Applies the definitions of `raw` and returns its other effect.
fn apply(
    raw: &RawEvent<'_>,
    has_timestamps: bool,
    definitions: &mut Definitions,
    annotations: &mut Annotations,
    limit_bytes: usize,
) -> Result<Effect, Fault> {
    let offset = raw.offset;
    match Event::decode(raw, has_timestamps).map_err(Fault::Payload)? {
        Event::Sample { stack, pid, delta_us } => {
            let stack = definitions.stack_ref(stack).map_err(Fault::Undefined)?;
            Ok(Effect::Sample(PlainSample { stack, pid, delta_us, offset }))
        }
        Event::Repeat { count } => Ok(Effect::Repeat(count)),
        Event::Annotation { pairs } => {
            annotations::replace(annotations, pairs, definitions).map_err(Fault::Undefined)?;
            Ok(Effect::Annotated)
        }
        Event::Metadata { key, value } => Ok(Effect::Metadata(key.to_vec(), value.to_vec())),
        Event::Checkpoint { counts } => Ok(Effect::Checkpoint { counts, offset }),
        Event::SegmentEnd | Event::Unknown { .. } => Ok(Effect::Nothing),
        _ if definitions.exceed(limit_bytes) => Err(Fault::TooManyDefinitions),
        definition => define(&definition, definitions),
    }
}

fn define(definition: &Event<'_>, definitions: &mut Definitions) -> Result<Effect, Fault> {
    match *definition {
        Event::StringDef { id, string } => definitions.define_string(id, string),
        Event::FrameDef { id, frame } => definitions.define_frame(id, frame).map_err(Fault::Undefined)?,
        Event::StackDef { id, frames_leaf_first } => definitions.define_stack(id, frames_leaf_first),
        _ => {}
    }
    Ok(Effect::Nothing)
}

impl Fault {
    #[cold]
    pub(super) fn at(self, raw: &RawEvent<'_>) -> Error {
        self.error(&type_name(raw.type_byte), raw.offset)
    }

    #[cold]
    fn error(self, event: &str, offset: u64) -> Error {
        let message = match self {
            Self::Payload(error) => {
                return Error::malformed(
                    NAME,
                    Position::Byte(offset),
                    format!("invalid {event}: payload {error}"),
                );
            }
            Self::Undefined(Undefined { what, id }) => {
                format!("invalid {event}: expected a defined {what}, found {what} {id}")
            }
            Self::NoSample => {
                format!("invalid {event}: expected a sample before it, found none in this segment")
            }
            Self::AfterRepeat => format!("invalid {event}: expected it before REPEAT_SAMPLE, found it after"),
            Self::TooManyDefinitions => {
                let message = format!("too many definitions in one segment, at this {event}");
                return Error::new(ErrorKind::Limit, NAME, Position::Byte(offset), message);
            }
        };
        Error::malformed(NAME, Position::Byte(offset), message)
    }
}
