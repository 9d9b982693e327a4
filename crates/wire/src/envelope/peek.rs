//! Looks into members without entering them.

use super::Method;
use super::member::Decoders;
use super::step::{InflateStep, MemberFault, MemberState};

/// Decompresses the beginnings of members that a search comes across. It keeps the contexts of its decoders, because
/// creating one takes longer than decompressing many a member.
#[derive(Default)]
pub struct MemberPeek {
    decoders: Decoders,
}

/// What a look into a member has found.
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
        if self.decoders.begin(method).is_err() {
            return Peeked { fault: Some(MemberFault::Invalid), looked_at: Self::BEGIN_BYTES };
        }
        let (mut read, mut written) = (0, 0);
        let fault = loop {
            let step = self.decoders.step(method, &bytes[read..], &mut out[written..]);
            let InflateStep { consumed, produced, state } = step;
            read += consumed;
            written += produced;
            match state {
                _ if written == out.len() => break None,
                MemberState::Failed(fault) => break Some(fault),
                MemberState::Ended => break Some(MemberFault::Invalid),
                MemberState::Inside if consumed == 0 && produced == 0 => break Some(MemberFault::Truncated),
                MemberState::Inside => {}
            }
        };
        Peeked { fault, looked_at: Self::BEGIN_BYTES + read as u64 }
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
