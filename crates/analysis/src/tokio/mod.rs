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
mod blocking;
mod checks;
mod each;
mod field;
mod finish;
mod halves;
mod histogram;
mod memory;
mod names;
mod others;
mod plan;
mod queue;
mod reports;
mod seals;
mod spans;
mod stacks;
mod tasks;
mod view;
mod workers;
mod worst;

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, Event, ProfileSink, Sample, ShapeId, Tables, Value, is_worker};

use self::blocking::Blocking;
use self::memory::Memory;
use self::names::{Names, UNKNOWN_ROW};
use self::others::Others;
use self::plan::{Plan, Sort};
use self::queue::Queue;
use self::seals::Seals;
use self::spans::Spans;
use self::stacks::Stacks;
use self::tasks::{Tasks, Wait};
use self::workers::{Move, Poll, Workers};

pub use self::activity::{
    AliveCounts, Delay, DelayView, LongPoll, PlaceRow, PollView, TaskPlaceRow, TaskView, WakeView, WorkerRow,
};
pub use self::each::{EndedPoll, EndedSpan};
pub use self::view::{
    AllocationView, BlockingPlaceRow, BlockingRow, BlockingView, EventRow, FieldRow, Finding, QueueView,
    Rows, Seal, Severity, SiteRow, SpanRow, Spread, TokioView,
};

/// The maximum number of rows of an unbounded table, such as polls, if all are asked for.
const MOST_ROWS: usize = 10_000;
/// The source of off-CPU samples. Source: dial9 0.5.7.
const OFF_CPU: u64 = 1;

/// Reads the events of a Tokio program.
///
/// It does not keep events, so one pass can also feed samples to a [`ReportSink`](crate::ReportSink) (see
/// [`Tee`](borehole_model::Tee)); it still sees the events that become samples.
#[derive(Debug)]
pub struct TokioSink {
    limit: usize,
    plans: Vec<Option<Plan>>,
    /// The index and the offset of the last event's batch.
    batch: Option<(u64, Option<u64>)>,
    events: u64,
    /// The number of events that do not only describe the file.
    recorded: u64,
    /// Whether there was anything that samples do not tell already.
    is_worth_telling: bool,
    ends_ns: Option<(u64, u64)>,
    /// The first and last time of measurements, which continue when nothing happens.
    measured_ends_ns: Option<(u64, u64)>,
    /// The first and last time of samples, which other threads than workers have too.
    sampled_ends_ns: Option<(u64, u64)>,
    unix_offset_ns: Option<i128>,
    seals: Seals,
    lost_events: u64,
    /// The time of the first noticed loss.
    lost_ns: Option<u64>,
    places: Names,
    runtimes: Names,
    workers: Workers,
    tasks: Tasks,
    queue: Queue,
    blocking: Blocking,
    stacks: Stacks,
    spans: Spans,
    memory: Memory,
    others: Others,
    ended_poll: Option<EndedPoll>,
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
            events: 0,
            recorded: 0,
            is_worth_telling: false,
            ends_ns: None,
            measured_ends_ns: None,
            sampled_ends_ns: None,
            unix_offset_ns: None,
            seals: Seals::default(),
            lost_events: 0,
            lost_ns: None,
            places: Names::or_unknown(),
            runtimes: Names::default(),
            workers: Workers::new(limit),
            tasks: Tasks::new(limit),
            queue: Queue::default(),
            blocking: Blocking::default(),
            stacks: Stacks::default(),
            spans: Spans::default(),
            memory: Memory::default(),
            others: Others::default(),
            ended_poll: None,
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

    /// Finishes the view of the current source, and begins one with another name.
    fn next_source(&mut self, name: Option<String>) {
        let mut views = std::mem::take(&mut self.views);
        let is_empty = self.events > 0 && self.recorded == 0;
        views.extend((self.is_worth_telling || is_empty).then(|| self.complete()));
        *self = Self { source: name, views, ..Self::new(Some(self.limit)) };
    }

