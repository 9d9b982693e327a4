//! Inputs into one output.

use std::io::Write;

use borehole_formats::Losses;
use borehole_model::{ProfileSink, Recovery, Tables};

use crate::{Error, Input, Target};

/// What came out of a conversion.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What was read, and what was odd or lost in the inputs.
    pub recovery: Recovery,
    /// What the target format could not hold.
    pub losses: Losses,
}

/// Writes all of `inputs` to `output` as `target`: one profile with the samples of all of them.
///
/// # Errors
/// When an input cannot be read or the output cannot be written.
pub fn convert(
    inputs: impl IntoIterator<Item = Input>,
    target: &Target,
    output: impl Write,
) -> Result<Outcome, Error> {
    let mut exporter = target.exporter(output)?;
    let recovery = import_all(inputs, &mut *exporter)?;
    Ok(Outcome { recovery, losses: exporter.losses() })
}

/// Streams all of `inputs` into `sink`, one after the other, and finishes it.
///
/// # Errors
/// As [`Input::read_into`], and when the sink cannot finish.
pub fn import_all(
    inputs: impl IntoIterator<Item = Input>,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, Error> {
    let mut tables = Tables::default();
    let mut recovery = Recovery::default();
    for input in inputs {
        recovery.merge(input.read_into(&mut tables, sink)?);
        if recovery.stopped {
            break;
        }
    }
    sink.finish(&tables).map_err(|source| Error::Write { name: String::new(), source })?;
    Ok(recovery)
}
