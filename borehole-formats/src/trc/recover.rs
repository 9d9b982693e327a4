//! Reading on after damage.
//!
//! Frames have neither length nor checksum, so where reading may go on has to be judged by what stands there.
//! Damage is met in this order:
//!
//! 1. A schema that contradicts an earlier one of its id takes its place: what follows was written for it.
//! 2. A header with some wrong bytes, and a frame behind it, is read as if it were whole.
//! 3. A frame in which a whole header stands, and a frame behind that, has a damaged length: it swallows nothing.
//! 4. Otherwise the search goes on byte by byte, for a flawless header with a frame behind it, or for a chain
//!    of frames that fits the batch: known types, defined pool ids, text that is text, times near the last.
//!    [`Chain`] adds up how unlikely it is that chance looks like that.
//!
//! What follows inside the same batch is marked as recovered until the time is set again: events that were lost
//! would have moved it on.

use std::io::Read;

use memchr::memmem;

use super::batch::Batch;
use super::fault::{Fault, What};
use super::frame::{self, Kind, Outline, Slot};
use super::layout::{HEADER_BYTES, HEADER_TAG, MAGIC, Tag, VERSION};
use super::read::{Place, Reader};
use super::value::Value;
use crate::{Error, Position};

/// How many bytes behind a candidate are looked at.
const LOOK_AHEAD: usize = 4096;

impl<R: Read> Reader<R> {
    /// Finds the place where reading can go on. What failed is at the front of the window.
    pub(super) fn resynchronise(&mut self, fault: Fault) -> Result<(), Error> {
        let from = self.offset();
        let message = fault.what.message();
        if let What::Conflict(_) = fault.what
            && self.adopt_schema()
        {
            self.warn(from, 0, format!("{message}; what follows is read with it"));
            return Ok(());
        }
        if self.mend_header()? {
            self.warn(from, 0, "damaged header: read as if it were whole".into());
            return Ok(());
        }
        self.place = self.scan()?;
        self.is_recovered |= self.place == Place::Inside;
        self.warn(from, self.offset() - from, message);
        Ok(())
    }

    /// Whether another batch begins in the frame of `len` bytes at the front of the window: then a damaged length made
    /// it so long. What stands behind tells nothing: events of the other batch look like those of this one.
    pub(super) fn swallows_a_batch(&self, len: usize) -> bool {
        let bytes = self.window.available();
        // A header that only begins in the frame is one, too.
        let end = bytes.len().min(len + HEADER_BYTES - 1);
        let searched = bytes.get(1..end).unwrap_or_default();
        let Some(at) = memmem::find(searched, &FLAWLESS) else { return false };
        bytes.get(1 + at + HEADER_BYTES..).is_some_and(begins_a_batch)
    }

    /// Gives a type id the meaning that the schema at the front of the window says.
    fn adopt_schema(&mut self) -> bool {
        let Some(bytes) = self.window.available().get(1..) else { return false };
        let mut cursor = borehole_wire::Cursor::new(bytes, 0);
        let Ok((type_id, definition)) = frame::schema(&mut cursor) else { return false };
        let len = 1 + bytes.len() - cursor.rest().len();
        self.batch.count_type(len);
        self.batch.define(type_id, definition);
        self.window.consume(len);
        true
    }

    /// Begins a batch at the front of the window, if most of a header stands there and a frame behind it.
    fn mend_header(&mut self) -> Result<bool, Error> {
        let bytes = self.ensure(HEADER_BYTES + LOOK_AHEAD)?;
        let Some(header) = bytes.get(..HEADER_BYTES) else { return Ok(false) };
        let right = header.iter().zip(FLAWLESS).filter(|(found, expected)| *found == expected).count();
        let mended = right >= MENDABLE && begins_a_batch(&bytes[HEADER_BYTES..]);
        if mended {
            self.place = Place::Mended;
        }
        Ok(mended)
    }

    /// Moves the window to the next place from which reading can go on, behind its first byte.
    fn scan(&mut self) -> Result<Place, Error> {
        let mut at = 1;
        loop {
            self.ensure(2 * LOOK_AHEAD)?;
            let len = self.window.available().len();
            let last = if self.window.has_ended() { len } else { len.saturating_sub(LOOK_AHEAD) };
            while at < last {
                if let Some(place) = self.place_at(at) {
                    self.window.consume(at);
                    return Ok(place);
                }
                at += 1;
            }
            if self.window.has_ended() {
                self.window.consume(len);
                return Ok(self.place);
            }
            self.window.consume(at - 1);
            at = 1;
        }
    }

    /// What may begin at `at`, if anything.
    fn place_at(&mut self, at: usize) -> Option<Place> {
        let bytes = self.window.available().get(at..)?;
        match *bytes.first()? {
            HEADER_TAG => {
                let behind = bytes.strip_prefix(&FLAWLESS)?;
                (behind.is_empty() || begins_a_batch(behind)).then_some(Place::Start)
            }
            byte if Tag::from_byte(byte).is_some() && self.place == Place::Inside => {
                let (bytes, whole) = match bytes.get(..LOOK_AHEAD) {
                    Some(bytes) => (bytes, false),
                    None => (bytes, self.window.has_ended()),
                };
                let mut chain = Chain { batch: &self.batch, slots: &mut self.slots, evidence: 0 };
                chain.is_plausible(bytes, whole).then_some(Place::Inside)
            }
            _ => None,
        }
    }

