//! Passes on what is chosen.

use std::io;
use std::mem;
use std::ops::ControlFlow;

use anyhow::ensure;
use borehole::ProfileSink;
use borehole::model::{Context, Event, Sample, StringId, Thread, ThreadNames};

use super::events::{EventChoice, Verdict};
use super::{Choice, say_none_chosen};
use crate::messages::{counted, say};

/// A sink behind a choice.
pub(crate) struct Chosen<'s> {
    sink: &'s mut dyn ProfileSink,
    samples: Choice,
    events: EventChoice,
    first: First,
    times: Times,
    passed_samples: Passed,
    passed_events: Passed,
}

/// How many there were to choose from, and whether any was chosen.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    count: u64,
    is_any_chosen: bool,
}

impl Passed {
    const fn is_in_vain(self) -> bool {
        self.count > 0 && !self.is_any_chosen
    }
}

/// How many samples of an input that meet all but the time say when they were taken.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    is_known: bool,
    missing: u64,
}

impl<'s> Chosen<'s> {
    pub(super) fn new(sink: &'s mut dyn ProfileSink, samples: Choice, events: EventChoice) -> Self {
        Self {
            sink,
            samples,
            events,
            first: First::default(),
            times: Times::default(),
            passed_samples: Passed::default(),
            passed_events: Passed::default(),
        }
    }

    /// Says when nothing was chosen.
    pub(super) fn end(&self) {
        let (samples, events) = (self.passed_samples, self.passed_events);
        // What is asked of samples, as their labels are, no event may meet.
        let may_ask = self.events.is_asked() || !samples.is_any_chosen;
        let in_vain = [(samples, "sample", true), (events, "event", may_ask)];
        let said = in_vain.iter().filter(|(passed, _, is_asked)| passed.is_in_vain() && *is_asked);
        let said: Vec<_> = said.map(|(passed, name, _)| counted(passed.count, name)).collect();
        if !said.is_empty() {
            say_none_chosen(&said.join(" and "));
        }
    }

    /// Says of which samples of an input the time is not known, if it is asked for.
    pub(super) fn end_input(&mut self, name: &str) -> anyhow::Result<()> {
        let Times { is_known, missing } = mem::take(&mut self.times);
        let Some(option) = self.samples.args.samples.of_time().filter(|_| missing > 0) else { return Ok(()) };
        let found = counted(missing, "sample");
        ensure!(
            is_known,
            "{name}: unsupported {option}: expected samples that say when they were taken, found {found} of which none does; \
             borehole record --timestamps delta writes when"
        );
        say(&format!("note: {name}: {found} left out that do not say when they were taken, for {option}"));
        Ok(())
    }
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
        // Symbols bear the time 0.
        self.first.event_ns = self.first.event_ns.or(time_ns.filter(|&time_ns| time_ns > 0));
        let since_ns =
            time_ns.zip(self.first.event_ns).map(|(time_ns, first_ns)| time_ns.saturating_sub(first_ns));
        let verdict = self.events.judge(at.tables, event, since_ns);
        if verdict != Verdict::Needed {
            self.passed_events.count += 1;
            self.passed_events.is_any_chosen |= verdict == Verdict::Chosen;
        }
        if verdict == Verdict::LeftOut { Ok(ControlFlow::Continue(())) } else { self.sink.event(at, event) }
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
        // Another input has another clock.
        if at.segment.index == 0 {
            self.first.sample_ns = None;
        }
        self.sink.segment(at)
    }
}