    #[inline]
    fn plan(&mut self, shape: ShapeId, tables: &Tables) -> Plan {
        match self.plans.get(shape.index()) {
            Some(&Some(plan)) => plan,
            _ => self.new_plan(shape, tables),
        }
    }

    #[cold]
    fn new_plan(&mut self, id: ShapeId, tables: &Tables) -> Plan {
        let shape = tables.shape(id);
        let mut plan = Plan::new(shape, tables);
        if matches!(plan.sort, Sort::Other | Sort::WholeSpan) {
            plan.other = self.others.layout(shape, tables);
        }
        if self.plans.len() <= id.index() {
            self.plans.resize(id.index() + 1, None);
        }
        self.plans[id.index()] = Some(plan);
        plan
    }

    /// Records a runtime event.
    #[inline]
    fn tick(&mut self, sort: Sort, time_ns: u64) {
        self.is_worth_telling = true;
        self.workers.seen(time_ns);
        extend(
            match sort {
                Sort::Metrics => &mut self.measured_ends_ns,
                _ => &mut self.ends_ns,
            },
            time_ns,
        );
    }

    /// Records a sample.
    fn sampled(&mut self, time_ns: Option<u64>) {
        if let Some(time_ns) = time_ns {
            self.workers.seen(time_ns);
            extend(&mut self.sampled_ends_ns, time_ns);
        }
    }

    #[inline]
    fn poll_starts(&mut self, plan: Plan, event: &Event<'_>, time_ns: u64) {
        let (Some(worker), Some(task)) = (plan.number(event, field::WORKER), plan.number(event, field::TASK))
        else {
            return;
        };
        let place = plan.text(event, field::SPAWNED_AT).map_or(UNKNOWN_ROW, |place| self.places.row(place));
        let measured = plan.number(event, field::DELAY);
        let delay_ns = measured.unwrap_or(0);
        let wait = Wait { delay_ns, poll_ns: time_ns, task, worker: Some(worker), place };
        let (task_row, place) = self.tasks.polled(wait, measured.is_some());
        let poll = Poll { duration_ns: 0, start_ns: time_ns, worker, task, place, task_row, is_open: true };
        self.workers.poll_starts(poll, plan.number(event, field::LOCAL_QUEUE).unwrap_or(0));
    }

    #[inline]
    fn poll_ends(&mut self, plan: Plan, event: &Event<'_>, time_ns: u64) {
        let Some(worker) = plan.number(event, field::WORKER) else { return };
        if let Some(poll) = self.workers.poll_ends(worker, time_ns) {
            self.tasks.poll_ended(poll.task_row, poll.start_ns, poll.duration_ns);
            let Poll { start_ns, duration_ns, worker, task, place, .. } = poll;
            self.ended_poll = Some(EndedPoll { start_ns, duration_ns, worker, task, place });
        }
    }

    #[inline]
    fn moves(&mut self, plan: Plan, event: &Event<'_>, time_ns: u64) {
        let Some(worker) = plan.number(event, field::WORKER) else { return };
        let moved = Move {
            worker,
            time_ns,
            thread: plan.number(event, field::THREAD),
            cpu_ns: plan.number(event, field::CPU_TIME),
            queue: plan.number(event, field::LOCAL_QUEUE).unwrap_or(0),
            wait_ns: plan.number(event, field::CPU_WAIT),
        };
        match plan.sort {
            Sort::Park => self.workers.parks(moved),
            _ => self.workers.unparks(moved),
        }
    }

