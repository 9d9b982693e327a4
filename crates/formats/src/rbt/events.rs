//! The events of a file in order, with the boundaries of segments.

use std::io::Read;

use borehole_wire::Cursor;

use super::event::{Framed, RawEvent, Unframed};
use super::layout::{EventType, HEADER_BYTES, Header, MAGIC, NAME, RESERVED_EVENT, RawHeader, VERSION};
use crate::{Error, ErrorKind, Position, ReadOptions, Warning};
use borehole_wire::envelope::{Envelope, FIRST_BYTES, MAGIC_BYTES, MemberFault, MemberPeek, Method};
use borehole_wire::{Effort, Window};

/// The number of bytes examined after a candidate for the start of a segment or event.
pub(super) const LOOK_AHEAD: usize = 4096;

/// Pulls the headers and events of a file, without decoding payloads.
///
/// A cut-off end is the end of the data; [`EventReader::take_warnings`] reports it.
pub struct EventReader<R> {
    pub(super) window: Window<R>,
    pub(super) place: StreamPlace,
    pub(super) header: Header,
    /// The length of the last record returned, which is still at the start of the window.
    pub(super) taken: usize,
    /// The offset of a header to accept although it is damaged.
    trusted_header: Option<u64>,
    /// The outline of the last event returned.
    last: Option<Framed>,
    /// The event at the start of the window whose length was repaired, to be returned next.
    mended: Option<Framed>,
    pub(super) options: ReadOptions,
    warnings: Vec<Warning>,
    failed: bool,
    /// The bytes that the search behind damage has examined.
    pub(super) effort: Effort,
    peek: MemberPeek,
}

/// The kinds of records that may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamPlace {
    /// The first header, or the end.
    Start,
    /// An event, a header, or the end.
    InSegment,
    /// After a clean end: a header, or the end.
    AfterEnd,
}

/// A header or an event.
#[derive(Clone, Copy, Debug)]
pub enum RawRecord<'a> {
    /// A segment begins.
    Header {
        /// The contents of its header.
        header: Header,
        /// The offset of the header, in bytes after decompression.
        offset: u64,
    },
    /// An event.
    Event(RawEvent<'a>),
}

/// A record without its borrow.
#[derive(Clone, Copy)]
pub(super) enum NextRecord {
    Header(Header),
    Event(Framed),
}

impl<R: Read> EventReader<R> {
    /// Creates a reader of the events of `input`: raw, compressed, or segments of all kinds one after the other.
    pub fn new(input: R, options: ReadOptions) -> Self {
        Self {
            window: Window::new(Envelope::new(input), &MAGIC),
            place: StreamPlace::Start,
            header: Header::default(),
            taken: 0,
            trusted_header: None,
            last: None,
            mended: None,
            options,
            warnings: Vec::new(),
            failed: false,
            effort: Effort::default(),
            peek: MemberPeek::default(),
        }
    }

