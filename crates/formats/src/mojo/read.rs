//! The events of a stream, one after the other.

use std::io::Read;
use std::ops::Range;

use borehole_wire::{Cursor, ErrorKind as WireErrorKind};

use super::NAME;
use super::layout::{COLUMNS_SINCE, INTERPRETERS_SINCE, MAGIC, NEWEST_VERSION, event};
use crate::{Error, ErrorKind, Position};

/// The least number of bytes read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A text in the bytes of the last event: see [`EventStream::text`].
pub(super) type TextSpan = Range<usize>;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MojoEvent {
    Metadata {
        key: TextSpan,
        value: TextSpan,
    },
    /// The next sample begins.
    Stack {
        process: i64,
        interpreter: Option<i64>,
        thread: TextSpan,
    },
    /// Defines a frame.
    Frame {
        key: i64,
        place: FramePlace,
    },
    FrameReference(i64),
    InvalidFrame,
    KernelFrame(TextSpan),
    Gc,
    Idle,
    /// Microseconds.
    Time(i64),
    /// Bytes.
    Memory(i64),
    /// Defines a string.
    String {
        key: i64,
        text: TextSpan,
    },
    StringReference,
    /// The frames so far are the innermost ones; the others are those of the thread's last sample.
    RepeatedStack,
    /// The next references to frames are those of a task.
    TaskStack {
        task: i64,
        /// The key of its name, or 0.
        name: i64,
        frames: i64,
    },
    TaskWaiter,
    RunningTask(i64),
}

/// The definition of a frame. Lines and columns are 1-based, and 0 if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FramePlace {
    /// The key of the file's name.
    pub(super) file: i64,
    /// The key of the function's name.
    pub(super) function: i64,
    pub(super) line: i64,
    pub(super) end_line: i64,
    pub(super) column: i64,
    pub(super) end_column: i64,
}

/// The reason why there is no further event.
#[derive(Debug)]
pub(super) enum StreamFault {
    /// The input ends in the middle of an event.
    Cut {
        at: u64,
    },
    Invalid(Error),
}

impl From<Error> for StreamFault {
    fn from(error: Error) -> Self {
        Self::Invalid(error)
    }
}

/// Reads the events of an input.
pub(super) struct EventStream<R> {
    input: R,
    bytes: Vec<u8>,
    /// Where the next event begins in `bytes`.
    next: usize,
    /// Where the last event begins.
    last: usize,
    /// The offset of `bytes` in the input.
    offset: u64,
    has_ended: bool,
    version: i64,
    longest: usize,
}

impl<R: Read> EventStream<R> {
    /// Reads the head of `input`. No event may be longer than `longest` bytes.
    ///
    /// # Errors
    /// If the input cannot be read, or is no stream of a known version.
    pub(super) fn begin(input: R, longest: usize) -> Result<Self, Error> {
        let mut stream = Self {
            input,
            bytes: Vec::new(),
            next: 0,
            last: 0,
            offset: 0,
            has_ended: false,
            version: 0,
            longest,
        };
        while stream.bytes.len() <= MAGIC.len() && !stream.has_ended {
            stream.fill()?;
        }
        if !stream.bytes.starts_with(MAGIC) {
            return Err(invalid(0, "expected MOJ at the start".to_owned()));
        }
        let mut fields = EventFields::new(&stream.bytes, MAGIC.len(), 0);
        let position = Position::Byte(MAGIC.len() as u64);
        match fields.number() {
            Ok(version @ 1..=NEWEST_VERSION) => stream.version = version,
            Ok(version) => {
                let message = format!("unsupported version: expected 1 to {NEWEST_VERSION}, found {version}");
                return Err(Error::new(ErrorKind::Unsupported, NAME, position, message));
            }
            Err(_) => return Err(Error::truncated(NAME, position, "truncated: no version")),
        }
        stream.next = fields.place();
        Ok(stream)
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// If the input cannot be read, ends within an event, or has an unknown one. There is none after an error.
    pub(super) fn next_event(&mut self) -> Result<Option<MojoEvent>, StreamFault> {
        loop {
            let mut fields = EventFields::new(&self.bytes, self.next, self.offset);
            if fields.cursor.is_empty() && self.has_ended {
                return Ok(None);
            }
            match fields.event(self.version) {
                Ok(event) => {
                    self.last = self.next;
                    self.next = fields.place();
                    return Ok(Some(event));
                }
                Err(EventFault::Cut) if self.has_ended => {
                    return Err(StreamFault::Cut { at: self.offset + self.next as u64 });
                }
                Err(EventFault::Cut) => self.fill()?,
                Err(EventFault::Invalid { at, message }) => return Err(invalid(at, message).into()),
            }
        }
    }

    /// The key in the next event, if that is a whole reference to a frame: most events are, one after the other.
    #[inline]
    pub(super) fn next_reference(&mut self) -> Option<i64> {
        let mut fields = EventFields::new(&self.bytes, self.next, self.offset);
        if fields.cursor.u8().ok()? != event::FRAME_REFERENCE {
            return None;
        }
        let key = fields.number().ok()?;
        self.last = self.next;
        self.next = fields.place();
        Some(key)
    }

    /// A text of the last event.
    pub(super) fn text(&self, span: &TextSpan) -> &[u8] {
        self.bytes.get(span.clone()).unwrap_or_default()
    }

    /// The offset of the last event.
    pub(super) const fn offset(&self) -> u64 {
        self.offset + self.last as u64
    }

    /// Skips the rest of the input, and returns its length with that of the event before which reading stopped.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub(super) fn skip_rest(&mut self) -> Result<u64, Error> {
        let held = (self.bytes.len() - self.next) as u64;
        let skipped = std::io::copy(&mut self.input, &mut std::io::sink());
        let skipped = skipped.map_err(|error| Error::io(NAME, Position::Byte(self.offset), error))?;
        Ok(held + skipped)
    }

