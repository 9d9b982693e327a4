//! Analysis of traces of Tokio programs: workers, polls, tasks, delays, wakes, blocking calls, queues, spans, allocations,
//! and findings.
//!
//! * Most data is added up as it arrives. Data that waits for the end of the trace is small, and its size is stated where it
//!   is kept. Percentiles come from histograms.
//! * A batch of a trace is what one thread recorded, in order, and batches are unordered: nothing here takes the order of
//!   the file for that of time.
//!
//! Sources: the events of dial9 0.3.2 and 0.5.7, and the red flags of its analysis.

mod activity;
mod checks;
mod compare;
mod coverage;
mod each;
mod field;
mod field_texts;
mod finish;
mod halves;
mod handoffs;
mod histogram;
mod memory;
mod names;
mod others;
mod page;
mod page_sink;
mod plan;
mod poll_samples;
mod reports;
mod runtime;
mod samples;
mod spans;
mod stacks;
mod tasks;
mod time_grid;
mod view;
mod workers;
mod worst;

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, Event, ProfileSink, Sample, ShapeId, Tables, Value, dial9};

use self::coverage::Coverage;
use self::others::Others;
use self::plan::{EventSort, ShapePlan};
use self::runtime::Runtime;
use self::samples::SampleRecords;
use self::spans::{SpanOrigin, SpanRecords};

pub use self::activity::{
    AliveCounts, Delay, DelayView, LongPoll, PlaceRow, PollView, TaskPlaceRow, TaskView, WakeView, WorkerRow,
};
pub use self::compare::{Quantile, QuantileChange, TokioChange, TokioMeasure, compared};
pub use self::each::{EndedPoll, EndedSpan};
pub use self::page::{
    PageCounts, PageFlag, PageGrid, PageLane, PagePolls, PageSamples, PageSpans, PageStack, PageTask,
    PageWakes, TokioPage,
};
pub use self::page_sink::TokioPageSink;
pub use self::view::{
    AllocationView, Contents, EventRow, FieldRow, LimitRow, LimitedRows, PollCoverage, PollSamplePlaceRow,
    PollSampleRow, PollSampleView, QueueView, Seal, Severity, SiteRow, SpanRow, Spread, TextRow,
    TextValueRow, TokioFinding, TokioView,
};

/// The maximum number of rows of an unbounded table, such as polls, if all are asked for.
const MOST_ROWS: usize = 10_000;

/// Reads the events of a Tokio program.
///
/// It does not keep events, so one pass can also feed samples to a [`ReportSink`](crate::ReportSink) (see
/// [`Tee`](borehole_model::Tee)); it still sees the events that become samples.
#[derive(Debug)]
pub struct TokioSink {
    limit: usize,
    plans: Vec<Option<ShapePlan>>,
    /// The index and the offset of the last event's batch.
    batch: Option<(u64, Option<u64>)>,
    coverage: Coverage,
    runtime: Runtime,
    samples: SampleRecords,
    spans: SpanRecords,
    others: Others,
    /// The name of the current source.
    source: Option<String>,
    /// The views of the sources read so far.
    views: Vec<TokioView>,
}

impl TokioSink {
    /// Creates a sink whose tables have at most `limit` rows; `None` for all, within reason.
    #[must_use]
    pub fn new(limit: Option<usize>) -> Self {
        let limit = limit.unwrap_or(MOST_ROWS).min(MOST_ROWS);
        Self {
            limit,
            plans: Vec::new(),
            batch: None,
            coverage: Coverage::default(),
            runtime: Runtime::new(limit),
            samples: SampleRecords::default(),
            spans: SpanRecords::default(),
            others: Others::default(),
            source: None,
            views: Vec::new(),
        }
    }

    /// The views of the trace, one for each source that was kept apart. Empty before [`ProfileSink::finish`], and if there were
    /// only events that samples are made of.
    #[must_use]
    pub fn into_views(self) -> Vec<TokioView> {
        self.views
    }

    /// Tells spans, and other events, of one name apart by the value of the field with this key.
    #[must_use]
    pub fn grouped_by(mut self, key: impl Into<String>) -> Self {
        self.group_by(Some(key.into()));
        self
    }

