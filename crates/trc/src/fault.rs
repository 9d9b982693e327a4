//! The faults of frames, small enough to be returned for each of millions.

use borehole_memory::OverBudget;

use super::NAME;
use super::layout::{MAGIC, MAX_ELEMENTS, MAX_NESTING, MAX_VARINT_BYTES, VERSION};
use crate::{Error, ErrorKind, Position};

/// A fault, with its position in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameFault {
    pub(super) at: u64,
    pub(super) what: FaultKind,
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// The bytes end; at least `missing` more are needed.
    Truncated { missing: usize },
    /// A required header is missing.
    Magic { found: [u8; 4] },
    /// The header has another version.
    Version(u8),
    /// The tag of the frame is unknown.
    FrameTag(u8),
    /// The type of the event is undefined.
    UnknownType(u16),
    /// The type of a field is unknown.
    FieldType(u8),
    /// The type id is already used for other events. The schema frame has `len` bytes.
    Conflict { type_id: u16, len: u32 },
    /// A varint that does not end.
    Varint,
    /// The frame contains the beginning of another batch: its length is wrong.
    HoldsHeader,
    /// A name is not text, which its first `looked_at` bytes show.
    Utf8 { what: &'static str, looked_at: u32 },
    /// Lists are nested too deeply.
    Nesting,
    /// A list has too many elements.
    Elements(u32),
    /// The time overflows 64 bits.
    Time { base_ns: u64, delta_ns: u64 },
    /// The frame exceeds the limit.
    FrameTooLarge { limit: usize, least: usize },
    /// The definitions take more memory than allowed.
    Memory(OverBudget),
}

impl From<borehole_wire::Error> for FrameFault {
    fn from(error: borehole_wire::Error) -> Self {
        let what = match error.kind() {
            borehole_wire::ErrorKind::Truncated { missing } => FaultKind::Truncated { missing },
            // Varints are read here, not there.
            _ => FaultKind::Varint,
        };
        Self { at: error.offset(), what }
    }
}

impl FrameFault {
    /// The number of bytes of the frame examined before the fault was found.
    pub(super) const fn looked_at(self) -> u64 {
        let more = match self.what {
            FaultKind::Utf8 { looked_at, .. } => looked_at as u64,
            FaultKind::Conflict { len, .. } => 2 * len as u64,
            _ => 0,
        };
        self.at.saturating_add(more).saturating_add(Self::LEAST_LOOKED_AT)
    }

    /// The minimum cost of a rejected frame.
    const LEAST_LOOKED_AT: u64 = 16;

    /// The error to report for a frame at `offset`.
    #[cold]
    pub(super) fn error(self, offset: u64) -> Error {
        let position = Position::Byte(offset.saturating_add(self.at));
        Error::new(self.what.kind(), NAME, position, self.what.message())
    }
}

impl FaultKind {
    const fn kind(self) -> ErrorKind {
        match self {
            Self::Truncated { .. } => ErrorKind::Truncated,
            Self::Version(_) | Self::FieldType(_) => ErrorKind::Unsupported,
            Self::Nesting | Self::Elements(_) | Self::FrameTooLarge { .. } => ErrorKind::Limit,
            Self::Memory(_) => ErrorKind::Memory,
            _ => ErrorKind::Malformed,
        }
    }

    /// The text "expected X, found Y" of the error.
    pub(super) fn message(self) -> String {
        match self {
            Self::Truncated { missing } => format!("truncated: {missing} bytes missing"),
            Self::Magic { found } => {
                let (expected, found) = (MAGIC.escape_ascii(), found.escape_ascii());
                format!("invalid magic: expected \"{expected}\", found \"{found}\"")
            }
            Self::Version(found) => format!("unsupported version: expected {VERSION}, found {found}"),
            Self::FrameTag(found) => format!("unknown frame tag: expected 0x01 to 0x06, found {found:#04x}"),
            Self::UnknownType(found) => {
                format!("unknown type id: expected one defined by an earlier schema, found {found}")
            }
            Self::FieldType(found) => {
                format!(
                    "unsupported field type: expected 0x01 to 0x0f, plus 0x80 if optional, found {found:#04x}"
                )
            }
            Self::Conflict { type_id, .. } => {
                format!(
                    "conflicting schema: expected the earlier definition of type id {type_id}, found another"
                )
            }
            Self::Varint => format!("invalid varint: expected at most {MAX_VARINT_BYTES} bytes, found more"),
            Self::HoldsHeader => {
                "invalid length: expected the frame to end before the next header, found a header inside it"
                    .into()
            }
            Self::Utf8 { what, .. } => format!("invalid {what}: expected UTF-8, found other bytes"),
            Self::Nesting => format!("too many nested lists: expected at most {MAX_NESTING}, found more"),
            Self::Elements(found) => {
                format!("too many elements: expected at most {MAX_ELEMENTS}, found {found}")
            }
            Self::Time { base_ns, delta_ns } => {
                format!("timestamp too large: expected at most 64 bits, found {base_ns} ns + {delta_ns} ns")
            }
            Self::FrameTooLarge { limit, least } => {
                format!("frame too large: expected at most {limit} bytes, found at least {least}")
            }
            Self::Memory(over) => format!("{over} for the definitions of a batch"),
        }
    }
}