    /// Handles runtime events, which are the most frequent.
    #[inline]
    fn runtime_event(&mut self, plan: Plan, event: &Event<'_>, time_ns: u64) {
        self.tick(plan.sort, time_ns);
        self.recorded += 1;
        match plan.sort {
            Sort::PollStart => self.poll_starts(plan, event, time_ns),
            Sort::PollEnd => self.poll_ends(plan, event, time_ns),
            Sort::Park | Sort::Unpark => self.moves(plan, event, time_ns),
            Sort::Wake => {
                let tasks = [field::WAKER_TASK, field::TASK].map(|task| plan.number(event, task));
                if let [Some(waker), Some(woken)] = tasks {
                    self.tasks.woken(waker, woken, plan.number(event, field::WORKER), time_ns);
                }
            }
            Sort::Spawn => {
                let place = plan.text(event, field::SPAWNED_AT).map(|place| self.places.row(place));
                let is_traced = plan.value(event, field::INSTRUMENTED) != Some(&Value::Bool(false));
                if let Some(task) = plan.number(event, field::TASK) {
                    self.tasks.spawned(task, time_ns, place, is_traced);
                }
            }
            Sort::Terminate => {
                if let Some(task) = plan.number(event, field::TASK) {
                    self.tasks.ended(task, time_ns);
                }
            }
            _ => self.measures(plan, event, time_ns),
        }
    }

    fn measures(&mut self, plan: Plan, event: &Event<'_>, time_ns: u64) {
        // The events of dial9 0.3.2 name no runtime: they are about all of them.
        let runtime = self.runtimes.row(plan.text(event, field::RUNTIME).unwrap_or_default());
        if let Some(depth) = plan.number(event, field::QUEUE_DEPTH) {
            self.queue.add(time_ns, runtime, depth);
        }
        if let Some(alive) = plan.number(event, field::ALIVE_TASKS) {
            self.tasks.counted(time_ns, runtime, alive);
        }
    }

    fn cpu_sample(&mut self, plan: Plan, event: &Event<'_>, time_ns: u64) {
        if plan.number(event, field::SAMPLE_SOURCE) == Some(OFF_CPU) {
            let stack = self.stack(plan, event);
            let worker = plan.number(event, field::WORKER).filter(|&worker| is_worker(worker));
            self.blocking.add(time_ns, plan.number(event, field::THREAD), worker, stack);
        }
    }

    fn stack(&mut self, plan: Plan, event: &Event<'_>) -> Option<u32> {
        match plan.value(event, field::STACK)? {
            Value::Stack(stack) => self.stacks.row(*stack),
            _ => None,
        }
    }

    fn memory_event(&mut self, plan: Plan, event: &Event<'_>, time_ns: u64) {
        self.is_worth_telling = true;
        if plan.sort == Sort::Overflow {
            let dropped =
                [field::LOST, field::LOST_FREES].map(|field| plan.number(event, field).unwrap_or(0));
            return self.memory.dropped(dropped[0].saturating_add(dropped[1]));
        }
        let Some(address) = plan.number(event, field::ADDRESS) else { return };
        if plan.sort == Sort::Free {
            if let Some(allocated_ns) = plan.number(event, field::ALLOCATED_AT) {
                self.memory.freed(address, allocated_ns);
            }
        } else if let Some(size) = plan.number(event, field::SIZE) {
            let stack = self.stack(plan, event);
            self.memory.allocated(address, time_ns, size, stack);
        }
    }

    fn span_event(&mut self, plan: Plan, event: &Event<'_>, time_ns: u64, tables: &Tables) {
        self.is_worth_telling = true;
        if plan.sort == Sort::WholeSpan {
            return self.whole_span(plan, event, tables);
        }
        let Some(id) = plan.number(event, field::SPAN) else { return };
        let name = plan.text(event, field::NAME).unwrap_or("(unnamed)");
        match plan.sort {
            Sort::SpanClose => self.spans.close(id, time_ns),
            Sort::SpanEnter => self.spans.enter(id, name, time_ns),
            _ => {
                let entered_ns = self.spans.exit(id, name, time_ns);
                let task = plan.number(event, field::TASK).filter(|&task| task > 0);
                self.workers.span_left(task, entered_ns);
            }
        }
    }

    fn whole_span(&mut self, plan: Plan, event: &Event<'_>, tables: &Tables) {
        self.others.add(plan.other, event);
        let Some((start_ns, duration_ns)) = extent(plan, event) else { return };
        let name = plan::text(tables, tables.shape(event.shape).name);
        let said = plan.text(event, field::NAME).filter(|name| !name.is_empty());
        self.spans.whole(
            said.unwrap_or(name.strip_prefix("metrique:").unwrap_or(&name)),
            start_ns,
            duration_ns,
        );
    }

