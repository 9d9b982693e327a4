//! Compressed members: gzip members and Zstandard frames, with decoders that are kept.

use std::{fmt, io};

use flate2::{Decompress, FlushDecompress, Status};

use super::gzip::MEMBER_MAGIC;
use super::step::{InflateStep, MemberFault, MemberState};
#[cfg(feature = "zstd")]
use super::zstd::{FRAME_MAGIC, FrameDecoder, is_possible_frame, is_skippable};

/// The first bytes of members.
pub(crate) const MAGICS: &[&[u8]] = &[
    &MEMBER_MAGIC,
    #[cfg(feature = "zstd")]
    &FRAME_MAGIC,
];

/// The first byte of each kind of member, for a search.
pub const FIRST_BYTES: [u8; 2] = [MAGICS[0][0], MAGICS[MAGICS.len() - 1][0]];

/// The length of the longest magic number of a member.
pub const MAGIC_BYTES: usize = 4;

/// The compression of a member. [`fmt::Display`] writes the name of such a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// A gzip member.
    Gzip,
    /// A Zstandard frame.
    Zstd,
}

impl Method {
    /// The compression of the member at the start of `bytes`; `None` if there is no member.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole_wire::envelope::Method;
    ///
    /// assert_eq!(Method::of(&[0x1f, 0x8b, 8, 0]), Some(Method::Gzip));
    /// assert_eq!(Method::of(b"main;query 3\n"), None);
    /// ```
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let index = MAGICS.iter().position(|magic| bytes.starts_with(magic))?;
        Some(if index == 0 { Self::Gzip } else { Self::Zstd })
    }

    /// Whether the bytes after the magic number may belong to a member, by the bits that have to be zero.
    pub(crate) fn may_begin(self, bytes: &[u8]) -> bool {
        match self {
            #[cfg(feature = "zstd")]
            Self::Zstd => is_possible_frame(bytes.get(FRAME_MAGIC.len()..).unwrap_or_default()),
            _ => is_possible_gzip(bytes.get(MEMBER_MAGIC.len()..).unwrap_or_default()),
        }
    }

    /// Like [`of`](Self::of), but expects a member: the input may end within its magic number, and skippable frames are
    /// accepted.
    pub(crate) fn expected(bytes: &[u8]) -> Option<Self> {
        // Two bytes suffice only at the end of the input.
        if bytes == &MEMBER_MAGIC[..2] {
            return Some(Self::Gzip);
        }
        #[cfg(feature = "zstd")]
        if is_skippable(bytes) {
            return Some(Self::Zstd);
        }
        Self::of(bytes)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip member",
            Self::Zstd => "zstd frame",
        })
    }
}

/// Decompresses one member after the other.
#[derive(Default)]
pub(crate) struct Decoders {
    /// Without its member, it could not be made to expect a gzip header again.
    gzip: Option<Box<Decompress>>,
    /// Kept for all frames: a context takes as long to create as a megabyte to decompress.
    #[cfg(feature = "zstd")]
    zstd: Option<Box<FrameDecoder>>,
}

impl Decoders {
    /// Begins a member.
    ///
    /// # Errors
    /// If there is no memory for the decoder.
    pub(crate) fn begin(&mut self, method: Method) -> io::Result<()> {
        match method {
            #[cfg(feature = "zstd")]
            Method::Zstd => match &mut self.zstd {
                Some(frame) => frame.restart()?,
                none => *none = Some(Box::new(FrameDecoder::new()?)),
            },
            _ => self.gzip = Some(Box::new(Decompress::new_gzip(15))),
        }
        Ok(())
    }

    /// Decompresses `input` into `output` as far as possible. A step that consumes and produces nothing needs more
    /// input.
    pub(crate) fn step(&mut self, method: Method, input: &[u8], output: &mut [u8]) -> InflateStep {
        let step = match method {
            #[cfg(feature = "zstd")]
            Method::Zstd => self.zstd.as_mut().map(|frame| frame.step(input, output)),
            _ => self.gzip.as_mut().map(|inflate| gzip_step(inflate, input, output)),
        };
        let failed = MemberState::Failed(MemberFault::Invalid);
        step.unwrap_or(InflateStep { consumed: 0, produced: 0, state: failed })
    }
}

/// The length of the header of the gzip member at the start of `bytes`; `None` if it is not whole.
///
/// Source: RFC 1952, section 2.3.
pub(crate) fn gzip_header_bytes(bytes: &[u8]) -> Option<usize> {
    const FIXED_BYTES: usize = 10;
    let flags = *bytes.get(MEMBER_MAGIC.len())?;
    let mut at = FIXED_BYTES;
    if flags & 0x04 != 0 {
        let [low, high] = *bytes.get(at..)?.first_chunk()?;
        at += 2 + usize::from(u16::from_le_bytes([low, high]));
    }
    // A name, and a comment.
    for _ in 0..(flags >> 3 & 1) + (flags >> 4 & 1) {
        at += bytes.get(at..)?.iter().position(|&byte| byte == 0)? + 1;
    }
    at += if flags & 0x02 == 0 { 0 } else { 2 };
    (at <= bytes.len()).then_some(at)
}

/// Whether the header of a gzip member, without its magic number, and what follows it are possible, as far as they are
/// present.
///
/// Source: RFC 1952, section 2.3.1; RFC 1951, section 3.2.3.
fn is_possible_gzip(header: &[u8]) -> bool {
    match header {
        [flags, ..] if flags & 0xe0 != 0 => false,
        [0, _, _, _, _, _, _, block, ..] => block >> 1 & 3 != 3,
        _ => true,
    }
}

pub(crate) fn gzip_step(inflate: &mut Decompress, input: &[u8], output: &mut [u8]) -> InflateStep {
    let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
    let status = inflate.decompress(input, output, FlushDecompress::None);
    let consumed = usize::try_from(inflate.total_in() - before_in).unwrap_or(0);
    let produced = usize::try_from(inflate.total_out() - before_out).unwrap_or(0);
    let state = match status {
        Ok(Status::StreamEnd) => MemberState::Ended,
        Ok(_) => MemberState::Inside,
        Err(_) => MemberState::Failed(MemberFault::Invalid),
    };
    InflateStep { consumed, produced, state }
}
