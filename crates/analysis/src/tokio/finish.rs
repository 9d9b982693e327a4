//! The view of everything that was added up.

use std::convert::identity;

use super::TokioSink;
use super::checks::{Suspects, findings};
use super::histogram::Durations;
use super::poll_samples::PollSamples;
use super::tasks::Wait;
use super::view::{
    Delay, DelayView, LimitRow, LimitedRows, LongPoll, PlaceRow, PollSamplePlaceRow, PollSampleView,
    PollView, QuantileBounds, Seal, Spread, TaskPlaceRow, TaskView, TokioView,
};
use super::workers::{Blockable, Poll, Reach, WorkerRecords};

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
            bounds: QuantileBounds { p50_ns: durations.bounds(50), p99_ns: durations.bounds(99) },
        }
    }
}

impl TokioSink {
    /// Builds the view, and drops the data kept for it.
    pub(super) fn complete(&mut self) -> TokioView {
        self.runtime.workers.complete();
        self.runtime.tasks.complete();
        self.view()
    }

    /// Builds the view of completed records.
    pub(super) fn view(&mut self) -> TokioView {
        let (start_ns, end_ns) = self.coverage.range_ns();
        let limits = self.limits();
        let mut suspects = self.suspects();
        // While a worker is stuck, there may be measurements but no other events.
        let stuck = suspects.stuck.examples.sorted();
        let end_ns =
            stuck.iter().map(|stuck| stuck.poll.start_ns + stuck.poll.duration_ns).fold(end_ns, u64::max);
        let mut polls = std::mem::take(&mut self.runtime.workers.blockable);
        let mut view = TokioView {
            source: self.source.take().filter(|name| !name.is_empty()),
            start_ns,
            end_ns,
            unix_offset_ns: self.coverage.unix_offset_ns,
            events: self.coverage.events,
            seal: self.coverage.seals.seal(),
            poll_coverage: self.coverage.polls,
            contents: self.coverage.contents,
            lost_events: self.coverage.lost_events,
            limits,
            findings: Vec::new(),
            workers: self.runtime.workers.by_number().into_iter().map(|worker| worker.row.clone()).collect(),
            polls: self.polls(),
            tasks: self.tasks(),
            delays: self.delays(),
            wakes: self.runtime.tasks.wakes,
            cpu: self.in_polls(&mut polls, &self.samples.on_cpu),
            blocking: self.in_polls(&mut polls, &self.samples.off_cpu),
            queue: self.runtime.queue.queue(),
            spans: LimitedRows::default(),
            span_count: suspects.spans.iter().map(|row| row.durations.count).sum(),
            allocations: self.samples.memory.view(&self.samples.stacks, self.limit),
            other_events: LimitedRows::new(self.others.rows(), self.limit, identity),
        };
        view.findings = findings(&view, &suspects, |place| self.spawned_at(place).to_owned());
        view.spans = LimitedRows::new(std::mem::take(&mut suspects.spans), self.limit, identity);
        view
    }

    /// The time up to which the trace covers the workers. A sealed file, or one in a single piece, covers all of it.
    fn reach(&self) -> Reach {
        let end_ns = self.coverage.end_ns();
        let is_whole = self.coverage.seals.seal() == Seal::Complete || self.runtime.workers.batch <= 2;
        let late_ns = self.runtime.workers.longest_batch_ns.saturating_mul(2).min(HANDED_OVER_NS);
        Reach { end_ns, sure_ns: if is_whole { end_ns } else { end_ns.saturating_sub(late_ns) } }
    }

    /// The polls still running at the end of completed records.
    pub(super) fn open_polls(&self) -> Vec<Poll> {
        self.runtime.workers.open_polls(self.reach()).collect()
    }

    /// The things of which only a part was followed.
    fn limits(&self) -> Vec<LimitRow> {
        let (followed, left_out) = self.spans.followed();
        let spans = LimitRow { what: "events of spans", followed, left_out };
        let left_out = self.spans.without_fields();
        let fields =
            LimitRow { what: "fields of spans", followed: followed.saturating_sub(left_out), left_out };
        let all = self.runtime.tasks.limits().into_iter().chain(self.runtime.workers.limits());
        all.chain(self.samples.limits()).chain([spans, fields]).filter(|row| row.left_out > 0).collect()
    }

