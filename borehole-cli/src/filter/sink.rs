//! Passes on what is chosen.

use std::io;
use std::ops::ControlFlow;

use borehole::model::{Context, Event, Sample, StringId, Tables};
use borehole::{ProfileSink, Warning};

use super::Choice;
use super::events::EventChoice;

/// A sink behind a choice.
pub(super) struct Chosen<'s> {
    pub(super) sink: &'s mut dyn ProfileSink,
    pub(super) samples: Choice,
    pub(super) events: EventChoice,
    /// When the first event happened.
    pub(super) start_ns: Option<i64>,
}

impl ProfileSink for Chosen<'_> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if self.samples.takes(at, sample, self.start_ns) {
            return self.sink.sample(at, sample);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        let time_ns = event.time_ns.and_then(|time_ns| i64::try_from(time_ns).ok());
        // Symbols bear the time 0.
        self.start_ns = self.start_ns.or(time_ns.filter(|&time_ns| time_ns > 0));
        let since_ns = time_ns.zip(self.start_ns).map(|(time_ns, start_ns)| time_ns.saturating_sub(start_ns));
        if self.events.takes(at.tables, event, since_ns) {
            return self.sink.event(at, event);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn keeps_events(&self) -> bool {
        self.sink.keeps_events()
    }

    fn watches_events(&self) -> bool {
        self.sink.watches_events()
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.start_ns = None;
        self.sink.source(name)
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.sink.segment(at)
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.sink.metadata(at, key, value)
    }

    fn thread(&mut self, at: Context<'_>, thread: u64, name: StringId) -> io::Result<()> {
        self.sink.thread(at, thread, name)
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.sink.warning(warning)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.sink.finish(tables)
    }
}
