//! Reads what the page of a Tokio trace shows.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, Event, ProfileSink, Sample, Tables, Value, dial9};
use hashbrown::{HashMap, HashSet};

use super::page::{
    PageCounts, PageFlag, PagePolls, PageSamples, PageSpans, PageStack, PageTask, PageWakes, TokioPage,
};
use super::plan::{EventSort, ShapePlan};
use super::samples::SampleRecords;
use super::time_grid::{TimeGrid, since};
use super::view::TokioView;
use super::workers::{Blockable, Poll};
use super::worst::Worst;
use super::{TokioSink, field};

/// The rows of each table of the report in the page.
const REPORT_ROWS: usize = 200;
/// The number of the longest polls that are there one by one, beside the longest of each column.
const MOST_POLLS: usize = 10_000;
/// The number of wakes kept to be searched for those of the polls that are there.
const MOST_WAKES: usize = 1 << 23;
/// The number of wakes by the polls that are there.
const MOST_SHOWN_WAKES: usize = 10_000;
/// The number of spans.
const MOST_SPANS: usize = 10_000;
/// The number of tasks.
const MOST_TASKS: usize = 2000;
/// The number of samples kept to be counted by stack.
const MOST_SAMPLES: usize = 1 << 20;
/// The number of samples that are there one by one.
const MOST_SHOWN_SAMPLES: usize = 10_000;
/// The number of stacks.
const MOST_STACKS: usize = 500;

#[derive(Clone, Copy, Debug)]
struct WakeMoment {
    time_ns: u64,
    /// The row of the task that was woken, and of the task that woke it, unless it was no task.
    woken: u32,
    waker: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct PageSample {
    time_ns: u64,
    thread: Option<u64>,
    stack: Option<u32>,
    is_off_cpu: bool,
}

/// The polls of a task.
#[derive(Clone, Copy, Debug, Default)]
struct TaskPolls {
    count: u64,
    busy_ns: u64,
    longest_ns: u64,
}

/// Records for the page beside those of the report.
#[derive(Debug)]
struct PageRecords {
    grid: TimeGrid,
    longest: Worst<Poll>,
    /// By row of the task.
    tasks: Vec<TaskPolls>,
    wakes: Vec<WakeMoment>,
    samples: Vec<PageSample>,
    sample_count: u64,
}

impl Default for PageRecords {
    fn default() -> Self {
        Self {
            grid: TimeGrid::default(),
            longest: Worst::new(MOST_POLLS),
            tasks: Vec::new(),
            wakes: Vec::new(),
            samples: Vec::new(),
            sample_count: 0,
        }
    }
}

/// Reads the events of a Tokio program for its page.
#[derive(Debug)]
pub struct TokioPageSink {
    report: TokioSink,
    records: PageRecords,
    pages: Vec<TokioPage>,
}

impl Default for TokioPageSink {
    fn default() -> Self {
        let report = TokioSink::new(Some(REPORT_ROWS));
        Self { report, records: PageRecords::default(), pages: Vec::new() }
    }
}

impl TokioPageSink {
    /// The pages of the trace, one for each source that was kept apart. Empty before [`ProfileSink::finish`], and if there were
    /// only events that samples are made of.
    #[must_use]
    pub fn into_pages(self) -> Vec<TokioPage> {
        self.pages
    }

    /// Finishes the page of the current source.
    fn next_source(&mut self, name: Option<String>) {
        let mut report = TokioSink { source: name, ..TokioSink::new(Some(REPORT_ROWS)) };
        std::mem::swap(&mut report, &mut self.report);
        let records = std::mem::take(&mut self.records);
        if report.has_view() {
            self.pages.push(PageDraft::new(report, records).page());
        }
    }
}

impl ProfileSink for TokioPageSink {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.report.sample(at, sample)
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        let flow = self.report.event(at, event)?;
        let plan = self.report.plan(event.shape, at.tables);
        if let Some(time_ns) = event.time_ns {
            self.records.event(&mut self.report, plan, event, time_ns);
        }
        Ok(flow)
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

impl PageRecords {
    fn event(&mut self, report: &mut TokioSink, plan: ShapePlan, event: &Event<'_>, time_ns: u64) {
        match plan.sort {
            EventSort::PollStart | EventSort::Park => {
                let queue = plan.number(event, field::LOCAL_QUEUE).filter(|&queue| queue > 0);
                if let Some((worker, queue)) = worker(plan, event).zip(queue) {
                    self.grid.queued(worker, time_ns, queue);
                }
            }
            EventSort::PollEnd => {
                if let Some(poll) = report.runtime.ended_poll.take() {
                    self.poll(poll, report.runtime.tasks.tasks.len());
                }
            }
            EventSort::Unpark => self.unpark(report, plan, event, time_ns),
            EventSort::Wake => self.wake(report, plan, event, time_ns),
            EventSort::Cpu => self.sample(&mut report.samples, plan, event, time_ns),
            _ => {}
        }
    }

