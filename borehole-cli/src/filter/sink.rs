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
    pub(super) first: First,
}

/// When the first event of a source happened, and the first sample of an input was taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct First {
    pub(super) event_ns: Option<i64>,
    pub(super) sample_ns: Option<i64>,
}

impl ProfileSink for Chosen<'_> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.sink)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.first.sample_ns = self.first.sample_ns.or(sample.time_ns);
        if self.samples.takes(at, sample, self.first) {
            return self.sink.sample(at, sample);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        let time_ns = event.time_ns.and_then(|time_ns| i64::try_from(time_ns).ok());
        // Symbols bear the time 0.
        self.first.event_ns = self.first.event_ns.or(time_ns.filter(|&time_ns| time_ns > 0));
        let since_ns =
            time_ns.zip(self.first.event_ns).map(|(time_ns, first_ns)| time_ns.saturating_sub(first_ns));
        if self.events.takes(at.tables, event, since_ns) {
            return self.sink.event(at, event);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.first.event_ns = None;
        self.sink.source(name)
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        // Another input has another clock.
        if at.segment.index == 0 {
            self.first.sample_ns = None;
        }
        self.sink.segment(at)
    }
}
