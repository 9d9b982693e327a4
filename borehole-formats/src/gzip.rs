//! The gzip envelope: plain bytes, gzip members, or a mixture, as one stream of decompressed bytes.
//!
//! Content decides, not names. Every member of a concatenation is read; zero padding after a member is
//! skipped; plain bytes may follow a member; and a caller that knows where a record of plain data ends can
//! look for a member there with [`Envelope::unread_member`]. Everything that a damaged member still yields
//! comes out before the damage is reported.

use std::io::{self, Read};
use std::{error, fmt};

use flate2::{Decompress, FlushDecompress, Status};
use memchr::memmem;

pub use crate::gzip_writer::GzipWriter;

/// The first bytes of a gzip member: its magic number and the only defined compression method.
///
/// Source: RFC 1952, section 2.3.1.
pub const MEMBER_MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

/// Reads an input of plain bytes and gzip members.
pub struct Envelope<R> {
    input: R,
    /// Up to `start` what was used, the last [`KEPT_BYTES`] of it at least; up to `end` what was not.
    raw: Vec<u8>,
    start: usize,
    end: usize,
    raw_offset: u64,
    input_ended: bool,
    mode: Mode,
    /// Whether the bytes that were read last came out of a member.
    from_member: bool,
    /// Where the member that was found damaged last starts, and whether anything came out of it.
    damaged_member: (u64, bool),
    skipped_zeros: u64,
}

enum Mode {
    /// Before the first byte, or after a member.
    Boundary {
        after_member: bool,
    },
    Plain,
    Member {
        inflate: Box<Decompress>,
        offset: u64,
    },
    /// A damaged member, already drained; the damage has still to be reported.
    Damaged(Damage),
    End,
}

/// What is wrong with a gzip member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where the member starts in the compressed input.
    pub member_offset: u64,
    /// Where the damage was met in the compressed input.
    pub offset: u64,
    /// Whether the input merely ends too early.
    pub truncated: bool,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.truncated { "truncated" } else { "invalid" };
        let Self { member_offset, offset, .. } = self;
        write!(f, "{what} gzip member: starts at byte {member_offset:#x} of the compressed file, ")?;
        write!(f, "is damaged at byte {offset:#x}")
    }
}

impl error::Error for Damage {}

impl From<Damage> for io::Error {
    fn from(damage: Damage) -> Self {
        let kind = if damage.truncated { io::ErrorKind::UnexpectedEof } else { io::ErrorKind::InvalidData };
        Self::new(kind, damage)
    }
}

const RAW_BYTES: usize = 64 << 10;

/// How far one can go back behind a damage to find what a member has swallowed, however the input comes in.
const KEPT_BYTES: usize = 64 << 10;

impl<R: Read> Envelope<R> {
    /// An envelope around `input`.
    pub fn new(input: R) -> Self {
        Self {
            input,
            raw: vec![0; KEPT_BYTES + RAW_BYTES],
            start: 0,
            end: 0,
            raw_offset: 0,
            input_ended: false,
            mode: Mode::Boundary { after_member: false },
            from_member: false,
            damaged_member: (0, false),
            skipped_zeros: 0,
        }
    }

    /// Whether the bytes that were read last came out of a gzip member. One read never mixes them with plain
    /// ones.
    pub const fn is_compressed(&self) -> bool {
        self.from_member
    }

    /// How many zero bytes of padding after a member were skipped.
    pub const fn skipped_zeros(&self) -> u64 {
        self.skipped_zeros
    }

    /// Takes back plain bytes that the caller has read but not used, which start with a gzip member, and
    /// goes on by decompressing them.
    pub fn unread_member(&mut self, unread: &[u8]) {
        let mut raw = Vec::with_capacity(unread.len() + RAW_BYTES);
        raw.extend_from_slice(unread);
        raw.extend_from_slice(&self.raw[self.start..self.end]);
        self.raw_offset = self.raw_offset.saturating_sub(unread.len() as u64);
        self.start = 0;
        self.end = raw.len();
        raw.resize(raw.len().max(KEPT_BYTES + RAW_BYTES), 0);
        self.raw = raw;
        self.mode = Mode::Boundary { after_member: true };
    }

