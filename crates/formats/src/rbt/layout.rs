//! The numbers of the wire: header, event types, flags.
//!
//! Source for everything here, unless another is named: the format's specification, version 1.

use borehole_wire::Cursor;
use memchr::memmem;

/// The short name of the format.
pub const NAME: &str = "rbt";

/// The first four bytes of every segment.
pub const MAGIC: [u8; 4] = *b"RELI";

/// The only version.
pub const VERSION: u8 = 1;

/// The length of a segment's header.
pub const HEADER_BYTES: usize = 16;

/// Header flag: samples carry the time since the previous sample.
pub const HAS_TIMESTAMPS: u8 = 0x01;

/// Frame flag: a native frame, not a PHP one.
pub const FRAME_NATIVE: u64 = 0x01;

/// Frame flag: a PHP frame with an opcode.
pub const FRAME_HAS_OPCODE: u64 = 0x02;

/// The first byte of [`MAGIC`], which is therefore never an event type.
pub const RESERVED_EVENT: u8 = b'R';

/// The number of samples between two checkpoints of a live capture.
///
/// Source: reli 0.12, `BinaryTraceOutput`, default `checkpoint_interval`.
pub const CHECKPOINT_INTERVAL: u64 = 1000;

/// The types of events, with their numbers in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventType {
    /// Defines a frame.
    FrameDef = 0x01,
    /// Defines a stack as a list of frames.
    StackDef = 0x02,
    /// A sample.
    Sample = 0x03,
    /// Counts for verification.
    Checkpoint = 0x04,
    /// The clean end of a segment.
    SegmentEnd = 0x05,
    /// A key and a value.
    Metadata = 0x06,
    /// A sample with its process.
    PidSample = 0x07,
    /// A sample of a segment without timestamps, without a length.
    CompactSample = 0x08,
    /// Repeats the last completed sample, without a length.
    RepeatSample = 0x09,
    /// Defines a string.
    StringDef = 0x0a,
    /// Keys and values of the preceding sample.
    SampleAnnotation = 0x0b,
}

impl EventType {
    /// All types, in order of their numbers.
    pub const ALL: &'static [Self] = &[
        Self::FrameDef,
        Self::StackDef,
        Self::Sample,
        Self::Checkpoint,
        Self::SegmentEnd,
        Self::Metadata,
        Self::PidSample,
        Self::CompactSample,
        Self::RepeatSample,
        Self::StringDef,
        Self::SampleAnnotation,
    ];

    /// The type with this number; `None` for unknown numbers.
    #[inline]
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1..=11 => Some(Self::ALL[byte as usize - 1]),
            _ => None,
        }
    }

    /// Whether `byte` is one of the three types of samples.
    #[inline]
    pub(crate) const fn is_sample(byte: u8) -> bool {
        const SAMPLES: [u8; 3] =
            [EventType::Sample as u8, EventType::PidSample as u8, EventType::CompactSample as u8];
        byte == SAMPLES[0] || byte == SAMPLES[1] || byte == SAMPLES[2]
    }

    /// The name in the specification.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FrameDef => "FRAME_DEF",
            Self::StackDef => "STACK_DEF",
            Self::Sample => "SAMPLE",
            Self::Checkpoint => "CHECKPOINT",
            Self::SegmentEnd => "SEGMENT_END",
            Self::Metadata => "METADATA",
            Self::PidSample => "PID_SAMPLE",
            Self::CompactSample => "COMPACT_SAMPLE",
            Self::RepeatSample => "REPEAT_SAMPLE",
            Self::StringDef => "STRING_DEF",
            Self::SampleAnnotation => "SAMPLE_ANNOTATION",
        }
    }

    /// The name of the type with this number, for messages.
    pub(crate) fn name_of(byte: u8) -> String {
        match Self::from_byte(byte) {
            Some(known) => known.name().to_owned(),
            None => format!("event of unknown type {byte:#04x}"),
        }
    }
}

/// A segment's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Whether samples carry the time since the previous sample.
    pub has_timestamps: bool,
    /// The sampling period in microseconds; 0 if the writer did not know it.
    pub period_us: u32,
}

impl Header {
    /// Encodes the 16 bytes of the header.
    #[must_use]
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = if self.has_timestamps { HAS_TIMESTAMPS } else { 0 };
        bytes[8..12].copy_from_slice(&self.period_us.to_le_bytes());
        bytes
    }
}

/// The 16 bytes of a header, unchecked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawHeader {
    bytes: [u8; HEADER_BYTES],
}

impl RawHeader {
    /// The header at the start of `bytes`; `None` if they are too few.
    pub(crate) fn at(bytes: &[u8]) -> Option<Self> {
        Cursor::new(bytes, 0).array().ok().map(|bytes| Self { bytes })
    }

    /// The position of the first flawless header after the start of `bytes`.
    pub(crate) fn find_after_start(bytes: &[u8]) -> Option<usize> {
        memmem::find_iter(bytes, &MAGIC).filter(|&at| at > 0).find(|&at| Self::is_flawless_at(&bytes[at..]))
    }

    /// Whether a flawless header is at the start of `bytes`.
    pub(crate) fn is_flawless_at(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC) && Self::at(bytes).is_some_and(|raw| raw.is_flawless())
    }

    pub(crate) const fn version(&self) -> u8 {
        self.bytes[4]
    }

    /// The number of correct bytes among the eleven that can have only one value: magic, version, reserved.
    pub(crate) fn fixed_bytes_right(&self) -> usize {
        let magic = self.bytes.iter().zip(MAGIC).filter(|(found, expected)| *found == expected);
        let reserved = self.bytes[6..8].iter().chain(&self.bytes[12..]).filter(|&&byte| byte == 0);
        magic.count() + reserved.count() + usize::from(self.version() == VERSION)
    }

    /// Whether every bit with only one valid value has it.
    pub(crate) fn is_flawless(&self) -> bool {
        self.fixed_bytes_right() == Self::FIXED_BYTES && self.bytes[5] & !HAS_TIMESTAMPS == 0
    }

    pub(crate) const FIXED_BYTES: usize = 11;

    /// Decodes the header. Reserved bits and bytes are ignored.
    pub(crate) fn header(&self) -> Header {
        let [.., a, b, c, d, _, _, _, _] = self.bytes;
        Header {
            has_timestamps: self.bytes[5] & HAS_TIMESTAMPS != 0,
            period_us: u32::from_le_bytes([a, b, c, d]),
        }
    }
}
