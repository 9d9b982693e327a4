//! Workers: their polls, and their active and idle periods.

use borehole_model::RowIndex;
use borehole_model::dial9::is_worker;

use super::coverage::{EventTimes, extend};
use super::halves::{Began, Halves};
use super::histogram::Durations;
use super::names::at;
use super::view::{LimitRow, WorkerRow};
use super::worst::{Tier, Worst};

/// The maximum number of workers, more than any machine has; further ones are left out.
const MOST_WORKERS: usize = 4096;
/// The shortest poll searched for samples: leaving a CPU and coming back takes as long.
const BLOCKABLE_NS: u64 = 10_000;
/// The maximum number of polls searched for samples, of 48 bytes each.
const MOST_BLOCKABLE: usize = 1 << 22;
/// The maximum number of appearances of a worker, and of its active periods, of up to 32 bytes each.
const MOST_RUNS: usize = 1 << 18;
/// The shortest active period for a ratio of times.
const RATED_NS: u64 = 1_000_000;
/// The number of workers searched for the poll that contains a span.
const NEAR_WORKERS: usize = 64;

/// The duration above which a poll is long.
pub(super) const LONG_POLL_NS: u64 = 10_000_000;
/// The duration above which a poll is critical.
pub(super) const CRITICAL_POLL_NS: u64 = 50_000_000;
/// The kernel wait above which a wait is high.
const HIGH_WAIT_NS: u64 = 1_000_000;
/// The number of spans above which a poll has many.
const MANY_SPANS: u32 = 20;
/// The number of examples that a check names.
pub(super) const EXAMPLES: usize = 3;

/// A poll that ended. Ordered by duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Poll {
    pub(super) duration_ns: u64,
    pub(super) start_ns: u64,
    pub(super) worker: u64,
    pub(super) task: u64,
    /// The place, as a row of the names of places.
    pub(super) place: u32,
    /// The row of the task.
    pub(super) task_row: usize,
    /// Whether the poll outlasts the trace.
    pub(super) is_open: bool,
}

/// A poll still running at the end of the trace. Ordered by its duration so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StuckPoll {
    pub(super) poll: Poll,
    /// The queue length of its worker when it began.
    pub(super) queue: u64,
    /// Whether its duration is a lower limit, because not everything was handed over.
    pub(super) is_at_least: bool,
}

/// The time up to which the trace covers the workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// The end of the trace.
    pub(super) end_ns: u64,
    /// The time after which threads may have done things that they had not handed over yet.
    pub(super) sure_ns: u64,
}

/// A poll with many spans. Ordered by their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SpannedPoll {
    pub(super) spans: u32,
    pub(super) poll: Poll,
}

#[derive(Clone, Debug, Default)]
struct StartedPoll {
    start_ns: u64,
    thread: Option<u64>,
    task: u64,
    task_row: usize,
    place: u32,
    spans: u32,
    queue: u64,
}

/// The moment of a move.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    pub(super) time_ns: u64,
    pub(super) thread: Option<u64>,
    pub(super) cpu_ns: Option<u64>,
}

impl Began for StartedPoll {
    fn began(&self) -> (u64, Option<u64>) {
        (self.start_ns, self.thread)
    }
}

impl Began for Moved {
    fn began(&self) -> (u64, Option<u64>) {
        (self.time_ns, self.thread)
    }
}

/// An active period long enough to be rated.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    start_ns: u64,
    end_ns: u64,
    thread: Option<u64>,
    cpu_ns: u64,
}

/// An appearance of a worker on a thread: at the beginning of a batch, and at each unpark.
#[derive(Clone, Copy, Debug)]
struct WorkerAppearance {
    start_ns: u64,
    thread: Option<u64>,
}