    /// After damage was reported: goes on with the next member, or the next `plain_magic`, that can be
    /// found in the rest of the input. Answers how many compressed bytes were passed over.
    ///
    /// A member whose own end is damaged swallows what follows, so the next one may begin a little before the
    /// place where the damage was met.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn skip_damage(&mut self, plain_magic: &[u8]) -> io::Result<u64> {
        // A magic number may begin in what was used and end in what was not.
        self.buffer(plain_magic.len().max(MEMBER_MAGIC.len()))?;
        if self.step_back(plain_magic) {
            self.mode = Mode::Boundary { after_member: true };
            return Ok(0);
        }
        let mut passed = 0;
        loop {
            let raw = &self.raw[self.start..self.end];
            let found = [MEMBER_MAGIC.as_slice(), plain_magic]
                .into_iter()
                .filter_map(|magic| memmem::find(raw, magic))
                .min();
            let keep = if self.input_ended { 0 } else { raw.len().min(plain_magic.len().max(3) - 1) };
            let skip = found.unwrap_or(raw.len() - keep);
            self.consume(skip);
            passed += skip as u64;
            if found.is_some() || (self.input_ended && self.start == self.end) {
                self.mode = Mode::Boundary { after_member: true };
                return Ok(passed);
            }
            self.fill()?;
        }
    }

    /// Goes back to what the damaged member has swallowed, if that is still in the buffer. Where something came
    /// out of it only members are looked for: plain segments may stand, uncompressed, inside.
    fn step_back(&mut self, plain_magic: &[u8]) -> bool {
        let (member_offset, has_output) = self.damaged_member;
        let swallowed = self.raw_offset.saturating_sub(member_offset + 1);
        let back = usize::try_from(swallowed).unwrap_or(usize::MAX).min(self.start).min(KEPT_BYTES);
        let from = self.start - back;
        let magics = if has_output { &[MEMBER_MAGIC.as_slice()][..] } else { &[&MEMBER_MAGIC, plain_magic] };
        let found = magics.iter().filter_map(|magic| {
            let until = self.end.min(self.start + magic.len() - 1);
            memmem::find(&self.raw[from..until], magic)
        });
        match found.min() {
            Some(at) if at < back => {
                self.start = from + at;
                self.raw_offset -= (back - at) as u64;
                true
            }
            _ => false,
        }
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        self.raw_offset += count as u64;
    }

    /// Reads more of the input behind what is buffered.
    fn fill(&mut self) -> io::Result<()> {
        if self.end == self.raw.len() {
            let unneeded = self.start.saturating_sub(KEPT_BYTES);
            self.raw.copy_within(unneeded..self.end, 0);
            self.start -= unneeded;
            self.end -= unneeded;
            // Where little is free, each byte would be moved again and again.
            let least = self.end + RAW_BYTES / 2;
            self.raw.resize(self.raw.len().max(least), 0);
        }
        match self.input.read(&mut self.raw[self.end..])? {
            0 => self.input_ended = true,
            count => self.end += count,
        }
        Ok(())
    }

    /// Fills until `count` bytes are buffered or the input has ended.
    fn buffer(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.end - self.start < count && !self.input_ended {
            self.fill()?;
        }
        Ok(&self.raw[self.start..self.end])
    }

    fn enter(&mut self, after_member: bool) -> io::Result<()> {
        let raw = self.buffer(MEMBER_MAGIC.len())?;
        self.mode = match raw {
            [] => Mode::End,
            [0, ..] if after_member => {
                let zeros = raw.iter().take_while(|&&byte| byte == 0).count();
                self.consume(zeros);
                self.skipped_zeros += zeros as u64;
                Mode::Boundary { after_member }
            }
            // Two bytes are enough only where no more come.
            [0x1f, 0x8b] | [0x1f, 0x8b, 8, ..] => {
                let offset = self.raw_offset;
                Mode::Member { inflate: Box::new(Decompress::new_gzip(15)), offset }
            }
            _ => Mode::Plain,
        };
        Ok(())
    }

    fn read_plain(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end {
            return if self.input_ended {
                Ok(0)
            } else {
                self.input.read(out).inspect(|&count| self.note_plain(count))
            };
        }
        let count = out.len().min(self.end - self.start);
        out[..count].copy_from_slice(&self.raw[self.start..self.start + count]);
        self.consume(count);
        Ok(count)
    }

    fn note_plain(&mut self, count: usize) {
        self.raw_offset += count as u64;
        self.input_ended = count == 0;
    }

    /// One step of decompression; `None` when the mode has changed and nothing came out.
    fn read_member(&mut self, out: &mut [u8]) -> io::Result<Option<usize>> {
        if self.start == self.end && !self.input_ended {
            self.fill()?;
        }
        let Mode::Member { inflate, offset } = &mut self.mode else { return Ok(None) };
        let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
        let status = inflate.decompress(&self.raw[self.start..self.end], out, FlushDecompress::None);
        let consumed = usize::try_from(inflate.total_in() - before_in).unwrap_or(0);
        let produced = usize::try_from(inflate.total_out() - before_out).unwrap_or(0);
        let member = (*offset, inflate.total_out() > 0);
        self.consume(consumed);
        match status {
            Ok(Status::StreamEnd) => self.mode = Mode::Boundary { after_member: true },
            Ok(_) if consumed == 0 && produced == 0 && self.input_ended => {
                self.damaged(member, true);
            }
            Ok(_) => {}
            Err(_) => self.damaged(member, false),
        }
        Ok((produced > 0).then_some(produced))
    }

    fn damaged(&mut self, member: (u64, bool), truncated: bool) {
        self.damaged_member = member;
        self.mode = Mode::Damaged(Damage { member_offset: member.0, offset: self.raw_offset, truncated });
    }
}

impl<R: Read> Read for Envelope<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match self.mode {
                Mode::Boundary { after_member } => self.enter(after_member)?,
                Mode::Plain => {
                    self.from_member = false;
                    return self.read_plain(out);
                }
                Mode::Member { .. } => {
                    if let Some(count) = self.read_member(out)? {
                        self.from_member = true;
                        return Ok(count);
                    }
                }
                Mode::Damaged(damage) => {
                    self.mode = Mode::End;
                    return Err(damage.into());
                }
                Mode::End => return Ok(0),
            }
        }
    }
}
