//! Frames and events, pulled in order.

use std::io::Read;
use std::ops::ControlFlow;

use borehole_wire::Cursor;

use super::NAME;
use super::batch::Batch;
use super::event::Event;
use super::fault::{FaultKind, FrameFault};
use super::frame::{self, Found, FrameKind, FrameOutline};
use super::layout::{HEADER_BYTES, MAGIC, VERSION};
use super::raw::prefixed;
use super::schema::{Annotation, Schema};
use super::search::Search;
use super::value::{Slot, Stack};
use crate::{Error, Position, ReadOptions, Recovery, Warning, WarningKind};
use borehole_wire::Window;
use borehole_wire::envelope::Envelope;

/// Reads the frames of a stream: raw, compressed, or parts of all kinds one after the other.
///
/// It holds one frame and the definitions of the current batch, never the stream. An end in the middle of a frame is
/// the end of the data, with a warning in [`Reader::recovery`]; nothing before it is lost.
///
/// # Examples
///
/// ```
/// use borehole_trc::Reader;
///
/// let mut reader = Reader::new(b"TRC\0\x01\x01\x07\0\x04\0Poll\x01\x01\0\x06\0worker\x0b\x02\x07\0\x0a\0\0\x03".as_slice());
/// while let Some(event) = reader.next_event()? {
///     assert_eq!((event.name(), event.timestamp_ns()), ("Poll", Some(10)));
///     assert_eq!(event.value_of("worker").and_then(|value| value.as_u64()), Some(3));
/// }
/// # Ok::<(), borehole_trc::Error>(())
/// ```
pub struct Reader<R> {
    pub(super) window: Window<R>,
    pub(super) batch: Batch,
    pub(super) slots: Vec<Slot>,
    pub(super) state: ReaderState,
    /// The length of the last frame returned, which is still at the start of the window.
    pub(super) taken: usize,
    pub(super) options: ReadOptions,
    pub(super) recovery: Recovery,
    pub(super) search: Search,
}

/// The kinds of frames that may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaderState {
    /// A header.
    Start,
    /// A header with some wrong bytes, to be read as if it were intact.
    Mended,
    /// A frame.
    Inside,
    /// Nothing: the reader has reached the end or an error.
    Ended,
}

/// The row of an event's type, and its time. Its values are in the slots.
type FoundEvent = (u32, Option<u64>);

/// A frame of a stream.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// The offset, in bytes after decompression.
    pub offset: u64,
    /// The bytes of the frame, from the tag on.
    pub bytes: &'a [u8],
    /// The decoded contents.
    pub content: Content<'a>,
}

/// The contents of a frame.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Content<'a> {
    /// The beginning of a batch: all earlier definitions end.
    Header {
        /// The stated version.
        version: u8,
    },
    /// The definition of a type of events, possibly repeated.
    Schema {
        /// The number of the type.
        type_id: u16,
        /// The type, with its annotations.
        schema: &'a Schema,
    },
    /// An event.
    Event(Event<'a>),
    /// Definitions of strings.
    Strings(StringEntries<'a>),
    /// Definitions of stacks.
    Stacks(StackEntries<'a>),
    /// A new base time.
    Reset {
        /// In nanoseconds.
        timestamp_ns: u64,
    },
    /// Annotations of a type's fields.
    Annotations {
        /// The number of the type, which may be undefined, and may exceed the range of type ids.
        type_id: u64,
        /// The annotations.
        annotations: Vec<Annotation>,
    },
}

/// Ids and strings, which need not be UTF-8.
#[derive(Clone, Debug)]
pub struct StringEntries<'a>(Cursor<'a>);

impl<'a> Iterator for StringEntries<'a> {
    type Item = (u32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.u32_le().ok()?, prefixed(&mut self.0).ok()?))
    }
}

/// Ids and stacks.
#[derive(Clone, Debug)]
pub struct StackEntries<'a>(Cursor<'a>);