/// A poll that may have blocked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blockable {
    pub(super) start_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) thread: Option<u64>,
    pub(super) worker: u64,
    pub(super) place: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct WorkerRecord {
    pub(super) row: WorkerRow,
    stretches: u64,
    pub(super) waits: Waits,
    /// The time of its last event.
    last_ns: u64,
    /// The latest time when its last batch ended: it did nothing from its last event until then.
    seen_ns: u64,
    batch: u64,
    thread: Option<u64>,
    open_poll: Halves<StartedPoll>,
    parked: Halves<Moved>,
    awake: Halves<Moved>,
    rated: Vec<Stretch>,
    runs: Vec<WorkerAppearance>,
    /// The index of the first poll in this batch whose thread is not known yet.
    unplaced_from: usize,
}

/// Unparks with long kernel waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waits {
    pub(super) count: u64,
    pub(super) longest_ns: u64,
    /// The end of the longest one.
    pub(super) at_ns: u64,
}

/// Active periods in which a worker had little CPU time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contention {
    pub(super) stretches: u64,
    pub(super) low: u64,
    pub(super) mean_ratio: f64,
    pub(super) longest_ns: u64,
    pub(super) longest_start_ns: u64,
}

/// The thread of a batch, as its events record it.
#[derive(Clone, Copy, Debug, Default)]
enum BatchThread {
    #[default]
    Unknown,
    One(u64),
    /// The batch was put together from several threads.
    Several,
}

#[derive(Debug, Default)]
pub(super) struct WorkerRecords {
    /// The number of batches.
    pub(super) batch: u64,
    /// The index of the first poll of this batch.
    batch_from: usize,
    /// The thread of this batch; none if there are several.
    batch_thread: BatchThread,
    workers: Vec<WorkerRecord>,
    /// The workers of this batch.
    here: Vec<usize>,
    /// The latest time so far.
    seen_ns: u64,
    /// The first and the last time of this batch.
    batch_ends_ns: EventTimes,
    /// The longest time range of a batch.
    pub(super) longest_batch_ns: u64,
    rows: RowIndex,
    last: usize,
    /// The durations by place.
    pub(super) places: Vec<Durations>,
    pub(super) started: u64,
    pub(super) longest: Worst<Poll>,
    /// The polls over each threshold: the critical ones, and those below.
    pub(super) critical: Tier<Poll>,
    pub(super) long: Tier<Poll>,
    pub(super) spanned: Tier<SpannedPoll>,
    /// The polls that may have blocked.
    pub(super) blockable: Vec<Blockable>,
    /// The number of further ones.
    unsearched: u64,
    /// The number of events of workers that are not followed.
    unfollowed: u64,
}

/// A move of a worker, as its event records it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) worker: u64,
    pub(super) at: Moved,
    pub(super) queue: u64,
    pub(super) wait_ns: Option<u64>,
}

impl WorkerRecords {
    pub(super) fn new(rows: usize) -> Self {
        Self {
            longest: Worst::new(rows),
            critical: Tier::new(EXAMPLES),
            long: Tier::new(EXAMPLES),
            spanned: Tier::new(EXAMPLES),
            ..Self::default()
        }
    }

    /// Ends a batch and begins the next one. Workers that did not record their thread were on the thread of the batch.
    pub(super) fn next_batch(&mut self) {
        if let BatchThread::One(thread) = self.batch_thread {
            let from = self.batch_from.min(self.blockable.len());
            self.blockable[from..].iter_mut().for_each(|poll| poll.thread = poll.thread.or(Some(thread)));
        }
        if let Some((first_ns, last_ns)) = self.batch_ends_ns.take() {
            self.longest_batch_ns = self.longest_batch_ns.max(last_ns - first_ns);
        }
        for row in self.here.drain(..) {
            self.workers[row].seen_ns = self.seen_ns;
        }
        self.batch += 1;
        self.batch_from = self.blockable.len();
        self.batch_thread = BatchThread::Unknown;
    }

    /// The worker of that number, which has an event at this time.
    #[inline]
    fn worker(&mut self, number: u64, time_ns: u64) -> Option<&mut WorkerRecord> {
        if self.workers.get(self.last).is_none_or(|worker| worker.row.worker != number) {
            self.last = self.find(number)?;
        }
        let worker = &mut self.workers[self.last];
        worker.last_ns = worker.last_ns.max(time_ns);
        if worker.batch != self.batch {
            self.here.push(self.last);
            worker.batch = self.batch;
            worker.thread = None;
            worker.unplaced_from = self.blockable.len();
            worker.appears(WorkerAppearance { start_ns: time_ns, thread: None });
        }
        Some(worker)
    }