    /// After the end of the data: whether it was the end of a damaged member only, behind which there is
    /// more to read.
    pub(super) fn go_on_after_damage(&mut self) -> Result<bool, Error> {
        if !self.options.is_lenient() {
            return Ok(false);
        }
        let offset = self.offset();
        let Some(passed) = self.window.past_damage() else { return Ok(false) };
        let passed = passed.map_err(|error| Error::io(NAME, Position::Byte(offset), error))?;
        let method = self.window.envelope().method();
        self.warn(offset, passed, format!("compressed bytes passed over after a damaged {method}"));
        // What follows was written on its own, so it begins with a header.
        self.place = Place::Start;
        Ok(!self.ensure(1)?.is_empty())
    }
}

use super::NAME;

/// The bytes of a header.
const FLAWLESS: [u8; HEADER_BYTES] = {
    let [t, r, c, zero] = MAGIC;
    [t, r, c, zero, VERSION]
};

/// A header may be mended that has as many right bytes.
const MENDABLE: usize = 3;

/// Whether `bytes` begin with a frame that can stand right behind a header, where nothing is defined yet.
fn begins_a_batch(bytes: &[u8]) -> bool {
    let nothing = Batch::default();
    match Outline::read(&bytes[..bytes.len().min(LOOK_AHEAD)], &nothing, &mut Vec::new()) {
        Ok(outline) => !matches!(outline.kind, Kind::Header { .. }) || bytes.starts_with(&FLAWLESS),
        Err(fault) => matches!(fault.what, What::Truncated { .. }),
    }
}

/// Judges bytes as a chain of frames in the middle of a batch.
struct Chain<'a> {
    batch: &'a Batch,
    slots: &'a mut Vec<Slot>,
    /// Roughly, in bits: how unlikely it is that chance looks like this.
    evidence: u32,
}

impl Chain<'_> {
    /// Enough to believe in a chain that is still going on.
    const ENOUGH: u32 = 48;
    /// Enough to believe in a chain that meets an event whose schema may have been lost.
    const ENOUGH_FOR_UNKNOWN: u32 = 32;
    /// Enough to believe in a chain that ends exactly where the input or the batch does.
    const ENOUGH_TO_END: u32 = 20;

    /// Whether `bytes` are believable. `whole`: they reach to the end of the input.
    fn is_plausible(&mut self, mut bytes: &[u8], whole: bool) -> bool {
        while self.evidence < Self::ENOUGH {
            if bytes.is_empty() {
                return whole && self.evidence >= Self::ENOUGH_TO_END;
            }
            match Outline::read(bytes, self.batch, self.slots) {
                Ok(Outline { kind: Kind::Header { .. }, .. }) => {
                    return bytes.starts_with(&FLAWLESS) && self.evidence >= Self::ENOUGH_TO_END;
                }
                Ok(outline) => {
                    let (frame, rest) = bytes.split_at(outline.len);
                    match self.weigh(outline.kind, frame) {
                        Some(bits) => self.evidence += bits,
                        None => return false,
                    }
                    bytes = rest;
                }
                Err(fault) => return self.evidence >= Self::needed_at(fault.what),
            }
        }
        true
    }

    /// What is enough to believe in a chain that ends so.
    const fn needed_at(what: What) -> u32 {
        match what {
            What::Truncated { .. } => Self::ENOUGH_TO_END,
            What::UnknownType(_) => Self::ENOUGH_FOR_UNKNOWN,
            _ => Self::ENOUGH,
        }
    }

    /// The evidence that one frame is; `None` if no writer would write it here.
    fn weigh(&self, kind: Kind, frame: &[u8]) -> Option<u32> {
        let mut cursor = borehole_wire::Cursor::new(frame.get(1..)?, 0);
        match kind {
            Kind::Header { .. } => None,
            Kind::Event { row, .. } => self.weigh_event(row, frame),
            Kind::Schema => {
                let (_, definition) = frame::schema(&mut cursor).ok()?;
                is_name(&definition.name).then_some(24)
            }
            Kind::Annotations => {
                let (type_id, annotations) = frame::annotations(&mut cursor).ok()?;
                let known = u16::try_from(type_id).is_ok_and(|type_id| self.batch.find(type_id).is_some());
                (known && !annotations.is_empty()).then_some(32)
            }
            Kind::Strings | Kind::Stacks => match cursor.u32_le().ok()? {
                0 => Some(1),
                count if count < 256 => Some(28),
                _ => Some(8),
            },
            Kind::Reset { timestamp_ns } => {
                let distance = timestamp_ns.abs_diff(self.batch.base_ns);
                Some(if distance < NEAR_NS { 26 } else { 4 })
            }
        }
    }

    fn weigh_event(&self, row: u32, frame: &[u8]) -> Option<u32> {
        let types = &self.batch.row(row).types;
        // Tag and type id have 24 bits, of which one value a type is right.
        let mut bits = 24_u32.saturating_sub(bit_length(self.batch.rows().len()));
        for (slot, field_type) in self.slots.iter().zip(types) {
            bits += weigh_value(slot.view(*field_type, frame, self.batch))?;
        }
        Some(bits)
    }
}

/// Times that are not further from the last than this, some 73 minutes, are near.
const NEAR_NS: u64 = 1 << 42;

/// The evidence that a value is; `None` if no writer would write it.
fn weigh_value(value: Value<'_>) -> Option<u32> {
    match value {
        Value::PooledText { text: Some(_), .. } | Value::PooledStack { stack: Some(_), .. } => Some(16),
        Value::Text([]) => Some(4),
        Value::Text(text) => std::str::from_utf8(text).is_ok_and(is_name).then_some(8),
        Value::Bool(_) => Some(1),
        _ => Some(0),
    }
}

/// Whether somebody would call something so: no control characters.
fn is_name(text: &str) -> bool {
    !text.chars().any(|character| character.is_control() && !character.is_whitespace())
}

/// How many bits a number has.
const fn bit_length(count: usize) -> u32 {
    usize::BITS - count.leading_zeros()
}
