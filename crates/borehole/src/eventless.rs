//! Formats that hold only samples.

use std::io;
use std::ops::ControlFlow;

use borehole_formats::{Export, Losses};
use borehole_model::{Context, Event, ProfileSink, Sample, Tables};

/// An exporter of a format without events. It counts events as lost.
pub(crate) struct Eventless<'w> {
    exporter: Box<dyn Export + Send + 'w>,
    events: u64,
}

impl<'w> Eventless<'w> {
    pub(crate) fn new(exporter: Box<dyn Export + Send + 'w>) -> Self {
        Self { exporter, events: 0 }
    }
}

impl ProfileSink for Eventless<'_> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut *self.exporter)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.exporter.sample(at, sample)
    }

    fn settle(&mut self, tables: &Tables) -> io::Result<bool> {
        self.exporter.settle(tables)
    }

    fn event(&mut self, _at: Context<'_>, _event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.events += 1;
        Ok(ControlFlow::Continue(()))
    }
}

impl Export for Eventless<'_> {
    fn losses(&self) -> Losses {
        let mut losses = self.exporter.losses();
        losses.add("events", self.events);
        losses
    }

    fn flush(&mut self) -> io::Result<()> {
        self.exporter.flush()
    }
}
