//! Decodes records. This is the only decoder of them.

use borehole_wire::Cursor;

use super::layout::{ByteOrder, RECORD_HEAD_BYTES, RecordKind};
use super::number::{NumberFault, varint, varint_u32};

/// The fields of a record, without the frames that it adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordFields {
    pub(super) thread: u64,
    pub(super) interpreter: u32,
    pub(super) kind: RecordKind,
    /// Microseconds since the thread's last sample. 0 for a run, whose samples have their own.
    pub(super) delta_us: u64,
    /// The state of the thread. 0 for a run.
    pub(super) status: u8,
    /// Samples of a run, shared frames of a suffix, or popped frames.
    pub(super) count: u32,
}

/// The reason why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordFault {
    /// Fewer bytes are left than every record has.
    Trailing(usize),
    /// The kind is unknown.
    UnknownKind(u8),
    /// A number cannot be read.
    Number(NumberFault),
    /// The stack is too deep.
    TooDeep { depth: u32, most: usize },
}

impl RecordFault {
    /// The text "expected X, found Y" of the error.
    pub(super) fn message(self) -> String {
        match self {
            Self::Trailing(count) => {
                format!(
                    "truncated: expected a record of at least {RECORD_HEAD_BYTES} bytes, found {count} bytes"
                )
            }
            Self::UnknownKind(kind) => format!("expected a record of kind 0 to 3, found kind {kind}"),
            Self::Number(fault) => fault.message().to_owned(),
            Self::TooDeep { depth, most } => {
                format!("expected a stack of at most {most} frames, found {depth}")
            }
        }
    }

    /// The offset of the fault, in a record that begins at `start`.
    pub(super) const fn offset(self, start: u64) -> u64 {
        match self {
            Self::Number(fault) => fault.offset(),
            Self::UnknownKind(_) => start + (RECORD_HEAD_BYTES as u64 - 1),
            Self::Trailing(_) | Self::TooDeep { .. } => start,
        }
    }

    pub(super) const fn is_truncated(self) -> bool {
        matches!(self, Self::Trailing(_) | Self::Number(NumberFault::Cut(_)))
    }
}

impl From<NumberFault> for RecordFault {
    fn from(fault: NumberFault) -> Self {
        Self::Number(fault)
    }
}

impl From<borehole_wire::Error> for RecordFault {
    fn from(error: borehole_wire::Error) -> Self {
        Self::Number(NumberFault::Cut(error))
    }
}

/// The maximum length of the record of a stack of `depth` frames, with every number in its longest form.
pub(super) const fn longest_record(depth: usize) -> usize {
    RECORD_HEAD_BYTES + 10 + 1 + 10 + 10 + depth * 10
}

impl RecordFields {
    /// Decodes the record at `cursor` and puts the frames that it adds into `frames_leaf_first`.
    ///
    /// A run ends after its count: its samples follow.
    ///
    /// Always inlined: a record returned in memory would be read there before all of it has been written, and that
    /// would wait.
    #[inline(always)]
    pub(super) fn decode(
        cursor: &mut Cursor<'_>,
        order: ByteOrder,
        most_frames: usize,
        frames_leaf_first: &mut Vec<u32>,
    ) -> Result<Self, RecordFault> {
        frames_leaf_first.clear();
        if cursor.rest().len() < RECORD_HEAD_BYTES {
            return Err(RecordFault::Trailing(cursor.rest().len()));
        }
        let thread = order.u64(cursor.array()?);
        let interpreter = order.u32(cursor.array()?);
        let kind = match cursor.u8()? {
            0 => {
                let count = varint_u32(cursor)?;
                let kind = RecordKind::Repeat;
                return Ok(Self { thread, interpreter, kind, delta_us: 0, status: 0, count });
            }
            1 => RecordKind::Full,
            2 => RecordKind::Suffix,
            3 => RecordKind::PopPush,
            unknown => return Err(RecordFault::UnknownKind(unknown)),
        };
        let delta_us = varint(cursor)?;
        let status = cursor.u8()?;
        let count = if kind == RecordKind::Full { 0 } else { varint_u32(cursor)? };
        decode_frames(cursor, most_frames, frames_leaf_first)?;
        Ok(Self { thread, interpreter, kind, delta_us, status, count })
    }
}

#[inline]
fn decode_frames(cursor: &mut Cursor<'_>, most: usize, frames: &mut Vec<u32>) -> Result<(), RecordFault> {
    let depth = varint_u32(cursor)?;
    if depth as usize > most {
        return Err(RecordFault::TooDeep { depth, most });
    }
    for _ in 0..depth {
        frames.push(varint_u32(cursor)?);
    }
    Ok(())
}

/// Reads the time difference and the status of one sample of a run.
#[inline]
pub(super) fn run_entry(cursor: &mut Cursor<'_>) -> Result<(u64, u8), NumberFault> {
    Ok((varint(cursor)?, cursor.u8()?))
}
