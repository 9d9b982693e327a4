//! The sample region as a window of decompressed bytes.
//!
//! Without compression the window is the whole region, borrowed. With it, a decoder fills a buffer of fixed size as the
//! records are consumed: the region is never decompressed as a whole, so its size is unlimited.

use borehole_wire::zstd::is_skippable;
use zstd::stream::raw::{Decoder, InBuffer, Operation as _, OutBuffer};

/// The number of bytes decompressed at a time.
const WINDOW_BYTES: usize = 256 << 10;

/// The bytes of the records.
pub(super) struct Region<'a> {
    /// The unconsumed bytes of an uncompressed region.
    plain: &'a [u8],
    inflate: Option<Box<Inflate<'a>>>,
    offset: u64,
}

/// The reason why a compressed region yields no more bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RegionDamage {
    /// The decoder's error.
    pub(super) message: String,
    /// The number of compressed bytes after the damage.
    pub(super) unread: u64,
    /// Whether bytes are missing, rather than wrong.
    pub(super) truncated: bool,
}

impl<'a> Region<'a> {
    /// Creates an uncompressed region at `offset`.
    pub(super) const fn plain(bytes: &'a [u8], offset: u64) -> Self {
        Self { plain: bytes, inflate: None, offset }
    }

    /// Creates a compressed region at `offset`. Offsets within it count decompressed bytes.
    pub(super) fn zstd(bytes: &'a [u8], offset: u64) -> Self {
        Self { plain: &[], inflate: Some(Box::new(Inflate::new(bytes, offset))), offset }
    }

    /// Rejects a skippable frame before all others, as CPython does.
    pub(super) fn refuse_leading_skippable_frame(&mut self) {
        if let Some(inflate) = &mut self.inflate
            && is_skippable(inflate.input)
        {
            inflate.fail("expected samples, found a skippable frame before them".to_owned(), false);
        }
    }

    pub(super) const fn is_compressed(&self) -> bool {
        self.inflate.is_some()
    }

    /// The offset of the next byte: in the file, or as if nothing were compressed.
    #[inline]
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The offset in the file of the bytes still to be read.
    pub(super) fn passed_bytes(&self) -> usize {
        let passed = self.inflate.as_ref().map_or(self.offset, |inflate| inflate.offset);
        usize::try_from(passed).unwrap_or(usize::MAX)
    }

    /// The contents of the window.
    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        match &self.inflate {
            None => self.plain,
            Some(inflate) => &inflate.buffer[inflate.start..inflate.end],
        }
    }

    /// Ensures that `count` bytes are in the window, unless there are no more.
    #[inline]
    pub(super) fn ensure(&mut self, count: usize) {
        if let Some(inflate) = &mut self.inflate
            && inflate.end - inflate.start < count
        {
            inflate.fill();
        }
    }

    /// Whether the window ends the region.
    pub(super) fn has_ended(&self) -> bool {
        self.inflate.as_ref().is_none_or(|inflate| inflate.ended)
    }

    #[inline]
    pub(super) fn consume(&mut self, count: usize) {
        self.offset += count as u64;
        match &mut self.inflate {
            None => self.plain = self.plain.get(count..).unwrap_or_default(),
            Some(inflate) => inflate.start += count,
        }
    }

    /// Takes the damage that ended the region early, once everything before it has been consumed.
    pub(super) fn take_damage(&mut self) -> Option<RegionDamage> {
        self.inflate.as_mut().and_then(|inflate| inflate.damage.take())
    }
}

/// The number of bytes that determine the kind of a frame.
const FRAME_BEGINNING_BYTES: usize = 5;

/// Decompresses frame after frame.
struct Inflate<'a> {
    decoder: Option<Decoder<'static>>,
    input: &'a [u8],
    /// The offset of `input` in the file.
    offset: u64,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The number of bytes that the decoder wants next: given exactly those, an error loses at most a block.
    wanted: usize,
    /// Whether a frame has begun and not ended, or none has begun yet.
    in_frame: bool,
    ended: bool,
    damage: Option<RegionDamage>,
}