impl<'a> Iterator for StackEntries<'a> {
    type Item = (u32, Stack<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let id = self.0.u32_le().ok()?;
        Some((id, Stack(frame::addresses(&mut self.0).ok()?.as_chunks().0)))
    }
}

/// The length from which on waiting for a long frame doubles the bytes read: each byte of a frame is then examined a
/// bounded number of times.
const DOUBLING_BYTES: usize = 64 << 10;

impl<R: Read> Reader<R> {
    /// Reads `input` strictly.
    pub fn new(input: R) -> Self {
        Self::with_options(input, ReadOptions::default())
    }

    /// Reads `input` with `options`.
    pub fn with_options(input: R, options: ReadOptions) -> Self {
        Self {
            window: Window::new(Envelope::new(input), &MAGIC),
            batch: Batch::default(),
            slots: Vec::new(),
            state: ReaderState::Start,
            taken: 0,
            options,
            recovery: Recovery::default(),
            search: Search::default(),
        }
    }

    /// The next event; `None` at the end, and after an error.
    ///
    /// # Errors
    /// If the input cannot be read or contradicts the format. All events before that position have been returned. With
    /// lenient options only the former is an error.
    #[inline]
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, Error> {
        let found = self.find_event()?;
        Ok(found.map(|(row, timestamp_ns)| self.event(row, timestamp_ns)))
    }

    /// Advances to the next event.
    #[inline]
    fn find_event(&mut self) -> Result<Option<FoundEvent>, Error> {
        match self.whole_event() {
            None => self.find_event_step_by_step(),
            found => Ok(found),
        }
    }

    #[cold]
    fn find_event_step_by_step(&mut self) -> Result<Option<FoundEvent>, Error> {
        loop {
            match self.step()? {
                None => return Ok(None),
                Some(FrameKind::Event { row, timestamp_ns }) => return Ok(Some((row, timestamp_ns))),
                Some(_) => {}
            }
        }
    }

    /// Reads the next frame if it is a complete and valid event, as nearly all frames are. Otherwise nothing changes.
    #[inline(always)]
    fn whole_event(&mut self) -> Option<FoundEvent> {
        self.window.consume(std::mem::take(&mut self.taken));
        let bytes = self.window.available();
        if self.state != ReaderState::Inside || !FrameOutline::is_event(bytes) {
            return None;
        }
        let found = frame::event(bytes, &self.batch, self.batch.base_ns, &mut self.slots).ok()?;
        let Found { row_index, timestamp_ns, len, .. } = found;
        if self.options.is_lenient() && !self.is_undoubted(len) {
            return None;
        }
        self.batch.base_ns = timestamp_ns.unwrap_or(self.batch.base_ns);
        self.recovery.events += 1;
        self.taken = len;
        Some((row_index, timestamp_ns))
    }

    /// Whether a valid frame of `len` bytes at the start of the window needs no further checks.
    #[inline]
    fn is_undoubted(&self, len: usize) -> bool {
        let start = self.window.offset();
        self.search.damage.is_none() && self.search.headers.are_none_in(start, start + len as u64)
    }

