//! Sinks that sit between a reader and another sink.

use std::io;
use std::ops::ControlFlow;

use borehole_text::Warning;

use crate::event::Event;
use crate::ids::StringId;
use crate::sample::Sample;
use crate::sink::{Context, ProfileSink};
use crate::tables::Tables;
use crate::threads::Thread;

/// Two sinks that both receive everything. Reading stops once both have asked to stop.
///
/// Events that carry stacks stay events only if both sinks [keep](ProfileSink::keeps_events) them. If one does not, both
/// receive samples instead.
#[derive(Clone, Debug, Default)]
pub struct Tee<A, B> {
    first: A,
    second: B,
    first_done: bool,
    second_done: bool,
}

impl<A: ProfileSink, B: ProfileSink> Tee<A, B> {
    /// Combines two sinks.
    pub const fn new(first: A, second: B) -> Self {
        Self { first, second, first_done: false, second_done: false }
    }

    /// The two sinks.
    pub fn into_parts(self) -> (A, B) {
        (self.first, self.second)
    }
}

impl<A, B> Tee<A, B> {
    const fn flow(&self) -> ControlFlow<()> {
        if self.first_done && self.second_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<A: ProfileSink, B: ProfileSink> ProfileSink for Tee<A, B> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if !self.first_done {
            self.first_done = self.first.sample(at, sample)?.is_break();
        }
        if !self.second_done {
            self.second_done = self.second.sample(at, sample)?.is_break();
        }
        Ok(self.flow())
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        if !self.first_done {
            self.first_done = self.first.event(at, event)?.is_break();
        }
        if !self.second_done {
            self.second_done = self.second.event(at, event)?.is_break();
        }
        Ok(self.flow())
    }

    fn keeps_events(&mut self) -> bool {
        // With `||`, a sink that does not keep events would miss every sample.
        self.first.keeps_events() && self.second.keeps_events()
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.first.source(name)?;
        self.second.source(name)
    }

    fn watches_events(&mut self) -> bool {
        self.first.watches_events() || self.second.watches_events()
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.first.segment(at)?;
        self.second.segment(at)
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.first.metadata(at, key, value)?;
        self.second.metadata(at, key, value)
    }

    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.first.thread(at, thread, name)?;
        self.second.thread(at, thread, name)
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.first.warning(warning)?;
        self.second.warning(warning)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.first.finish(tables)?;
        self.second.finish(tables)
    }
}

/// Passes on the samples that a predicate keeps, and everything that is not a sample.
#[derive(Clone, Debug)]
pub struct Filter<S, P> {
    sink: S,
    keep: P,
}

impl<S, P> Filter<S, P>
where
    S: ProfileSink,
    P: FnMut(Context<'_>, &Sample<'_>) -> bool,
{
    /// Puts the predicate `keep` in front of `sink`.
    pub const fn new(sink: S, keep: P) -> Self {
        Self { sink, keep }
    }

    /// Returns the inner sink.
    pub fn into_inner(self) -> S {
        self.sink
    }
}

impl<S, P> ProfileSink for Filter<S, P>
where
    S: ProfileSink,
    P: FnMut(Context<'_>, &Sample<'_>) -> bool,
{
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.sink)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if (self.keep)(at, sample) { self.sink.sample(at, sample) } else { Ok(ControlFlow::Continue(())) }
    }
}

/// Counts what passes through and stores nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Samples; a run counts as its `count`.
    pub samples: u64,
    /// Calls of [`ProfileSink::sample`]; a run counts as 1.
    pub runs: u64,
    /// Events.
    pub events: u64,
    /// Segments.
    pub segments: u64,
    /// Warnings.
    pub warnings: u64,
}

impl ProfileSink for Count {
    fn sample(&mut self, _at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.samples = self.samples.saturating_add(sample.count);
        self.runs += 1;
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, _at: Context<'_>, _event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.events += 1;
        Ok(ControlFlow::Continue(()))
    }

    fn keeps_events(&mut self) -> bool {
        true
    }

    fn segment(&mut self, _at: Context<'_>) -> io::Result<()> {
        self.segments += 1;
        Ok(())
    }

    fn warning(&mut self, _warning: &Warning) -> io::Result<()> {
        self.warnings += 1;
        Ok(())
    }
}
