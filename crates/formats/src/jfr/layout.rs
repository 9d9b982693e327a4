//! The numbers of a chunk.
//!
//! Source: OpenJDK 17, `jdk/jfr/internal/consumer/ChunkHeader.java`, `RecordingInput.java`, `MetadataReader.java`,
//! `ChunkParser.java` and `ParserFactory.java`.

/// The first bytes of a chunk.
pub(super) const MAGIC: &[u8; 4] = b"FLR\0";

/// The bytes of the header of a chunk.
pub(super) const HEADER_BYTES: usize = 68;

/// The flag of a chunk whose numbers are compressed. All writers set it.
pub(super) const COMPRESSED_NUMBERS: u32 = 1;

/// The types of events that describe the others.
pub(super) mod event {
    pub(crate) const METADATA: u64 = 0;
    pub(crate) const CONSTANTS: u64 = 1;
}

/// The first byte of a text.
pub(super) mod text {
    pub(crate) const ABSENT: u8 = 0;
    pub(crate) const EMPTY: u8 = 1;
    /// A constant of the type `java.lang.String`.
    pub(crate) const CONSTANT: u8 = 2;
    pub(crate) const UTF8: u8 = 3;
    pub(crate) const CHARACTERS: u8 = 4;
    pub(crate) const LATIN1: u8 = 5;
}

/// The most structures that may be inside of each other.
pub(super) const DEEPEST_VALUE: u32 = 16;
