//! The sink that builds a profile.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, ProfileSink, Sample, StringId, Tables, Thread, ThreadNames, Warning, Weigher};
use hashbrown::HashMap;

use super::Profile;
use super::clock::CommonClock;
use super::situations::{Situation, Situations};
use super::slices::SliceCounts;
use crate::facts::SummaryCounts;
use crate::ranking::Basis;
use crate::selection::{SampleSelection, Weight};
use crate::weighing::{AddedAmount, Weighing};

/// Builds a profile as it is read. It adds up samples and their times for sampled profiles, and the default values for others,
/// unless a weigher picks different ones.
#[derive(Clone, Debug, Default)]
pub struct ProfileBuilder {
    facts: SummaryCounts,
    weighing: Weighing,
    /// The period of the samples that are not yet settled.
    period_ns: Option<u64>,
    clock: CommonClock,
    source: u32,
    situations: Situations,
    /// The number of the current segment's metadata.
    metadata: u32,
    counts: SliceCounts,
    thread_names: HashMap<u32, ThreadNames>,
}

impl ProfileBuilder {
    /// Creates a builder of the values that `weigher` picks.
    ///
    /// To get the counts of sampled profiles beside their times, the weigher must use
    /// [`Sampled::Count`](borehole_model::Sampled::Count).
    #[must_use]
    pub fn new(weigher: Weigher) -> Self {
        Self { weighing: Weighing::new(weigher), ..Self::default() }
    }

    /// The weigher that picked the values, and that knows the other value types.
    #[must_use]
    pub const fn weigher(&self) -> &Weigher {
        &self.weighing.weigher
    }

    /// Finishes the profile. `tables` must be those that the samples were read into.
    #[must_use]
    pub fn into_profile(mut self, tables: Tables) -> Profile {
        self.facts.settle(self.period_ns);
        self.counts.settle();
        let mut summary = self.facts.summary();
        self.weighing.describe(&mut summary);
        summary.matched = summary.samples.saturating_sub(summary.empty);
        let mut stacks: Vec<_> = self.counts.pairs.iter().map(|pair| pair.stack).collect();
        stacks.sort_unstable();
        stacks.dedup();
        summary.stacks = stacks.len();
        summary.frames = tables.frame_count();
        let mut profile = Profile {
            tables,
            situations: self.situations,
            counts: self.counts,
            thread_names: self.thread_names,
            summary,
            origin_unix_ns: self.clock.origin_unix_ns,
        };
        let weight = match profile.summary.values() {
            Basis::Value => Weight::Value,
            Basis::Count => Weight::Samples,
        };
        let mut value = 0_i128;
        profile.each(&SampleSelection::default(), weight, |_, _, weight| {
            value = value.saturating_add(weight.into());
        });
        profile.summary.value = value;
        profile
    }
}

impl ProfileSink for ProfileBuilder {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let sum = match self.weighing.weigh(at, sample) {
            None => return Ok(ControlFlow::Continue(())),
            Some(AddedAmount::Samples) => {
                if at.segment.period_ns != self.period_ns {
                    self.facts.settle(self.period_ns);
                    self.period_ns = at.segment.period_ns;
                }
                self.facts.count(at, sample);
                None
            }
            Some(AddedAmount::Value(value)) => {
                self.facts.count_valued(at, sample, value);
                Some(value)
            }
        };
        let time_ns = sample.time_ns.map(|time_ns| self.clock.since_origin(time_ns, at.segment));
        let Some(stack) = sample.stack else { return Ok(ControlFlow::Continue(())) };
        let situation = self.situations.intern(Situation {
            source: self.source,
            process: at.process(sample),
            thread: sample.thread,
            interpreter: sample.interpreter,
            status: sample.status,
            labels: sample.labels,
            metadata: self.metadata,
            period_ns: at.segment.period_ns,
            is_valued: sum.is_some(),
        });
        let sum = sum.unwrap_or_else(|| i64::try_from(sample.count).unwrap_or(i64::MAX));
        self.counts.add(stack, situation, time_ns, sum);
        Ok(ControlFlow::Continue(()))
    }

    fn source(&mut self, _name: &str) -> io::Result<()> {
        self.source = self.source.saturating_add(1);
        Ok(())
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.facts.segment(at);
        self.weighing.segment(at.segment);
        self.metadata = self.situations.metadata(&at.segment.metadata);
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