    fn suspects(&mut self) -> Suspects {
        let reach = self.reach();
        let stuck = self.runtime.workers.count_open(reach);
        let left = self.runtime.workers.left_polls(reach);
        let chains = self.runtime.tasks.chains();
        let WorkerRecords { critical, long, spanned, .. } = &self.runtime.workers;
        let workers = self.runtime.workers.by_number();
        Suspects {
            critical: critical.clone(),
            long: long.clone(),
            stuck,
            left,
            queued: self.runtime.queue.summed().last().map_or(0, |&(_, depth)| depth),
            chains,
            waiting: self.runtime.tasks.waiting(reach.sure_ns),
            is_empty: self.coverage.recorded == 0,
            spanned: spanned.clone(),
            contention: workers.iter().map(|worker| (worker.row.worker, worker.contention())).collect(),
            waits: workers.iter().map(|worker| (worker.row.worker, worker.waits)).collect(),
            spans: std::mem::take(&mut self.spans).into_rows(),
            lost_ns: self.coverage.lost_ns,
        }
    }

    fn polls(&mut self) -> PollView {
        let longest = std::mem::take(&mut self.runtime.workers.longest).into_sorted();
        let longest = longest.map(|Poll { duration_ns, start_ns, worker, task, place, is_open, .. }| {
            let spawned_at = self.spawned_at(place).to_owned();
            LongPoll { duration_ns, start_ns, worker, task, spawned_at, is_open }
        });
        let places = self.place_rows(&self.runtime.workers.places);
        let durations = Spread::from(&Durations::of_all(&self.runtime.workers.places));
        let distinct = usize::try_from(durations.count).unwrap_or(usize::MAX);
        PollView {
            unended: self.runtime.workers.started.saturating_sub(durations.count),
            durations,
            places: LimitedRows::new(places, self.limit, identity),
            longest: LimitedRows { rows: longest.collect(), distinct },
        }
    }

    fn tasks(&self) -> TaskView {
        let (mut view, durations, places) = self.runtime.tasks.view();
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
        view.places = LimitedRows::new(rows, self.limit, identity);
        view
    }

    fn delays(&mut self) -> DelayView {
        let durations = Spread::from(&Durations::of_all(&self.runtime.tasks.delays));
        let places = self.place_rows(&self.runtime.tasks.delays);
        let rows = std::mem::take(&mut self.runtime.tasks.worst).into_sorted();
        let rows = rows.map(|Wait { delay_ns, poll_ns, task, worker, place }| Delay {
            delay_ns,
            poll_ns,
            task,
            worker,
            spawned_at: self.spawned_at(place).to_owned(),
        });
        let distinct = usize::try_from(durations.count).unwrap_or(usize::MAX);
        let worst = LimitedRows { rows: rows.collect(), distinct };
        DelayView {
            durations,
            high: self.runtime.tasks.high,
            is_measured: self.runtime.tasks.is_measured,
            places: LimitedRows::new(places, self.limit, identity),
            worst,
        }
    }

    /// The distributions by where tasks were spawned, the one with the longest total first.
    fn place_rows(&self, by_place: &[Durations]) -> Vec<PlaceRow> {
        let places = (0..).zip(by_place).filter(|(_, durations)| durations.count > 0);
        let row = |(place, durations): (u32, &Durations)| PlaceRow {
            spawned_at: self.spawned_at(place).to_owned(),
            durations: durations.into(),
        };
        let mut rows: Vec<_> = places.map(row).collect();
        rows.sort_by_key(|row| u64::MAX - row.durations.sum_ns);
        rows
    }

    /// The samples of one kind, and those of them that were taken during polls.
    fn in_polls(&self, polls: &mut [Blockable], samples: &PollSamples) -> PollSampleView {
        let (mut view, places) = samples.view(polls, &self.samples.stacks, self.limit.max(1));
        let places = (0..).zip(places).filter(|(_, count)| *count > 0);
        let mut rows: Vec<_> = places
            .map(|(place, count)| PollSamplePlaceRow { spawned_at: self.spawned_at(place).to_owned(), count })
            .collect();
        rows.sort_by_key(|row| u64::MAX - row.count);
        view.places = LimitedRows::new(rows, self.limit, identity);
        view
    }
}
