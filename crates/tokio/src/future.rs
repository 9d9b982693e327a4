//! Futures whose polls and wakes are recorded.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use borehole_recorder::trc::dial9::UNKNOWN_WORKER;

use crate::events::{TaskSpawnEvent, WakeEventEvent};
use crate::lane::{self, RuntimeLane};
use crate::polls::{BlockingPoller, OpenPoll, task_ends};
use crate::thread::current_task;

/// A future whose wakes are recorded, and on stable Tokio also its polls and its end.
pub struct Traced<F> {
    future: Pin<Box<F>>,
    /// The runtime of the task; of the thread that spawned it, before the first poll.
    lane: Arc<RuntimeLane>,
    spawn_loc: &'static str,
    /// The number of the task; `None` before the first poll.
    task_id: Option<u64>,
    waker: Option<Wakers>,
    #[cfg(all(tokio_unstable, feature = "taskdump"))]
    dumps: crate::dumps::TaskDumps,
}

/// The waker of the task, and the waker that records.
struct Wakers {
    inner: Waker,
    recording: Waker,
}

impl<F: Future> Traced<F> {
    pub(crate) fn new(future: F, lane: Arc<RuntimeLane>, spawn_loc: &'static str) -> Self {
        Self {
            future: Box::pin(future),
            lane,
            spawn_loc,
            task_id: None,
            waker: None,
            #[cfg(all(tokio_unstable, feature = "taskdump"))]
            dumps: crate::dumps::TaskDumps::default(),
        }
    }

    /// The number of the task. With its first poll it is clear which runtime it has.
    fn begin(&mut self) -> u64 {
        *self.task_id.get_or_insert_with(|| {
            if let Some(lane) = lane::current() {
                self.lane = lane;
            }
            current_task()
        })
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let task_id = this.begin();
        let waker = Wakers::renew(&mut this.waker, context.waker(), &this.lane, task_id);
        // With `tokio_unstable`, Tokio's hooks record the polls.
        let _poll = (!cfg!(tokio_unstable))
            .then(|| OpenPoll::begin(&this.lane, this.lane.worker_id(), task_id, this.spawn_loc));
        let mut context = Context::from_waker(waker);
        #[cfg(all(tokio_unstable, feature = "taskdump"))]
        return this.dumps.poll(this.future.as_mut(), &mut context, &this.lane, task_id);
        #[cfg(not(all(tokio_unstable, feature = "taskdump")))]
        this.future.as_mut().poll(&mut context)
    }
}

impl<F> Drop for Traced<F> {
    fn drop(&mut self) {
        if cfg!(not(tokio_unstable)) {
            // A task that was never polled is dropped as the current task.
            task_ends(&self.lane, self.task_id.unwrap_or_else(current_task));
        }
    }
}

/// The numbers of the futures of `block_on`, which are no tasks for Tokio, begin here.
const FIRST_BLOCKED_ON: u64 = 1 << 62;

/// The future of a `block_on`, recorded as a task.
pub(crate) struct BlockedOn<F> {
    future: Pin<Box<F>>,
    lane: Arc<RuntimeLane>,
    spawn_loc: &'static str,
    task_id: u64,
    poller: Option<BlockingPoller>,
    waker: Option<Wakers>,
}

impl<F: Future> BlockedOn<F> {
    pub(crate) fn new(future: F, lane: Arc<RuntimeLane>, spawn_loc: &'static str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(FIRST_BLOCKED_ON);
        let task_id = NEXT.fetch_add(1, Ordering::Relaxed);
        lane.handle().record_now(|timestamp_ns| TaskSpawnEvent {
            timestamp_ns,
            task_id,
            spawn_loc,
            instrumented: true,
            worker_id: None,
        });
        Self { future: Box::pin(future), lane, spawn_loc, task_id, poller: None, waker: None }
    }
}

impl<F: Future> Future for BlockedOn<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let waker = Wakers::renew(&mut this.waker, context.waker(), &this.lane, this.task_id);
        let poller = this.poller.get_or_insert_with(|| BlockingPoller::new(&this.lane, this.task_id));
        poller.poll(this.spawn_loc, || this.future.as_mut().poll(&mut Context::from_waker(waker)))
    }
}

impl Wakers {
    /// The recording waker. `place` may have the one of the previous poll, which is reused if it wakes the same task.
    fn renew<'w>(
        place: &'w mut Option<Self>,
        inner: &Waker,
        lane: &Arc<RuntimeLane>,
        task_id: u64,
    ) -> &'w Waker {
        let wakers = match place.take() {
            Some(wakers) if wakers.inner.will_wake(inner) => wakers,
            _ => Self::new(inner, lane, task_id),
        };
        &place.insert(wakers).recording
    }

    fn new(inner: &Waker, lane: &Arc<RuntimeLane>, task_id: u64) -> Self {
        let recording = TaskWaker { inner: inner.clone(), lane: Arc::clone(lane), task_id };
        Self { inner: inner.clone(), recording: Waker::from(Arc::new(recording)) }
    }
}

/// Wakes a task and records the wake.
struct TaskWaker {
    inner: Waker,
    /// The runtime of the woken task.
    lane: Arc<RuntimeLane>,
    task_id: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waker_task_id = current_task();
        // A worker of another runtime may wake. Workers whose numbers do not fit are unknown.
        let worker = lane::current().and_then(|lane| lane.worker());
        let target_worker = worker.and_then(|worker| u8::try_from(worker).ok()).unwrap_or(UNKNOWN_WORKER);
        self.lane.handle().record_now(|timestamp_ns| WakeEventEvent {
            timestamp_ns,
            waker_task_id,
            woken_task_id: self.task_id,
            target_worker,
        });
        self.inner.wake_by_ref();
    }
}
