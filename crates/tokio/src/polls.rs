//! Polls: their start, their end, and what a long one triggers.

use std::cell::Cell;
use std::sync::Arc;

use borehole_recorder::now_ns;
use borehole_recorder::trc::dial9::UNKNOWN_WORKER;

use crate::events::{PollEndEvent, PollStartEvent, TaskTerminateEvent};
use crate::lane::{RuntimeLane, lock};
use crate::thread::tid;
use crate::workers;

thread_local! {
    /// The task of `block_on` that this thread polls; 0 if there is none.
    static BLOCKED_ON: Cell<u64> = const { Cell::new(0) };
}

/// The task of `block_on` that this thread polls; 0 if there is none.
pub(crate) fn blocked_on() -> u64 {
    BLOCKED_ON.get()
}

pub(crate) fn poll_starts(lane: &RuntimeLane, worker_id: u64, task_id: u64, spawn_loc: &str) -> u64 {
    let timestamp_ns = now_ns();
    lane.handle().record(&PollStartEvent { timestamp_ns, worker_id, local_queue: 0, task_id, spawn_loc });
    timestamp_ns
}

/// Records the end of a poll that began at `start_ns`. A long one triggers a dump.
pub(crate) fn poll_ends(lane: &RuntimeLane, worker_id: u64, start_ns: u64, spawn_loc: &str) {
    let timestamp_ns = now_ns();
    lane.handle().record(&PollEndEvent { timestamp_ns, worker_id });
    let took_ns = timestamp_ns.saturating_sub(start_ns);
    if took_ns > lane.state().long_poll_ns() {
        trigger(lane, took_ns, spawn_loc);
    }
}

#[cold]
fn trigger(lane: &RuntimeLane, took_ns: u64, spawn_loc: &str) {
    let took_ms = took_ns / 1_000_000;
    lane.handle().trigger(&format!("long poll of {took_ms} ms, spawned at {spawn_loc}"));
}

pub(crate) fn task_ends(lane: &RuntimeLane, task_id: u64) {
    lane.handle().record_now(|timestamp_ns| TaskTerminateEvent { timestamp_ns, task_id });
}

/// A poll in progress. Dropping this ends it, also if the future panics: Tokio catches the panic, and the worker goes on.
pub(crate) struct OpenPoll<'a> {
    lane: &'a RuntimeLane,
    worker_id: u64,
    start_ns: u64,
    spawn_loc: &'static str,
}

impl<'a> OpenPoll<'a> {
    pub(crate) fn begin(
        lane: &'a RuntimeLane,
        worker_id: u64,
        task_id: u64,
        spawn_loc: &'static str,
    ) -> Self {
        let start_ns = poll_starts(lane, worker_id, task_id, spawn_loc);
        Self { lane, worker_id, start_ns, spawn_loc }
    }
}

impl Drop for OpenPoll<'_> {
    fn drop(&mut self) {
        poll_ends(self.lane, self.worker_id, self.start_ns, self.spawn_loc);
    }
}

/// While it lives, this thread polls a task of `block_on`. Its value is the task before.
struct PolledTask(u64);

impl Drop for PolledTask {
    fn drop(&mut self) {
        BLOCKED_ON.set(self.0);
    }
}

/// The place of a thread that polls a future of `block_on`, for as long as it does.
///
/// On a worker, it is that worker. Outside, it is the unknown worker: readers then show the polls without a worker. Polls
/// are paired by their worker, so if several threads poll at once, the others get numbers of their own.
pub(crate) struct BlockingPoller {
    lane: Arc<RuntimeLane>,
    kind: PollerKind,
    task_id: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PollerKind {
    Worker,
    Unknown,
    Numbered(u64),
}

impl BlockingPoller {
    pub(crate) fn new(lane: &Arc<RuntimeLane>, task_id: u64) -> Self {
        let kind = match (lane.worker(), &mut *lock(&lane.state().outside)) {
            (Some(_), _) => PollerKind::Worker,
            (None, is_taken @ false) => {
                *is_taken = true;
                PollerKind::Unknown
            }
            (None, true) => PollerKind::Numbered(lane.take_spare()),
        };
        Self { lane: Arc::clone(lane), kind, task_id }
    }

    /// Polls, and records that.
    pub(crate) fn poll<T>(&self, spawn_loc: &'static str, poll: impl FnOnce() -> T) -> T {
        let worker_id = match self.kind {
            PollerKind::Worker => self.lane.worker_id(),
            PollerKind::Unknown => UNKNOWN_WORKER.into(),
            PollerKind::Numbered(number) => {
                workers::unpark_as(&self.lane, number, tid(), None);
                number
            }
        };
        let result = {
            let _task = PolledTask(BLOCKED_ON.replace(self.task_id));
            let _poll = OpenPoll::begin(&self.lane, worker_id, self.task_id, spawn_loc);
            poll()
        };
        if let PollerKind::Numbered(number) = self.kind {
            workers::park_as(&self.lane, number, tid());
        }
        result
    }
}

impl Drop for BlockingPoller {
    fn drop(&mut self) {
        match self.kind {
            PollerKind::Worker => {}
            PollerKind::Unknown => *lock(&self.lane.state().outside) = false,
            PollerKind::Numbered(number) => self.lane.give_back(number),
        }
        task_ends(&self.lane, self.task_id);
    }
}
