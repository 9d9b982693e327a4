//! Conditions under which a recording is written or completed early.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::recorder::Handle;

/// Keeps dumps apart in time: what is wrong is often wrong many times a second.
pub(crate) struct Debounce {
    every: Duration,
    state: Mutex<DebounceState>,
}

#[derive(Default)]
struct DebounceState {
    last: Option<Instant>,
    skipped: u64,
}

impl Debounce {
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, state: Mutex::default() }
    }

    /// Whether enough time has passed since the last time that this was so.
    pub(crate) fn is_due(&self) -> bool {
        let mut state = self.lock();
        let is_due = state.last.is_none_or(|last| last.elapsed() >= self.every);
        if is_due {
            state.last = Some(Instant::now());
        } else {
            state.skipped += 1;
        }
        is_due
    }

    /// The number of triggers that came too soon.
    pub(crate) fn skipped(&self) -> u64 {
        self.lock().skipped
    }

    fn lock(&self) -> MutexGuard<'_, DebounceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches a latency, such as that of requests, and triggers a dump when one in a hundred exceeds a limit.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use borehole_recorder::{Recorder, TailLatency};
///
/// # let folder = borehole_testkit::Scratch::new();
/// # let folder = folder.folder();
/// let recorder = Recorder::builder(folder).ring_bytes(16 << 20).start()?;
/// let latency = TailLatency::new(recorder.handle(), "checkout", Duration::from_millis(50));
/// (0..1_000).for_each(|_| assert!(!latency.observe(Duration::from_millis(2))));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct TailLatency {
    handle: Handle,
    reason: String,
    limit: Duration,
    window: Mutex<LatencyWindow>,
}

/// The observations since the last judgement.
#[derive(Clone, Copy, Debug, Default)]
struct LatencyWindow {
    count: u32,
    over: u32,
}

/// The number of observations in a window: enough for a hundredth of them to be ten.
const WINDOW: u32 = 1_000;

/// So many of a window are over its 99th percentile.
const TAIL: u32 = WINDOW / 100;

impl TailLatency {
    /// Watches the 99th percentile of the latency called `name`.
    #[must_use]
    pub fn new(handle: Handle, name: &str, limit: Duration) -> Self {
        let reason = format!("p99 of {name} over {limit:?}");
        Self { handle, reason, limit, window: Mutex::default() }
    }

    /// Takes an observation. Returns whether it made the 99th percentile of a window of 1,000 exceed the limit, which
    /// triggers a dump and begins another window.
    pub fn observe(&self, latency: Duration) -> bool {
        let is_exceeded =
            self.window.lock().unwrap_or_else(PoisonError::into_inner).add(latency > self.limit);
        if is_exceeded {
            self.handle.trigger(&self.reason);
        }
        is_exceeded
    }
}

impl LatencyWindow {
    /// Adds an observation. Returns whether more than a hundredth of a whole window are now over the limit, which is
    /// known before the window is full.
    fn add(&mut self, is_over: bool) -> bool {
        self.count += 1;
        self.over += u32::from(is_over);
        let is_exceeded = self.over > TAIL;
        if is_exceeded || self.count >= WINDOW {
            *self = Self::default();
        }
        is_exceeded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundredth_may_be_slow_and_no_more() {
        let exceeded = |slow_every: u32| {
            let mut window = LatencyWindow::default();
            (1..=10 * WINDOW).filter(|number| window.add(number % slow_every == 0)).count()
        };
        assert_eq!([exceeded(100), exceeded(101), exceeded(1_000)], [0, 0, 0]);
        assert!(exceeded(50) >= 9, "{}", exceeded(50));
    }

    #[test]
    fn triggers_that_come_too_soon_are_counted() {
        let debounce = Debounce::new(Duration::from_secs(3600));
        assert_eq!([(); 3].map(|()| debounce.is_due()), [true, false, false]);
        assert_eq!(debounce.skipped(), 2);
        let debounce = Debounce::new(Duration::ZERO);
        assert!(debounce.is_due() && debounce.is_due() && debounce.skipped() == 0);
    }
}