    fn metadata(&mut self, plan: Plan, event: &Event<'_>, time_ns: u64) {
        let Some(Value::Map(entries)) = plan.value(event, field::ENTRIES) else { return };
        let mut is_complete = None;
        for (key, value) in entries {
            let (Value::Text(key), Value::Text(value)) = (key, value) else { continue };
            match &**key {
                "segment.complete" => is_complete = value.parse().ok(),
                "memory.sample_rate_bytes" => self.memory.sampled_every(value.parse().unwrap_or_default()),
                _ => {}
            }
        }
        self.seals.described(time_ns, is_complete);
    }

    fn lost(&mut self, plan: Plan, event: &Event<'_>, time_ns: u64) {
        self.is_worth_telling = true;
        self.lost_events = self.lost_events.saturating_add(plan.number(event, field::LOST).unwrap_or(0));
        self.lost_ns = Some(self.lost_ns.map_or(time_ns, |first_ns| first_ns.min(time_ns)));
    }

    fn symbol(&mut self, plan: Plan, event: &Event<'_>) {
        if let (Some(address), Some(name)) =
            (plan.number(event, field::ADDRESS), plan.text(event, field::NAME))
        {
            self.stacks.symbol(address, name, plan.number(event, field::INLINE_DEPTH).unwrap_or(0));
        }
    }

    fn clock(&mut self, plan: Plan, event: &Event<'_>, time_ns: u64) {
        if let Some(unix_ns) = plan.number(event, field::UNIX_TIME) {
            self.unix_offset_ns.get_or_insert(i128::from(unix_ns) - i128::from(time_ns));
        }
    }

    /// Handles events that are not of the runtime itself.
    fn further_event(&mut self, plan: Plan, event: &Event<'_>, time_ns: u64, tables: &Tables) {
        match plan.sort {
            Sort::Clock | Sort::Metadata | Sort::Symbol => {}
            Sort::Cpu | Sort::Alloc | Sort::Free => {
                self.recorded += 1;
                self.sampled(event.time_ns);
            }
            _ => self.recorded += 1,
        }
        match plan.sort {
            Sort::Cpu => self.cpu_sample(plan, event, time_ns),
            Sort::Alloc | Sort::Free | Sort::Overflow => self.memory_event(plan, event, time_ns),
            Sort::SpanEnter | Sort::SpanExit | Sort::SpanClose | Sort::WholeSpan => {
                self.span_event(plan, event, time_ns, tables);
            }
            Sort::Clock => self.clock(plan, event, time_ns),
            Sort::Metadata => self.metadata(plan, event, time_ns),
            Sort::Lost => self.lost(plan, event, time_ns),
            Sort::Symbol => self.symbol(plan, event),
            Sort::TaskDump => {}
            _ => {
                self.is_worth_telling = true;
                self.others.add(plan.other, event);
            }
        }
    }
}

/// Extends the range from first to last time by a time.
#[inline]
fn extend(ends_ns: &mut Option<(u64, u64)>, time_ns: u64) {
    let (first, last) = ends_ns.get_or_insert((time_ns, time_ns));
    (*first, *last) = ((*first).min(time_ns), (*last).max(time_ns));
}

/// The start and duration of an event that is a whole span. Two of start, duration and end suffice; an event written when a
/// span closes has its end in the time of the event.
fn extent(plan: Plan, event: &Event<'_>) -> Option<(u64, u64)> {
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
        self.events += 1;
        let batch = Some((at.segment.index, at.segment.offset));
        if self.batch != batch {
            self.batch = batch;
            self.workers.next_batch();
        }
        let plan = self.plan(event.shape, at.tables);
        let time_ns = event.time_ns.unwrap_or(0);
        match plan.sort {
            Sort::PollStart
            | Sort::PollEnd
            | Sort::Park
            | Sort::Unpark
            | Sort::Metrics
            | Sort::Spawn
            | Sort::Terminate
            | Sort::Wake => {
                if event.time_ns.is_some() {
                    self.runtime_event(plan, event, time_ns);
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
