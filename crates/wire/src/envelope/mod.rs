//! The envelope of profiles: plain bytes, gzip members, Zstandard frames, or a mixture, as one stream of decompressed
//! bytes. Frames are members too; they are read only with the feature `zstd`.
//!
//! Members are detected by content, not by file name. All members of a concatenation are read. Zero padding after a
//! member is skipped. Plain bytes may follow a member. A caller that knows where a record of plain data ends can look
//! for a member there with [`Envelope::unread_member`]. All bytes that can be decompressed from a damaged member are
//! returned before the damage is reported.

use std::io::{self, Read};
use std::{error, fmt};

use memchr::memmem;

use crate::Effort;

mod compressed;
mod gzip;
mod member;
mod peek;
mod step;
#[cfg(feature = "zstd")]
pub mod zstd;

pub use compressed::{CompressedWriter, WRITTEN};
pub use gzip::{GzipWriter, MEMBER_MAGIC};
use member::{Decoders, MAGICS};
pub use member::{FIRST_BYTES, MAGIC_BYTES, Method};
pub use peek::{MemberPeek, Peeked};
pub use step::MemberFault;
use step::{InflateStep, MemberState};

/// Reads an input of plain bytes and members.
pub struct Envelope<R> {
    input: R,
    /// Used bytes up to `start`, at least the last [`KEPT_BYTES`] of them; unused bytes from there up to `end`.
    raw: Vec<u8>,
    start: usize,
    end: usize,
    raw_offset: u64,
    input_ended: bool,
    mode: EnvelopeMode,
    /// Whether the last bytes read were decompressed from a member.
    from_member: bool,
    /// The compression of the last member entered.
    method: Method,
    /// The start of the last damaged member, and whether any bytes were decompressed from it.
    damaged_member: (u64, bool),
    decoders: Decoders,
    /// The effort that was spent on damaged members.
    effort: Effort,
    /// The number of last bytes in front of `start` that were read as plain bytes.
    plain_kept: usize,
    /// The largest number of plain bytes that the next read returns.
    plain_most: usize,
    skipped_zeros: u64,
}

enum EnvelopeMode {
    /// Before the first byte, or after a member.
    Boundary {
        after_member: bool,
    },
    Plain,
    Member {
        offset: u64,
        has_output: bool,
    },
    /// A damaged member, drained; the damage is not reported yet.
    Damaged(Damage),
    End,
}

/// The fault of a member, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The start of the member in the compressed input.
    pub member_offset: u64,
    /// The position of the damage in the compressed input.
    pub offset: u64,
    /// The compression of the member.
    pub method: Method,
    /// The fault.
    pub fault: MemberFault,
}

impl Damage {
    /// The damage behind an error of an [`Envelope`]; `None` if reading failed for another reason.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref().and_then(|inner| inner.downcast_ref::<Self>()).copied()
    }

    /// Whether the input merely ends too early.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.fault == MemberFault::Truncated
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { member_offset, offset, method, fault } = self;
        let what = match fault {
            MemberFault::Truncated => "truncated",
            MemberFault::Invalid => "invalid",
            MemberFault::WindowTooLarge { .. } => "unsupported",
        };
        write!(f, "{what} {method}: starts at byte {member_offset:#x} of the compressed file, ")?;
        match fault {
            MemberFault::WindowTooLarge { max_bytes } => {
                write!(f, "needs a window of more than {} MiB", max_bytes >> 20)
            }
            _ => write!(f, "is damaged at byte {offset:#x}"),
        }
    }
}

impl error::Error for Damage {}

impl From<Damage> for io::Error {
    fn from(damage: Damage) -> Self {
        let kind =
            if damage.is_truncated() { io::ErrorKind::UnexpectedEof } else { io::ErrorKind::InvalidData };
        Self::new(kind, damage)
    }
}

const RAW_BYTES: usize = 64 << 10;

/// The number of plain bytes that a read returns directly behind a member that was entered from plain bytes. It doubles
/// with each read: more such members may follow closely, and each would give all bytes back.
const LEAST_PLAIN_BYTES: usize = 256;

