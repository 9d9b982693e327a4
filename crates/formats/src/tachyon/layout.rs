//! The numbers of the file: header, footer, kinds of records, limits.
//!
//! Source, unless another is named: the format's specification, version 1, for the old header, the footer and the
//! records; CPython 3.15.2 itself (its reader and writer, tried on the corpus) for the new header, which has the same
//! version number.

use borehole_wire::Cursor;

/// The first four bytes of a file, as a number in the file's byte order: "TACH".
pub const MAGIC: u32 = 0x5441_4348;

/// The only version.
pub const VERSION: u32 = 1;

/// The length of the header.
pub const HEADER_BYTES: usize = 64;

/// The length of the footer, which ends the file.
pub const FOOTER_BYTES: usize = 32;

/// The deepest stack that CPython reads; its writer keeps only the innermost frames.
///
/// Source: CPython 3.15.2, `MAX_STACK_DEPTH`; `corrupt/full_depth_256.bin` and `full_depth_257.bin`.
pub const MAX_DEPTH: usize = 256;

/// The size of a run's buffer: a run of equal stacks is written when one more sample might not fit into it.
///
/// Source: CPython 3.15.2, `MAX_RLE_BUF_SIZE`.
pub const RUN_BYTES: usize = 16 << 10;

/// The length of the longest time difference with its status.
pub const RUN_ENTRY_BYTES: usize = 11;

/// The length of the head of every record: thread, interpreter, kind.
pub const RECORD_HEAD_BYTES: usize = 13;

/// The byte order of numbers of fixed width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first, as on x86 and ARM.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// Both orders.
    pub const ALL: &'static [Self] = &[Self::Little, Self::Big];

    /// Decodes four bytes.
    #[inline]
    #[must_use]
    pub const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Decodes eight bytes.
    #[inline]
    #[must_use]
    pub const fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    /// Encodes a number as four bytes.
    #[must_use]
    pub const fn bytes_of_u32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// Encodes a number as eight bytes.
    #[must_use]
    pub const fn bytes_of_u64(self, value: u64) -> [u8; 8] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// The order in which `bytes`, the first four of a file, are the magic number; `None` if they are not.
    #[must_use]
    pub fn of_magic(bytes: [u8; 4]) -> Option<Self> {
        Self::ALL.iter().copied().find(|order| order.u32(bytes) == MAGIC)
    }
}

/// The positions of the header's fields. Both layouts have version 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderLayout {
    /// The layout that CPython 3.15 writes since its release: the number of samples has 64 bits, and there is a
    /// configuration word.
    #[default]
    New,
    /// The layout of the specification and of the previews of 3.15: the number of samples has 32 bits.
    Old,
}

/// The header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileHeader {
    /// The byte order of the file's numbers.
    pub byte_order: ByteOrder,
    /// The layout of the fields.
    pub layout: HeaderLayout,
    /// The version of the format; 1.
    pub version: u32,
    /// The version of the profiled Python: major, minor, micro.
    pub python: [u8; 3],
    /// The start of profiling, in microseconds of a monotonic clock. The file holds no wall time.
    pub start_us: u64,
    /// The requested sampling period.
    pub interval_us: u64,
    /// The number of samples: one per thread and tick.
    pub samples: u64,
    /// The number of pairs of thread and interpreter.
    pub threads: u32,
    /// The end of the samples and the start of the strings.
    pub strings_offset: u64,
    /// The start of the frames.
    pub frames_offset: u64,
    /// The compression of the samples: [`COMPRESSION_NONE`] or [`COMPRESSION_ZSTD`].
    pub compression: u32,
    /// The sampling configuration; 0 in the old layout, which has none.
    pub config: Config,
}

/// The samples are not compressed.
pub const COMPRESSION_NONE: u32 = 0;

/// The samples are a Zstandard stream.
pub const COMPRESSION_ZSTD: u32 = 1;

impl FileHeader {
    /// Decodes the fields of `bytes` without checking them.
    #[must_use]
    pub fn decode(bytes: &[u8; HEADER_BYTES], byte_order: ByteOrder, layout: HeaderLayout) -> Self {
        let u32_at = |at: usize| byte_order.u32(field(bytes, at));
        let u64_at = |at: usize| byte_order.u64(field(bytes, at));
        let (samples, at) = match layout {
            HeaderLayout::New => (u64_at(28), 36),
            HeaderLayout::Old => (u64::from(u32_at(28)), 32),
        };
        let config = match layout {
            HeaderLayout::New => Config(u32_at(60)),
            HeaderLayout::Old => Config(0),
        };
        Self {
            byte_order,
            layout,
            version: u32_at(4),
            python: field(bytes, 8),
            start_us: u64_at(12),
            interval_us: u64_at(20),
            samples,
            threads: u32_at(at),
            strings_offset: u64_at(at + 4),
            frames_offset: u64_at(at + 12),
            compression: u32_at(at + 20),
            config,
        }
    }

