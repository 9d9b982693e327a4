//! Perfetto's protobuf traces: timelines for ui.perfetto.dev and `trace_processor`.
//!
//! Written, not read.

mod facts;
mod layout;
mod write;

pub(crate) use facts::FACTS;

use self::write::Packets;
use crate::registry::{Codec, EventSupport, Exporting};
use crate::timeline::Drawing;

/// The short name of the format.
pub const NAME: &str = "perfetto";

/// Writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: None,
    export: Some(Exporting {
        events: EventSupport::ByTime,
        start: |to, _| Box::new(Exporter::new(to.output)),
    }),
};

/// Writes a trace for Perfetto: samples as calls by thread, known events as polls, wakes and spans by worker and task.
///
/// Expects events in order of time, because polls, wakes and spans are matched by their order.
///
/// Memory: tracks, names, and the calls and polls in progress.
///
/// # Examples
///
/// ```
/// use borehole_formats::perfetto::Exporter;
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
/// assert!(!file.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub type Exporter<W> = Drawing<Packets<W>>;