    #[inline]
    fn find(&mut self, number: u64) -> Option<usize> {
        self.rows.get(number).or_else(|| self.add(number))
    }

    #[cold]
    fn add(&mut self, number: u64) -> Option<usize> {
        if self.workers.len() == MOST_WORKERS {
            self.unfollowed += 1;
            return None;
        }
        self.workers.push(WorkerRecord {
            row: WorkerRow { worker: number, ..WorkerRow::default() },
            ..WorkerRecord::default()
        });
        self.rows.insert(number, self.workers.len() - 1);
        Some(self.workers.len() - 1)
    }

    #[inline]
    pub(super) fn poll_starts(&mut self, poll: Poll, queue: u64) {
        self.started += 1;
        let batch = self.batch;
        let Poll { worker, start_ns, task, task_row, place, .. } = poll;
        let Some(worker) = self.worker(worker, start_ns) else { return };
        worker.row.polls += 1;
        worker.row.longest_queue = worker.row.longest_queue.max(queue);
        let open = StartedPoll { start_ns, thread: worker.thread, task, task_row, place, spans: 0, queue };
        worker.open_poll.begin(batch, open);
    }

    /// Records the end of a poll, and returns the poll.
    #[inline]
    pub(super) fn poll_ends(&mut self, number: u64, time_ns: u64) -> Option<Poll> {
        let batch = self.batch;
        let worker = self.worker(number, time_ns)?;
        let open = worker.open_poll.end(batch, time_ns, worker.thread)?;
        let StartedPoll { start_ns, task, task_row, place, .. } = open;
        let duration_ns = time_ns - start_ns;
        worker.row.busy_ns = worker.row.busy_ns.saturating_add(duration_ns);
        worker.row.longest_poll_ns = worker.row.longest_poll_ns.max(duration_ns);
        let thread = worker.thread.or(open.thread);
        let poll = Poll { duration_ns, start_ns, worker: number, task, place, task_row, is_open: false };
        at(&mut self.places, place).add(duration_ns);
        self.longest.add(poll);
        if duration_ns >= BLOCKABLE_NS && self.blockable.len() == MOST_BLOCKABLE {
            self.unsearched += 1;
        } else if duration_ns >= BLOCKABLE_NS {
            self.blockable.push(Blockable { start_ns, duration_ns, thread, worker: number, place });
        }
        if duration_ns > LONG_POLL_NS || open.spans > MANY_SPANS {
            self.suspect(poll, open.spans);
        }
        Some(poll)
    }

    #[cold]
    fn suspect(&mut self, poll: Poll, spans: u32) {
        let tier = match poll.duration_ns {
            duration_ns if duration_ns > CRITICAL_POLL_NS => Some(&mut self.critical),
            duration_ns if duration_ns > LONG_POLL_NS => Some(&mut self.long),
            _ => None,
        };
        if let Some(tier) = tier {
            tier.add(poll);
        }
        if spans > MANY_SPANS {
            self.spanned.add(SpannedPoll { spans, poll });
        }
    }

    /// Records the exit of a span entered at `entered_ns`, which counts for the poll that contains all of it.
    #[inline]
    pub(super) fn span_left(&mut self, task: Option<u64>, entered_ns: u64) {
        let batch = self.batch;
        let last = self.last.min(self.workers.len());
        let (before, from) = self.workers.split_at_mut(last);
        let near = from.iter_mut().chain(before).filter(|worker| worker.batch == batch).take(NEAR_WORKERS);
        let mut open = near.filter_map(|worker| worker.open_poll.open(batch));
        if let Some(poll) = open.find(|poll| task.is_none_or(|task| task == poll.task))
            && poll.start_ns <= entered_ns
        {
            poll.spans = poll.spans.saturating_add(1);
        }
    }

