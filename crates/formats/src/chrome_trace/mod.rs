//! Chrome's trace events as JSON: timelines for all viewers of that format.
//!
//! Source: "Trace Event Format", the Chromium project. `docs/formats/chrome-trace.md` has the details.

mod calls;
mod events;
mod facts;
mod import;
mod read;
mod sampled;
mod write;

pub(crate) use facts::FACTS;
pub use import::import;

use self::write::TraceEvents;
use crate::registry::{Codec, EventSupport, Exporting, Import};
use crate::timeline::Drawing;

/// The short name of the format.
pub const NAME: &str = "chrome-trace";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: Some(Exporting {
        events: EventSupport::ByTime,
        start: |to, _| Box::new(Exporter::new(to.output)),
    }),
};

/// Writes Chrome's JSON trace events: samples as calls by thread, known events as polls, wakes and spans by worker and task.
///
/// Expects events in order of time, because polls, wakes and spans are matched by their order.
///
/// Memory: tracks, names, and the calls and polls in progress.
///
/// # Examples
///
/// ```
/// use borehole_formats::chrome_trace::Exporter;
/// use borehole_model::{Context, Frame, ProfileSink as _, Sample, Segment, Tables};
///
/// let (mut tables, segment) = (Tables::default(), Segment::default());
/// let name = tables.intern_string(b"main")?;
/// let main = tables.intern_frame(&Frame::named(name))?;
/// let stack = Some(tables.intern_stack(None, main)?);
/// let mut file = Vec::new();
/// let mut exporter = Exporter::new(&mut file);
/// let at = Context { tables: &tables, segment: &segment };
/// let _ = exporter.sample(at, &Sample { stack, count: 1, time_ns: Some(5), ..Sample::default() })?;
/// exporter.finish(&tables)?;
/// drop(exporter);
/// assert!(file.windows(4).any(|bytes| bytes == b"main"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub type Exporter<W> = Drawing<TraceEvents<W>>;