    /// Calls `visit` with the current event, and with the following ones as long as they are complete and valid, as
    /// nearly all are, and it does not stop: a run of them costs less than as many calls.
    #[inline(always)]
    pub(super) fn visit_run(
        &mut self,
        (mut row_index, mut timestamp_ns): FoundEvent,
        mut visit: impl FnMut(&Event<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Self { window, batch, slots, recovery, search, .. } = self;
        let (mut bytes, mut offset, is_recovered) =
            (window.available(), window.offset(), search.damage.is_some());
        let (mut len_bytes, mut row) = (std::mem::take(&mut self.taken), batch.row(row_index));
        let (mut base_ns, mut events) = (batch.base_ns, 0);
        let flow = loop {
            let event =
                Event { row, row_index, timestamp_ns, slots, bytes, len_bytes, batch, offset, is_recovered };
            let flow = visit(&event);
            bytes = bytes.get(len_bytes..).unwrap_or_default();
            offset += len_bytes as u64;
            if flow.is_break() || self.options.is_lenient() || !FrameOutline::is_event(bytes) {
                break flow;
            }
            let Ok(found) = frame::event(bytes, batch, base_ns, slots) else { break flow };
            Found { row_index, row, timestamp_ns, len: len_bytes } = found;
            base_ns = timestamp_ns.unwrap_or(base_ns);
            events += 1;
        };
        let left = bytes.len();
        batch.base_ns = base_ns;
        recovery.events += events;
        window.consume(window.available().len() - left);
        flow
    }

    /// The next frame of any kind; `None` at the end, and after an error.
    ///
    /// # Errors
    /// Those of [`Reader::next_event`].
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Error> {
        let Some(kind) = self.step()? else { return Ok(None) };
        let frame = |content| Frame { offset: self.offset(), bytes: self.frame_bytes(), content };
        Ok(self.content(kind).map(frame))
    }

    /// Calls `visit` with each remaining event.
    ///
    /// # Errors
    /// Those of [`Reader::next_event`].
    #[inline]
    pub fn for_each_event(&mut self, mut visit: impl FnMut(&Event<'_>)) -> Result<(), Error> {
        while let Some(found) = self.find_event()? {
            let _ = self.visit_run(found, |event| {
                visit(event);
                ControlFlow::Continue(())
            });
        }
        Ok(())
    }

    /// The offset of the last frame returned, or of the next one.
    pub(super) const fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// The bytes of the last frame returned.
    fn frame_bytes(&self) -> &[u8] {
        &self.window.available()[..self.taken]
    }

    /// Whether the reader has reached the end or an error.
    pub fn has_ended(&self) -> bool {
        self.state == ReaderState::Ended
    }

    /// The numbers of records read so far, and the warnings.
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The numbers of records read, and the warnings.
    pub fn into_recovery(mut self) -> Recovery {
        self.end_uncertain();
        self.recovery
    }

    #[inline]
    fn event(&self, row_index: u32, timestamp_ns: Option<u64>) -> Event<'_> {
        let row = self.batch.row(row_index);
        Event {
            row,
            row_index,
            timestamp_ns,
            slots: &self.slots,
            bytes: self.window.available(),
            len_bytes: self.taken,
            batch: &self.batch,
            offset: self.window.offset(),
            is_recovered: self.search.damage.is_some(),
        }
    }

    fn content(&self, kind: FrameKind) -> Option<Content<'_>> {
        let mut cursor = Cursor::new(self.frame_bytes(), 0);
        cursor.u8().ok()?;
        Some(match kind {
            FrameKind::Header { version } => Content::Header { version },
            FrameKind::Event { row, timestamp_ns } => Content::Event(self.event(row, timestamp_ns)),
            FrameKind::Reset { timestamp_ns } => Content::Reset { timestamp_ns },
            FrameKind::Schema => {
                let type_id = cursor.u16_le().ok()?;
                let (_, row) = self.batch.find(type_id)?;
                Content::Schema { type_id, schema: &row.schema }
            }
            FrameKind::Annotations => {
                let (type_id, annotations) = frame::annotations(&mut cursor).ok()?;
                Content::Annotations { type_id, annotations }
            }
            FrameKind::Strings => {
                cursor.u32_le().ok()?;
                Content::Strings(StringEntries(cursor))
            }
            FrameKind::Stacks => {
                cursor.u32_le().ok()?;
                Content::Stacks(StackEntries(cursor))
            }
        })
    }

    /// Reads and applies one frame.
    #[cold]
    pub(super) fn step(&mut self) -> Result<Option<FrameKind>, Error> {
        self.window.consume(std::mem::take(&mut self.taken));
        loop {
            let attempt = match self.state {
                ReaderState::Inside => {
                    FrameOutline::read(self.window.available(), &self.batch, &mut self.slots)
                }
                ReaderState::Start => self.first_header(),
                ReaderState::Mended => return self.mended_header().map(Some),
                ReaderState::Ended => return Ok(None),
            };
            let attempt = match attempt {
                Ok(outline) => self.accept(outline)?,
                Err(fault) => Err(fault),
            };
            match attempt {
                Ok(kind) => return Ok(Some(kind)),
                Err(fault) => self.after_fault(fault).inspect_err(|_| self.state = ReaderState::Ended)?,
            }
        }
    }

