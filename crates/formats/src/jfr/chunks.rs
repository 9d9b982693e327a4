//! Chunks, and the events in them.

use super::NAME;
use super::layout::{COMPRESSED_NUMBERS, HEADER_BYTES, MAGIC};
use super::values::ValueReader;
use crate::documents::whole::cut_off;
use crate::{Error, ErrorKind, Position};

/// A chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk<'a> {
    /// Its position in the file.
    pub(super) offset: usize,
    /// The file up to its end.
    bytes: &'a [u8],
    pub(super) clock: ChunkClock,
    /// Whether the file ends before it does.
    pub(super) is_cut: bool,
}

/// The clock of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkClock {
    /// The wall time of its start.
    pub(super) start_unix_ns: i64,
    start_ticks: u64,
    ticks_per_second: u64,
}

impl ChunkClock {
    /// The nanoseconds from the start of the chunk to a time in ticks.
    pub(super) fn after_start_ns(self, ticks: u64) -> i64 {
        let passed = i128::from(ticks) - i128::from(self.start_ticks);
        self.ns(passed)
    }

    /// A duration in ticks as nanoseconds. Negative ones stand for unknown ones.
    pub(super) fn duration_ns(self, ticks: u64) -> i64 {
        self.ns(i128::from(ticks.cast_signed().max(0)))
    }

    fn ns(self, ticks: i128) -> i64 {
        const NS: i128 = 1_000_000_000;
        let ns = ticks * NS / i128::from(self.ticks_per_second.max(1));
        i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
    }
}

impl<'a> Chunk<'a> {
    /// Reads the header of the chunk at `offset`.
    ///
    /// # Errors
    /// If there is none, or one that cannot be read.
    pub(super) fn at(file: &'a [u8], offset: usize) -> Result<Self, Error> {
        let rest = file.get(offset..).unwrap_or_default();
        let position = Position::Byte(offset as u64);
        if !rest.starts_with(MAGIC) {
            return Err(Error::malformed(NAME, position, "expected a chunk (FLR)"));
        }
        let mut header = borehole_wire::Cursor::new(rest, offset as u64);
        let mut numbers = [0; 7];
        let mut read = || {
            header.bytes(8)?;
            for number in &mut numbers {
                *number = u64::from_be_bytes(header.array()?);
            }
            header.array().map(u32::from_be_bytes)
        };
        let flags = read().map_err(|error| cut_off(NAME, error))?;
        let [size, _, _, start_unix_ns, _, start_ticks, ticks_per_second] = numbers;
        if flags & COMPRESSED_NUMBERS == 0 {
            let message = "unsupported: numbers are not compressed";
            return Err(Error::new(ErrorKind::Unsupported, NAME, position, message));
        }
        // A chunk that is being written has no size yet.
        let size = usize::try_from(size).ok().filter(|&size| size >= HEADER_BYTES);
        let end = size.and_then(|size| offset.checked_add(size)).unwrap_or(file.len());
        let clock = ChunkClock { start_unix_ns: start_unix_ns.cast_signed(), start_ticks, ticks_per_second };
        Ok(Self { offset, bytes: &file[..end.min(file.len())], clock, is_cut: end > file.len() })
    }

    /// Its end in the file.
    pub(super) const fn end(&self) -> usize {
        self.bytes.len()
    }

    /// The events, up to the first fault.
    pub(super) fn events(&self) -> impl Iterator<Item = Result<ChunkEvent<'a>, Error>> + use<'a> {
        let bytes = self.bytes;
        let mut next = Some(self.offset + HEADER_BYTES);
        std::iter::from_fn(move || {
            let at = next.take().filter(|&at| at < bytes.len())?;
            let event = ChunkEvent::at(bytes, at);
            next = event.as_ref().ok().map(|event| event.end);
            Some(event)
        })
    }

    /// The event at a position in the file.
    #[inline]
    pub(super) fn event_at(&self, offset: usize) -> Result<ChunkEvent<'a>, Error> {
        ChunkEvent::at(self.bytes, offset)
    }
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkEvent<'a> {
    pub(super) offset: usize,
    end: usize,
    /// The id of its type.
    pub(super) event_type: u64,
    /// Its fields.
    pub(super) values: ValueReader<'a>,
}

impl<'a> ChunkEvent<'a> {
    #[inline]
    fn at(bytes: &'a [u8], offset: usize) -> Result<Self, Error> {
        let mut head = ValueReader::new(&bytes[offset..], offset);
        let size = head.number()?;
        let end =
            usize::try_from(size).ok().and_then(|size| offset.checked_add(size)).filter(|&end| end > offset);
        let Some(end) = end else {
            let message = format!("invalid size of an event: {size}");
            return Err(Error::malformed(NAME, Position::Byte(offset as u64), message));
        };
        let Some(event) = bytes.get(offset..end) else {
            let message = "truncated: the last event is incomplete";
            return Err(Error::truncated(NAME, Position::Byte(offset as u64), message));
        };
        let mut values = ValueReader::new(event, offset);
        values.number()?;
        Ok(Self { offset, end, event_type: values.number()?, values })
    }
}
