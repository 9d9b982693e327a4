//! Documents that are in memory as a whole, for what a sample refers to may stand anywhere in them.

#[cfg(any(feature = "pprof", feature = "otlp"))]
use std::io::{BufRead, Read as _};

#[cfg(any(feature = "pprof", feature = "otlp"))]
use borehole_model::Segment;
use borehole_model::{ProfileSink, Recovery, Warning};

#[cfg(any(feature = "pprof", feature = "otlp"))]
use crate::ErrorKind;
use crate::{Error, Position, ReadError, ReadOptions};

/// Decides whether damage ends the reading.
#[derive(Debug)]
pub(crate) struct Damage {
    lenient: bool,
    pub(crate) recovery: Recovery,
}

impl Damage {
    pub(crate) fn new(options: &ReadOptions) -> Self {
        Self { lenient: options.is_lenient(), recovery: Recovery::default() }
    }

    /// Notes an error that cost `lost_bytes`, where damage is read over.
    ///
    /// # Errors
    /// The error itself, where it is not.
    pub(crate) fn meet(&mut self, error: Error, lost_bytes: u64) -> Result<(), Error> {
        if !self.lenient || error.is_limit() || error.is_io() {
            return Err(error);
        }
        let warning = match error.position() {
            Position::Line(line) => Warning::new(format!("{} (line {line})", error.message())),
            _ => Warning::new(error.message().to_owned()).at(error.offset()),
        };
        self.recovery.warn(warning.losing(lost_bytes));
        Ok(())
    }

    /// Notes, once, that records of `segment` do not say how many samples they are: views count each as one, and that is not what
    /// the values say.
    #[cfg(any(feature = "pprof", feature = "otlp"))]
    pub(crate) fn note_uncounted(&mut self, segment: &Segment) {
        let types = segment.value_types.iter().map(|own| format!("{}/{}", own.kind, own.unit));
        let types = types.collect::<Vec<_>>().join(", ");
        let note =
            Warning::new(format!("each record counts as one sample, whatever its values ({types}) are"));
        if !segment.value_types.is_empty() && !self.recovery.notes.contains(&note) {
            self.recovery.note(note);
        }
    }

    /// Tells `sink` of the warnings.
    ///
    /// # Errors
    /// When the sink fails.
    pub(crate) fn finish(self, sink: &mut dyn ProfileSink) -> Result<Recovery, ReadError> {
        for warning in &self.recovery.warnings {
            sink.warning(warning)?;
        }
        Ok(self.recovery)
    }
}

/// The whole input, up to the limit.
///
/// # Errors
/// When it cannot be read, is larger, or empty.
#[cfg(any(feature = "pprof", feature = "otlp"))]
pub(crate) fn read_whole(format: &'static str, input: impl BufRead, limit: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = input.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Error::io(format, Position::Byte(bytes.len() as u64), error))?;
    if bytes.len() > limit {
        let message = format!("document too large: expected at most {limit} bytes");
        return Err(Error::new(ErrorKind::Limit, format, Position::Byte(limit as u64), message));
    }
    if bytes.is_empty() {
        let message = "expected a profile, found an empty input";
        return Err(Error::truncated(format, Position::Byte(0), message));
    }
    Ok(bytes)
}
