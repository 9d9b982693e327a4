//! Records what a runtime does, from its hooks.

use std::io;

use borehole_recorder::Handle;
use borehole_recorder::trc::dial9::UNKNOWN_WORKER;
use tokio::runtime::{Builder, worker_index};

use crate::events::{PollEndEvent, PollStartEvent, TaskTerminateEvent, WorkerParkEvent, WorkerUnparkEvent};
use crate::runtime::RecordedRuntime;
use crate::thread::{cpu_time_ns, note_own_task, tid};

/// Records what a runtime does. Cheap to clone.
///
/// [`TokioRecorder::build`] is all that most programs need. A program with its own hooks calls the methods with the
/// names of Tokio's hooks from them.
#[derive(Clone)]
pub struct TokioRecorder {
    handle: Handle,
    first_worker: u64,
}

impl TokioRecorder {
    /// Creates a recorder that records through `handle`.
    #[must_use]
    pub fn new(handle: Handle) -> Self {
        Self { handle, first_worker: 0 }
    }

    /// Numbers the workers from `number` on, so that several runtimes have different numbers.
    #[must_use]
    pub fn first_worker(mut self, number: u64) -> Self {
        self.first_worker = number;
        self
    }

    /// Builds a recorded runtime with this name. The hooks for recording replace those of `builder`.
    ///
    /// # Errors
    /// If Tokio cannot build the runtime, or the system cannot create a thread.
    pub fn build(&self, name: &str, builder: &mut Builder) -> io::Result<RecordedRuntime> {
        self.install(builder);
        RecordedRuntime::new(builder.build()?, name, &self.handle)
    }

    /// Installs the hooks in `builder`.
    pub fn install(&self, builder: &mut Builder) {
        let recorder = self.clone();
        builder.on_thread_park(move || recorder.on_thread_park());
        let recorder = self.clone();
        builder.on_thread_unpark(move || recorder.on_thread_unpark());
        #[cfg(tokio_unstable)]
        self.install_unstable(builder);
    }

    /// Records that a worker goes to sleep.
    pub fn on_thread_park(&self) {
        note_own_task();
        let (worker_id, cpu_time_ns, tid) = (self.worker_id(), cpu_time_ns(), tid());
        self.handle.record_now(|timestamp_ns| WorkerParkEvent {
            timestamp_ns,
            worker_id,
            local_queue: 0,
            cpu_time_ns,
            tid,
        });
    }

    /// Records that a worker wakes up.
    pub fn on_thread_unpark(&self) {
        let (worker_id, cpu_time_ns, tid) = (self.worker_id(), cpu_time_ns(), tid());
        self.handle.record_now(|timestamp_ns| WorkerUnparkEvent {
            timestamp_ns,
            worker_id,
            local_queue: 0,
            cpu_time_ns,
            sched_wait_ns: None,
            tid,
        });
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn poll_starts(&self, worker_id: u64, task_id: u64, spawn_loc: &str) {
        self.handle.record_now(|timestamp_ns| PollStartEvent {
            timestamp_ns,
            worker_id,
            local_queue: 0,
            task_id,
            spawn_loc,
        });
    }

    pub(crate) fn poll_ends(&self, worker_id: u64) {
        self.handle.record_now(|timestamp_ns| PollEndEvent { timestamp_ns, worker_id });
    }

    pub(crate) fn task_ends(&self, task_id: u64) {
        self.handle.record_now(|timestamp_ns| TaskTerminateEvent { timestamp_ns, task_id });
    }

    /// The current worker; `None` outside of workers.
    pub(crate) fn worker(&self) -> Option<u64> {
        worker_index().map(|index| self.first_worker.wrapping_add(index as u64))
    }

    pub(crate) fn worker_id(&self) -> u64 {
        self.worker().unwrap_or(UNKNOWN_WORKER.into())
    }
}
