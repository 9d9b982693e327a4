//! Whether bytes look like the frames of a batch.

use borehole_wire::Cursor;

use super::batch::Batch;
use super::fault::FaultKind;
use super::frame::{self, FrameKind, FrameOutline};
use super::layout::{FrameTag, HEADER};
use super::value::{Slot, Value};

/// The question about a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChainPurpose {
    /// Whether a frame begins at a position found by trying one after the other.
    Search,
    /// Whether the bytes after a frame confirm its length.
    Confirm,
}

/// Judges bytes as a chain of frames in the middle of a batch.
pub(super) struct ChainJudge<'a> {
    pub(super) batch: &'a Batch,
    pub(super) slots: &'a mut Vec<Slot>,
    pub(super) purpose: ChainPurpose,
    /// The evidence in bits: roughly, how improbable such bytes are by chance.
    pub(super) evidence: u32,
    /// The number of bytes examined.
    pub(super) looked_at: u64,
}

/// The result for a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Plausible,
    Implausible,
    /// It begins with an event of a known type whose end is out of sight.
    Longer,
}

impl ChainJudge<'_> {
    /// Enough to accept a chain that continues.
    const ENOUGH: u32 = 48;
    /// Enough to accept a chain up to an event whose schema may have been lost.
    const ENOUGH_FOR_UNKNOWN: u32 = 32;
    /// Enough to accept a chain that ends exactly at the end of the input or batch.
    const ENOUGH_TO_END: u32 = 20;
    /// Enough to confirm a length: any single frame.
    const ENOUGH_TO_CONFIRM: u32 = 4;
    /// The minimum evidence of an event of a known type that is longer than the bytes examined.
    pub(super) const OF_LONG_EVENT: u32 = 8;

    /// Judges `bytes`. `whole`: they reach to the end of the input.
    pub(super) fn judge(&mut self, mut bytes: &[u8], whole: bool) -> Verdict {
        let mut is_first = true;
        while self.evidence < Self::ENOUGH {
            if bytes.is_empty() {
                return if whole && self.evidence >= self.enough_to_end() {
                    Verdict::Plausible
                } else {
                    Verdict::Implausible
                };
            }
            match FrameOutline::read(bytes, self.batch, self.slots) {
                Ok(FrameOutline { kind: FrameKind::Header { .. }, .. }) => {
                    let is_believed = bytes.starts_with(&HEADER) && self.evidence >= self.enough_to_end();
                    return if is_believed { Verdict::Plausible } else { Verdict::Implausible };
                }
                Ok(outline) => {
                    let (frame, rest) = bytes.split_at(outline.len);
                    // The frame is read, and then its contents are weighed.
                    self.looked_at += 2 * outline.len as u64;
                    match self.weigh(outline.kind, frame) {
                        Some(bits) => self.evidence += bits,
                        None if self.purpose == ChainPurpose::Search => return Verdict::Implausible,
                        None => {}
                    }
                    bytes = rest;
                    is_first = false;
                }
                Err(fault) => {
                    self.looked_at += fault.looked_at();
                    return self.at_fault(fault.what, bytes, is_first && !whole);
                }
            }
        }
        Verdict::Plausible
    }

    /// Judges a chain that ends in an unreadable frame, which `may_go_on` out of sight.
    fn at_fault(&self, what: FaultKind, bytes: &[u8], may_go_on: bool) -> Verdict {
        let is_cut = matches!(what, FaultKind::Truncated { .. });
        if is_cut && may_go_on && self.known_type(bytes) {
            return Verdict::Longer;
        }
        let begun =
            if is_cut && self.purpose == ChainPurpose::Confirm { self.weigh_beginning(bytes) } else { 0 };
        if self.evidence + begun >= self.needed_at(what) { Verdict::Plausible } else { Verdict::Implausible }
    }

    const fn enough_to_end(&self) -> u32 {
        match self.purpose {
            ChainPurpose::Search => Self::ENOUGH_TO_END,
            ChainPurpose::Confirm => 0,
        }
    }

    /// The evidence needed to accept a chain with such an end.
    const fn needed_at(&self, what: FaultKind) -> u32 {
        match (what, self.purpose) {
            // Types may be defined in between, and damage after a frame says nothing about the frame.
            (_, ChainPurpose::Confirm) => Self::ENOUGH_TO_CONFIRM,
            (FaultKind::Truncated { .. }, ChainPurpose::Search) => Self::ENOUGH_TO_END,
            (FaultKind::UnknownType(_), ChainPurpose::Search) => Self::ENOUGH_FOR_UNKNOWN,
            _ => Self::ENOUGH,
        }
    }

    /// Whether an event of a known type begins here.
    fn known_type(&self, bytes: &[u8]) -> bool {
        matches!(bytes, [tag, low, high, ..] if *tag == FrameTag::Event as u8
            && self.batch.find(u16::from_le_bytes([*low, *high])).is_some())
    }

    /// The evidence of the beginning of a frame.
    fn weigh_beginning(&self, bytes: &[u8]) -> u32 {
        match (bytes.first().copied().and_then(FrameTag::from_byte), bytes) {
            (Some(FrameTag::Event), _) if self.known_type(bytes) => self.weigh_type(),
            (Some(FrameTag::Strings | FrameTag::Stacks), [_, _, 0, 0, 0, ..]) => 28,
            _ => 0,
        }
    }

    /// The evidence of one frame; `None` if no writer would write it here.
    fn weigh(&self, kind: FrameKind, frame: &[u8]) -> Option<u32> {
        let mut cursor = Cursor::new(frame.get(1..)?, 0);
        match kind {
            FrameKind::Header { .. } => None,
            FrameKind::Event { row, .. } => self.weigh_event(row, frame),
            FrameKind::Schema => is_name(frame::schema_outline(&mut cursor).ok()?.name).then_some(24),
            FrameKind::Annotations => {
                let (type_id, count) = frame::annotations_outline(&mut cursor).ok()?;
                let known = u16::try_from(type_id).is_ok_and(|type_id| self.batch.find(type_id).is_some());
                (known && count > 0).then_some(32)
            }
            FrameKind::Strings | FrameKind::Stacks => match cursor.u32_le().ok()? {
                0 => Some(1),
                count if count < 256 => Some(28),
                _ => Some(8),
            },
            FrameKind::Reset { timestamp_ns } => {
                let distance = timestamp_ns.abs_diff(self.batch.base_ns);
                Some(if distance < NEAR_NS { 26 } else { 4 })
            }
        }
    }

    /// Tag and type id have 24 bits, of which one value per type is right.
    fn weigh_type(&self) -> u32 {
        24_u32.saturating_sub(bit_length(self.batch.rows().len()))
    }

    fn weigh_event(&self, row: u32, frame: &[u8]) -> Option<u32> {
        let types = &self.batch.row(row).types;
        let mut bits = self.weigh_type();
        for (slot, field_type) in self.slots.iter().zip(types) {
            bits = match weigh_value(slot.view(*field_type, frame, self.batch)) {
                Some(more) => bits + more,
                None if self.purpose == ChainPurpose::Search => return None,
                None => bits,
            };
        }
        Some(bits)
    }
}

/// The largest distance of near times, some 73 minutes.
const NEAR_NS: u64 = 1 << 42;

/// The evidence of a value; `None` if no writer would write it.
fn weigh_value(value: Value<'_>) -> Option<u32> {
    match value {
        Value::PooledText { text: Some(_), .. } | Value::PooledStack { stack: Some(_), .. } => Some(16),
        Value::Text([]) => Some(4),
        Value::Text(text) => std::str::from_utf8(text).is_ok_and(is_name).then_some(8),
        Value::Bool(_) => Some(1),
        _ => Some(0),
    }
}

/// Whether the text may be a name: no control characters.
fn is_name(text: &str) -> bool {
    !text.chars().any(|character| character.is_control() && !character.is_whitespace())
}

/// The number of bits of a number.
const fn bit_length(count: usize) -> u32 {
    usize::BITS - count.leading_zeros()
}
