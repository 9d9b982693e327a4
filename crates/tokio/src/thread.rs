//! Facts about the current thread, and the names of source locations.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash as _, Hasher};
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use tokio::task::Id;

use crate::polls::blocked_on;

/// The texts of all locations named by any thread. They outlive the threads.
static PLACES: Mutex<BTreeMap<usize, &'static str>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The number of the task that the worker itself is.
    static OWN_TASK: Cell<u64> = const { Cell::new(0) };
    static TID: Cell<Option<u32>> = const { Cell::new(None) };
    /// The locations that this thread has named, which it finds again without a lock.
    static OWN_PLACES: RefCell<HashMap<usize, &'static str>> = RefCell::default();
}

/// The system's number of the thread; 0 if the system does not provide it.
pub(crate) fn tid() -> u32 {
    TID.get().unwrap_or_else(|| {
        let tid = system_tid();
        TID.set(Some(tid));
        tid
    })
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn system_tid() -> u32 {
    u32::try_from(nix::unistd::gettid().as_raw()).unwrap_or(0)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn system_tid() -> u32 {
    0
}

/// The CPU time of the thread; 0 if the system does not provide it.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "macos", target_os = "freebsd"))]
pub(crate) fn cpu_time_ns() -> u64 {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0, |time| {
        time.tv_sec().unsigned_abs().wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec().unsigned_abs())
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "macos", target_os = "freebsd")))]
pub(crate) fn cpu_time_ns() -> u64 {
    0
}

/// The location as text. The text is created once and never freed: there are only as many as calls in the source.
pub(crate) fn place(location: &'static Location<'static>) -> &'static str {
    let key = std::ptr::from_ref(location).addr();
    let make = || -> &'static str {
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        places.entry(key).or_insert_with(|| Box::leak(location.to_string().into_boxed_str()))
    };
    // A thread that is ending has dropped its table.
    OWN_PLACES.try_with(|places| *places.borrow_mut().entry(key).or_insert_with(make)).unwrap_or("")
}

/// The number of a task, which Tokio shows in its text and gives to hashers.
pub(crate) fn number(id: Id) -> u64 {
    let mut hasher = TaskNumber(0);
    id.hash(&mut hasher);
    hasher.0
}

/// The number of the current task; 0 if there is none.
pub(crate) fn current_task() -> u64 {
    let task = tokio::task::try_id().map_or(0, number);
    if task == OWN_TASK.get() { blocked_on() } else { task }
}

/// Notes that no task runs here: for Tokio, a worker is itself a blocking task.
pub(crate) fn note_own_task() {
    if OWN_TASK.get() == 0 {
        OWN_TASK.set(tokio::task::try_id().map_or(0, number));
    }
}

/// A hasher that keeps the number it is given. Reading the text takes five times as long.
struct TaskNumber(u64);

impl Hasher for TaskNumber {
    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    /// A Tokio whose ids are no numbers gets numbers that differ as well.
    fn write(&mut self, bytes: &[u8]) {
        self.0 =
            bytes.iter().fold(self.0, |number, &byte| number.wrapping_mul(257).wrapping_add(byte.into()));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_the_number_that_tokio_shows() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for _ in 0..3 {
            let task = runtime.spawn(async {});
            assert_eq!(number(task.id()).to_string(), task.id().to_string());
        }
    }

    #[test]
    fn all_threads_share_the_text_of_a_place() {
        let here = Location::caller();
        let text = place(here);
        assert!(text.contains("thread.rs:"), "{text}");
        let elsewhere = std::thread::spawn(move || place(here)).join().unwrap();
        assert!(std::ptr::eq(text, elsewhere));
    }
}
