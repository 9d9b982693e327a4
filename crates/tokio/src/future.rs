//! A future whose polls and wakes are recorded.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use borehole_recorder::now_ns;
use borehole_recorder::trc::dial9::UNKNOWN_WORKER;
use tokio::task::JoinHandle;

use crate::events::{TaskSpawnEvent, WakeEventEvent};
use crate::hooks::TokioRecorder;
use crate::thread::{current_task, number, place};

/// A future whose wakes are recorded, and on stable Tokio also its polls and its end.
pub struct Traced<F> {
    future: Pin<Box<F>>,
    recorder: TokioRecorder,
    spawn_loc: &'static str,
    /// The number of the task; `None` before the first poll.
    task_id: Option<u64>,
    waker: Option<Wakers>,
}

/// The waker of the task, and the waker that records.
struct Wakers {
    inner: Waker,
    recording: Waker,
}

impl TokioRecorder {
    /// Spawns a task and records its polls and wakes.
    ///
    /// # Panics
    /// If called outside a runtime, like [`tokio::spawn`].
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let spawn_loc = place(Location::caller());
        let timestamp_ns = now_ns();
        #[cfg(tokio_unstable)]
        let _instrumented = crate::unstable::Instrumented::new();
        let task = tokio::spawn(Traced::new(future, self.clone(), spawn_loc));
        if cfg!(not(tokio_unstable)) {
            self.handle().record(&TaskSpawnEvent {
                timestamp_ns,
                task_id: number(task.id()),
                spawn_loc,
                instrumented: true,
                worker_id: self.worker(),
            });
        }
        task
    }
}

impl<F: Future> Traced<F> {
    fn new(future: F, recorder: TokioRecorder, spawn_loc: &'static str) -> Self {
        Self { future: Box::pin(future), recorder, spawn_loc, task_id: None, waker: None }
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let task_id = *this.task_id.get_or_insert_with(current_task);
        let waker = Wakers::renew(&mut this.waker, context.waker(), &this.recorder, task_id);
        // With `tokio_unstable`, Tokio's hooks record the polls.
        let _poll = (!cfg!(tokio_unstable)).then(|| OpenPoll::begin(&this.recorder, task_id, this.spawn_loc));
        this.future.as_mut().poll(&mut Context::from_waker(waker))
    }
}

/// A poll in progress. Dropping this ends it, also if the future panics: Tokio catches the panic, and the worker goes on.
struct OpenPoll<'a> {
    recorder: &'a TokioRecorder,
    worker_id: u64,
}

impl<'a> OpenPoll<'a> {
    fn begin(recorder: &'a TokioRecorder, task_id: u64, spawn_loc: &'static str) -> Self {
        let worker_id = recorder.worker_id();
        recorder.poll_starts(worker_id, task_id, spawn_loc);
        Self { recorder, worker_id }
    }
}

impl Drop for OpenPoll<'_> {
    fn drop(&mut self) {
        self.recorder.poll_ends(self.worker_id);
    }
}

impl<F> Drop for Traced<F> {
    fn drop(&mut self) {
        if cfg!(not(tokio_unstable)) {
            // A task that was never polled is dropped as the current task.
            self.recorder.task_ends(self.task_id.unwrap_or_else(current_task));
        }
    }
}

impl Wakers {
    /// The recording waker. `place` may have the one of the previous poll, which is reused if it wakes the same task.
    fn renew<'w>(
        place: &'w mut Option<Self>,
        inner: &Waker,
        recorder: &TokioRecorder,
        task_id: u64,
    ) -> &'w Waker {
        let wakers = match place.take() {
            Some(wakers) if wakers.inner.will_wake(inner) => wakers,
            _ => Self::new(inner, recorder, task_id),
        };
        &place.insert(wakers).recording
    }

    fn new(inner: &Waker, recorder: &TokioRecorder, task_id: u64) -> Self {
        let recording = TaskWaker { inner: inner.clone(), recorder: recorder.clone(), task_id };
        Self { inner: inner.clone(), recording: Waker::from(Arc::new(recording)) }
    }
}

/// Wakes a task and records the wake.
struct TaskWaker {
    inner: Waker,
    recorder: TokioRecorder,
    task_id: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waker_task_id = current_task();
        // Workers whose numbers do not fit are unknown.
        let target_worker = u8::try_from(self.recorder.worker_id()).unwrap_or(UNKNOWN_WORKER);
        self.recorder.handle().record_now(|timestamp_ns| WakeEventEvent {
            timestamp_ns,
            waker_task_id,
            woken_task_id: self.task_id,
            target_worker,
        });
        self.inner.wake_by_ref();
    }
}
