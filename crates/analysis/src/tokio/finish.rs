//! The view of everything that was added up.

use super::TokioSink;
use super::checks::{Suspects, findings, limited};
use super::histogram::Durations;
use super::tasks::{Lifetimes, Wait};
use super::view::{
    BlockingPlaceRow, BlockingView, Delay, DelayView, LongPoll, PlaceRow, PollView, Rows, Seal, Spread,
    TaskPlaceRow, TaskView, TokioView, WorkerRow,
};
use super::workers::{Poll, Reach, Worker, Workers};
use super::worst::Worst;

/// The time within which threads of a live process hand over what they recorded. Shorter batches show that a recorder does so
/// more often. Source: `dial9-core` 0.5.7.
const HANDED_OVER_NS: u64 = 30_000_000_000;

impl From<&Durations> for Spread {
    fn from(durations: &Durations) -> Self {
        Self {
            count: durations.count,
            sum_ns: durations.sum_ns,
            min_ns: durations.min_ns,
            mean_ns: durations.mean_ns(),
            p50_ns: durations.percentile(50),
            p90_ns: durations.percentile(90),
            p99_ns: durations.percentile(99),
            max_ns: durations.max_ns,
        }
    }
}

impl TokioSink {
    /// Builds the view, and drops the data kept for it.
    pub(super) fn complete(&mut self) -> TokioView {
        self.workers.complete();
        self.tasks.complete();
        let ends_ns = self.ends_ns.or(self.measured_ends_ns).or(self.sampled_ends_ns);
        let (start_ns, end_ns) = ends_ns.unwrap_or_default();
        let mut suspects = self.suspects();
        // While a worker is stuck, there may be measurements but no other events.
        let stuck = suspects.stuck.examples.sorted();
        let end_ns =
            stuck.iter().map(|stuck| stuck.poll.start_ns + stuck.poll.duration_ns).fold(end_ns, u64::max);
        let mut view = TokioView {
            source: self.source.take().filter(|name| !name.is_empty()),
            start_ns,
            end_ns,
            unix_offset_ns: self.unix_offset_ns,
            events: self.events,
            seal: self.seals.seal(),
            lost_events: self.lost_events,
            findings: Vec::new(),
            workers: self.workers.by_number().into_iter().map(worker_row).collect(),
            polls: self.polls(),
            tasks: self.tasks(),
            delays: self.delays(),
            wakes: self.tasks.wakes,
            blocking: self.blocking(),
            queue: self.queue.view(),
            spans: Rows::default(),
            span_count: suspects.spans.iter().map(|row| row.durations.count).sum(),
            allocations: self.memory.view(&self.stacks, self.limit),
            other_events: limited(self.others.rows(), self.limit),
        };
        view.findings = findings(&view, &suspects, |place| self.spawned_at(place).to_owned());
        view.spans = limited(std::mem::take(&mut suspects.spans), self.limit);
        view
    }

    /// The time up to which the trace covers the workers. A sealed file, or one in a single piece, covers all of it.
    fn reach(&self) -> Reach {
        let ends = [self.ends_ns, self.measured_ends_ns, self.sampled_ends_ns];
        let end_ns = ends.into_iter().flatten().map(|(_, last_ns)| last_ns).max().unwrap_or(0);
        let is_whole = self.seals.seal() == Seal::Complete || self.workers.batches() <= 2;
        let late_ns = self.workers.longest_batch_ns.saturating_mul(2).min(HANDED_OVER_NS);
        Reach { end_ns, sure_ns: if is_whole { end_ns } else { end_ns.saturating_sub(late_ns) } }
    }

    fn suspects(&mut self) -> Suspects {
        let reach = self.reach();
        let stuck = self.workers.count_open(reach);
        let Workers { critical, long, spanned, .. } = &self.workers;
        let workers = self.workers.by_number();
        Suspects {
            critical: critical.clone(),
            long: long.clone(),
            stuck,
            waiting: self.tasks.waiting(reach.sure_ns),
            is_empty: self.recorded == 0,
            spanned: spanned.clone(),
            contention: workers.iter().map(|worker| (worker.number, worker.contention())).collect(),
            waits: workers.iter().map(|worker| (worker.number, worker.waits)).collect(),
            spans: std::mem::take(&mut self.spans).into_rows(),
            lost_ns: self.lost_ns,
        }
    }

