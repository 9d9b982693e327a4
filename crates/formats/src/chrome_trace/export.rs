//! Export of the model to a timeline.

use std::io::{self, Write};
use std::ops::ControlFlow;

use borehole_model::{Context, ProfileSink, Sample};

use super::write::TraceEvents;
use crate::timeline::Drawing;
use crate::{Export, Losses};

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
#[derive(Debug)]
pub struct Exporter<W: Write> {
    drawing: Drawing<TraceEvents<W>>,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter that writes to `output`.
    pub fn new(output: W) -> Self {
        Self { drawing: Drawing::new(TraceEvents::new(output)) }
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.drawing)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.drawing.sample(at, sample)
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        self.drawing.losses()
    }
}