    /// The next header or event; `None` at the end, and after an error.
    ///
    /// # Errors
    /// If the input cannot be read, a required header is missing or has an unsupported version, an event has the
    /// reserved type, or a payload exceeds the limit.
    pub fn next_record(&mut self) -> Result<Option<RawRecord<'_>>, Error> {
        let step = self.advance()?;
        Ok(step.map(|step| match step {
            NextRecord::Header(header) => RawRecord::Header { header, offset: self.offset() },
            NextRecord::Event(framed) => RawRecord::Event(self.event(framed)),
        }))
    }

    /// Advances to the next header or event, which is then at the start of the window.
    pub(super) fn advance(&mut self) -> Result<Option<NextRecord>, Error> {
        self.leave();
        self.last = None;
        if self.failed {
            return Ok(None);
        }
        let step = self.step().inspect_err(|_| self.failed = true)?;
        if let Some(NextRecord::Event(framed)) = step {
            self.taken = framed.end;
            self.last = Some(framed);
        }
        Ok(step)
    }

    /// Advances past the last record returned.
    pub(super) fn leave(&mut self) {
        self.window.consume(std::mem::take(&mut self.taken));
    }

    /// The event that `framed` outlines at the start of the window.
    #[inline]
    fn event(&self, framed: Framed) -> RawEvent<'_> {
        RawEvent::new(self.window.available(), self.window.offset(), framed)
    }

    /// Whether the position is within a plain sequence of events.
    pub(super) fn is_flowing(&self) -> bool {
        self.place == StreamPlace::InSegment && self.mended.is_none() && !self.failed
    }

    /// The bytes of the window after the last record returned, once that was left.
    #[inline]
    pub(super) fn ahead(&self) -> Cursor<'_> {
        Cursor::new(self.window.available(), self.window.offset())
    }

    /// Skips events that were read ahead; `left` bytes of the window follow them.
    #[inline]
    pub(super) const fn pass_to(&mut self, left: usize) {
        self.window.keep(left);
    }

    /// Whether a segment starts `at` bytes into the window: raw, or in a member.
    pub(super) fn is_segment(&mut self, at: usize) -> bool {
        if self.window.available().get(at..).is_some_and(RawHeader::is_flawless_at) {
            return true;
        }
        let offset = self.window.offset() + at as u64;
        let Some(member) = self.window.member_at(at).filter(|_| self.effort.is_left(offset)) else {
            return false;
        };
        // For a frame with a first block longer than what is looked at, its magic number has to suffice.
        let is_zstd = Method::of(member) == Some(Method::Zstd);
        let mut header = [0; HEADER_BYTES];
        let peeked = self.peek.peek(&member[..member.len().min(LOOK_AHEAD)], &mut header);
        self.effort.spend(offset, peeked.looked_at);
        match peeked.fault {
            None => RawHeader::is_flawless_at(&header),
            Some(fault) => is_zstd && fault == MemberFault::Truncated,
        }
    }

    /// The first start of a segment, raw or in a member, `from` bytes into the window or later, and before `end`.
    pub(super) fn segment_between(&mut self, mut from: usize, end: usize) -> Option<usize> {
        loop {
            let bytes = self.window.available().get(from..end)?;
            from += memchr::memchr3(RESERVED_EVENT, FIRST_BYTES[0], FIRST_BYTES[1], bytes)?;
            if self.is_segment(from) {
                return Some(from);
            }
            from += 1;
        }
    }

    /// Takes the warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// A warning about the padding after members, which is harmless; complete at the end of the input.
    pub fn padding(&self) -> Option<Warning> {
        let zeros = self.window.envelope().skipped_zeros();
        let message = format!("{zeros} zero bytes after a {}", self.window.envelope().method());
        (zeros > 0).then(|| Warning::new(message).at(self.window.offset()))
    }

    /// The offset of the last record returned, or of the next one.
    pub const fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// The last event returned, which is still at the start of the window.
    pub(super) fn last_event(&self) -> Option<RawEvent<'_>> {
        self.last.map(|framed| self.event(framed))
    }

    /// Ends the reading.
    pub(super) const fn stop(&mut self) {
        self.failed = true;
    }

    /// Continues after an error, from the current position of the window.
    pub(super) const fn resume(&mut self, place: StreamPlace) {
        self.failed = false;
        self.place = place;
    }

    /// Accepts the start of the window as a header, whatever its fixed bytes are.
    pub(super) const fn trust_header(&mut self) {
        self.trusted_header = Some(self.window.offset());
        self.resume(StreamPlace::Start);
    }

    /// The outline of the start of the window as an event. Its end may lie beyond the window.
    pub(super) fn front(&self) -> Option<Framed> {
        self.last.or_else(|| Framed::head_of(self.window.available()))
    }

    /// Replaces the outline of the event at the start of the window.
    pub(super) const fn retake(&mut self, framed: Framed) {
        self.taken = framed.end;
        self.last = Some(framed);
    }

    /// Returns the event at the start of the window again.
    pub(super) const fn give_again(&mut self) {
        self.mended = self.last;
        self.taken = 0;
    }

    #[inline]
    fn step(&mut self) -> Result<Option<NextRecord>, Error> {
        loop {
            if self.place != StreamPlace::InSegment {
                return self.header_step();
            }
            let framed = match self.window.available().first().copied() {
                None if self.window.has_ended() => return self.end(),
                None => Err(Unframed::Short { missing: 1 }),
                Some(RESERVED_EVENT) => return self.header_step(),
                Some(byte) if FIRST_BYTES.contains(&byte) && self.enter_member()? => continue,
                Some(_) => match self.mended.take() {
                    None => Framed::of(self.window.available(), self.options.limits.payload_bytes),
                    Some(mended) => Ok(mended),
                },
            };
            match framed {
                Ok(framed) => {
                    if framed.type_byte == EventType::SegmentEnd as u8 {
                        self.place = StreamPlace::AfterEnd;
                    }
                    return Ok(Some(NextRecord::Event(framed)));
                }
                Err(Unframed::Short { .. }) if !self.window.has_ended() => self.fill()?,
                Err(Unframed::Short { missing }) => return self.cut_event(missing),
                Err(Unframed::TooLong { length }) => return Err(self.too_long(length)),
            }
        }
    }

    fn fill(&mut self) -> Result<(), Error> {
        let offset = self.window.offset();
        self.window.fill().map_err(|error| Error::io(NAME, Position::Byte(offset), error))
    }

    pub(super) fn ensure(&mut self, count: usize) -> Result<&[u8], Error> {
        let offset = self.window.offset();
        self.window.ensure(count).map_err(|error| Error::io(NAME, Position::Byte(offset), error))
    }

    /// Enters a member that begins here; false if there is none.
    fn enter_member(&mut self) -> Result<bool, Error> {
        self.ensure(MAGIC_BYTES)?;
        let entered = self.window.at_member();
        if entered {
            self.window.enter_member();
            self.place =
                if self.place == StreamPlace::Start { StreamPlace::Start } else { StreamPlace::AfterEnd };
        }
        Ok(entered)
    }

    /// A header, if one is required or an event starts with its first byte.
    fn header_step(&mut self) -> Result<Option<NextRecord>, Error> {
        while self.enter_member()? {}
        let offset = self.window.offset();
        let place = self.place;
        let trusted = self.trusted_header == Some(offset);
        if let Some(at) = self.segment_inside_header()? {
            return self.cut_header(at);
        }
        let bytes = self.ensure(HEADER_BYTES)?;
        let partial_magic = MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]);
        match RawHeader::at(bytes) {
            _ if bytes.is_empty() => self.end(),
            _ if !trusted
                && !partial_magic
                && (bytes.len() >= MAGIC.len() || place == StreamPlace::InSegment) =>
            {
                let error = no_magic(bytes, place, offset);
                let is_foreign = self.window.is_behind_member() && !self.options.is_lenient();
                if is_foreign { self.pass_over_rest() } else { Err(error) }
            }
            None => {
                let left = bytes.len();
                self.cut_header(left)
            }
            Some(raw) if !trusted && raw.version() != VERSION => Err(bad_version(raw.version(), offset)),
            Some(raw) => {
                self.header = raw.header();
                self.place = StreamPlace::InSegment;
                self.taken = HEADER_BYTES;
                Ok(Some(NextRecord::Header(self.header)))
            }
        }
    }

    /// The start of a segment, raw or in a member, inside a header that was cut off. Only needed when damage is
    /// skipped.
    fn segment_inside_header(&mut self) -> Result<Option<usize>, Error> {
        if !self.options.is_lenient() {
            return Ok(None);
        }
        self.ensure(LOOK_AHEAD)?;
        let start = self.segment_between(1, HEADER_BYTES);
        let bytes = self.window.available();
        Ok(start.filter(|&at| bytes.starts_with(&MAGIC[..at.min(MAGIC.len())])))
    }

    /// Skips bytes after a member that are not a segment: they do not belong to the trace, as in `gzip`.
    fn pass_over_rest(&mut self) -> Result<Option<NextRecord>, Error> {
        let (offset, mut lost) = (self.window.offset(), 0);
        while !self.ensure(1)?.is_empty() {
            let count = self.window.available().len();
            self.window.consume(count);
            lost += count as u64;
        }
        let method = self.window.envelope().method();
        self.warn(offset, lost, format!("ignored the bytes after a {method}: they are not rbt"));
        self.end()
    }

    /// The end of the data; an error if a member has damage that truncation does not explain.
    fn end(&mut self) -> Result<Option<NextRecord>, Error> {
        let offset = self.window.offset();
        if let Some(damage) = self.window.take_damage() {
            if !damage.is_truncated() {
                return Err(Error::malformed(NAME, Position::Byte(offset), damage.to_string()));
            }
            self.warnings.push(Warning::truncated(damage.to_string()).at(offset));
        }
        self.failed = true;
        Ok(None)
    }

    fn cut_header(&mut self, left: usize) -> Result<Option<NextRecord>, Error> {
        let message = format!("truncated segment header: expected {HEADER_BYTES} bytes, found {left}");
        if self.options.is_lenient() {
            return Err(Error::truncated(NAME, Position::Byte(self.window.offset()), message));
        }
        self.cut(left, message)
    }

    /// An event cut off by the end of the input. If a segment starts inside, the event's length is wrong instead.
    fn cut_event(&mut self, missing: usize) -> Result<Option<NextRecord>, Error> {
        let bytes = self.window.available();
        let offset = self.window.offset();
        self.effort.spend(offset, bytes.len() as u64);
        let name = EventType::name_of(bytes.first().copied().unwrap_or_default());
        if let Some(at) = RawHeader::find_after_start(bytes) {
            let segment = offset + at as u64;
            let message =
                format!("invalid length of {name}: another segment starts inside it, at byte {segment:#x}");
            return Err(Error::malformed(NAME, Position::Byte(offset), message));
        }
        let message = format!("truncated {name}: {missing} bytes missing at the end");
        if self.options.is_lenient() {
            return Err(Error::truncated(NAME, Position::Byte(offset), message));
        }
        self.cut(bytes.len(), message)
    }

    fn cut(&mut self, left: usize, message: String) -> Result<Option<NextRecord>, Error> {
        let warning = Warning::truncated(message).at(self.window.offset());
        self.warnings.push(warning.losing(left as u64));
        self.window.consume(left);
        self.end()
    }

    fn warn(&mut self, offset: u64, lost_bytes: u64, message: String) {
        self.warnings.push(Warning::new(message).at(offset).losing(lost_bytes));
    }

    #[cold]
    fn too_long(&self, length: u64) -> Error {
        let limit = self.options.limits.payload_bytes;
        let message = format!("payload too large: expected at most {limit} bytes, found {length}");
        Error::new(ErrorKind::Limit, NAME, Position::Byte(self.window.offset()), message)
    }
}

#[cold]
fn no_magic(bytes: &[u8], place: StreamPlace, offset: u64) -> Error {
    let found = bytes[..bytes.len().min(MAGIC.len())].escape_ascii();
    let message = match place {
        StreamPlace::InSegment => {
            format!("invalid event type 0x52: expected \"RELI\", found \"{found}\"")
        }
        StreamPlace::Start => format!("invalid magic: expected \"RELI\", found \"{found}\""),
        StreamPlace::AfterEnd => {
            format!("invalid magic after the end of a segment: expected \"RELI\", found \"{found}\"")
        }
    };
    Error::malformed(NAME, Position::Byte(offset), message)
}

#[cold]
fn bad_version(version: u8, offset: u64) -> Error {
    let message = format!("unsupported version: expected {VERSION}, found {version}");
    Error::new(ErrorKind::Unsupported, NAME, Position::Byte(offset), message)
}
