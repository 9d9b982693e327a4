//! Reading on after damage.
//!
//! Events have a length but no checksum, so where reading may go on has to be judged by what stands there.
//! [`Plausibility`] adds up evidence over the events that would follow: a known type, an id that is the next
//! to be given out, a payload that its fields fill exactly. Damage is then met in this order:
//!
//! 1. A length that disagrees with the fields of its event is mended if the fields end where something
//!    plausible follows.
//! 2. An event whose payload is bad, but which something plausible follows, is passed over alone.
//! 3. Otherwise the search goes on byte by byte from behind the failed event's first byte, for a flawless
//!    header or a plausible chain of events of the same segment.
//!
//! A definition that was lost leaves a hole that later samples refer to. They keep their weight and time: a
//! stand-in named `<lost …>` takes the place of what is missing.

use std::io::{ErrorKind, Read};

use borehole_wire::Cursor;
use memchr::memmem;

use super::NAME;
use super::definitions::{NextIds, Undefined};
use super::event::{Event, FrameFields, Framed, RawEvent};
use super::events::{Place, type_name};
use super::layout::{EventType, HEADER_BYTES, MAGIC, RESERVED_EVENT, RawHeader};
use super::read::{Effect, Fault, Reader};
use crate::envelope::{Envelope, Method};
use crate::member::FIRST_BYTES;
use crate::{Error, Position, Warning};

/// How many bytes behind a candidate are looked at.
pub(super) const LOOK_AHEAD: usize = 4096;

/// How many bytes of an event whose length is not believed are looked at for its end.
const MENDED_BYTES: usize = 64 << 10;

/// How far an id may lie ahead of the next one: as many definitions may have been lost together.
const MAX_LOST: i64 = 64;

/// The same for the stack of a sample, which is weaker evidence than a definition.
const MAX_LOST_STACKS: i64 = 4;

/// What stands between one damage and the next.
pub(super) struct Region {
    /// Which warning tells of the damage.
    warning_index: usize,
    samples_before: u64,
}

impl<R: Read> Reader<R> {
    /// Applies the event that was taken last, mending what can be mended.
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
                // Of a length and a payload that disagree, the length is right if something follows it.
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

    /// The error of an event that a segment's header stands in: the event was cut off, and the segment was
    /// appended. Only texts, and payloads that nobody knows, may look like that by themselves.
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

    /// Where behind the front of the window, but before `end`, segments begin: raw, or in a member.
    pub(super) fn segments_before(&self, end: usize) -> impl Iterator<Item = usize> {
        let bytes = self.events.window.available().get(1..end).unwrap_or_default();
        let starts = memchr::memchr3_iter(RESERVED_EVENT, FIRST_BYTES[0], FIRST_BYTES[1], bytes);
        starts.map(|at| at + 1).filter(|&at| self.is_segment(at))
    }

    /// Whether what looks like a segment `at` bytes into the window is one, by the events behind its header.
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

    /// Whether the segment goes on behind the event taken last, as far as that goes.
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

    /// Whether the event taken last is of an unknown type.
    fn took_unknown(&self) -> bool {
        self.events.last_event().is_some_and(|raw| raw.event_type().is_none())
    }

    fn wrong_length(&self) -> Error {
        let name = self.events.last_event().map_or_else(String::new, |raw| type_name(raw.type_byte));
        let position = Position::Byte(self.events.offset());
        Error::malformed(NAME, position, format!("unexpected {name}: nothing plausible follows it"))
    }

    /// Whether the event taken last may have a wrong length: its fields do not vouch for it, and what
    /// follows does not look like an event.
    fn length_is_suspect(&mut self) -> Result<bool, Error> {
        let Some(raw) = self.events.last_event() else { return Ok(false) };
        if is_exact(&raw, self.events.header.has_timestamps) {
            return Ok(false);
        }
        // What a wrong length leads to may look like an event of unknown type.
        let purpose = if raw.event_type().is_none() { Purpose::Continue } else { Purpose::Resume };
        let end = self.events.taken;
        Ok(!self.plausible(end, purpose)?)
    }