    fn group_by(&mut self, key: Option<String>) {
        self.others.group.clone_from(&key);
        self.spans.group = key;
    }

    /// Whether the current source has something to show.
    const fn has_view(&self) -> bool {
        self.coverage.is_worth_a_view || self.coverage.is_empty()
    }

    /// Finishes the view of the current source, and begins one with another name.
    fn next_source(&mut self, name: Option<String>) {
        let mut views = std::mem::take(&mut self.views);
        views.extend(self.has_view().then(|| self.complete()));
        let group = self.spans.group.take();
        *self = Self { source: name, views, ..Self::new(Some(self.limit)) };
        self.group_by(group);
    }

    #[inline]
    fn plan(&mut self, shape: ShapeId, tables: &Tables) -> ShapePlan {
        match self.plans.get(shape.index()) {
            Some(&Some(plan)) => plan,
            _ => self.new_plan(shape, tables),
        }
    }

    #[cold]
    fn new_plan(&mut self, id: ShapeId, tables: &Tables) -> ShapePlan {
        let shape = tables.shape(id);
        let mut plan = ShapePlan::new(shape, tables);
        if matches!(plan.sort, EventSort::Other | EventSort::WholeSpan) {
            plan.other = self.others.layout(shape, tables);
        }
        if matches!(plan.sort, EventSort::SpanEnter | EventSort::WholeSpan) {
            plan.texts = self.spans.texts.layout(shape, tables, plan::is_span_field);
        }
        if self.plans.len() <= id.index() {
            self.plans.resize(id.index() + 1, None);
        }
        self.plans[id.index()] = Some(plan);
        plan
    }

    fn span_event(&mut self, plan: ShapePlan, event: &Event<'_>, time_ns: u64, tables: &Tables) {
        if plan.sort == EventSort::WholeSpan {
            return self.whole_span(plan, event, tables);
        }
        let Some(id) = plan.number(event, field::SPAN) else { return };
        let name = plan.text(event, field::NAME).unwrap_or("(unnamed)");
        match plan.sort {
            EventSort::SpanClose => self.spans.close(id, time_ns),
            EventSort::SpanEnter => {
                let fields = self.spans.texts.set(plan.texts, event);
                let number = |field| plan.number(event, field).filter(|&number| number > 0);
                let origin =
                    SpanOrigin { parent: number(field::SPAN_PARENT), task: number(field::SPAN_TASK) };
                self.spans.enter(id, name, fields, time_ns, origin);
            }
            _ => {
                let entered_ns = self.spans.exit(id, name, time_ns);
                let task = plan.number(event, field::TASK).filter(|&task| task > 0);
                self.runtime.workers.span_left(task, entered_ns);
            }
        }
    }

    fn whole_span(&mut self, plan: ShapePlan, event: &Event<'_>, tables: &Tables) {
        self.others.add(plan.other, event, tables);
        let Some((start_ns, duration_ns)) = extent(plan, event) else { return };
        let name = plan::text(tables, tables.shape(event.shape).name);
        let said = plan.text(event, field::NAME).filter(|name| !name.is_empty());
        let name = said.unwrap_or(name.strip_prefix("metrique:").unwrap_or(&name));
        let fields = self.spans.texts.set(plan.texts, event);
        self.spans.whole(name, fields, start_ns, duration_ns);
    }

    fn metadata(&mut self, plan: ShapePlan, event: &Event<'_>, time_ns: u64) {
        let Some(Value::Map(entries)) = plan.value(event, field::ENTRIES) else { return };
        let mut is_complete = None;
        for (key, value) in entries {
            let (Value::Text(key), Value::Text(value)) = (key, value) else { continue };
            match &**key {
                dial9::metadata::COMPLETE => is_complete = value.parse().ok(),
                dial9::metadata::POLL_COVERAGE => self.coverage.polls = PollCoverage::of(value),
                "memory.sample_rate_bytes" => {
                    self.samples.memory.sampled_every(value.parse().unwrap_or_default());
                }
                _ => {}
            }
        }
        self.coverage.seals.described(time_ns, is_complete);
    }