/// The number of bytes that could be searched in the time that it takes to begin with a member and to find it damaged.
const MEMBER_BYTES: u64 = 4 << 10;

/// The number of bytes before a damage that can always be searched again for what a member has swallowed: more than the
/// longest block of a frame.
const KEPT_BYTES: usize = 132 << 10;

impl<R: Read> Envelope<R> {
    /// Creates an envelope around `input`.
    pub fn new(input: R) -> Self {
        Self {
            input,
            raw: vec![0; KEPT_BYTES + RAW_BYTES],
            start: 0,
            end: 0,
            raw_offset: 0,
            input_ended: false,
            mode: EnvelopeMode::Boundary { after_member: false },
            from_member: false,
            method: Method::Gzip,
            damaged_member: (0, false),
            decoders: Decoders::default(),
            effort: Effort::default(),
            plain_kept: 0,
            plain_most: usize::MAX,
            skipped_zeros: 0,
        }
    }

    /// Whether the last bytes read were decompressed from a member. One read never mixes them with plain bytes.
    pub const fn is_compressed(&self) -> bool {
        self.from_member
    }

    /// The compression of the last member read.
    pub const fn method(&self) -> Method {
        self.method
    }

    /// The number of zero bytes skipped as padding after a member.
    pub const fn skipped_zeros(&self) -> u64 {
        self.skipped_zeros
    }

    /// Takes back plain bytes that the caller has read but not used, which start with a member, and continues by
    /// decompressing them.
    pub fn unread_member(&mut self, unread: &[u8]) {
        self.raw_offset = self.raw_offset.saturating_sub(unread.len() as u64);
        if unread.len() <= self.plain_kept {
            self.start -= unread.len();
        } else {
            let mut raw =
                Vec::with_capacity((unread.len() + self.end - self.start).max(KEPT_BYTES) + RAW_BYTES);
            raw.extend_from_slice(unread);
            raw.extend_from_slice(&self.raw[self.start..self.end]);
            self.start = 0;
            self.end = raw.len();
            raw.resize(raw.len().max(KEPT_BYTES + RAW_BYTES), 0);
            self.raw = raw;
        }
        self.plain_most = LEAST_PLAIN_BYTES;
        self.mode = EnvelopeMode::Boundary { after_member: true };
    }

    /// Continues after reported damage, at the next member or the next `plain_magic` in the rest of the input. Returns
    /// the number of compressed bytes skipped.
    ///
    /// A member whose own end is damaged swallows what follows, so the next one may begin shortly before the position
    /// of the damage. Members that are damaged again and again are passed over after a while, see [`Effort`].
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn skip_damage(&mut self, plain_magic: &[u8]) -> io::Result<u64> {
        // A magic number may begin in the used bytes and end in the unused ones.
        self.buffer(plain_magic.len().max(MAGIC_BYTES))?;
        self.effort.work(MEMBER_BYTES);
        if self.effort.is_left(self.raw_offset) && self.step_back(plain_magic) {
            self.mode = EnvelopeMode::Boundary { after_member: true };
            return Ok(0);
        }
        let mut passed = 0;
        loop {
            let raw = &self.raw[self.start..self.end];
            let unseen = self.effort.left_from().saturating_sub(self.raw_offset);
            let from = usize::try_from(unseen).unwrap_or(usize::MAX).min(raw.len());
            let found = find_first(&raw[from..], [plain_magic]).map(|at| from + at);
            let longest = plain_magic.len().max(MAGIC_BYTES);
            let keep = if self.input_ended { 0 } else { raw.len().min(longest - 1) };
            let skip = found.unwrap_or(raw.len() - keep);
            self.consume(skip);
            passed += skip as u64;
            if found.is_some() || (self.input_ended && self.start == self.end) {
                self.mode = EnvelopeMode::Boundary { after_member: true };
                return Ok(passed);
            }
            self.fill()?;
        }
    }