    /// Gives the event at the front of the window the end that its fields ask for, if that is plausible.
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

    /// Where the fields of an event end when its length is not believed.
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
        // An event without fields ends nowhere in particular.
        let settled = end > framed.payload && end != framed.end;
        let mended = RawEvent::new(bytes, self.events.offset(), Framed { end, ..framed });
        let believable = settled && self.plausibility(Purpose::Search).weigh(&mended).is_some();
        Ok((believable && self.plausible_at(end)?).then_some(end))
    }

    /// Where a string ends whose length is not believed: before the first thing in it that is plausible.
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

    /// Puts a stand-in where something that was lost is referred to.
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

    /// After `error`: finds the place where reading can go on. The failed record is at the window's front.
    pub(super) fn resynchronise(&mut self, error: &Error) -> Result<(), Error> {
        self.keep_warnings();
        let from = self.events.offset();
        let skip = std::mem::take(&mut self.events.taken);
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
        self.warn_damage(from, self.events.offset() - from, error.message().to_owned());
        Ok(())
    }

    /// Mends the front of the window itself: a header that is almost right, or an event whose length runs
    /// beyond the input or the limit.
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

    /// Moves the window to the next place from which reading can go on, behind its first byte.
    fn scan(&mut self, purpose: Purpose) -> Result<Place, Error> {
        let before = self.events.place;
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

    /// What may begin at `at`, if anything.
    fn place_at(&mut self, at: usize, purpose: Purpose) -> Result<Option<Place>, Error> {
        if self.is_segment(at) {
            return Ok(Some(Place::Start));
        }
        let plausible = self.starts_like_a_record(at) && self.plausible(at, purpose)?;
        Ok(plausible.then_some(Place::InSegment))
    }

    fn starts_like_a_record(&self, at: usize) -> bool {
        let byte = self.events.window.available().get(at).copied();
        byte.is_some_and(|byte| EventType::from_byte(byte).is_some() || byte == RESERVED_EVENT)
    }

    /// Whether what stands `at` bytes into the window, behind an event, reads like the continuation of this
    /// segment, the beginning of another, or the end.
    fn plausible_at(&mut self, at: usize) -> Result<bool, Error> {
        self.plausible(at, Purpose::Continue)
    }

    fn plausible(&mut self, at: usize, purpose: Purpose) -> Result<bool, Error> {
        self.events.ensure(at.saturating_add(LOOK_AHEAD))?;
        Ok(self.judge(self.plausibility(purpose), at))
    }

    /// What `judge` makes of the events `at` bytes into the window.
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

    /// Keeps what the events warned of, all of it damage.
    pub(super) fn keep_warnings(&mut self) {
        for warning in self.events.take_warnings() {
            if self.options.is_lenient() {
                self.damage(warning);
            } else {
                self.recovery.warn(warning);
            }
        }
    }

    /// Keeps a warning of something that is no damage, or that comes of one told before.
    pub(super) fn warn(&mut self, offset: u64, message: String) {
        self.recovery.warn(Warning::new(message).at(offset));
    }

    /// Keeps `warning`, which begins a region, and ends the one before.
    fn damage(&mut self, warning: Warning) {
        let samples_before = self.samples_read();
        self.end_region(samples_before);
        let warning_index = self.recovery.warnings.len();
        self.region = Some(Region { warning_index, samples_before });
        self.recovery.warn(warning);
    }

    /// Says in the warning that began the region how many of the samples that have been read are its.
    pub(super) fn end_region(&mut self, samples_read: u64) {
        let Some(Region { warning_index, samples_before }) = self.region.take() else { return };
        // Warnings are kept up to a bound.
        if let Some(warning) = self.recovery.warnings.get_mut(warning_index) {
            warning.saved_samples = Some(samples_read.saturating_sub(samples_before));
        }
    }

    /// After the end of the data: whether it was the end of a damaged member only, behind which there is
    /// more to read.
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
        self.events.resume(Place::Start);
        Ok(!self.events.ensure(1)?.is_empty())
    }
}