    #[inline]
    pub(super) fn parks(&mut self, Move { worker, at, queue, .. }: Move) {
        let batch = self.batch;
        let Some(worker) = self.worker(worker, at.time_ns) else { return };
        worker.row.longest_queue = worker.row.longest_queue.max(queue);
        worker.row.parks += 1;
        if let Some(awake) = worker.awake.end(batch, at.time_ns, at.thread) {
            worker.rest(&awake, &at);
        }
        worker.parked.begin(batch, at);
        self.learn_thread(at.thread);
    }

    /// Records the end of a park, and returns when it began.
    #[inline]
    pub(super) fn unparks(&mut self, Move { worker, at, queue, wait_ns }: Move) -> Option<u64> {
        let batch = self.batch;
        let worker = self.worker(worker, at.time_ns)?;
        worker.row.longest_queue = worker.row.longest_queue.max(queue);
        let parked = worker.parked.end(batch, at.time_ns, at.thread);
        if let Some(parked) = &parked {
            worker.row.parked_ns = worker.row.parked_ns.saturating_add(at.time_ns - parked.time_ns);
        }
        if let Some(wait_ns) = wait_ns {
            worker.waited(wait_ns, at.time_ns);
        }
        worker.appears(WorkerAppearance { start_ns: at.time_ns, thread: at.thread });
        worker.awake.begin(batch, at);
        self.learn_thread(at.thread);
        Some(parked?.time_ns)
    }

    /// Sets the thread of the worker that moved last, back to the beginning of the batch.
    #[inline]
    fn learn_thread(&mut self, thread: Option<u64>) {
        let worker = &mut self.workers[self.last];
        if worker.thread == thread {
            return;
        }
        self.batch_thread = match (self.batch_thread, thread) {
            (BatchThread::Unknown, Some(thread)) => BatchThread::One(thread),
            (BatchThread::One(one), Some(other)) if one != other => BatchThread::Several,
            (known, _) => known,
        };
        if worker.thread.is_none() {
            if let Some(run) = worker.runs.iter_mut().rev().find(|run| run.thread.is_none()) {
                run.thread = thread;
            }
            let from = worker.unplaced_from.min(self.blockable.len());
            let here = self.blockable[from..].iter_mut().filter(|poll| poll.worker == worker.row.worker);
            here.for_each(|poll| poll.thread = poll.thread.or(thread));
        }
        worker.thread = thread;
    }

    pub(super) fn by_number(&self) -> Vec<&WorkerRecord> {
        let mut workers: Vec<_> = self.workers.iter().filter(|worker| is_worker(worker.row.worker)).collect();
        workers.sort_by_key(|worker| worker.row.worker);
        workers
    }

    /// Records that something happened at this time.
    #[inline]
    pub(super) fn seen(&mut self, time_ns: u64) {
        self.seen_ns = self.seen_ns.max(time_ns);
        extend(&mut self.batch_ends_ns, time_ns);
    }

    /// The time since which the worker has not parked in this batch; the maximum if it parks or is unknown.
    #[inline]
    pub(super) fn awake_since(&mut self, number: u64) -> u64 {
        let (batch, row) = (self.batch, self.rows.get(number));
        let Some(worker) = row.map(|row| &mut self.workers[row]) else { return u64::MAX };
        match (worker.awake.open(batch), worker.parked.open(batch)) {
            (Some(awake), _) => awake.time_ns,
            (None, Some(_)) => u64::MAX,
            (None, None) => 0,
        }
    }

    /// Polls that another thread has continued without: it took over the worker, as with a call that blocks in place.
    pub(super) fn left_polls(&self, reach: Reach) -> Vec<Poll> {
        let workers = self.workers.iter().filter(|worker| is_worker(worker.row.worker));
        let left = workers.flat_map(|worker| worker.left_polls(reach));
        left.filter(|(_, thread, start_ns)| !self.appears(*thread, *start_ns))
            .map(|(poll, ..)| poll)
            .collect()
    }

    /// Whether any worker appeared on a thread after this time.
    fn appears(&self, thread: u64, after_ns: u64) -> bool {
        let appearances = self.workers.iter().flat_map(|worker| &worker.runs);
        appearances.filter(|run| run.start_ns > after_ns).any(|run| run.thread == Some(thread))
    }