    /// Reads more: as much again as an event has so far, so that a long one is not looked at often.
    fn fill(&mut self) -> Result<(), Error> {
        self.bytes.drain(..self.next);
        self.offset += std::mem::take(&mut self.next) as u64;
        if self.bytes.len() > self.longest {
            let message = format!("event too long: expected at most {} bytes", self.longest);
            return Err(Error::new(ErrorKind::Limit, NAME, Position::Byte(self.offset), message));
        }
        let wanted = self.bytes.len().max(CHUNK_BYTES);
        let read = self.input.by_ref().take(wanted as u64).read_to_end(&mut self.bytes);
        let read = read.map_err(|error| Error::io(NAME, Position::Byte(self.offset), error))?;
        self.has_ended = read < wanted;
        Ok(())
    }
}

#[cold]
fn invalid(at: u64, message: String) -> Error {
    Error::malformed(NAME, Position::Byte(at), message)
}

/// The reason why bytes are no event.
enum EventFault {
    /// There are not enough of them.
    Cut,
    Invalid {
        at: u64,
        message: String,
    },
}

impl From<borehole_wire::Error> for EventFault {
    fn from(error: borehole_wire::Error) -> Self {
        match error.kind() {
            WireErrorKind::Truncated { .. } => Self::Cut,
            _ => Self::Invalid { at: error.offset(), message: "number too large".to_owned() },
        }
    }
}

/// The fields of an event.
struct EventFields<'a> {
    /// The bytes of the event and those around it.
    bytes: &'a [u8],
    cursor: Cursor<'a>,
}

impl<'a> EventFields<'a> {
    /// Reads the event at `at` of `bytes`, which are at `offset` in the input.
    fn new(bytes: &'a [u8], at: usize, offset: u64) -> Self {
        let rest = bytes.get(at..).unwrap_or_default();
        Self { bytes, cursor: Cursor::new(rest, offset + at as u64) }
    }

    /// Where in the bytes the next field is.
    const fn place(&self) -> usize {
        self.bytes.len() - self.cursor.rest().len()
    }

    #[inline]
    fn event(&mut self, version: i64) -> Result<MojoEvent, EventFault> {
        let at = self.cursor.offset();
        Ok(match self.cursor.u8()? {
            event::FRAME_REFERENCE => MojoEvent::FrameReference(self.number()?),
            event::STACK => self.stack(version)?,
            event::TIME => MojoEvent::Time(self.number()?),
            event::MEMORY => MojoEvent::Memory(self.number()?),
            event::REPEATED_STACK => MojoEvent::RepeatedStack,
            event::IDLE => MojoEvent::Idle,
            event::GC => MojoEvent::Gc,
            event::FRAME => MojoEvent::Frame { key: self.number()?, place: self.frame(version)? },
            event::STRING => MojoEvent::String { key: self.number()?, text: self.text()? },
            event::METADATA => MojoEvent::Metadata { key: self.text()?, value: self.text()? },
            event::INVALID_FRAME => MojoEvent::InvalidFrame,
            event::KERNEL_FRAME => MojoEvent::KernelFrame(self.text()?),
            event::STRING_REFERENCE => self.numbers::<1>().map(|_| MojoEvent::StringReference)?,
            event::TASK_STACK => {
                let [task, name, frames] = self.numbers()?;
                MojoEvent::TaskStack { task, name, frames }
            }
            event::TASK_WAITER => self.numbers::<2>().map(|_| MojoEvent::TaskWaiter)?,
            event::RUNNING_TASK => MojoEvent::RunningTask(self.number()?),
            unknown => {
                let message = format!("unknown event: expected 1 to 16, found {unknown}");
                return Err(EventFault::Invalid { at, message });
            }
        })
    }

