//! The readable part of an envelope, as an input of its own.

use std::io::{self, Cursor, Read};

use borehole_formats::Warning;
use borehole_formats::detect::{DETECT_BYTES, Format};
use borehole_wire::envelope::{Damage, Envelope, Method};

/// Reads the content of an envelope for formats that do not read envelopes themselves. In lenient reading, damage ends the
/// input.
///
/// Plain bytes after a member belong to the content if they are of its format. Other bytes are ignored, as `gzip` does.
pub(crate) struct Spared<R> {
    envelope: Envelope<R>,
    format: Format,
    reads_over: bool,
    /// Whether the last bytes were decompressed from a member.
    from_member: bool,
    /// Plain bytes that were read ahead after a member.
    ahead: Cursor<Vec<u8>>,
    /// The number of bytes returned.
    passed: u64,
    /// The damage that ended the input.
    pub(crate) damage: Option<Damage>,
    ignored: Option<IgnoredBytes>,
}

/// Bytes after a member that are not of its content.
struct IgnoredBytes {
    offset: u64,
    count: u64,
    method: Method,
}

impl<R: Read> Spared<R> {
    pub(crate) fn new(input: R, format: Format, reads_over: bool) -> Self {
        Self {
            envelope: Envelope::new(input),
            format,
            reads_over,
            from_member: false,
            ahead: Cursor::default(),
            passed: 0,
            damage: None,
            ignored: None,
        }
    }

    /// The warnings about the envelope.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Warning> {
        let damage = self.damage.map(|damage| match damage.is_truncated() {
            true => Warning::truncated(damage.to_string()),
            false => Warning::new(damage.to_string()),
        });
        let ignored = self.ignored.as_ref().map(|ignored| {
            let message =
                format!("ignored the bytes after a {}: they are not {}", ignored.method, self.format.name());
            Warning::new(message).at(ignored.offset).losing(ignored.count)
        });
        damage.into_iter().chain(ignored)
    }

    fn read_envelope(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let error = match self.envelope.read(out) {
            Ok(count) => return Ok(count),
            Err(error) => error,
        };
        match Damage::of(&error).filter(|_| self.reads_over) {
            Some(damage) => {
                self.damage = Some(damage);
                Ok(0)
            }
            None => Err(error),
        }
    }

    /// Decides on plain bytes that follow a member and begin with `first`: whether they are of the content, and read again.
    fn goes_on(&mut self, first: &[u8]) -> io::Result<bool> {
        let mut beginning = first.to_vec();
        let missing = DETECT_BYTES.saturating_sub(first.len());
        self.envelope.by_ref().take(missing as u64).read_to_end(&mut beginning)?;
        if beginning.trim_ascii().is_empty() || self.format.is_detected(&beginning) {
            self.ahead = Cursor::new(beginning);
            return Ok(true);
        }
        let count = beginning.len() as u64 + io::copy(&mut self.envelope, &mut io::sink())?;
        self.ignored = Some(IgnoredBytes { offset: self.passed, count, method: self.envelope.method() });
        Ok(false)
    }
}

impl<R: Read> Read for Spared<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut count = self.ahead.read(out)?;
        if count == 0 && self.ignored.is_none() {
            count = self.read_envelope(out)?;
            let was_member = std::mem::replace(&mut self.from_member, self.envelope.is_compressed());
            if count > 0 && was_member && !self.from_member {
                count = if self.goes_on(&out[..count])? { self.ahead.read(out)? } else { 0 };
            }
        }
        self.passed += count as u64;
        Ok(count)
    }
}
