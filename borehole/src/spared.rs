//! What a damaged envelope still yields, as a whole input.

use std::cell::Cell;
use std::io::{self, Read};

use borehole_formats::envelope::{Damage, Envelope};

/// Reads out of an envelope for readers that do not look into it themselves: where damage is read over, it is the end of the
/// input, and is noted.
pub(crate) struct Spared<'d, R> {
    envelope: Envelope<R>,
    /// Where damage is noted; absent where it is an error.
    noted: Option<&'d Cell<Option<Damage>>>,
}

impl<'d, R: Read> Spared<'d, R> {
    pub(crate) fn new(input: R, noted: Option<&'d Cell<Option<Damage>>>) -> Self {
        Self { envelope: Envelope::new(input), noted }
    }
}

impl<R: Read> Read for Spared<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let error = match self.envelope.read(out) {
            Ok(count) => return Ok(count),
            Err(error) => error,
        };
        let damage = error.get_ref().and_then(|inner| inner.downcast_ref::<Damage>());
        match self.noted.zip(damage) {
            Some((noted, damage)) => {
                noted.set(Some(*damage));
                Ok(0)
            }
            None => Err(error),
        }
    }
}
