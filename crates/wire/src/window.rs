//! A sliding view of the decompressed input.
//!
//! It holds one record or one chunk of input, whichever is larger, and grows only by bytes that really arrived.

use std::io::{self, Read};

use crate::envelope::{Damage, Envelope, Method};

const CHUNK_BYTES: usize = 64 << 10;

/// A sliding view of an [`Envelope`]'s decompressed bytes, of one record or one chunk, whichever is larger.
pub struct Window<R> {
    input: Envelope<R>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// The offset of `bytes[0]`.
    base: u64,
    ended: bool,
    /// The offset up to which the bytes were decompressed from a member.
    compressed_until: u64,
    damage: Option<Damage>,
    /// Whether the damage has been reported and may be skipped.
    damaged: bool,
    /// The first bytes of the parts that may follow a damaged member.
    magic: &'static [u8],
}

impl<R: Read> Window<R> {
    /// Creates a view of `input`, whose self-contained parts begin with `magic`.
    pub fn new(input: Envelope<R>, magic: &'static [u8]) -> Self {
        Self {
            input,
            bytes: vec![0; CHUNK_BYTES],
            start: 0,
            end: 0,
            base: 0,
            ended: false,
            compressed_until: 0,
            damage: None,
            damaged: false,
            magic,
        }
    }

    /// The available bytes.
    #[inline]
    pub fn available(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The offset of the first available byte, after decompression.
    #[inline]
    pub const fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Whether the input has ended.
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Consumes `count` available bytes, or all of them if there are fewer.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
    }

    /// Consumes all but the last `count` available bytes.
    #[inline]
    pub const fn keep(&mut self, count: usize) {
        self.start = self.end.saturating_sub(count);
    }

    /// Reads until `count` bytes are available or the input ends.
    ///
    /// # Errors
    /// If the input cannot be read.
    #[inline]
    pub fn ensure(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.end - self.start < count && !self.ended {
            self.fill()?;
        }
        Ok(self.available())
    }

    /// Reads one more chunk. A damaged member ends the input here; the damage is recorded.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn fill(&mut self) -> io::Result<()> {
        self.make_room();
        match self.input.read(&mut self.bytes[self.end..]) {
            Ok(0) => self.ended = true,
            Ok(count) => {
                self.end += count;
                if self.input.is_compressed() {
                    self.compressed_until = self.offset() + (self.end - self.start) as u64;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => match Damage::of(&error) {
                Some(damage) => {
                    self.damage = Some(damage);
                    self.ended = true;
                }
                None => return Err(error),
            },
        }
        Ok(())
    }

    /// Makes room for a chunk. Available bytes move to the front only when half of the room is used up, so that each
    /// byte moves a bounded number of times.
    fn make_room(&mut self) {
        if self.start == self.end || self.start >= self.bytes.len() / 2 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.base += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        if self.bytes.len() - self.end < CHUNK_BYTES / 2 {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
    }

    /// Takes the damage that ended the input.
    pub const fn take_damage(&mut self) -> Option<Damage> {
        let damage = self.damage.take();
        self.damaged |= damage.is_some();
        damage
    }

    /// Skips the damage that ended the input, if there was any: reading continues at the next member or magic. Returns
    /// the number of input bytes skipped.
    pub fn past_damage(&mut self) -> Option<io::Result<u64>> {
        let damaged = std::mem::take(&mut self.damaged);
        damaged.then(|| {
            self.ended = false;
            self.input.skip_damage(self.magic)
        })
    }

    /// Whether the available bytes are the first after a member.
    pub const fn is_behind_member(&self) -> bool {
        self.compressed_until > 0 && self.offset() == self.compressed_until
    }

    /// Whether a member may begin here, in the middle of plain data.
    pub fn at_member(&self) -> bool {
        self.member_at(0).is_some()
    }

    /// The bytes from `at` on, if a member may begin there, in the middle of plain data.
    pub fn member_at(&self, at: usize) -> Option<&[u8]> {
        let bytes = self.available().get(at..)?;
        let plain = self.offset() + at as u64 >= self.compressed_until;
        (plain && Method::of(bytes).is_some()).then_some(bytes)
    }

    /// Continues by decompressing the available bytes and the following ones.
    pub fn enter_member(&mut self) {
        self.input.unread_member(&self.bytes[self.start..self.end]);
        self.end = self.start;
        self.ended = false;
    }

    /// The envelope that is read from.
    pub const fn envelope(&self) -> &Envelope<R> {
        &self.input
    }
}
