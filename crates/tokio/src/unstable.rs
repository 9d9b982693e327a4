//! The hooks that Tokio marks as unstable: they see every task.

use std::cell::Cell;
use std::sync::Arc;

use tokio::runtime::{Builder, TaskMeta};

use crate::events::TaskSpawnEvent;
use crate::hooks::TokioRecorder;
use crate::lane::RuntimeLane;
use crate::polls;
use crate::thread::{note_own_task, number, place};

thread_local! {
    /// Whether this thread is spawning a task whose wakes are recorded.
    static IS_INSTRUMENTED: Cell<bool> = const { Cell::new(false) };
    /// The start of the poll that this thread is in.
    static POLL_START: Cell<u64> = const { Cell::new(0) };
}

/// While it lives, tasks that this thread spawns are marked as having their wakes recorded.
pub(crate) struct Instrumented(());

impl Instrumented {
    pub(crate) fn new() -> Self {
        IS_INSTRUMENTED.set(true);
        Self(())
    }
}

impl Drop for Instrumented {
    fn drop(&mut self) {
        IS_INSTRUMENTED.set(false);
    }
}

/// Installs the hooks that see every task of a runtime.
pub(crate) fn install(lane: &Arc<RuntimeLane>, builder: &mut Builder) {
    let this = Arc::clone(lane);
    builder.on_task_spawn(move |task| task_spawns(&this, task));
    let this = Arc::clone(lane);
    builder.on_before_task_poll(move |task| poll_starts(&this, task));
    let this = Arc::clone(lane);
    builder.on_after_task_poll(move |task| poll_ends(&this, task));
    let this = Arc::clone(lane);
    builder.on_task_terminate(move |task| polls::task_ends(&this, number(task.id())));
}

fn task_spawns(lane: &RuntimeLane, task: &TaskMeta<'_>) {
    let (task_id, spawn_loc, worker_id) = (number(task.id()), place(task.spawned_at()), spawner(lane));
    let instrumented = IS_INSTRUMENTED.get();
    lane.handle().record_now(|timestamp_ns| TaskSpawnEvent {
        timestamp_ns,
        task_id,
        spawn_loc,
        instrumented,
        worker_id,
    });
}

/// The worker that spawns, if it is one of this runtime.
fn spawner(lane: &RuntimeLane) -> Option<u64> {
    match crate::lane::current() {
        Some(current) => current.worker(),
        None => lane.worker(),
    }
}

fn poll_starts(lane: &RuntimeLane, task: &TaskMeta<'_>) {
    // Tokio calls this before it enters the task. A worker that has never parked is not known yet.
    note_own_task();
    let place = place(task.spawned_at());
    POLL_START.set(polls::poll_starts(lane, lane.worker_id(), number(task.id()), place));
}

fn poll_ends(lane: &RuntimeLane, task: &TaskMeta<'_>) {
    polls::poll_ends(lane, lane.worker_id(), POLL_START.get(), place(task.spawned_at()));
}

impl TokioRecorder {
    /// Records that a task is spawned.
    pub fn on_task_spawn(&self, task: &TaskMeta<'_>) {
        task_spawns(&self.lane(), task);
    }

    /// Records that a task is about to be polled.
    pub fn on_before_task_poll(&self, task: &TaskMeta<'_>) {
        poll_starts(&self.lane(), task);
    }

    /// Records that a task was polled.
    pub fn on_after_task_poll(&self, task: &TaskMeta<'_>) {
        poll_ends(&self.lane(), task);
    }

    /// Records that a task has ended.
    pub fn on_task_terminate(&self, task: &TaskMeta<'_>) {
        polls::task_ends(&self.lane(), number(task.id()));
    }
}
