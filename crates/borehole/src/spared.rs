//! The readable part of a damaged envelope, as an input of its own.

use std::io::{self, Read};

use borehole_wire::envelope::{Damage, Envelope};

/// Reads the content of an envelope for formats that do not read envelopes themselves. In lenient reading, damage ends the
/// input.
pub(crate) struct Spared<R> {
    envelope: Envelope<R>,
    reads_over: bool,
    /// The damage that ended the input.
    pub(crate) damage: Option<Damage>,
}

impl<R: Read> Spared<R> {
    pub(crate) fn new(input: R, reads_over: bool) -> Self {
        Self { envelope: Envelope::new(input), reads_over, damage: None }
    }
}

impl<R: Read> Read for Spared<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
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
}