    /// Applies the damaged header at the start of the window.
    fn mended_header(&mut self) -> Result<FrameKind, Error> {
        let kind = FrameKind::Header { version: VERSION };
        let outline = FrameOutline { len: HEADER_BYTES, kind };
        self.carry_out(outline).map_err(|fault| fault.error(self.offset()))?;
        self.taken = HEADER_BYTES;
        Ok(kind)
    }

    /// Reads the required first header of the stream.
    fn first_header(&self) -> Result<FrameOutline, FrameFault> {
        let outline = FrameOutline::header(self.window.available())?;
        match outline.kind {
            FrameKind::Header { version } if version != VERSION && !self.options.is_lenient() => {
                Err(FrameFault { at: MAGIC.len() as u64, what: FaultKind::Version(version) })
            }
            _ => Ok(outline),
        }
    }

    /// Applies a frame at the start of the window, unless it is faulty.
    #[inline]
    fn accept(&mut self, outline: FrameOutline) -> Result<Result<FrameKind, FrameFault>, Error> {
        let FrameOutline { len, kind } = outline;
        if self.options.is_lenient() && self.swallows_a_batch(outline)? {
            return Ok(Err(FrameFault { at: 0, what: FaultKind::HoldsHeader }));
        }
        if let FrameKind::Event { timestamp_ns, .. } = kind {
            self.batch.base_ns = timestamp_ns.unwrap_or(self.batch.base_ns);
            self.recovery.events += 1;
            self.count_uncertain(timestamp_ns);
        } else if let Err(fault) = self.carry_out(outline) {
            self.search.effort.spend(self.window.offset(), len as u64);
            return Ok(Err(fault));
        }
        self.taken = len;
        Ok(Ok(kind))
    }

    #[cold]
    fn carry_out(&mut self, outline: FrameOutline) -> Result<(), FrameFault> {
        let oddity = outline.apply(&self.window.available()[..outline.len], &mut self.batch)?;
        match outline.kind {
            FrameKind::Header { .. } => {
                self.state = ReaderState::Inside;
                self.recovery.segments += 1;
                self.end_uncertain();
            }
            FrameKind::Reset { .. } => self.end_uncertain(),
            _ => {
                let checked = self.options.limits.check(self.batch.held_bytes());
                checked.map_err(|over| FrameFault { at: 0, what: FaultKind::Memory(over) })?;
            }
        }
        if let Some(oddity) = oddity {
            self.warn(self.window.offset(), 0, || oddity.message());
        }
        Ok(())
    }

    /// Reads more of the input after `fault`, repairs, or ends the reading.
    #[cold]
    fn after_fault(&mut self, fault: FrameFault) -> Result<(), Error> {
        match fault.what {
            FaultKind::Truncated { missing } if !self.window.has_ended() => {
                return self.read_on(fault, missing);
            }
            FaultKind::Truncated { .. } if self.window.available().is_empty() => return self.end(),
            FaultKind::Truncated { .. } if !self.options.is_lenient() => return self.cut(),
            FaultKind::Memory(_) => return Err(fault.error(self.window.offset())),
            _ => {}
        }
        if self.enter_member()? {
            return Ok(());
        }
        if self.options.is_lenient() {
            return self.resynchronise(fault);
        }
        if self.window.is_behind_member() {
            return self.pass_over_rest(fault);
        }
        Err(fault.error(self.window.offset()))
    }

