//! What a damaged envelope still yields, as a whole input.

use std::io::{self, Read};

use borehole_formats::envelope::{Damage, Envelope};

/// Reads out of an envelope for readers that do not look into it themselves: where damage is read over, it is the end of the
/// input.
pub(crate) struct Spared<R> {
    envelope: Envelope<R>,
    reads_over: bool,
    /// What was read over.
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