    fn clock(&mut self, plan: ShapePlan, event: &Event<'_>, time_ns: u64) {
        if let Some(unix_ns) = plan.number(event, field::UNIX_TIME) {
            self.coverage.unix_offset_ns.get_or_insert(i128::from(unix_ns) - i128::from(time_ns));
        }
    }

    /// Handles events that are not of the runtime itself.
    fn further_event(&mut self, plan: ShapePlan, event: &Event<'_>, time_ns: u64, tables: &Tables) {
        let Self { coverage, runtime, samples, .. } = self;
        match plan.sort {
            EventSort::Clock | EventSort::Metadata | EventSort::Symbol => {}
            EventSort::Cpu | EventSort::TaskDump => coverage.recorded += 1,
            _ => {
                coverage.recorded += 1;
                coverage.is_worth_a_view = true;
            }
        }
        if let Some(count) = plan.sort.counter(&mut coverage.contents) {
            *count += 1;
        }
        if let (EventSort::Cpu | EventSort::Alloc | EventSort::Free, Some(time_ns)) =
            (plan.sort, event.time_ns)
        {
            runtime.workers.seen(time_ns);
            coverage.sampled(time_ns);
        }
        match plan.sort {
            EventSort::Cpu => samples.cpu_sample(plan, event, time_ns),
            EventSort::Alloc | EventSort::Free | EventSort::Overflow => {
                samples.memory_event(plan, event, time_ns);
            }
            EventSort::SpanEnter | EventSort::SpanExit | EventSort::SpanClose | EventSort::WholeSpan => {
                self.span_event(plan, event, time_ns, tables);
            }
            EventSort::Clock => self.clock(plan, event, time_ns),
            EventSort::Metadata => self.metadata(plan, event, time_ns),
            EventSort::Lost => coverage.lost(plan.number(event, field::LOST).unwrap_or(0), time_ns),
            EventSort::Symbol => samples.symbol(plan, event),
            EventSort::TaskDump => {}
            _ => self.others.add(plan.other, event, tables),
        }
    }
}

/// The start and duration of an event that is a whole span. Two of start, duration and end suffice; an event written when a
/// span closes has its end in the time of the event.
fn extent(plan: ShapePlan, event: &Event<'_>) -> Option<(u64, u64)> {
    let [start_ns, duration_ns, end_ns] =
        [field::SPAN_START, field::DURATION, field::SPAN_END].map(|field| plan.nanoseconds(event, field));
    if let Some((start_ns, duration_ns)) = start_ns.zip(duration_ns) {
        return Some((start_ns, duration_ns));
    }
    let closes_ns = end_ns.or(event.time_ns);
    match (start_ns, duration_ns) {
        (Some(start_ns), _) => Some((start_ns, closes_ns?.checked_sub(start_ns)?)),
        (None, Some(duration_ns)) => Some((closes_ns.unwrap_or(0).saturating_sub(duration_ns), duration_ns)),
        // With the end alone, the time of the event is the start.
        (None, None) => Some((event.time_ns?, end_ns?.checked_sub(event.time_ns?)?)),
    }
}

impl ProfileSink for TokioSink {
    fn sample(&mut self, _at: Context<'_>, _sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.coverage.events += 1;
        let batch = Some((at.segment.index, at.segment.offset));
        if self.batch != batch {
            self.batch = batch;
            self.runtime.workers.next_batch();
        }
        let plan = self.plan(event.shape, at.tables);
        let time_ns = event.time_ns.unwrap_or(0);
        match plan.sort {
            EventSort::PollStart
            | EventSort::PollEnd
            | EventSort::Park
            | EventSort::Unpark
            | EventSort::Metrics
            | EventSort::Spawn
            | EventSort::Terminate
            | EventSort::Wake => {
                if event.time_ns.is_some() {
                    self.coverage.runtime_event(plan.sort == EventSort::Metrics, time_ns);
                    self.runtime.event(plan, event, time_ns);
                }
            }
            _ => self.further_event(plan, event, time_ns, at.tables),
        }
        Ok(ControlFlow::Continue(()))
    }

    fn watches_events(&mut self) -> bool {
        true
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.next_source(Some(name.to_owned()));
        Ok(())
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        self.next_source(None);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
