//! Formats that hold samples and nothing else.

use std::io;
use std::ops::ControlFlow;

use borehole_formats::{Export, Losses};
use borehole_model::{Context, Event, ProfileSink, Sample, StringId, Tables, Warning};

/// An exporter of a format that has no place for events: it counts them as lost.
pub(crate) struct Eventless<'w> {
    exporter: Box<dyn Export + 'w>,
    events: u64,
}

impl<'w> Eventless<'w> {
    pub(crate) fn new(exporter: Box<dyn Export + 'w>) -> Self {
        Self { exporter, events: 0 }
    }
}

impl ProfileSink for Eventless<'_> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.exporter.sample(at, sample)
    }

    fn event(&mut self, _at: Context<'_>, _event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.events += 1;
        Ok(ControlFlow::Continue(()))
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.exporter.source(name)
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.exporter.segment(at)
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.exporter.metadata(at, key, value)
    }

    fn thread(&mut self, at: Context<'_>, thread: u64, name: StringId) -> io::Result<()> {
        self.exporter.thread(at, thread, name)
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.exporter.warning(warning)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.exporter.finish(tables)
    }
}

impl Export for Eventless<'_> {
    fn losses(&self) -> Losses {
        let mut losses = self.exporter.losses();
        losses.add("events", self.events);
        losses
    }
}