    /// The polls that run to the end.
    pub(super) fn open_polls(&self, reach: Reach) -> impl Iterator<Item = Poll> {
        let workers = self.workers.iter().filter(|worker| is_worker(worker.row.worker));
        workers.filter_map(move |worker| worker.stuck(reach)).map(|stuck| stuck.poll)
    }

    /// Counts the polls that run to the end, as far as their worker certainly did nothing else.
    pub(super) fn count_open(&mut self, reach: Reach) -> Tier<StuckPoll> {
        let mut found = Tier::new(EXAMPLES);
        for worker in self.workers.iter_mut().filter(|worker| is_worker(worker.row.worker)) {
            let Some(stuck) = worker.stuck(reach) else { continue };
            let until_ns = stuck.poll.start_ns + stuck.poll.duration_ns;
            worker.row.busy_ns = worker.row.busy_ns.saturating_add(stuck.poll.duration_ns);
            worker.row.longest_poll_ns = worker.row.longest_poll_ns.max(stuck.poll.duration_ns);
            if let Some(awake) = worker.awake.latest() {
                worker.row.active_ns =
                    worker.row.active_ns.saturating_add(until_ns.saturating_sub(awake.time_ns));
            }
            self.longest.add(stuck.poll);
            if stuck.poll.duration_ns > LONG_POLL_NS {
                found.add(stuck);
            }
        }
        found
    }

    /// Polls and workers of which only a part was followed.
    pub(super) fn limits(&self) -> [LimitRow; 2] {
        let (followed, left_out) = (self.blockable.len() as u64, self.unsearched);
        let polls = LimitRow { what: "polls searched for samples", followed, left_out };
        let (followed, left_out) = (self.workers.len() as u64, self.unfollowed);
        [polls, LimitRow { what: "workers (events of more)", followed, left_out }]
    }

    /// Removes what was counted while the worker was on another thread.
    pub(super) fn complete(&mut self) {
        self.next_batch();
        self.workers.iter_mut().for_each(WorkerRecord::complete);
        self.place_rest();
    }

    /// Gives polls of batches that name no thread the one on which their worker was last seen: a worker that is always busy does not
    /// name it again.
    fn place_rest(&mut self) {
        let of_worker = |worker: &WorkerRecord| {
            worker.runs.iter().filter_map(|run| Some((run.start_ns, run.thread?))).collect()
        };
        let seen: Vec<Vec<(u64, u64)>> = self.workers.iter().map(of_worker).collect();
        for poll in self.blockable.iter_mut().filter(|poll| poll.thread.is_none()) {
            let Some(seen) = self.rows.get(poll.worker).and_then(|row| seen.get(row)) else { continue };
            let before = seen.partition_point(|seen| seen.0 <= poll.start_ns).saturating_sub(1);
            poll.thread = seen.get(before).map(|seen| seen.1);
        }
    }
}

impl WorkerRecord {
    #[inline]
    fn appears(&mut self, run: WorkerAppearance) {
        if self.runs.len() < MOST_RUNS {
            self.runs.push(run);
        }
    }

    /// Ends an active period.
    #[inline]
    fn rest(&mut self, awake: &Moved, moved: &Moved) {
        let wall_ns = moved.time_ns - awake.time_ns;
        self.stretches += 1;
        self.row.active_ns = self.row.active_ns.saturating_add(wall_ns);
        let cpu_ns = moved.cpu_ns.zip(awake.cpu_ns).and_then(|(after, before)| after.checked_sub(before));
        let Some(cpu_ns) = cpu_ns else { return };
        self.row.cpu_ns = Some(self.row.cpu_ns.unwrap_or(0).saturating_add(cpu_ns));
        if wall_ns > RATED_NS && self.rated.len() < MOST_RUNS {
            let Moved { time_ns: start_ns, thread, .. } = *awake;
            self.rated.push(Stretch { start_ns, end_ns: moved.time_ns, thread, cpu_ns });
        }
    }

