//! A sink that passes on chosen samples and events.

use std::io;
use std::mem;
use std::ops::ControlFlow;

use anyhow::ensure;
use borehole::ProfileSink;
use borehole::model::{Context, Event, Sample, StringId, Thread, ThreadNames};
use borehole_text::counted;

use super::events::{EventChoice, EventVerdict};
use super::{SampleFilter, say_none_chosen};
use crate::messages::say;

/// Passes chosen samples and events to another sink.
pub(crate) struct ChoosingSink<'s> {
    sink: &'s mut dyn ProfileSink,
    samples: SampleFilter,
    events: EventChoice,
    first: FirstTimes,
    times: TimedSamples,
    passed_samples: Candidates,
    passed_events: Candidates,
}

/// How many candidates there were, and whether any was chosen.
#[derive(Clone, Copy, Debug, Default)]
struct Candidates {
    count: u64,
    is_any_chosen: bool,
}

impl Candidates {
    const fn is_in_vain(self) -> bool {
        self.count > 0 && !self.is_any_chosen
    }
}

/// Timestamps of the samples of an input that meet all other options.
#[derive(Clone, Copy, Debug, Default)]
struct TimedSamples {
    is_known: bool,
    missing: u64,
}

impl<'s> ChoosingSink<'s> {
    pub(super) fn new(sink: &'s mut dyn ProfileSink, samples: SampleFilter, events: EventChoice) -> Self {
        Self {
            sink,
            samples,
            events,
            first: FirstTimes::default(),
            times: TimedSamples::default(),
            passed_samples: Candidates::default(),
            passed_events: Candidates::default(),
        }
    }

    /// Prints a note if nothing was chosen.
    pub(super) fn end(&self) {
        let (samples, events) = (self.passed_samples, self.passed_events);
        // Events cannot meet options about samples, such as labels.
        let may_ask = self.events.is_asked() || !samples.is_any_chosen;
        let mut unmatched = Vec::new();
        if samples.is_in_vain() {
            unmatched.push((samples.count, "sample"));
        }
        if events.is_in_vain() && may_ask {
            unmatched.push((events.count, "event"));
        }
        if !unmatched.is_empty() {
            say_none_chosen(&unmatched);
        }
    }

    /// Prints how many samples of an input have no timestamps, if samples are chosen by time. Fails if none has.
    pub(super) fn end_input(&mut self, name: &str) -> anyhow::Result<()> {
        let TimedSamples { is_known, missing } = mem::take(&mut self.times);
        let Some(option) = self.samples.args.samples.of_time().filter(|_| missing > 0) else { return Ok(()) };
        let found = counted(missing, "sample");
        ensure!(
            is_known,
            "{name}: unsupported {option}: input has no timestamps ({found}); record it with --timestamps delta"
        );
        say(&format!("note: {name}: {found} without timestamps left out ({option})"));
        Ok(())
    }
}

/// The time of the first event of a source and of the first sample of an input.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstTimes {
    pub(super) event_ns: Option<i64>,
    pub(super) sample_ns: Option<i64>,
}

impl ProfileSink for ChoosingSink<'_> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.sink)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.first.sample_ns = self.first.sample_ns.or(sample.time_ns);
        self.passed_samples.count = self.passed_samples.count.saturating_add(sample.count);
        if !self.samples.takes(at, sample) {
            return Ok(ControlFlow::Continue(()));
        }
        match sample.time_ns {
            Some(_) => self.times.is_known = true,
            None => self.times.missing = self.times.missing.saturating_add(sample.count),
        }
        if self.samples.is_in_time(at, sample, self.first) {
            self.passed_samples.is_any_chosen = true;
            return self.sink.sample(at, sample);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        let time_ns = event.time_ns.and_then(|time_ns| i64::try_from(time_ns).ok());
        // Symbols have the time 0.
        self.first.event_ns = self.first.event_ns.or(time_ns.filter(|&time_ns| time_ns > 0));
        let since_ns =
            time_ns.zip(self.first.event_ns).map(|(time_ns, first_ns)| time_ns.saturating_sub(first_ns));
        let verdict = self.events.judge(at.tables, event, since_ns);
        if verdict != EventVerdict::Needed {
            self.passed_events.count += 1;
            self.passed_events.is_any_chosen |= verdict == EventVerdict::Chosen;
        }
        if verdict == EventVerdict::LeftOut {
            Ok(ControlFlow::Continue(()))
        } else {
            self.sink.event(at, event)
        }
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.first.event_ns = None;
        self.samples.thread_names = ThreadNames::default();
        self.sink.source(name)
    }

    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.samples.thread_names.name(thread, name);
        self.sink.thread(at, thread, name)
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        // Each input has its own clock.
        if at.segment.index == 0 {
            self.first.sample_ns = None;
        }
        self.sink.segment(at)
    }
}