    /// Records a poll; rows of tasks that are not followed are none of the first `followed`.
    fn poll(&mut self, poll: Poll, followed: usize) {
        if !dial9::is_worker(poll.worker) {
            return;
        }
        self.grid.poll(poll);
        self.longest.add(poll);
        if poll.task_row >= followed {
            return;
        }
        if self.tasks.len() <= poll.task_row {
            self.tasks.resize(poll.task_row + 1, TaskPolls::default());
        }
        let task = &mut self.tasks[poll.task_row];
        task.count += 1;
        task.busy_ns = task.busy_ns.saturating_add(poll.duration_ns);
        task.longest_ns = task.longest_ns.max(poll.duration_ns);
    }

    fn unpark(&mut self, report: &mut TokioSink, plan: ShapePlan, event: &Event<'_>, time_ns: u64) {
        if let Some((number, start_ns, end_ns)) =
            report.runtime.ended_park.take().filter(|park| dial9::is_worker(park.0))
        {
            self.grid.parked(number, start_ns, end_ns);
        }
        let wait_ns = plan.number(event, field::CPU_WAIT).filter(|&wait_ns| wait_ns > 0);
        if let Some((worker, wait_ns)) = worker(plan, event).zip(wait_ns) {
            self.grid.waited(worker, time_ns, wait_ns);
        }
    }

    fn wake(&mut self, report: &TokioSink, plan: ShapePlan, event: &Event<'_>, time_ns: u64) {
        let tasks = &report.runtime.tasks;
        let [waker, woken] =
            [field::WAKER_TASK, field::TASK].map(|task| tasks.row_of(plan.number(event, task)?));
        if let Some(woken) = woken.filter(|_| self.wakes.len() < MOST_WAKES) {
            self.wakes.push(WakeMoment { time_ns, woken, waker });
        }
    }

    fn sample(&mut self, samples: &mut SampleRecords, plan: ShapePlan, event: &Event<'_>, time_ns: u64) {
        self.sample_count += 1;
        if self.samples.len() < MOST_SAMPLES {
            let stack = match plan.value(event, field::STACK) {
                Some(Value::Stack(stack)) => samples.stacks.row(*stack),
                _ => None,
            };
            let is_off_cpu = plan.number(event, field::SAMPLE_SOURCE) == Some(dial9::OFF_CPU);
            let thread = plan.number(event, field::THREAD);
            self.samples.push(PageSample { time_ns, thread, stack, is_off_cpu });
        }
    }
}

/// The worker of an event, unless it is the blocking pool.
fn worker(plan: ShapePlan, event: &Event<'_>) -> Option<u64> {
    plan.number(event, field::WORKER).filter(|&worker| dial9::is_worker(worker))
}

/// A page that is being put together.
struct PageDraft {
    sink: TokioSink,
    records: PageRecords,
    polls: Vec<Poll>,
    /// The rows of the polls by worker and start.
    rows: HashMap<(u64, u64), usize>,
    texts: TextTable,
    origin_ns: u64,
}

/// Texts, each there once.
#[derive(Debug, Default)]
struct TextTable {
    rows: HashMap<String, usize>,
    texts: Vec<String>,
}

impl TextTable {
    fn row(&mut self, text: &str) -> usize {
        if let Some(&row) = self.rows.get(text) {
            return row;
        }
        self.texts.push(text.to_owned());
        self.rows.insert(text.to_owned(), self.texts.len() - 1);
        self.texts.len() - 1
    }
}

impl PageDraft {
    fn new(sink: TokioSink, records: PageRecords) -> Self {
        let origin_ns = sink.coverage.range_ns().0;
        let (polls, rows, texts) = (Vec::new(), HashMap::new(), TextTable::default());
        Self { sink, records, polls, rows, texts, origin_ns }
    }

    fn since(&self, time_ns: u64) -> i64 {
        since(time_ns, self.origin_ns)
    }

