//! The sink that answers a query.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, ProfileSink, Sample, StackId, StringId, Tables, Thread, Warning, Weigher};

use crate::answer::{EndGroups, ReportAnswer};
use crate::call_tree::CallTree;
use crate::counts::{StackTallies, Tally};
use crate::facts::SummaryCounts;
use crate::query::Query;
use crate::recent::RecentSamples;
use crate::sample_groups::SampleGroups;
use crate::states::StateCounts;
use crate::view::ReportView;
use crate::weighing::{AddedAmount, Weighing};

/// Reads a profile and answers a [`Query`] about it.
///
/// # Examples
///
/// ```
/// use borehole_analysis::{PathStyle, Query, ReportSink};
/// use borehole_model::{Context, Frame, ProfileSink, Sample, Segment, Tables};
///
/// let mut tables = Tables::default();
/// let main = tables.intern_string(b"main")?;
/// let main = tables.intern_frame(&Frame::named(main))?;
/// let stack = tables.intern_stack_leaf_first(&[main])?;
///
/// let mut sink = ReportSink::new(Query::default());
/// let segment = Segment { period_ns: Some(10_000_000), ..Segment::default() };
/// let at = Context { tables: &tables, segment: &segment };
/// sink.segment(at)?;
/// let _ = sink.sample(at, &Sample { stack, count: 300, ..Sample::default() })?;
/// sink.finish(&tables)?;
///
/// let view = sink.into_view();
/// assert_eq!(view.summary.time_ns, Some(3_000_000_000));
/// assert_eq!(view.self_table.rows[0].frame.text(PathStyle::Full), b"main");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ReportSink {
    query: Query,
    weighing: Weighing,
    /// The period of the samples that are not yet settled.
    period_ns: Option<u64>,
    facts: SummaryCounts,
    counts: StackTallies,
    states: StateCounts,
    tree: CallTree,
    recent: Option<RecentSamples>,
    groups: Option<SampleGroups>,
    view: ReportView,
}

impl ReportSink {
    /// Creates a sink for `query`. It adds up the default values of profiles with values, and samples and times of others.
    #[must_use]
    pub fn new(query: Query) -> Self {
        Self {
            recent: (query.last > 0).then(|| RecentSamples::new(query.last)),
            groups: query.by.as_ref().and_then(SampleGroups::new),
            query,
            ..Self::default()
        }
    }

    /// Uses the values that `weigher` picks. To get the counts of sampled profiles beside their times, it must use
    /// [`Sampled::Count`](borehole_model::Sampled::Count).
    #[must_use]
    pub fn weighing(self, weigher: Weigher) -> Self {
        Self { weighing: Weighing::new(weigher), ..self }
    }

    /// The weigher that picked the values, and that knows the other value types.
    #[must_use]
    pub const fn weigher(&self) -> &Weigher {
        &self.weighing.weigher
    }

    /// The view; empty before [`ProfileSink::finish`].
    #[must_use]
    pub fn into_view(self) -> ReportView {
        self.view
    }

    /// Computes the time of the samples so far. The following samples have another period.
    #[cold]
    fn settle(&mut self, next_period_ns: Option<u64>) {
        self.counts.settle(self.period_ns.unwrap_or(0));
        self.facts.settle(self.period_ns);
        self.period_ns = next_period_ns;
    }

    #[inline]
    fn count(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        if at.segment.period_ns != self.period_ns {
            self.settle(at.segment.period_ns);
        }
        self.facts.count(at, sample);
        if let Some(stack) = sample.stack {
            self.counts.add(stack, sample.count);
            self.states.add(stack, sample);
            if self.recent.is_some() || self.groups.is_some() {
                let tally = Tally::of(sample.count, self.period_ns.unwrap_or(0));
                self.add_in_order(at, stack, sample, tally);
            }
        }
    }

    fn add_value(&mut self, at: Context<'_>, sample: &Sample<'_>, value: i64) {
        self.facts.count_valued(at, sample, value);
        if let Some(stack) = sample.stack {
            let tally = Tally { count: sample.count, value: value.into() };
            self.counts.add_tally(stack, tally);
            self.states.add(stack, sample);
            self.add_in_order(at, stack, sample, tally);
        }
    }

    /// Adds the sample to the views that cannot be computed per stack afterwards.
    fn add_in_order(&mut self, at: Context<'_>, stack: StackId, sample: &Sample<'_>, tally: Tally) {
        if !self.tree.place(stack, at.tables, &self.query) {
            return;
        }
        if let Some(recent) = self.recent.as_mut().filter(|_| sample.count > 0) {
            recent.push(at, stack, sample);
        }
        if let Some(groups) = &mut self.groups {
            groups.add(at, sample, tally);
        }
    }
}

impl ProfileSink for ReportSink {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        match self.weighing.weigh(at, sample) {
            Some(AddedAmount::Samples) => self.count(at, sample),
            Some(AddedAmount::Value(value)) => self.add_value(at, sample, value),
            None => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.facts.segment(at);
        self.weighing.segment(at.segment);
        Ok(())
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        if let Some(groups) = &mut self.groups {
            groups.names.name(thread, name);
        }
        Ok(())
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.facts.warning(warning);
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.counts.finish(self.period_ns.unwrap_or(0));
        self.facts.settle(self.period_ns);
        for (stack, _) in self.counts.iter() {
            self.tree.place(stack, tables, &self.query);
        }
        let mut summary = self.facts.summary();
        self.weighing.describe(&mut summary);
        let Self { query, counts, states, recent, groups, .. } = self;
        let edges = EndGroups::of(&mut self.tree, query);
        let answer = ReportAnswer { query, counts, states, tree: &self.tree, tables, edges };
        self.view = answer.view(summary, recent.as_ref(), groups.as_ref());
        Ok(())
    }
}