/// Whether `bytes` may be the first event of a segment: what it defines has the id 0.
fn is_first_event(bytes: &[u8]) -> bool {
    let Ok(framed) = Framed::of(bytes, bytes.len()) else { return true };
    match EventType::from_byte(framed.type_byte) {
        Some(EventType::StringDef | EventType::StackDef) => bytes.get(framed.payload) == Some(&0),
        Some(EventType::Metadata | EventType::Checkpoint | EventType::SegmentEnd) => true,
        _ => false,
    }
}

/// Whether a member that begins with a segment's header stands at the front of `bytes`. Of a frame whose first block
/// is longer than that its magic number has to be enough.
pub(super) fn holds_a_segment(bytes: &[u8]) -> bool {
    let mut header = [0; HEADER_BYTES];
    let read = Envelope::new(&bytes[..bytes.len().min(LOOK_AHEAD)]).read_exact(&mut header);
    match read {
        Ok(()) => RawHeader::at(&header).is_some_and(|raw| raw.is_flawless()),
        Err(error) => Method::of(bytes) == Some(Method::Zstd) && error.kind() == ErrorKind::UnexpectedEof,
    }
}

/// Whether the fields of `raw` fill its payload exactly, so that its length can be believed.
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

/// The first header behind the start of `bytes` that is flawless.
pub(super) fn find_header(bytes: &[u8]) -> Option<usize> {
    memmem::find_iter(bytes, &MAGIC)
        .filter(|&at| at > 0)
        .find(|&at| bytes.get(at..).and_then(RawHeader::at).is_some_and(|raw| raw.is_flawless()))
}

/// What a judgement is for, which decides how strict it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To go on where an event ends. Events of unknown types may follow, although they prove nothing.
    Continue,
    /// The same where it is in doubt whether the event ends there.
    Resume,
    /// To find a place by trying one after the other: what chance does once in a while, it does here.
    Search,
    /// The same in what may be nothing but an event that was cut off: its ids, which mostly follow each other,
    /// look like small events.
    SearchCut,
}

/// Judges bytes as a chain of events, each of which has to fit what came before.
struct Plausibility {
    next: NextIds,
    has_timestamps: bool,
    has_sample: bool,
    purpose: Purpose,
    /// Roughly, in bits: how unlikely it is that chance looks like this.
    evidence: u32,
}

impl Plausibility {
    /// Enough to believe in a chain that is still going on.
    const ENOUGH: u32 = 24;

    /// Enough to believe in a chain that ends exactly where the input or the segment does.
    const fn enough_to_end(&self) -> u32 {
        match self.purpose {
            Purpose::Continue | Purpose::Resume | Purpose::Search => 5,
            Purpose::SearchCut => 16,
        }
    }

    /// Enough to believe in a chain that ends in an event of which not all can be seen.
    const fn enough_to_be_cut(&self) -> u32 {
        match self.purpose {
            Purpose::Continue | Purpose::Resume => 5,
            Purpose::Search | Purpose::SearchCut => 16,
        }
    }

    /// Whether `bytes` are believable. `whole`: they reach to the end of the input.
    fn of(mut self, bytes: &[u8], whole: bool) -> bool {
        let mut cursor = Cursor::new(bytes, 0);
        while self.evidence < Self::ENOUGH {
            let rest = cursor.rest();
            if rest.is_empty() {
                return whole && (self.evidence >= self.enough_to_end() || bytes.is_empty());
            }
            if rest[0] == RESERVED_EVENT {
                let in_order = matches!(self.purpose, Purpose::Continue | Purpose::Resume);
                let first = rest.len() == bytes.len();
                let convinced = in_order || first || self.evidence >= self.enough_to_end();
                let cut = whole && !first && MAGIC.starts_with(&rest[..rest.len().min(MAGIC.len())]);
                return convinced && RawHeader::at(rest).map_or(cut, |raw| raw.is_flawless());
            }
            let Ok(framed) = Framed::of(rest, rest.len()) else {
                return self.evidence >= self.enough_to_be_cut();
            };
            let searches = matches!(self.purpose, Purpose::Search | Purpose::SearchCut);
            if searches && find_header(&rest[..framed.end]).is_some() {
                return false;
            }
            match self.weigh(&RawEvent::new(rest, 0, framed)) {
                Some(bits) => self.evidence += bits,
                None => return false,
            }
            cursor = Cursor::new(&rest[framed.end..], 0);
        }
        true
    }