    fn page(mut self) -> TokioPage {
        self.sink.runtime.workers.complete();
        self.sink.runtime.tasks.complete();
        let open = self.sink.open_polls();
        open.iter().for_each(|&poll| self.records.grid.poll(poll));
        self.choose_polls(&open);
        let threads = self.threads();
        let spans = self.spans();
        let alive = self.series(&self.sink.runtime.tasks.alive_series());
        let queue = self.series(&self.sink.runtime.queue.summed());
        let report = self.sink.view();
        let lanes =
            self.records.grid.lanes(|poll| index(self.rows.get(&(poll.worker, poll.start_ns)).copied()));
        let lane_rows: HashMap<u64, usize> =
            lanes.iter().zip(0..).map(|(lane, row)| (lane.worker, row)).collect();
        let polls = self.poll_columns(&lane_rows, open.len());
        let (stacks, samples) = self.samples(&threads);
        let (wakes, tasks) = (self.wakes_by_polls(), self.tasks(&report));
        TokioPage {
            origin_ns: self.origin_ns,
            end_ns: self.since(report.end_ns),
            grid: self.records.grid.shape(self.origin_ns),
            flags: self.flags(&report),
            counts: self.counts(&report, (&spans.1, &tasks, &samples, lanes.len())),
            places: self.sink.runtime.places.texts().to_vec(),
            spans: spans.0,
            texts: self.texts.texts,
            lanes,
            polls,
            wakes,
            queue,
            alive,
            tasks,
            stacks,
            samples,
            report,
        }
    }

    /// Chooses the polls that are there one by one, in order of lane and start.
    fn choose_polls(&mut self, open: &[Poll]) {
        let longest = std::mem::take(&mut self.records.longest).into_sorted();
        let mut polls: Vec<_> =
            longest.chain(self.records.grid.longest()).chain(open.iter().copied()).collect();
        polls.sort_unstable_by_key(|poll| (poll.worker, poll.start_ns, poll.duration_ns));
        polls.dedup_by_key(|poll| (poll.worker, poll.start_ns));
        self.rows = polls.iter().zip(0..).map(|(poll, row)| ((poll.worker, poll.start_ns), row)).collect();
        self.polls = polls;
    }

    /// The threads of the polls, by worker and start.
    fn threads(&self) -> HashMap<(u64, u64), u64> {
        let polls = self.sink.runtime.workers.blockable.iter();
        let here = polls.filter(|poll| self.rows.contains_key(&(poll.worker, poll.start_ns)));
        let threads = here
            .filter_map(|&Blockable { worker, start_ns, thread, .. }| Some(((worker, start_ns), thread?)));
        threads.collect()
    }

    fn spans(&mut self) -> (PageSpans, u64) {
        let found = std::mem::take(&mut self.sink.spans);
        let (mut longest, mut count) = (Worst::new(MOST_SPANS), 0);
        found.each(|span| {
            count += 1;
            longest.add((span.duration_ns, span.start_ns, span.label));
        });
        let mut rows: Vec<_> = longest.into_sorted().collect();
        rows.sort_unstable_by_key(|&(duration_ns, start_ns, label)| {
            (start_ns, u64::MAX - duration_ns, label)
        });
        let mut spans = PageSpans::default();
        for (duration_ns, start_ns, label) in rows {
            let (name, fields) = found.describe(label);
            spans.name.push(self.texts.row(&name));
            spans.fields.push(index((!fields.is_empty()).then(|| self.texts.row(&fields))));
            spans.start_ns.push(self.since(start_ns));
            spans.duration_ns.push(duration_ns);
        }
        self.sink.spans = found;
        (spans, count)
    }

    /// The largest value of each column. A value lasts until the next one.
    fn series(&self, values: &[(u64, u64)]) -> Vec<i64> {
        let columns = self.records.grid.shape(0).columns;
        if values.is_empty() {
            return Vec::new();
        }
        let mut series = vec![-1; columns];
        for (row, &(time_ns, value)) in values.iter().enumerate() {
            let next_ns = values.get(row + 1).map_or(time_ns, |&(next_ns, _)| next_ns);
            let Some(first) = self.records.grid.column(time_ns) else { continue };
            let last = self.records.grid.column(next_ns).unwrap_or(first).max(first);
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            series[first..=last].iter_mut().for_each(|most: &mut i64| *most = value.max(*most));
        }
        series
    }
}

/// An index in a column in which -1 is none.
fn index(row: Option<usize>) -> i64 {
    row.and_then(|row| i64::try_from(row).ok()).unwrap_or(-1)
}

impl PageDraft {
    fn poll_columns(&self, lanes: &HashMap<u64, usize>, open: usize) -> PagePolls {
        let woken = self.wakes_of_polls();
        let mut columns = PagePolls::default();
        for (poll, wake) in self.polls.iter().zip(woken) {
            columns.lane.push(index(lanes.get(&poll.worker).copied()));
            columns.start_ns.push(self.since(poll.start_ns));
            columns.duration_ns.push(poll.duration_ns);
            columns.task.push(poll.task);
            columns.place.push(poll.place);
            columns.woken_ns.push(wake.map_or(-1, |wake| self.since(wake.time_ns)));
            columns.waker.push(wake.and_then(|wake| wake.waker).map_or(0, |waker| self.task(waker)));
        }
        columns.open = Vec::with_capacity(open);
        columns.open.extend((0..self.polls.len()).filter(|&row| self.polls[row].is_open));
        columns
    }

