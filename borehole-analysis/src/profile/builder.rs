//! The sink that a profile is built by.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, ProfileSink, Sample, StringId, Tables, Thread, ThreadNames, Warning};
use hashbrown::HashMap;

use super::Profile;
use super::clock::Clock;
use super::situations::{Situation, Situations};
use super::slices::SliceCounts;
use crate::facts::Facts;

/// Counts a profile as it is read.
#[derive(Clone, Debug, Default)]
pub struct ProfileBuilder {
    facts: Facts,
    /// The period of the samples that are not settled.
    period_ns: Option<u64>,
    clock: Clock,
    source: u32,
    situations: Situations,
    counts: SliceCounts,
    thread_names: HashMap<u32, ThreadNames>,
}

impl ProfileBuilder {
    /// The profile. `tables` are those that the samples were read into.
    #[must_use]
    pub fn into_profile(mut self, tables: Tables) -> Profile {
        self.facts.settle(self.period_ns);
        self.counts.settle();
        let mut summary = self.facts.summary();
        summary.matched = summary.samples.saturating_sub(summary.empty);
        let mut stacks: Vec<_> = self.counts.pairs().iter().map(|pair| pair.stack).collect();
        stacks.sort_unstable();
        stacks.dedup();
        summary.stacks = stacks.len();
        summary.frames = tables.frame_count();
        Profile {
            tables,
            situations: self.situations,
            counts: self.counts,
            thread_names: self.thread_names,
            summary,
            origin_unix_ns: self.clock.origin_unix_ns,
        }
    }
}

impl ProfileSink for ProfileBuilder {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if sample.count == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        if at.segment.period_ns != self.period_ns {
            self.facts.settle(self.period_ns);
            self.period_ns = at.segment.period_ns;
        }
        self.facts.count(at, sample);
        let time_ns = sample.time_ns.map(|time_ns| self.clock.since_origin(time_ns, at.segment));
        let Some(stack) = sample.stack else { return Ok(ControlFlow::Continue(())) };
        let situation = self.situations.intern(Situation {
            source: self.source,
            process: at.process(sample),
            thread: sample.thread,
            status: sample.status,
            labels: sample.labels,
            period_ns: at.segment.period_ns,
        });
        self.counts.add(stack, situation, time_ns, sample.count);
        Ok(ControlFlow::Continue(()))
    }

    fn source(&mut self, _name: &str) -> io::Result<()> {
        self.source = self.source.saturating_add(1);
        Ok(())
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.facts.segment(at);
        if at.segment.index == 0 {
            self.clock.restart();
        }
        Ok(())
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.thread_names.entry(self.source).or_default().name(thread, name);
        Ok(())
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.facts.warning(warning);
        Ok(())
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        Ok(())
    }
}
