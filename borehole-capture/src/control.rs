//! What a session shares with who started it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};

use crate::statistics::Statistics;

/// What those outside a session share with it.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<State>);

#[derive(Debug, Default)]
struct State {
    stop: AtomicBool,
    has_ended: AtomicBool,
    has_failed: AtomicBool,
    /// Shared with the other sessions of a coordinator.
    written: Arc<AtomicU64>,
    progress: Mutex<Progress>,
    departed: Mutex<Vec<i32>>,
    /// Who is woken when a process has departed or the session has ended.
    watcher: OnceLock<Thread>,
}

impl State {
    fn wake_watcher(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher.unpark();
        }
    }
}

/// How far a session is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// What became of the samples so far.
    pub statistics: Statistics,
    /// The processes that are being sampled.
    pub processes: Vec<i32>,
}

impl Shared {
    /// For a session whose samples count together with those of others.
    pub(crate) fn counting_in(written: Arc<AtomicU64>) -> Self {
        Self(Arc::new(State { written, ..State::default() }))
    }

    pub(crate) fn count_written(&self) {
        self.0.written.fetch_add(1, Ordering::Relaxed);
    }

    /// How many samples have been written, by all sessions that count together.
    pub(crate) fn written(&self) -> u64 {
        self.0.written.load(Ordering::Relaxed)
    }

    /// Asks for the end, in good order.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    /// Whether the session has ended and its output is complete.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::Acquire)
    }

    /// Whether the session has ended because it could not go on.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_ended() && self.0.has_failed.load(Ordering::Relaxed)
    }

    /// Whether nobody else has this any more: its session has ended, or never began.
    pub(crate) fn is_last(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// How far the session was up to half a second ago.
    #[must_use]
    pub fn progress(&self) -> Progress {
        lock(&self.0.progress).clone()
    }

    pub(crate) fn publish(&self, progress: Progress) {
        *lock(&self.0.progress) = progress;
    }

    /// From now on this thread is unparked when there is something for it to see. It need not look all the time.
    pub(crate) fn watch(&self) {
        let _ = self.0.watcher.set(thread::current());
    }

    pub(crate) fn depart(&self, processes: &[i32]) {
        if !processes.is_empty() {
            lock(&self.0.departed).extend(processes);
            self.0.wake_watcher();
        }
    }

    /// The processes that are no longer sampled since this was last asked.
    pub(crate) fn take_departed(&self) -> Vec<i32> {
        std::mem::take(&mut *lock(&self.0.departed))
    }

    pub(crate) fn end_on_drop(&self) -> EndOnDrop {
        EndOnDrop { shared: self.clone(), is_well: false }
    }
}

/// Says that a session has ended when it goes.
pub(crate) struct EndOnDrop {
    shared: Shared,
    /// Whether it has ended in good order.
    pub(crate) is_well: bool,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let State { has_ended, has_failed, .. } = &*self.shared.0;
        has_failed.store(!self.is_well, Ordering::Relaxed);
        has_ended.store(true, Ordering::Release);
        self.shared.0.wake_watcher();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
