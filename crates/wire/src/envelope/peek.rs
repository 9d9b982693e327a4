//! Looks into members without entering them.

use flate2::Decompress;

use super::Method;
use super::member::{gzip_header_bytes, gzip_step};
use super::step::{InflateStep, MemberFault, MemberState};
#[cfg(feature = "zstd")]
use super::zstd::FrameDecoder;

/// Decompresses the beginnings of members that a search comes across. It keeps the contexts of its decoders, because
/// creating one takes longer than decompressing many a member.
#[derive(Default)]
pub struct MemberPeek {
    /// Of the contents of gzip members.
    inflate: Option<Box<Decompress>>,
    #[cfg(feature = "zstd")]
    frame: Option<Box<FrameDecoder>>,
}

/// The result of a look into a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peeked {
    /// Why the member does not yield as many bytes as were wanted; `None` if it does.
    pub fault: Option<MemberFault>,
    /// The number of its bytes that were decompressed, or would have been in the same time.
    pub looked_at: u64,
}

impl MemberPeek {
    /// The number of bytes that could be decompressed in the time that it takes to begin with a member.
    const BEGIN_BYTES: u64 = 512;

    /// Fills `out` with the first bytes of the member at the start of `bytes`. A member that ends too early, or whose
    /// header no compressor writes, is invalid.
    pub fn peek(&mut self, bytes: &[u8], out: &mut [u8]) -> Peeked {
        let Some(method) = Method::of(bytes).filter(|method| method.may_begin(bytes)) else {
            return Peeked { fault: Some(MemberFault::Invalid), looked_at: 1 };
        };
        let (fault, read) = match method {
            #[cfg(feature = "zstd")]
            Method::Zstd => self.peek_frame(bytes, out),
            _ => self.peek_gzip(bytes, out),
        };
        Peeked { fault, looked_at: Self::BEGIN_BYTES + read as u64 }
    }

    fn peek_gzip(&mut self, bytes: &[u8], out: &mut [u8]) -> (Option<MemberFault>, usize) {
        let Some(header) = gzip_header_bytes(bytes) else {
            return (Some(MemberFault::Truncated), bytes.len());
        };
        let inflate = self.inflate.get_or_insert_with(|| Box::new(Decompress::new(false)));
        inflate.reset(false);
        fill(out, &bytes[header..], |input, output| gzip_step(inflate, input, output))
    }

    #[cfg(feature = "zstd")]
    fn peek_frame(&mut self, bytes: &[u8], out: &mut [u8]) -> (Option<MemberFault>, usize) {
        let none = (Some(MemberFault::Invalid), 0);
        if self.frame.is_none() {
            self.frame = FrameDecoder::new().ok().map(Box::new);
        }
        let Some(frame) = &mut self.frame else { return none };
        if frame.restart().is_err() {
            return none;
        }
        fill(out, bytes, |input, output| frame.step(input, output))
    }
}

/// Fills `out` by steps of decompression. Returns the fault that prevents it, and the number of bytes read.
fn fill(
    out: &mut [u8],
    bytes: &[u8],
    mut step: impl FnMut(&[u8], &mut [u8]) -> InflateStep,
) -> (Option<MemberFault>, usize) {
    let (mut read, mut written) = (0, 0);
    loop {
        let InflateStep { consumed, produced, state } = step(&bytes[read..], &mut out[written..]);
        read += consumed;
        written += produced;
        let fault = match state {
            _ if written == out.len() => None,
            MemberState::Failed(fault) => Some(fault),
            MemberState::Ended => Some(MemberFault::Invalid),
            MemberState::Inside if consumed == 0 && produced == 0 => Some(MemberFault::Truncated),
            MemberState::Inside => continue,
        };
        return (fault, read);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::GzipWriter;
    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut writer = GzipWriter::new(Vec::new());
        writer.write_all(content).unwrap();
        writer.complete().unwrap()
    }

    fn peek(bytes: &[u8]) -> (Option<MemberFault>, [u8; 4]) {
        let mut out = [0; 4];
        (MemberPeek::default().peek(bytes, &mut out).fault, out)
    }

    #[test]
    fn a_member_shows_its_first_bytes_whatever_follows() {
        let member = gzip(b"RELI and more");
        assert_eq!(peek(&member), (None, *b"RELI"));
        assert_eq!(peek(&[&member[..], b"rubbish"].concat()), (None, *b"RELI"));
        assert_eq!(peek(&member[..10]).0, Some(MemberFault::Truncated));
        assert_eq!(peek(&gzip(b"RE")).0, Some(MemberFault::Invalid));
        assert_eq!(peek(b"RELI").0, Some(MemberFault::Invalid));
    }

    #[test]
    fn impossible_headers_are_not_decompressed() {
        let mut out = [0; 4];
        let mut looked_at = |bytes: &[u8]| MemberPeek::default().peek(bytes, &mut out).looked_at;
        // A reserved flag, and a reserved kind of block.
        assert_eq!(looked_at(&[0x1f, 0x8b, 8, 0x80, 0, 0, 0, 0, 0, 3, 0]), 1);
        assert_eq!(looked_at(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 7]), 1);
        assert!(looked_at(&gzip(b"RELI")) > 1);
    }

    #[test]
    fn optional_parts_of_a_gzip_header_are_passed_over() {
        let member = gzip(b"RELI");
        let mut header = member[..10].to_vec();
        header[3] = 0x1e;
        header.extend_from_slice(&[3, 0, 1, 2, 3]);
        header.extend_from_slice(b"name\0comment\0cc");
        assert_eq!(peek(&[&header[..], &member[10..]].concat()), (None, *b"RELI"));
        for length in 3..header.len() {
            assert_eq!(peek(&header[..length]).0, Some(MemberFault::Truncated), "{length}");
        }
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn one_context_serves_all_frames() {
        let frame = zstd::bulk::compress(b"RELI", 1).unwrap();
        let mut peek = MemberPeek::default();
        let mut out = [0; 4];
        for _ in 0..3 {
            assert_eq!(peek.peek(&frame, &mut out).fault, None);
            assert_eq!(out, *b"RELI");
            // A frame that is left in its middle, and one that is damaged.
            assert_eq!(peek.peek(&frame[..7], &mut out).fault, Some(MemberFault::Truncated));
            assert_eq!(peek.peek(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0, 7, 0, 0], &mut out).looked_at, 1);
        }
    }
}
