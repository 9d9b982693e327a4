//! The hooks that Tokio marks as unstable: they see every task.

use std::cell::Cell;

use tokio::runtime::{Builder, TaskMeta};

use crate::events::TaskSpawnEvent;
use crate::hooks::TokioRecorder;
use crate::thread::{number, place};

thread_local! {
    /// Whether this thread is spawning a task whose wakes are recorded.
    static IS_INSTRUMENTED: Cell<bool> = const { Cell::new(false) };
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

impl TokioRecorder {
    pub(crate) fn install_unstable(&self, builder: &mut Builder) {
        let recorder = self.clone();
        builder.on_task_spawn(move |task| recorder.on_task_spawn(task));
        let recorder = self.clone();
        builder.on_before_task_poll(move |task| recorder.on_before_task_poll(task));
        let recorder = self.clone();
        builder.on_after_task_poll(move |task| recorder.on_after_task_poll(task));
        let recorder = self.clone();
        builder.on_task_terminate(move |task| recorder.on_task_terminate(task));
    }

    /// Records that a task is spawned.
    pub fn on_task_spawn(&self, task: &TaskMeta<'_>) {
        let (task_id, spawn_loc, worker_id) = (number(task.id()), place(task.spawned_at()), self.worker());
        let instrumented = IS_INSTRUMENTED.get();
        self.handle().record_now(|timestamp_ns| TaskSpawnEvent {
            timestamp_ns,
            task_id,
            spawn_loc,
            instrumented,
            worker_id,
        });
    }

    /// Records that a task is about to be polled.
    pub fn on_before_task_poll(&self, task: &TaskMeta<'_>) {
        self.poll_starts(self.worker_id(), number(task.id()), place(task.spawned_at()));
    }

    /// Records that a task was polled.
    pub fn on_after_task_poll(&self, _task: &TaskMeta<'_>) {
        self.poll_ends(self.worker_id());
    }

    /// Records that a task has ended.
    pub fn on_task_terminate(&self, task: &TaskMeta<'_>) {
        self.task_ends(number(task.id()));
    }
}