    /// Goes back to the bytes that the damaged member has swallowed, if they are still in the buffer. If any bytes were
    /// decompressed from the member, only members are searched for: it may contain plain segments, uncompressed.
    fn step_back(&mut self, plain_magic: &[u8]) -> bool {
        let (member_offset, has_output) = self.damaged_member;
        let swallowed = self.raw_offset.saturating_sub(member_offset + 1);
        let back = usize::try_from(swallowed).unwrap_or(usize::MAX).min(self.start).min(KEPT_BYTES);
        let from = self.start - back;
        let plain = (!has_output).then_some(plain_magic);
        // A magic number may begin in the swallowed bytes and end behind them.
        let until = self.end.min(self.start + plain_magic.len().max(MAGIC_BYTES) - 1);
        self.effort.spend(self.raw_offset - back as u64, back as u64);
        match find_first(&self.raw[from..until], plain) {
            Some(at) if at < back => {
                self.start = from + at;
                self.raw_offset -= (back - at) as u64;
                true
            }
            _ => false,
        }
    }

    fn consume(&mut self, count: usize) {
        self.plain_kept = 0;
        self.start += count;
        self.raw_offset += count as u64;
    }

    /// Reads more of the input after the buffered bytes.
    fn fill(&mut self) -> io::Result<()> {
        if self.end == self.raw.len() {
            let unneeded = self.start.saturating_sub(KEPT_BYTES);
            self.raw.copy_within(unneeded..self.end, 0);
            self.start -= unneeded;
            self.plain_kept = self.plain_kept.min(self.start);
            self.end -= unneeded;
            // With little free space, each byte would be moved again and again.
            let least = self.end + RAW_BYTES / 2;
            self.raw.resize(self.raw.len().max(least), 0);
        }
        match self.input.read(&mut self.raw[self.end..])? {
            0 => self.input_ended = true,
            count => self.end += count,
        }
        Ok(())
    }

    /// Fills the buffer until it has `count` bytes or the input has ended.
    fn buffer(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.end - self.start < count && !self.input_ended {
            self.fill()?;
        }
        Ok(&self.raw[self.start..self.end])
    }

    fn enter(&mut self, after_member: bool) -> io::Result<()> {
        let raw = self.buffer(MAGIC_BYTES)?;
        self.mode = match raw {
            [] => EnvelopeMode::End,
            [0, ..] if after_member => {
                let zeros = raw.iter().take_while(|&&byte| byte == 0).count();
                self.consume(zeros);
                self.skipped_zeros += zeros as u64;
                EnvelopeMode::Boundary { after_member }
            }
            raw => match Method::expected(raw) {
                Some(method) => {
                    self.method = method;
                    self.decoders.begin(method)?;
                    EnvelopeMode::Member { offset: self.raw_offset, has_output: false }
                }
                None => EnvelopeMode::Plain,
            },
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
        let count = out.len().min(self.end - self.start).min(self.plain_most);
        self.plain_most = self.plain_most.saturating_mul(2);
        out[..count].copy_from_slice(&self.raw[self.start..self.start + count]);
        let plain_kept = self.plain_kept + count;
        self.consume(count);
        self.plain_kept = plain_kept;
        Ok(count)
    }

    fn note_plain(&mut self, count: usize) {
        // They are not in the buffer.
        self.plain_kept = 0;
        self.raw_offset += count as u64;
        self.input_ended = count == 0;
    }

    /// Performs one step of decompression; `None` if the mode has changed without output.
    fn read_member(&mut self, out: &mut [u8]) -> io::Result<Option<usize>> {
        if self.start == self.end && !self.input_ended {
            self.fill()?;
        }
        let EnvelopeMode::Member { offset, has_output } = &mut self.mode else { return Ok(None) };
        let step = self.decoders.step(self.method, &self.raw[self.start..self.end], out);
        let InflateStep { consumed, produced, state } = step;
        *has_output |= produced > 0;
        let member = (*offset, *has_output);
        self.consume(consumed);
        match state {
            MemberState::Ended => self.mode = EnvelopeMode::Boundary { after_member: true },
            MemberState::Failed(fault) => self.damaged(member, fault),
            MemberState::Inside if consumed == 0 && produced == 0 && self.input_ended => {
                self.damaged(member, MemberFault::Truncated);
            }
            MemberState::Inside => {}
        }
        Ok((produced > 0).then_some(produced))
    }

    fn damaged(&mut self, member: (u64, bool), fault: MemberFault) {
        // A member that is damaged from its first byte must not be found again.
        if self.raw_offset == member.0 && self.start < self.end {
            self.consume(1);
        }
        self.damaged_member = member;
        let (method, offset) = (self.method, self.raw_offset);
        self.mode = EnvelopeMode::Damaged(Damage { member_offset: member.0, offset, method, fault });
    }
}

/// The first place in `bytes` where a member, or one of the other `magics`, may begin. Bytes behind a place found are not
/// searched for an earlier one.
fn find_first<'a>(bytes: &[u8], magics: impl IntoIterator<Item = &'a [u8]>) -> Option<usize> {
    MAGICS.iter().copied().chain(magics).fold(None, |found, magic| {
        let until = found.map_or(bytes.len(), |at| bytes.len().min(at + magic.len() - 1));
        memmem::find(&bytes[..until], magic).or(found)
    })
}

