//! The runtimes of a recording: their names, and the numbers of their workers.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use borehole_recorder::Handle;
use borehole_recorder::trc::dial9::{SPAWNS_ONLY, UNKNOWN_WORKER, metadata};
use tokio::runtime::{self, worker_index};

thread_local! {
    /// The runtime that this thread works for.
    static CURRENT: RefCell<Option<Arc<RuntimeLane>>> = const { RefCell::new(None) };
}

/// The facts that all runtimes of a recorder share.
pub(crate) struct RecorderState {
    pub(crate) handle: Handle,
    /// Polls that take longer trigger a dump; `u64::MAX`: none.
    long_poll_ns: AtomicU64,
    /// The stacks of tasks that wait longer are recorded; `u64::MAX`: none.
    #[cfg(all(tokio_unstable, feature = "taskdump"))]
    dump_idle_ns: AtomicU64,
    names: Mutex<BTreeSet<String>>,
    /// The runtime that was installed last, for threads that no hook has told theirs.
    last: Mutex<Option<Arc<RuntimeLane>>>,
    /// Whether a thread that is no worker is polling a future of `block_on` as the unknown worker.
    pub(crate) outside: Mutex<bool>,
}

/// A runtime of a recording.
pub(crate) struct RuntimeLane {
    state: Arc<RecorderState>,
    name: String,
    /// The number of the first worker, once it is known how many there are.
    first_worker: OnceLock<u64>,
    /// The numbers of all workers, and of the threads that stood for one, as metadata has them.
    workers: Mutex<Vec<u64>>,
    /// Numbers of threads that no thread has any more.
    spare: Mutex<Vec<u64>>,
}

impl RecorderState {
    pub(crate) fn new(handle: Handle) -> Arc<Self> {
        handle.set_metadata(metadata::POLL_COVERAGE, if cfg!(tokio_unstable) { "all" } else { SPAWNS_ONLY });
        handle.set_metadata("tokio.local_queue", "false");
        handle.set_metadata("tokio.unstable", if cfg!(tokio_unstable) { "true" } else { "false" });
        Arc::new(Self {
            handle,
            long_poll_ns: AtomicU64::new(u64::MAX),
            #[cfg(all(tokio_unstable, feature = "taskdump"))]
            dump_idle_ns: AtomicU64::new(u64::MAX),
            names: Mutex::default(),
            last: Mutex::default(),
            outside: Mutex::default(),
        })
    }

    pub(crate) fn set_long_poll(&self, limit: Duration) {
        self.long_poll_ns.store(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn long_poll_ns(&self) -> u64 {
        self.long_poll_ns.load(Ordering::Relaxed)
    }

    #[cfg(all(tokio_unstable, feature = "taskdump"))]
    pub(crate) fn set_dump_idle(&self, limit: Duration) {
        self.dump_idle_ns.store(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    #[cfg(all(tokio_unstable, feature = "taskdump"))]
    pub(crate) fn dump_idle_ns(&self) -> u64 {
        self.dump_idle_ns.load(Ordering::Relaxed)
    }

    /// Adds a runtime. A name that another one has gets a number.
    pub(crate) fn add(self: &Arc<Self>, name: &str) -> Arc<RuntimeLane> {
        let mut names = lock(&self.names);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !names.contains(name));
        let name = free.unwrap_or_default();
        names.insert(name.clone());
        let lane = Arc::new(RuntimeLane {
            state: Arc::clone(self),
            name,
            first_worker: OnceLock::new(),
            workers: Mutex::default(),
            spare: Mutex::default(),
        });
        *lock(&self.last) = Some(Arc::clone(&lane));
        lane
    }

    /// The runtime that this thread works for, or else the one installed last.
    pub(crate) fn lane(self: &Arc<Self>) -> Arc<RuntimeLane> {
        if let Some(lane) = current() {
            return lane;
        }
        let last = lock(&self.last).clone();
        last.unwrap_or_else(|| self.add("runtime"))
    }
}

impl RuntimeLane {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.state.handle
    }

    pub(crate) fn state(&self) -> &Arc<RecorderState> {
        &self.state
    }

    /// Numbers the workers of this runtime, unless that is done.
    pub(crate) fn number_workers(&self, count: usize) -> u64 {
        *self.first_worker.get_or_init(|| {
            let numbers = self.handle().reserve_workers(count as u64);
            let first = numbers.start;
            self.tell(numbers);
            first
        })
    }

    /// The current worker; `None` outside of workers.
    pub(crate) fn worker(&self) -> Option<u64> {
        let index = worker_index()? as u64;
        let first = match self.first_worker.get() {
            Some(first) => *first,
            // A worker may park before the runtime is handed out.
            None => self.number_workers(runtime::Handle::try_current().ok()?.metrics().num_workers()),
        };
        Some(first.wrapping_add(index))
    }

    pub(crate) fn worker_id(&self) -> u64 {
        self.worker().unwrap_or(UNKNOWN_WORKER.into())
    }

    /// A number for a thread that works for this runtime beside its workers.
    pub(crate) fn take_spare(&self) -> u64 {
        lock(&self.spare).pop().unwrap_or_else(|| {
            let numbers = self.handle().reserve_workers(1);
            let number = numbers.start;
            self.tell(numbers);
            number
        })
    }

    pub(crate) fn give_back(&self, number: u64) {
        lock(&self.spare).push(number);
    }

    /// States the numbers in the metadata.
    fn tell(&self, numbers: impl Iterator<Item = u64>) {
        let mut workers = lock(&self.workers);
        workers.extend(numbers);
        let list = workers.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        self.handle().set_metadata(&format!("{}{}", metadata::RUNTIME_PREFIX, self.name), &list);
    }
}

/// The runtime that this thread works for.
pub(crate) fn current() -> Option<Arc<RuntimeLane>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Notes the runtime that this thread works for.
pub(crate) fn enter(lane: &Arc<RuntimeLane>) {
    // A thread that is ending has no runtime.
    let _ = CURRENT.try_with(|current| {
        let mut current = current.borrow_mut();
        if current.as_ref().is_none_or(|current| !Arc::ptr_eq(current, lane)) {
            *current = Some(Arc::clone(lane));
        }
    });
}

/// While it lives, this thread works for a runtime; before and after it for another one, or none.
pub(crate) struct EnteredLane(Option<Arc<RuntimeLane>>);

impl EnteredLane {
    pub(crate) fn new(lane: &Arc<RuntimeLane>) -> Self {
        let before = current();
        enter(lane);
        Self(before)
    }
}

impl Drop for EnteredLane {
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|current| *current.borrow_mut() = self.0.take());
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