impl<'a> Inflate<'a> {
    fn new(input: &'a [u8], offset: u64) -> Self {
        Self {
            decoder: Decoder::new().ok(),
            input,
            offset,
            buffer: vec![0; WINDOW_BYTES],
            start: 0,
            end: 0,
            wanted: FRAME_BEGINNING_BYTES,
            in_frame: true,
            ended: false,
            damage: None,
        }
    }

    /// Moves the remaining bytes to the front and fills the buffer after them.
    #[cold]
    fn fill(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < self.buffer.len() && !self.ended {
            self.step();
        }
    }

    fn step(&mut self) {
        if self.input.is_empty() && !self.in_frame {
            self.ended = true;
            return;
        }
        let Some(decoder) = &mut self.decoder else {
            return self.fail("cannot create the decoder".to_owned(), false);
        };
        let mut input = InBuffer::around(&self.input[..self.input.len().min(self.wanted)]);
        let mut output = OutBuffer::around(&mut self.buffer[self.end..]);
        let outcome = decoder.run(&mut input, &mut output);
        let (consumed, produced) = (input.pos(), output.pos());
        self.input = &self.input[consumed..];
        self.offset += consumed as u64;
        self.end += produced;
        match outcome {
            Err(error) => self.fail(error.to_string(), false),
            Ok(hint) => {
                self.in_frame = hint != 0;
                self.wanted = if hint == 0 { FRAME_BEGINNING_BYTES } else { hint };
                if hint != 0 && consumed == 0 && produced == 0 {
                    self.fail("expected the rest of a frame".to_owned(), true);
                }
            }
        }
    }

    #[cold]
    fn fail(&mut self, what: String, truncated: bool) {
        let sort = if truncated { "truncated" } else { "invalid" };
        let message = format!("{sort} Zstandard stream: {what}");
        self.damage = Some(RegionDamage { message, unread: self.input.len() as u64, truncated });
        self.ended = true;
    }
}

/// The length of the first frame of `bytes`; `None` if it is incomplete.
pub(super) fn frame_bytes(bytes: &[u8]) -> Option<usize> {
    zstd::zstd_safe::find_frame_compressed_size(bytes).ok().filter(|&length| length <= bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(mut region: Region<'_>) -> (Vec<u8>, Option<RegionDamage>) {
        let mut all = Vec::new();
        loop {
            region.ensure(1);
            let count = region.rest().len().min(1000);
            if count == 0 {
                return (all, region.take_damage());
            }
            all.extend_from_slice(&region.rest()[..count]);
            region.consume(count);
        }
    }

    #[test]
    fn frames_follow_each_other_through_a_window() {
        let content: Vec<u8> =
            (0..900_000_u32).map(|index| index.to_le_bytes()[(index % 3) as usize]).collect();
        let (first, second) = content.split_at(500_000);
        let frames = [first, second].map(|part| zstd::bulk::compress(part, 5).unwrap());
        assert_eq!(frame_bytes(&frames.concat()), Some(frames[0].len()));
        let (all, damage) = drain(Region::zstd(&frames.concat(), 64));
        assert!(all == content && damage.is_none());
    }

    #[test]
    fn bytes_before_damage_are_returned() {
        let content = b"once upon a time ".repeat(60_000);
        let frame = zstd::bulk::compress(&content, 1).unwrap();
        let (all, damage) = drain(Region::zstd(&frame[..frame.len() - 1], 64));
        assert!(!all.is_empty() && content.starts_with(&all));
        assert!(damage.unwrap().truncated);
        let (all, damage) = drain(Region::zstd(&[&frame[..], b"rubbish"].concat(), 64));
        assert!(all == content && !damage.unwrap().truncated);
        assert!(drain(Region::zstd(b"", 64)).1.unwrap().truncated);
        let (middle, mut wrong) = (frame.len() / 2, frame);
        wrong[middle] ^= 0x10;
        let (all, damage) = drain(Region::zstd(&wrong, 64));
        assert!(damage.is_some() || all != content);
    }
}
