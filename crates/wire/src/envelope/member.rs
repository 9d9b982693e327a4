//! Compressed members: gzip members and Zstandard frames, one decoder per member.

use std::{fmt, io};

use flate2::{Decompress, FlushDecompress, Status};

use super::gzip::MEMBER_MAGIC;
use super::step::{InflateStep, MemberFault, MemberState};
#[cfg(feature = "zstd")]
use super::zstd::{FRAME_MAGIC, FrameDecoder, is_skippable};

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

/// Decompresses one member.
pub(crate) enum Decoder {
    Gzip(Box<Decompress>),
    #[cfg(feature = "zstd")]
    Zstd(Box<FrameDecoder>),
}

impl Decoder {
    pub(crate) fn new(method: Method) -> io::Result<Self> {
        match method {
            #[cfg(feature = "zstd")]
            Method::Zstd => Ok(Self::Zstd(Box::new(FrameDecoder::new()?))),
            _ => Ok(Self::Gzip(Box::new(Decompress::new_gzip(15)))),
        }
    }

    /// Decompresses `input` into `output` as far as possible. A step that consumes and produces nothing needs more
    /// input.
    pub(crate) fn step(&mut self, input: &[u8], output: &mut [u8]) -> InflateStep {
        match self {
            Self::Gzip(inflate) => gzip_step(inflate, input, output),
            #[cfg(feature = "zstd")]
            Self::Zstd(frame) => frame.step(input, output),
        }
    }
}

fn gzip_step(inflate: &mut Decompress, input: &[u8], output: &mut [u8]) -> InflateStep {
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