    /// Encodes the header. In the old layout the number of samples must fit 32 bits.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let order = self.byte_order;
        let mut out = [0; HEADER_BYTES];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &order.bytes_of_u32(MAGIC));
        put(4, &order.bytes_of_u32(self.version));
        put(8, &self.python);
        put(12, &order.bytes_of_u64(self.start_us));
        put(20, &order.bytes_of_u64(self.interval_us));
        let at = match self.layout {
            HeaderLayout::New => {
                put(28, &order.bytes_of_u64(self.samples));
                put(60, &order.bytes_of_u32(self.config.0));
                36
            }
            HeaderLayout::Old => {
                put(28, &order.bytes_of_u32(u32::try_from(self.samples).unwrap_or(u32::MAX)));
                32
            }
        };
        put(at, &order.bytes_of_u32(self.threads));
        put(at + 4, &order.bytes_of_u64(self.strings_offset));
        put(at + 12, &order.bytes_of_u64(self.frames_offset));
        put(at + 20, &order.bytes_of_u32(self.compression));
        out
    }

    /// Whether the sections follow each other in a file of `file_bytes`.
    ///
    /// Read in the wrong layout a header has offsets above 2³², so no file below that size is ever consistent in both.
    #[must_use]
    pub fn is_consistent(&self, file_bytes: usize) -> bool {
        let body = file_bytes.saturating_sub(FOOTER_BYTES) as u64;
        (HEADER_BYTES as u64) <= self.strings_offset
            && self.strings_offset <= self.frames_offset
            && self.frames_offset <= body
    }
}

/// `N` bytes of the header at a constant offset of the layout.
fn field<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("fields lie within the header")
}

/// The configuration word: the mode and features of the sampling.
///
/// Source: CPython 3.15.2, header bytes 60 to 63; the command line's default is 0x49.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config(pub u32);

impl Config {
    /// The names of the modes, from 1 upwards; 0 is unknown.
    pub const MODES: [&'static str; 5] = ["wall", "cpu", "gil", "all", "exception"];

    /// The names of the features, from bit 4 upwards.
    pub const FEATURES: [&'static str; 5] = ["all_threads", "native", "gc", "opcodes", "blocking"];

    const MODE_BITS: u32 = 7;
    const FEATURES_KNOWN: u32 = 1 << 3;

    /// Creates a word from the names of a mode and features. Names unknown to the format are ignored.
    #[must_use]
    pub fn named<'n>(mode: Option<&str>, features: Option<impl Iterator<Item = &'n str>>) -> Self {
        let mut word = mode.map_or(Self(0), |mode| Self(0).with_mode(mode)).0;
        for feature in features.into_iter().flatten() {
            let bit = (4..).zip(Self::FEATURES).find(|(_, name)| *name == feature);
            word |= Self::FEATURES_KNOWN | bit.map_or(0, |(bit, _): (u32, _)| 1 << bit);
        }
        Self(word)
    }

    /// Sets the mode by name; names unknown to the format make it unknown.
    #[must_use]
    pub fn with_mode(self, mode: &str) -> Self {
        let number = (1..).zip(Self::MODES).find(|(_, name)| *name == mode);
        Self(self.0 & !Self::MODE_BITS | number.map_or(0, |(number, _)| number))
    }

    /// Marks the features as known: those that are set, and no others.
    #[must_use]
    pub const fn with_features_known(self) -> Self {
        Self(self.0 | Self::FEATURES_KNOWN)
    }

    /// The facts common to both: a mode, or features, that differ become unknown.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        let differing = self.0 ^ other.0;
        let mode = if differing & Self::MODE_BITS == 0 { self.0 & Self::MODE_BITS } else { 0 };
        let features = if differing & !Self::MODE_BITS == 0 { self.0 & !Self::MODE_BITS } else { 0 };
        Self(mode | features)
    }

    /// The number of the mode: 0 is unknown, 6 and 7 are invalid.
    #[must_use]
    pub const fn mode_number(self) -> u32 {
        self.0 & Self::MODE_BITS
    }