    /// Reads until `missing` more bytes are available.
    fn read_on(&mut self, fault: FrameFault, missing: usize) -> Result<(), Error> {
        let (limit, available) = (self.options.limits.frame_bytes, self.window.available().len());
        let needed = available.saturating_add(missing);
        if needed > limit && self.state == ReaderState::Inside {
            let what = FaultKind::FrameTooLarge { limit, least: needed };
            return if self.options.is_lenient() {
                self.resynchronise(FrameFault { what, ..fault })
            } else {
                Err(FrameFault { at: 0, what }.error(self.offset()))
            };
        }
        let ahead = if available >= DOUBLING_BYTES { available.saturating_mul(2).min(limit) } else { 0 };
        self.ensure(needed.max(ahead)).map(|_| ())
    }

    pub(super) fn ensure(&mut self, count: usize) -> Result<&[u8], Error> {
        let offset = self.window.offset();
        self.window.ensure(count).map_err(|error| Error::io(NAME, Position::Byte(offset), error))
    }

    /// Enters a member that begins here, after plain data; false if there is none.
    fn enter_member(&mut self) -> Result<bool, Error> {
        self.ensure(HEADER_BYTES)?;
        let entered = self.window.at_member();
        if entered {
            self.window.enter_member();
            self.search.headers.forget(self.window.offset());
        }
        Ok(entered)
    }

    /// The end of the data; an error if a member has damage that truncation does not explain.
    fn end(&mut self) -> Result<(), Error> {
        let offset = self.window.offset();
        let damage = self.window.take_damage();
        if let Some(damage) = damage {
            if !damage.is_truncated() && !self.options.is_lenient() {
                return Err(Error::malformed(NAME, Position::Byte(offset), damage.to_string()));
            }
            let kind = if damage.is_truncated() { WarningKind::Truncated } else { WarningKind::Damaged };
            self.warn_of(kind, offset, 0, || damage.to_string());
        }
        if damage.is_some() && self.go_on_after_damage()? {
            return Ok(());
        }
        // Bytes that are not a header get another warning.
        if self.state == ReaderState::Start && offset == 0 && damage.is_none() {
            self.warn(offset, 0, || format!("missing header: expected {HEADER_BYTES} bytes, found none"));
        }
        let zeros = self.window.envelope().skipped_zeros();
        if zeros > 0 {
            let message = format!("{zeros} zero bytes after a {}", self.window.envelope().method());
            self.recovery.note(Warning::new(message).at(offset));
        }
        self.end_uncertain();
        self.state = ReaderState::Ended;
        Ok(())
    }

    /// Handles data that ends in the middle of a frame.
    fn cut(&mut self) -> Result<(), Error> {
        let left = self.window.available().len();
        let message = || format!("truncated: the last {left} bytes are an incomplete frame");
        self.warn_of(WarningKind::Truncated, self.window.offset(), left as u64, message);
        self.window.consume(left);
        self.end()
    }

    /// Skips bytes after a member that are not a frame: they do not belong to the stream, as in `gzip`.
    fn pass_over_rest(&mut self, fault: FrameFault) -> Result<(), Error> {
        let offset = self.window.offset();
        let mut lost = 0;
        while !self.ensure(1)?.is_empty() {
            let count = self.window.available().len();
            self.window.consume(count);
            lost += count as u64;
        }
        let method = self.window.envelope().method();
        self.warn(offset, lost, || format!("ignored the bytes after a {method}: {}", fault.what.message()));
        self.end()
    }

    /// Keeps or counts a warning: of millions, only the kept ones are formatted.
    pub(super) fn warn(&mut self, offset: u64, lost_bytes: u64, message: impl FnOnce() -> String) {
        self.warn_of(WarningKind::Damaged, offset, lost_bytes, message);
    }

    fn warn_of(&mut self, kind: WarningKind, offset: u64, lost_bytes: u64, message: impl FnOnce() -> String) {
        let is_kept = self.recovery.warnings.len() < Recovery::MAX_WARNINGS;
        let message = if is_kept { message() } else { String::new() };
        self.recovery.warn(Warning::new(message).of_kind(kind).at(offset).losing(lost_bytes));
    }
}