    fn task(&self, row: u32) -> u64 {
        self.sink.runtime.tasks.tasks.get(row as usize).map_or(0, |task| task.id)
    }

    /// The last wake of each poll's task before the poll.
    fn wakes_of_polls(&self) -> Vec<Option<WakeMoment>> {
        let tasks: HashSet<usize> = self.polls.iter().map(|poll| poll.task_row).collect();
        let wakes = self.records.wakes.iter().filter(|wake| tasks.contains(&(wake.woken as usize)));
        let mut wakes: Vec<_> = wakes.copied().collect();
        wakes.sort_unstable_by_key(|wake| (wake.woken, wake.time_ns));
        let before = |poll: &Poll| {
            let key = (poll.task_row, poll.start_ns);
            let row = wakes.partition_point(|wake| (wake.woken as usize, wake.time_ns) <= key);
            let wake = *wakes.get(row.checked_sub(1)?)?;
            Some(wake).filter(|wake| wake.woken as usize == poll.task_row)
        };
        self.polls.iter().map(before).collect()
    }

    /// The wakes that happened in polls of the task that woke.
    fn wakes_by_polls(&self) -> PageWakes {
        let mut polls: Vec<_> = (0..self.polls.len()).collect();
        polls.sort_unstable_by_key(|&row| (self.polls[row].task_row, self.polls[row].start_ns));
        let key = |row: usize| (self.polls[row].task_row, self.polls[row].start_ns);
        let mut found = Vec::new();
        for wake in &self.records.wakes {
            let Some(waker) = wake.waker else { continue };
            let after = polls.partition_point(|&row| key(row) <= (waker as usize, wake.time_ns));
            let Some(&row) = after.checked_sub(1).and_then(|row| polls.get(row)) else { continue };
            let poll = &self.polls[row];
            if poll.task_row == waker as usize && wake.time_ns - poll.start_ns <= poll.duration_ns {
                found.push((wake.time_ns, row, self.task(wake.woken)));
            }
            if found.len() == MOST_SHOWN_WAKES {
                break;
            }
        }
        found.sort_unstable();
        let mut columns = PageWakes::default();
        for (time_ns, poll, woken) in found {
            columns.time_ns.push(self.since(time_ns));
            columns.poll.push(poll);
            columns.woken.push(woken);
        }
        columns
    }

    fn tasks(&self, report: &TokioView) -> Vec<PageTask> {
        let mut rows: Vec<_> = self.sink.runtime.tasks.tasks.iter().zip(0..).collect();
        rows.retain(|(task, _)| task.spawned_ns.is_some() || task.is_polled);
        let polls = |row: usize| self.records.tasks.get(row).copied().unwrap_or_default();
        let order = |&(task, row): &(&_, usize)| {
            let task: &super::tasks::TaskRecord = task;
            (task.ended_ns.is_some(), u64::MAX - polls(row).busy_ns, task.id)
        };
        if rows.len() > MOST_TASKS {
            rows.select_nth_unstable_by_key(MOST_TASKS, order);
            rows.truncate(MOST_TASKS);
        }
        rows.sort_unstable_by_key(order);
        let time = |time_ns: Option<u64>| time_ns.map(|time_ns| since(time_ns, report.start_ns));
        let rows = rows.into_iter().map(|(task, row)| {
            let TaskPolls { count, busy_ns, longest_ns } = polls(row);
            let (spawned_ns, ended_ns) = (time(task.spawned_ns), time(task.ended_ns));
            let (task, place) = (task.id, task.place);
            PageTask { task, place, spawned_ns, ended_ns, polls: count, busy_ns, longest_ns }
        });
        rows.collect()
    }

