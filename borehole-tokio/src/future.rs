//! A future whose polls and wakes are recorded.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use tokio::runtime::worker_index;

use crate::events::{PollEndEvent, PollStartEvent, TaskTerminateEvent, UNKNOWN_WORKER, WakeEventEvent};
use crate::hooks::TokioRecorder;
use crate::thread::current_task;

/// A future whose wakes are recorded; its polls and its end too, where Tokio does not tell of them.
pub struct Traced<F> {
    future: Pin<Box<F>>,
    recorder: TokioRecorder,
    spawn_loc: &'static str,
    /// The task, once it was polled.
    task_id: Option<u64>,
    waker: Option<Wakers>,
}

/// The waker of the task, and the one that records.
struct Wakers {
    inner: Waker,
    recording: Waker,
}

impl<F: Future> Traced<F> {
    pub(crate) fn new(future: F, recorder: TokioRecorder, spawn_loc: &'static str) -> Self {
        Self { future: Box::pin(future), recorder, spawn_loc, task_id: None, waker: None }
    }

    fn poll_recorded(&mut self, context: &mut Context<'_>, task_id: u64) -> Poll<F::Output> {
        let recorder = &self.recorder;
        let wakers = match self.waker.take() {
            Some(wakers) if wakers.inner.will_wake(context.waker()) => wakers,
            _ => Wakers::new(context.waker(), recorder, task_id),
        };
        let wakers = self.waker.insert(wakers);
        self.future.as_mut().poll(&mut Context::from_waker(&wakers.recording))
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let task_id = *self.task_id.get_or_insert_with(current_task);
        if cfg!(tokio_unstable) {
            return self.poll_recorded(context, task_id);
        }
        let (worker_id, spawn_loc) = (self.recorder.worker_id(), self.spawn_loc);
        self.recorder.handle().record_now(|timestamp_ns| PollStartEvent {
            timestamp_ns,
            worker_id,
            local_queue: 0,
            task_id,
            spawn_loc,
        });
        let polled = self.poll_recorded(context, task_id);
        self.recorder.handle().record_now(|timestamp_ns| PollEndEvent { timestamp_ns, worker_id });
        polled
    }
}

impl<F> Drop for Traced<F> {
    fn drop(&mut self) {
        if cfg!(not(tokio_unstable)) {
            // A task that was never polled is dropped as itself.
            let task_id = self.task_id.unwrap_or_else(current_task);
            self.recorder.handle().record_now(|timestamp_ns| TaskTerminateEvent { timestamp_ns, task_id });
        }
    }
}

impl Wakers {
    fn new(inner: &Waker, recorder: &TokioRecorder, task_id: u64) -> Self {
        let recording = TaskWaker { inner: inner.clone(), recorder: recorder.clone(), task_id };
        Self { inner: inner.clone(), recording: Waker::from(Arc::new(recording)) }
    }
}

/// Wakes a task and records that.
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
        let worker = worker_index().and_then(|_| u8::try_from(self.recorder.worker_id()).ok());
        self.recorder.handle().record_now(|timestamp_ns| WakeEventEvent {
            timestamp_ns,
            waker_task_id,
            woken_task_id: self.task_id,
            target_worker: worker.unwrap_or(UNKNOWN_WORKER),
        });
        self.inner.wake_by_ref();
    }
}
