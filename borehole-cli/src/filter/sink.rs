//! Passes on what is chosen.

use std::io;
use std::ops::ControlFlow;

use borehole::ProfileSink;
use borehole::model::{Context, Event, Sample};

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
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.sink)
    }

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

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.start_ns = None;
        self.sink.source(name)
    }
}