    fn flags(&self, report: &TokioView) -> Vec<PageFlag> {
        let flags = report.findings.iter().map(|finding| PageFlag {
            severity: finding.severity,
            check: finding.check,
            evidence: finding.evidence.clone(),
            time_ns: finding.time_ns.map(|time_ns| self.since(time_ns)),
            worker: finding.worker,
            task: finding.task,
        });
        flags.collect()
    }

    /// The stacks, and the samples that are there one by one: those in polls first.
    fn samples(&mut self, threads: &HashMap<(u64, u64), u64>) -> (Vec<PageStack>, PageSamples) {
        let samples = std::mem::take(&mut self.records.samples);
        let (stacks, rows) = self.stacks(&samples);
        let by_thread = self.polls_by_thread(threads);
        let mut shown: Vec<_> = samples.iter().map(|sample| (in_poll(sample, &by_thread), sample)).collect();
        shown.sort_by_key(|(poll, sample)| (poll.is_none(), sample.time_ns));
        shown.truncate(MOST_SHOWN_SAMPLES);
        shown.sort_by_key(|(_, sample)| sample.time_ns);
        let mut columns = PageSamples::default();
        for (poll, sample) in shown {
            columns.time_ns.push(self.since(sample.time_ns));
            columns.poll.push(index(poll));
            columns.stack.push(index(sample.stack.and_then(|stack| rows.get(&stack).copied())));
            columns.is_off_cpu.push(u8::from(sample.is_off_cpu));
        }
        (stacks, columns)
    }

    /// The most frequent stacks, and their rows.
    fn stacks(&mut self, samples: &[PageSample]) -> (Vec<PageStack>, HashMap<u32, usize>) {
        let mut counts: HashMap<u32, (u64, u64)> = HashMap::new();
        for sample in samples {
            let Some(stack) = sample.stack else { continue };
            let (on_cpu, off_cpu) = counts.entry(stack).or_default();
            *(if sample.is_off_cpu { off_cpu } else { on_cpu }) += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|&(stack, (on_cpu, off_cpu))| (u64::MAX - (on_cpu + off_cpu), stack));
        counts.truncate(MOST_STACKS);
        let rows = counts.iter().zip(0..).map(|(&(stack, _), row)| (stack, row)).collect();
        let stacks = counts.into_iter().map(|(stack, (on_cpu, off_cpu))| {
            let functions = self.sink.samples.stacks.functions(stack);
            let functions = functions.iter().map(|name| self.texts.row(name)).collect();
            PageStack { functions, on_cpu, off_cpu }
        });
        (stacks.collect(), rows)
    }

    /// The polls with their threads, by thread and start.
    fn polls_by_thread(&self, threads: &HashMap<(u64, u64), u64>) -> Vec<(u64, Poll, usize)> {
        let polls = self
            .polls
            .iter()
            .zip(0..)
            .filter_map(|(poll, row)| Some((*threads.get(&(poll.worker, poll.start_ns))?, *poll, row)));
        let mut polls: Vec<_> = polls.collect();
        polls.sort_unstable_by_key(|(thread, poll, _)| (*thread, poll.start_ns));
        polls
    }

    fn counts(
        &self,
        report: &TokioView,
        (spans, tasks, samples, lanes): (&u64, &[PageTask], &PageSamples, usize),
    ) -> PageCounts {
        let count = |count: usize| count as u64;
        let tasks = (report.tasks.spawned + report.tasks.older, count(tasks.len()));
        PageCounts {
            polls: (report.polls.durations.count + report.polls.unended, count(self.polls.len())),
            spans: (*spans, (*spans).min(count(MOST_SPANS))),
            tasks,
            wakes: (report.wakes.count, count(self.records.wakes.len())),
            samples: (self.records.sample_count, count(samples.time_ns.len())),
            workers: (count(report.workers.len()), count(lanes)),
        }
    }
}

/// The poll in which a sample was taken.
fn in_poll(sample: &PageSample, by_thread: &[(u64, Poll, usize)]) -> Option<usize> {
    let thread = sample.thread?;
    let after = by_thread.partition_point(|(on, poll, _)| (*on, poll.start_ns) <= (thread, sample.time_ns));
    let (on, poll, row) = by_thread.get(after.checked_sub(1)?)?;
    (*on == thread && sample.time_ns - poll.start_ns <= poll.duration_ns).then_some(*row)
}