    fn stack(&mut self, version: i64) -> Result<MojoEvent, EventFault> {
        let process = self.number()?;
        let interpreter = if version >= INTERPRETERS_SINCE { Some(self.number()?) } else { None };
        Ok(MojoEvent::Stack { process, interpreter, thread: self.text()? })
    }

    fn frame(&mut self, version: i64) -> Result<FramePlace, EventFault> {
        let [file, function, line] = self.numbers()?;
        let [end_line, column, end_column] = if version >= COLUMNS_SINCE { self.numbers()? } else { [0; 3] };
        Ok(FramePlace { file, function, line, end_line, column, end_column })
    }

    fn numbers<const N: usize>(&mut self) -> Result<[i64; N], EventFault> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Ok(numbers)
    }

    /// A number: six bits and the sign, then seven bits a byte.
    #[inline]
    fn number(&mut self) -> Result<i64, EventFault> {
        const SIGN: u8 = 0x40;
        const MORE: u8 = 0x80;
        let at = self.cursor.offset();
        let first = self.cursor.u8()?;
        let mut magnitude = i64::from(first & 0x3f);
        if first & MORE != 0 {
            let rest = i64::try_from(self.cursor.varint()?).ok().and_then(|rest| rest.checked_mul(1 << 6));
            magnitude |= rest.ok_or_else(|| too_large(at))?;
        }
        Ok(if first & SIGN != 0 { -magnitude } else { magnitude })
    }

    /// A text up to a zero.
    fn text(&mut self) -> Result<TextSpan, EventFault> {
        let start = self.place();
        let length = memchr::memchr(0, self.cursor.rest()).ok_or(EventFault::Cut)?;
        self.cursor.bytes(length + 1)?;
        Ok(start..start + length)
    }
}

#[cold]
fn too_large(at: u64) -> EventFault {
    EventFault::Invalid { at, message: "number too large".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_number(bytes: &[u8]) -> Option<i64> {
        EventFields::new(bytes, 0, 0).number().ok()
    }

    #[test]
    fn numbers_have_six_bits_and_a_sign_in_their_first_byte() {
        for (bytes, number) in [
            (&[0x3f][..], 63),
            (&[0x41], -1),
            (&[0x80, 0x01], 64),
            (&[0xff, 0xff, 0x01], -(63 + (0xff << 6))),
            (&[0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], i64::MAX),
        ] {
            assert_eq!(read_number(bytes), Some(number), "{bytes:x?}");
        }
        assert_eq!(read_number(&[0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]), None);
        assert_eq!(read_number(&[0x80]), None);
    }

    #[test]
    fn events_do_not_depend_on_how_the_input_arrives() {
        /// Yields one byte at a time.
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
                let length = to.len().min(1);
                Read::read(&mut self.0, &mut to[..length])
            }
        }
        let long = [&b"MOJ\x03\x0b\x02"[..], &[b'x'; 200_000], b"\0\x05\x02"].concat();
        let mut stream = EventStream::begin(Slow(&long), 1 << 20).unwrap();
        let Some(MojoEvent::String { key: 2, text }) = stream.next_event().unwrap() else {
            panic!("a string")
        };
        assert_eq!(stream.text(&text).len(), 200_000);
        assert_eq!(stream.next_event().unwrap(), Some(MojoEvent::FrameReference(2)));
        assert_eq!((stream.offset(), stream.next_event().unwrap()), (200_007, None));
        let mut stream = EventStream::begin(&long[..], 1 << 10).unwrap();
        let Err(StreamFault::Invalid(error)) = stream.next_event() else { panic!("a limit") };
        assert!(error.is_limit());
    }
}
