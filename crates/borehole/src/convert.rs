//! Conversion of inputs into one output.

use std::io::Write;

use borehole_formats::Losses;
use borehole_model::{ProfileSink, Recovery, Tables, Warning};

use crate::{Error, Input, Target};

/// The outcome of a conversion.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// The data read from the inputs, and anything odd or lost in them.
    pub recovery: Recovery,
    /// Data that the target format could not hold.
    pub losses: Losses,
}

/// Converts `inputs` to one profile with the samples of all of them, and writes it to `output` as `target`.
///
/// # Examples
///
/// ```
/// # #[cfg(all(feature = "rbt", feature = "folded", feature = "pprof"))] {
/// use borehole::{Format, Input, InputOptions, Source, Target, convert};
///
/// let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/data/annotations_ts.rbt");
/// let inputs = [Source::path(trace)?, Source::reader("stacks", &b"main;query 3\n"[..])];
/// let inputs = inputs.map(|source| Input::open(source, &InputOptions::default()));
/// let inputs: Vec<_> = inputs.into_iter().collect::<Result<_, _>>()?;
/// let mut profile = Vec::new();
/// let outcome = convert(inputs, &Target::new(Format::Pprof), &mut profile)?;
/// assert_eq!(outcome.recovery.samples, 6 + 3);
/// // pprof has no place for when a sample was taken.
/// assert!(outcome.losses.to_string().starts_with("timestamps dropped: 6"));
/// # }
/// # Ok::<(), borehole::Error>(())
/// ```
///
/// # Errors
/// If an input cannot be read or the output cannot be written.
pub fn convert(
    inputs: impl IntoIterator<Item = Input>,
    target: &Target,
    output: impl Write + Send,
) -> Result<Outcome, Error> {
    let mut exporter = target.exporter(output)?;
    let recovery = import_all(inputs, &mut *exporter)?;
    Ok(Outcome { recovery, losses: exporter.losses() })
}

/// Streams `inputs` into `sink`, one after the other, and finishes the sink.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "folded")] {
/// use borehole::model::Count;
/// use borehole::{Input, InputOptions, Source, import_all};
///
/// let texts = [&b"main;query 3\n"[..], b"main;render 4\n"];
/// let inputs = texts.map(|text| Input::open(Source::reader("stacks", text), &InputOptions::default()));
/// let mut count = Count::default();
/// import_all(inputs.into_iter().collect::<Result<Vec<_>, _>>()?, &mut count)?;
/// assert_eq!((count.samples, count.runs), (7, 2));
/// # }
/// # Ok::<(), borehole::Error>(())
/// ```
///
/// # Errors
/// Those of [`Input::read_into`], and if the sink cannot finish.
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

/// Finishes `sink` with everything read before `error`, if it is an error of reading the input. The sink receives the error as a
/// warning.
///
/// For callers that read inputs one by one into an output that is read as it is written: see [`Facts::is_stream`](crate::Facts::is_stream). Further
/// errors of the sink are ignored, because `error` matters more.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "folded")] {
/// use borehole::model::Tables;
/// use borehole::{Format, Input, InputOptions, Source, Target, finish_before};
///
/// let source = Source::reader("stacks", &b"main;query 3\nnot a line\n"[..]);
/// let input = Input::open(source, &InputOptions { format: Some(Format::Folded), ..InputOptions::default() })?;
/// let (mut tables, mut written) = (Tables::default(), Vec::new());
/// let mut exporter = Target::new(Format::Folded).exporter(&mut written)?;
/// let error = input.read_into(&mut tables, &mut *exporter).unwrap_err();
/// finish_before(&error, &tables, &mut *exporter);
/// drop(exporter);
/// assert_eq!(written, b"main;query 3\n");
/// # }
/// # Ok::<(), borehole::Error>(())
/// ```
pub fn finish_before(error: &Error, tables: &Tables, sink: &mut dyn ProfileSink) {
    let warning = match error {
        Error::Read { source, .. } => Some(Warning::new(source.message()).at(source.offset())),
        Error::Memory { source, .. } => Some(Warning::new(source.to_string())),
        _ => None,
    };
    if let Some(warning) = warning {
        let _ = sink.warning(&warning).and_then(|()| sink.finish(tables));
    }
}
