//! The parks and unparks of workers, and how long they waited for a processor.

use std::cell::RefCell;
use std::fs::File;
use std::io::Read as _;
use std::io::{Seek as _, SeekFrom};

use crate::events::{WorkerParkEvent, WorkerUnparkEvent};
use crate::lane::RuntimeLane;
use crate::thread::{cpu_time_ns, note_own_task, tid};

/// One in so many parks is measured, because a measurement is two reads of a file. Source: `dial9-tokio-telemetry` 0.5.7.
pub(crate) const WAIT_SAMPLE_RATE: u32 = 10;

thread_local! {
    static WAITS: RefCell<WaitSampler> = const { RefCell::new(WaitSampler::new()) };
}

/// Measures the time that this thread waits for a processor after a park.
struct WaitSampler {
    parks: u32,
    /// The file of the system; `None` before the first measurement, and where there is none.
    file: Option<File>,
    /// The total before the park.
    before_ns: Option<u64>,
}

impl WaitSampler {
    const fn new() -> Self {
        Self { parks: 0, file: None, before_ns: None }
    }

    fn parks(&mut self) {
        self.parks = self.parks.wrapping_add(1);
        self.before_ns = if self.parks % WAIT_SAMPLE_RATE == 1 { self.total_ns() } else { None };
    }

    fn unparks(&mut self) -> Option<u64> {
        let before_ns = self.before_ns.take()?;
        self.total_ns().map(|total_ns| total_ns.saturating_sub(before_ns))
    }

    /// The time that the thread has waited so far.
    ///
    /// Source: Linux, `Documentation/scheduler/sched-stats.rst`, `/proc/PID/schedstat`: the second number.
    fn total_ns(&mut self) -> Option<u64> {
        if self.file.is_none() {
            self.file = File::open("/proc/thread-self/schedstat").ok();
        }
        let file = self.file.as_mut()?;
        let mut text = [0; 64];
        file.seek(SeekFrom::Start(0)).ok()?;
        let len = file.read(&mut text).ok()?;
        std::str::from_utf8(&text[..len]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

/// Records that the current worker goes to sleep.
pub(crate) fn parks(lane: &RuntimeLane) {
    note_own_task();
    let (worker_id, tid) = (lane.worker_id(), tid());
    park_as(lane, worker_id, tid);
    let _ = WAITS.try_with(|waits| waits.borrow_mut().parks());
}

/// Records that the current worker wakes up.
pub(crate) fn unparks(lane: &RuntimeLane) {
    let sched_wait_ns = WAITS.try_with(|waits| waits.borrow_mut().unparks()).ok().flatten();
    unpark_as(lane, lane.worker_id(), tid(), sched_wait_ns);
}

/// Records a park of a given worker.
pub(crate) fn park_as(lane: &RuntimeLane, worker_id: u64, tid: u32) {
    let cpu_time_ns = cpu_time_ns();
    lane.handle().record_now(|timestamp_ns| WorkerParkEvent {
        timestamp_ns,
        worker_id,
        local_queue: 0,
        cpu_time_ns,
        tid,
    });
}

/// Records an unpark of a given worker.
pub(crate) fn unpark_as(lane: &RuntimeLane, worker_id: u64, tid: u32, sched_wait_ns: Option<u64>) {
    let cpu_time_ns = cpu_time_ns();
    lane.handle().record_now(|timestamp_ns| WorkerUnparkEvent {
        timestamp_ns,
        worker_id,
        local_queue: 0,
        cpu_time_ns,
        sched_wait_ns,
        tid,
    });
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn one_park_in_ten_is_measured() {
        let mut waits = WaitSampler::new();
        let measured = (0..40).filter(|_| {
            waits.parks();
            waits.unparks().is_some()
        });
        assert_eq!(measured.count(), 4);
        assert_eq!(waits.unparks(), None);
    }
}
