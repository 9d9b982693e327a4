//! The events of the runtime itself, which are the most frequent: polls, parks, wakes, tasks and measurements.

use borehole_model::dial9::is_worker;
use borehole_model::{Event, Value};

use super::field;
use super::names::{NameTable, UNKNOWN_ROW};
use super::plan::{EventSort, ShapePlan};
use super::reports::Reports;
use super::tasks::{Tasks, Wait};
use super::workers::{Move, Moved, Poll, WorkerRecords};

#[derive(Debug)]
pub(super) struct Runtime {
    /// Where tasks were spawned.
    pub(super) places: NameTable,
    runtimes: NameTable,
    pub(super) workers: WorkerRecords,
    pub(super) tasks: Tasks,
    /// The lengths of the global queues.
    pub(super) queue: Reports,
    /// The poll that ended with the latest event.
    pub(super) ended_poll: Option<Poll>,
    /// The worker that woke up with the latest event, and when it had parked and woke up.
    pub(super) ended_park: Option<(u64, u64, u64)>,
}

impl Runtime {
    /// Keeps at most `limit` of the longest polls and delays.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            places: NameTable::or_unknown(),
            runtimes: NameTable::default(),
            workers: WorkerRecords::new(limit),
            tasks: Tasks::new(limit),
            queue: Reports::default(),
            ended_poll: None,
            ended_park: None,
        }
    }

    #[inline]
    pub(super) fn event(&mut self, plan: ShapePlan, event: &Event<'_>, time_ns: u64) {
        self.workers.seen(time_ns);
        match plan.sort {
            EventSort::PollStart => self.poll_starts(plan, event, time_ns),
            EventSort::PollEnd => self.poll_ends(plan, event, time_ns),
            EventSort::Park | EventSort::Unpark => self.moves(plan, event, time_ns),
            EventSort::Wake => {
                let tasks = [field::WAKER_TASK, field::TASK].map(|task| plan.number(event, task));
                if let [Some(waker), Some(woken)] = tasks {
                    let worker = plan.number(event, field::WORKER);
                    let outside = worker.filter(|&worker| waker == 0 && is_worker(worker));
                    let awake_ns = outside.map_or(u64::MAX, |worker| self.workers.awake_since(worker));
                    self.tasks.woken((waker, woken), worker, awake_ns, time_ns);
                }
            }
            EventSort::Spawn => {
                let place = plan.text(event, field::SPAWNED_AT).map(|place| self.places.row(place));
                let is_traced = plan.value(event, field::INSTRUMENTED) != Some(&Value::Bool(false));
                if let Some(task) = plan.number(event, field::TASK) {
                    self.tasks.spawned(task, time_ns, place, is_traced);
                }
            }
            EventSort::Terminate => {
                if let Some(task) = plan.number(event, field::TASK) {
                    self.tasks.ended(task, time_ns);
                }
            }
            _ => self.measures(plan, event, time_ns),
        }
    }

    #[inline]
    fn poll_starts(&mut self, plan: ShapePlan, event: &Event<'_>, time_ns: u64) {
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
    fn poll_ends(&mut self, plan: ShapePlan, event: &Event<'_>, time_ns: u64) {
        let Some(worker) = plan.number(event, field::WORKER) else { return };
        if let Some(poll) = self.workers.poll_ends(worker, time_ns) {
            self.tasks.poll_ended(poll.task_row, poll.start_ns, poll.duration_ns);
            self.ended_poll = Some(poll);
        }
    }

    #[inline]
    fn moves(&mut self, plan: ShapePlan, event: &Event<'_>, time_ns: u64) {
        let Some(worker) = plan.number(event, field::WORKER) else { return };
        let moved = Move {
            worker,
            at: Moved {
                time_ns,
                thread: plan.number(event, field::THREAD),
                cpu_ns: plan.number(event, field::CPU_TIME),
            },
            queue: plan.number(event, field::LOCAL_QUEUE).unwrap_or(0),
            wait_ns: plan.number(event, field::CPU_WAIT),
        };
        match plan.sort {
            EventSort::Park => self.workers.parks(moved),
            _ => {
                let parked_ns = self.workers.unparks(moved);
                self.ended_park = parked_ns.map(|parked_ns| (worker, parked_ns, time_ns));
            }
        }
    }

    fn measures(&mut self, plan: ShapePlan, event: &Event<'_>, time_ns: u64) {
        // The events of dial9 0.3.2 name no runtime: they are about all of them.
        let runtime = self.runtimes.row(plan.text(event, field::RUNTIME).unwrap_or_default());
        if let Some(depth) = plan.number(event, field::QUEUE_DEPTH) {
            self.queue.add(time_ns, runtime, depth);
        }
        if let Some(alive) = plan.number(event, field::ALIVE_TASKS) {
            self.tasks.counted.add(time_ns, runtime, alive);
        }
    }
}