    /// The evidence that one event is; `None` if no writer would write it here.
    fn weigh(&mut self, raw: &RawEvent<'_>) -> Option<u32> {
        let mut payload = raw.payload;
        let event = Event::decode_payload(raw, &mut payload, self.has_timestamps).ok()?;
        if !payload.is_empty() && !matches!(event, Event::Unknown { .. }) {
            return None;
        }
        match event {
            Event::StringDef { id, .. } => next_id(&mut self.next.string, id).map(|bits| bits + 4),
            Event::FrameDef { id, frame } => {
                let strings = frame_strings(&frame).into_iter().flatten();
                all_defined(strings, self.next.string)?;
                next_id(&mut self.next.frame, id).map(|bits| bits + 8)
            }
            Event::StackDef { id, frames_leaf_first } => {
                all_defined(frames_leaf_first, self.next.frame)?;
                next_id(&mut self.next.stack, id).map(|bits| bits + 8)
            }
            Event::Sample { stack, delta_us, .. } => self.weigh_sample(raw, stack, delta_us),
            Event::Repeat { count } => (self.has_sample && count > 0).then_some(4),
            Event::Annotation { pairs } => {
                all_defined(pairs, self.next.string)?;
                self.has_sample.then_some(8)
            }
            Event::Checkpoint { counts } => self.weigh_checkpoint(counts?),
            Event::SegmentEnd => Some(12),
            Event::Metadata { key, .. } => key.is_ascii().then_some(12),
            Event::Unknown { .. } => (self.purpose == Purpose::Continue).then_some(0),
        }
    }

    fn weigh_sample(&mut self, raw: &RawEvent<'_>, stack: i64, delta_us: Option<i64>) -> Option<u32> {
        let compact = raw.event_type() == Some(EventType::CompactSample);
        let belongs = match raw.event_type() {
            Some(EventType::CompactSample) => !self.has_timestamps,
            Some(EventType::Sample) => self.has_timestamps,
            _ => true,
        };
        let fits = (0..self.next.stack.saturating_add(MAX_LOST_STACKS)).contains(&stack)
            && belongs
            && delta_us.is_none_or(|delta| (0..1 << 40).contains(&delta));
        self.has_sample = true;
        let known = stack < self.next.stack;
        fits.then_some(match (compact, known) {
            (true, true) => 5,
            (true, false) => 1,
            (false, true) => 10,
            (false, false) => 4,
        })
    }

    fn weigh_checkpoint(&self, [frames, stacks, _]: [i64; 3]) -> Option<u32> {
        let near = |said: i64, next: i64| said >= next && said - next <= MAX_LOST;
        (near(frames, self.next.frame) && near(stacks, self.next.stack)).then_some(12)
    }
}

/// The evidence that an id is: strong if it is exactly the next, weak if some before it were lost.
fn next_id(next: &mut i64, id: i64) -> Option<u32> {
    let bits = if id == *next { 7 } else { 1 };
    let believable = (*next..next.saturating_add(MAX_LOST)).contains(&id);
    *next = id.saturating_add(1);
    believable.then_some(bits)
}

/// Whether all ids are defined, or may be among those lost.
fn all_defined(mut ids: impl Iterator<Item = i64>, next: i64) -> Option<()> {
    let bound = next.saturating_add(MAX_LOST);
    ids.all(|id| (0..bound).contains(&id)).then_some(())
}

fn frame_strings(frame: &FrameFields) -> [Option<i64>; 5] {
    match *frame {
        FrameFields::Php { namespace, class, method, file, opcode, .. } => {
            [Some(namespace), Some(class), Some(method), Some(file), opcode]
        }
        FrameFields::Native { symbol, module, .. } => [Some(symbol), Some(module), None, None, None],
    }
}
