//! Many small places in memory, read in few pieces.

use borehole_process::{Error, ForeignMemory, MemoryPiece};

/// Places nearer to each other than this are read as one piece. The memory between them is mapped: it lies in the page of one or
/// the other.
const NEAR: u64 = 256;

/// The number of pieces in one call.
const PIECES: usize = 512;

/// Two copies of a span are compared by so many bytes, each of which has changed or has not.
const BLOCK: usize = 128;

/// Memory between two addresses, in which places are.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u64,
    end: u64,
    /// Its place in the bytes.
    offset: usize,
    is_read: bool,
    was_read: bool,
}

impl Span {
    fn len(&self) -> usize {
        usize::try_from(self.end - self.start).unwrap_or(usize::MAX)
    }
}

/// A copy of the memory at some places, and the copy before it.
#[derive(Debug, Default)]
pub(crate) struct MemorySpans {
    /// In order of their addresses.
    spans: Vec<Span>,
    bytes: Vec<u8>,
    before: Vec<u8>,
}

impl MemorySpans {
    /// The spans that cover these places, which are addresses and lengths. Nothing is read yet.
    pub(crate) fn over(places: impl Iterator<Item = (u64, usize)>) -> Self {
        let mut places: Vec<(u64, u64)> =
            places.map(|(address, length)| (address, address.saturating_add(length as u64))).collect();
        places.sort_unstable();
        let (mut spans, mut offset): (Vec<Span>, usize) = (Vec::new(), 0);
        for (start, end) in places {
            match spans.last_mut() {
                Some(last) if start <= last.end.saturating_add(NEAR) => {
                    offset -= last.len();
                    last.end = last.end.max(end);
                    offset += last.len();
                }
                _ => {
                    spans.push(Span { start, end, offset, is_read: false, was_read: false });
                    offset += spans.last().map_or(0, Span::len);
                }
            }
        }
        Self { spans, bytes: vec![0; offset], before: vec![0; offset] }
    }

    /// Reads everything again, but what cannot be read.
    pub(crate) fn read(&mut self, memory: &impl ForeignMemory) -> Result<(), Error> {
        let Self { spans, bytes, before } = self;
        std::mem::swap(bytes, before);
        for span in &mut *spans {
            span.was_read = std::mem::take(&mut span.is_read);
        }
        let mut rest = spans.as_mut_slice();
        while !rest.is_empty() {
            let count = rest.len().min(PIECES);
            let mut space = &mut bytes[rest[0].offset..];
            let pieces = rest[..count].iter().map(|span| {
                let (into, behind) = std::mem::take(&mut space).split_at_mut(span.len());
                space = behind;
                MemoryPiece { address: span.start, into }
            });
            let mut filled = memory.read_pieces(&mut pieces.collect::<Vec<_>>())?;
            let mut done = 0;
            for span in &mut rest[..count] {
                done += 1;
                span.is_read = span.len() <= filled;
                if !span.is_read {
                    // Its memory is gone: the next call goes on behind it.
                    break;
                }
                filled -= span.len();
            }
            rest = &mut rest[done..];
        }
        Ok(())
    }

    /// The stretches of addresses, in their order, that the last two copies do not agree on.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.spans.iter().flat_map(|span| {
            let place = span.offset..span.offset + span.len();
            let is_known = span.is_read && span.was_read;
            let blocks = self.bytes[place.clone()].chunks(BLOCK).zip(self.before[place].chunks(BLOCK));
            let starts = (span.start..).step_by(BLOCK);
            let changed = starts.zip(blocks).filter(move |(_, (now, before))| !is_known || now != before);
            changed.map(|(start, (now, _))| (start, start + now.len() as u64))
        })
    }

    /// The bytes of a place; `None` if it is in no span, or could not be read.
    pub(crate) fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let span = self.find(address, length).filter(|span| span.is_read)?;
        let start = span.offset + usize::try_from(address - span.start).ok()?;
        self.bytes.get(start..start + length)
    }

    fn find(&self, address: u64, length: usize) -> Option<&Span> {
        let at = self.spans.partition_point(|span| span.start <= address).checked_sub(1)?;
        let end = address.checked_add(length as u64)?;
        self.spans.get(at).filter(|span| end <= span.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory in which each byte is the low byte of its address; there is none from this address on for a page.
    struct Gap(u64);

    impl ForeignMemory for Gap {
        fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
            let mut filled = 0;
            for piece in pieces {
                let end = piece.address + piece.into.len() as u64;
                if piece.address < self.0 + 4096 && end > self.0 {
                    break;
                }
                for (byte, address) in piece.into.iter_mut().zip(piece.address..) {
                    *byte = address.to_le_bytes()[0];
                }
                filled += piece.into.len();
            }
            Ok(filled)
        }
    }

    #[test]
    fn near_places_are_one_span_and_what_is_gone_is_told() {
        let places = [(0x1010, 8), (0x1000, 16), (0x1080, 32), (0x9000, 8), (0x20000, 8)];
        let mut spans = MemorySpans::over(places.into_iter());
        assert_eq!(spans.spans.len(), 3, "{spans:?}");
        assert!(spans.bytes(0x1000, 16).is_none());
        spans.read(&Gap(0x9000)).unwrap();
        assert_eq!(spans.bytes(0x1080, 3), Some(&[0x80, 0x81, 0x82][..]));
        assert_eq!(spans.bytes(0x20000, 8).map(|bytes| bytes[7]), Some(7));
        for (address, length) in [(0x9000, 8), (0x20000, 9), (0xfff, 2), (u64::MAX, 2)] {
            assert!(spans.bytes(address, length).is_none(), "{address:x}");
        }
    }

    /// Memory whose bytes are all this number from one address on, and 0 before.
    struct From(u64, u8);

    impl ForeignMemory for From {
        fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
            for piece in &mut *pieces {
                for (byte, address) in piece.into.iter_mut().zip(piece.address..) {
                    *byte = if address < self.0 { 0 } else { self.1 };
                }
            }
            Ok(pieces.iter().map(|piece| piece.into.len()).sum())
        }
    }

    #[test]
    fn changes_are_told_by_blocks() {
        let mut spans = MemorySpans::over([(0x1000, 300), (0x9000, 8)].into_iter());
        spans.read(&From(0x9000, 1)).unwrap();
        assert_eq!(spans.changes().count(), 4, "there is no copy before the first one");
        spans.read(&From(0x9000, 1)).unwrap();
        assert_eq!(spans.changes().count(), 0);
        spans.read(&From(0x1080, 1)).unwrap();
        assert_eq!(spans.changes().collect::<Vec<_>>(), [(0x1080, 0x1100), (0x1100, 0x112c)]);
        spans.read(&Gap(0x9000)).unwrap();
        assert!(spans.changes().any(|change| change == (0x9000, 0x9008)), "it is gone");
    }

    #[test]
    fn many_spans_are_read_in_several_calls() {
        let places = (0..2000).map(|index| (index * 0x1000 + 5, 3));
        let mut spans = MemorySpans::over(places.clone());
        spans.read(&Gap(0x70_0000)).unwrap();
        let unread = places.filter(|&(address, length)| spans.bytes(address, length) != Some(&[5, 6, 7]));
        assert_eq!(unread.collect::<Vec<_>>(), [(0x70_0005, 3)]);
    }
}