    /// The name of the mode.
    #[must_use]
    pub fn mode(self) -> Option<&'static str> {
        Self::MODES.get((self.mode_number() as usize).checked_sub(1)?).copied()
    }

    /// The number of known facts among mode and features.
    pub(super) fn entries(self) -> u64 {
        u64::from(self.mode().is_some()) + u64::from(self.features().is_some())
    }

    /// The names of the features; `None` if they are unknown.
    #[must_use]
    pub fn features(self) -> Option<impl Iterator<Item = &'static str>> {
        let is_set = move |&(bit, _): &(u32, &str)| self.0 >> bit & 1 == 1;
        let named = (4..).zip(Self::FEATURES).filter(is_set).map(|(_, name)| name);
        (self.0 & Self::FEATURES_KNOWN != 0).then_some(named)
    }
}

/// The footer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footer {
    /// The number of strings.
    pub strings: u32,
    /// The number of frames.
    pub frames: u32,
    /// The size of the whole file. After it come 16 bytes for a checksum, not written yet.
    pub file_bytes: u64,
}

impl Footer {
    /// Decodes the footer at the start of `cursor`.
    ///
    /// # Errors
    /// If it is cut off.
    pub fn decode(cursor: &mut Cursor<'_>, order: ByteOrder) -> Result<Self, borehole_wire::Error> {
        let footer = Self {
            strings: order.u32(cursor.array()?),
            frames: order.u32(cursor.array()?),
            file_bytes: order.u64(cursor.array()?),
        };
        cursor.bytes(16)?;
        Ok(footer)
    }

    /// Encodes the footer.
    #[must_use]
    pub fn encode(&self, order: ByteOrder) -> [u8; FOOTER_BYTES] {
        let mut out = [0; FOOTER_BYTES];
        out[..4].copy_from_slice(&order.bytes_of_u32(self.strings));
        out[4..8].copy_from_slice(&order.bytes_of_u32(self.frames));
        out[8..16].copy_from_slice(&order.bytes_of_u64(self.file_bytes));
        out
    }
}

/// The kinds of records, with their numbers in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum RecordKind {
    /// Samples of the thread's last stack, each with its time and status.
    Repeat = 0,
    /// A whole stack.
    Full = 1,
    /// A prefix of the last stack's outer frames, and new ones.
    Suffix = 2,
    /// The last stack without some inner frames, and new ones.
    PopPush = 3,
}

impl RecordKind {
    /// All kinds, in order of their numbers.
    pub const ALL: &'static [Self] = &[Self::Repeat, Self::Full, Self::Suffix, Self::PopPush];

    /// The name in the specification.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Repeat => "REPEAT",
            Self::Full => "FULL",
            Self::Suffix => "SUFFIX",
            Self::PopPush => "POP_PUSH",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_round_trip_in_both_orders_and_are_never_confused() {
        for &byte_order in ByteOrder::ALL {
            for layout in [HeaderLayout::New, HeaderLayout::Old] {
                let config = if layout == HeaderLayout::New { Config(0x49) } else { Config(0) };
                let header = FileHeader {
                    byte_order,
                    layout,
                    version: 1,
                    python: [3, 15, 2],
                    start_us: 7_000_000,
                    interval_us: 1000,
                    samples: 12,
                    threads: 3,
                    strings_offset: 100,
                    frames_offset: 200,
                    compression: 1,
                    config,
                };
                let bytes = header.encode();
                assert_eq!(ByteOrder::of_magic(*bytes.first_chunk().unwrap()), Some(byte_order));
                for other in [HeaderLayout::New, HeaderLayout::Old] {
                    let read = FileHeader::decode(&bytes, byte_order, other);
                    assert_eq!(read.is_consistent(1000), other == layout);
                    assert_eq!(read == header, other == layout);
                }
            }
        }
    }

    #[test]
    fn the_configuration_word_has_names() {
        let default = Config(0x49);
        assert_eq!(default.mode(), Some("wall"));
        assert_eq!(default.features().unwrap().collect::<Vec<_>>(), ["gc"]);
        assert_eq!(Config::named(Some("wall"), Some(["gc"].into_iter())), default);
        assert_eq!(Config::named(Some("wall"), Some([].into_iter())).with_features_known(), Config(9));
        assert!(Config(0).mode().is_none() && Config(0).features().is_none());
        assert!(Config(6).mode().is_none() && Config(7).mode().is_none());
    }
}