impl<R: Read> Read for Envelope<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match self.mode {
                EnvelopeMode::Boundary { after_member } => self.enter(after_member)?,
                EnvelopeMode::Plain => {
                    self.from_member = false;
                    return self.read_plain(out);
                }
                EnvelopeMode::Member { .. } => {
                    if let Some(count) = self.read_member(out)? {
                        self.from_member = true;
                        return Ok(count);
                    }
                }
                EnvelopeMode::Damaged(damage) => {
                    self.mode = EnvelopeMode::End;
                    return Err(damage.into());
                }
                EnvelopeMode::End => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of damaged members that are met in `piece`, repeated.
    fn damages(piece: &[u8], length: usize) -> u64 {
        let bytes: Vec<u8> = piece.iter().copied().cycle().take(length).collect();
        let (mut envelope, mut damages, mut out) = (Envelope::new(&bytes[..]), 0, [0; 4096]);
        loop {
            match envelope.read(&mut out) {
                Ok(0) => return damages,
                Ok(_) => {}
                Err(error) => {
                    assert!(Damage::of(&error).is_some());
                    damages += 1;
                    envelope.skip_damage(b"RELI").unwrap();
                }
            }
        }
    }

    #[test]
    fn members_that_are_damaged_again_and_again_are_passed_over() {
        const LENGTH: usize = 1 << 20;
        let pieces: [&[u8]; 3] = [
            &MEMBER_MAGIC,
            // With an extra field of 65,535 bytes, which holds the next ones.
            &[0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 3, 0xff, 0xff],
            // A frame, where frames are read.
            &[0x28, 0xb5, 0x2f, 0xfd, 0, 0x68, 0x80, 0x3e, 0, 0x1f, 0x8b, 8],
        ];
        let most = (Effort::START + 2 * Effort::PER_BYTE * LENGTH as u64) / MEMBER_BYTES + 2;
        for piece in pieces {
            let damages = damages(piece, LENGTH);
            assert!((1..=most).contains(&damages), "{damages} of {most}");
        }
    }

    #[test]
    fn members_among_plain_bytes_are_read_without_moving_what_follows_again() {
        let mut writer = GzipWriter::new(Vec::new());
        io::Write::write_all(&mut writer, b"in").unwrap();
        let member = writer.complete().unwrap();
        let bytes = [b"plain", &member[..]].concat().repeat(2000);
        let (mut envelope, mut window, mut all) = (Envelope::new(&bytes[..]), Vec::new(), Vec::new());
        let mut out = [0; 64 << 10];
        let mut moved = 0;
        loop {
            let count = envelope.read(&mut out).unwrap();
            if count == 0 {
                break;
            }
            if envelope.is_compressed() {
                all.extend_from_slice(&out[..count]);
                continue;
            }
            window.extend_from_slice(&out[..count]);
            moved += count;
            while let Some(at) = memmem::find(&window, &member) {
                all.extend_from_slice(&window[..at]);
                envelope.unread_member(&window[at..]);
                window.clear();
            }
        }
        assert_eq!(all, b"plainin".repeat(2000));
        assert!(moved < 20 * bytes.len(), "{moved} of {}", bytes.len());
    }
}
