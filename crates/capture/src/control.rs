//! The state that a session shares with the code that started it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};

use crate::statistics::SampleStatistics;

/// The state that a session shares with its outside.
#[derive(Clone, Debug, Default)]
pub struct SessionControl(Arc<SessionState>);

#[derive(Debug, Default)]
struct SessionState {
    stop: AtomicBool,
    has_ended: AtomicBool,
    has_failed: AtomicBool,
    /// Shared with the other sessions of a coordinator.
    written: Arc<AtomicU64>,
    progress: Mutex<SessionProgress>,
    departed: Mutex<Vec<i32>>,
    /// The thread to wake when a process has departed or the session has ended.
    watcher: OnceLock<Thread>,
}

impl SessionState {
    fn wake_watcher(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher.unpark();
        }
    }
}

/// The progress of a session.
#[derive(Clone, Debug, Default)]
pub struct SessionProgress {
    /// The number of samples by outcome, so far.
    pub statistics: SampleStatistics,
    /// The processes that are sampled now.
    pub processes: Vec<i32>,
}

impl SessionControl {
    /// Creates the state of a session whose samples count together with those of others.
    pub(crate) fn counting_in(written: Arc<AtomicU64>) -> Self {
        Self(Arc::new(SessionState { written, ..SessionState::default() }))
    }

    pub(crate) fn count_written(&self) {
        self.0.written.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of samples written by all sessions that count together.
    pub(crate) fn written(&self) -> u64 {
        self.0.written.load(Ordering::Relaxed)
    }

    /// Asks the session to end and to complete its output.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the session was asked to end.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    /// Whether the session has ended and its output is complete.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::Acquire)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_ended() && self.0.has_failed.load(Ordering::Relaxed)
    }

    /// Whether this is the last reference: the session has ended, or was dropped before it began.
    pub(crate) fn is_last(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// The progress of the session, at most half a second old.
    #[must_use]
    pub fn progress(&self) -> SessionProgress {
        lock(&self.0.progress).clone()
    }

    pub(crate) fn publish(&self, progress: SessionProgress) {
        *lock(&self.0.progress) = progress;
    }

    /// Registers the current thread to be unparked at every event of the session, so that it does not have to poll.
    pub(crate) fn watch(&self) {
        let _ = self.0.watcher.set(thread::current());
    }

    pub(crate) fn depart(&self, processes: &[i32]) {
        if !processes.is_empty() {
            lock(&self.0.departed).extend(processes);
            self.0.wake_watcher();
        }
    }

    /// Takes the processes whose sampling has ended since the last call.
    pub(crate) fn take_departed(&self) -> Vec<i32> {
        std::mem::take(&mut *lock(&self.0.departed))
    }

    pub(crate) fn end_on_drop(&self) -> EndOnDrop {
        EndOnDrop { shared: self.clone(), is_well: false }
    }
}

pub(crate) struct EndOnDrop {
    shared: SessionControl,
    /// Whether the session ended without an error.
    pub(crate) is_well: bool,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let SessionState { has_ended, has_failed, .. } = &*self.shared.0;
        has_failed.store(!self.is_well, Ordering::Relaxed);
        has_ended.store(true, Ordering::Release);
        self.shared.0.wake_watcher();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