    fn polls(&mut self) -> PollView {
        let longest = taken(&mut self.workers.longest);
        let longest = longest.into_iter().map(|poll| self.long_poll(&poll)).collect();
        let places = (0..).zip(&self.workers.places).filter(|(_, durations)| durations.count > 0);
        let mut places: Vec<_> = places
            .map(|(place, durations)| PlaceRow {
                spawned_at: self.spawned_at(place).to_owned(),
                durations: durations.into(),
            })
            .collect();
        places.sort_by_key(|row| u64::MAX - row.durations.sum_ns);
        let durations = Spread::from(&self.workers.durations);
        let distinct = usize::try_from(durations.count).unwrap_or(usize::MAX);
        PollView {
            unended: self.workers.started.saturating_sub(durations.count),
            durations,
            places: limited(places, self.limit),
            longest: Rows { rows: longest, distinct },
        }
    }

    fn long_poll(&self, poll: &Poll) -> LongPoll {
        let &Poll { duration_ns, start_ns, worker, task, place, is_open, .. } = poll;
        let spawned_at = self.spawned_at(place).to_owned();
        LongPoll { duration_ns, start_ns, worker, task, spawned_at, is_open }
    }

    fn tasks(&self) -> TaskView {
        let (mut view, Lifetimes { durations, places }) = self.tasks.view();
        view.lifetimes = (&durations).into();
        let places = (0..).zip(places).filter(|(_, (spawned, _))| *spawned > 0);
        let mut rows: Vec<_> = places
            .map(|(place, (spawned, alive))| TaskPlaceRow {
                spawned_at: self.spawned_at(place).to_owned(),
                spawned,
                alive,
            })
            .collect();
        rows.sort_by_key(|row| (u64::MAX - row.alive, u64::MAX - row.spawned));
        view.places = limited(rows, self.limit);
        view
    }

    fn delays(&mut self) -> DelayView {
        let durations = Spread::from(&self.tasks.delays);
        let rows = taken(&mut self.tasks.worst).into_iter();
        let rows = rows.map(|Wait { delay_ns, poll_ns, task, worker, place }| Delay {
            delay_ns,
            poll_ns,
            task,
            worker,
            spawned_at: self.spawned_at(place).to_owned(),
        });
        let distinct = usize::try_from(durations.count).unwrap_or(usize::MAX);
        let worst = Rows { rows: rows.collect(), distinct };
        DelayView { durations, high: self.tasks.high, is_measured: self.tasks.is_measured, worst }
    }

    fn blocking(&mut self) -> BlockingView {
        let mut polls = self.workers.take_blockable();
        let (mut view, places) = self.blocking.view(&mut polls, &self.stacks, self.limit.max(1));
        let places = (0..).zip(places).filter(|(_, count)| *count > 0);
        let mut rows: Vec<_> = places
            .map(|(place, count)| BlockingPlaceRow { spawned_at: self.spawned_at(place).to_owned(), count })
            .collect();
        rows.sort_by_key(|row| u64::MAX - row.count);
        view.places = limited(rows, self.limit);
        view
    }
}

fn taken<T: Ord>(worst: &mut Worst<T>) -> Vec<T> {
    std::mem::replace(worst, Worst::new(0)).into_sorted().collect()
}

fn worker_row(worker: &Worker) -> WorkerRow {
    WorkerRow {
        worker: worker.number,
        polls: worker.polls,
        busy_ns: worker.busy_ns,
        active_ns: worker.active_ns,
        cpu_ns: worker.has_cpu.then_some(worker.cpu_ns),
        parked_ns: worker.parked_ns,
        parks: worker.parks,
        longest_poll_ns: worker.longest_poll_ns,
        longest_queue: worker.longest_queue,
        longest_wait_ns: worker.longest_wait_ns,
    }
}