    /// The poll in progress at the end, if it was the worker's last beginning.
    fn stuck(&self, reach: Reach) -> Option<StuckPoll> {
        let open = self.open_poll.latest().filter(|open| open.start_ns >= self.last_ns)?;
        let until_ns = reach.sure_ns.max(self.seen_ns).min(reach.end_ns);
        let duration_ns = until_ns.checked_sub(open.start_ns)?;
        let StartedPoll { start_ns, task, task_row, place, queue, .. } = *open;
        let poll =
            Poll { duration_ns, start_ns, worker: self.row.worker, task, place, task_row, is_open: true };
        Some(StuckPoll { poll, queue, is_at_least: until_ns < reach.end_ns })
    }

    /// The polls that were open when the worker went on on another thread, with their threads and starts.
    fn left_polls(&self, reach: Reach) -> impl Iterator<Item = (Poll, u64, u64)> {
        self.open_poll.all().filter_map(move |open| {
            let thread = open.thread.filter(|_| open.start_ns < self.last_ns)?;
            let elsewhere = |run: &WorkerAppearance| {
                run.start_ns > open.start_ns && run.thread.is_some_and(|other| other != thread)
            };
            self.runs.iter().any(elsewhere).then_some(())?;
            let duration_ns = reach.sure_ns.checked_sub(open.start_ns)?;
            let StartedPoll { start_ns, task, task_row, place, .. } = *open;
            let worker = self.row.worker;
            Some((
                Poll { duration_ns, start_ns, worker, task, place, task_row, is_open: true },
                thread,
                start_ns,
            ))
        })
    }

    fn waited(&mut self, wait_ns: u64, time_ns: u64) {
        self.row.longest_wait_ns = self.row.longest_wait_ns.max(Some(wait_ns));
        if wait_ns > HIGH_WAIT_NS {
            self.waits.count += 1;
            if wait_ns > self.waits.longest_ns {
                self.waits = Waits { longest_ns: wait_ns, at_ns: time_ns, ..self.waits };
            }
        }
    }

    /// Removes interrupted periods. A thread that blocks in place gives its worker away and may get it back; such a period, and
    /// its CPU time, are not the worker's.
    fn complete(&mut self) {
        self.runs.sort_unstable_by_key(|run| run.start_ns);
        let Self { rated, runs, .. } = self;
        let (kept, lost): (Vec<_>, Vec<_>) =
            rated.drain(..).partition(|stretch| !is_interrupted(stretch, runs));
        self.rated = kept;
        for Stretch { start_ns, end_ns, cpu_ns, .. } in lost {
            self.stretches -= 1;
            self.row.active_ns = self.row.active_ns.saturating_sub(end_ns - start_ns);
            self.row.cpu_ns = self.row.cpu_ns.map(|sum_ns| sum_ns.saturating_sub(cpu_ns));
        }
    }

    // A ratio of two figures does not need the digits that a double lacks.
    #[expect(clippy::cast_precision_loss)]
    pub(super) fn contention(&self) -> Contention {
        let mut found = Contention { stretches: self.stretches, ..Contention::default() };
        let mut ratios = 0.0;
        for &Stretch { start_ns, end_ns, cpu_ns, .. } in &self.rated {
            let wall_ns = end_ns - start_ns;
            // Less than half.
            if cpu_ns.saturating_mul(2) >= wall_ns {
                continue;
            }
            found.low += 1;
            ratios += cpu_ns as f64 / wall_ns as f64;
            if wall_ns > found.longest_ns {
                (found.longest_ns, found.longest_start_ns) = (wall_ns, start_ns);
            }
        }
        found.mean_ratio = if found.low == 0 { 0.0 } else { ratios / found.low as f64 };
        found
    }
}

/// Whether the worker was on another thread in between.
fn is_interrupted(stretch: &Stretch, runs: &[WorkerAppearance]) -> bool {
    let from = runs.partition_point(|run| run.start_ns <= stretch.start_ns);
    let mut inside = runs[from..].iter().take_while(|run| run.start_ns < stretch.end_ns);
    inside.any(|run| run.thread.zip(stretch.thread).is_some_and(|(here, there)| here != there))
}
