//! The schedule of samples: fixed points in time, so that a slow sample does not delay the next one.

use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId as TimerClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// The time in nanoseconds on a clock that never steps.
pub(crate) fn now_ns() -> u64 {
    // Every Linux has this clock.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec()).unwrap_or(0))
    })
}

/// Turns off the timer slack of this thread: the kernel wakes a thread up to 50 µs late, to wake several at once.
///
/// Source: prctl(2), `PR_SET_TIMERSLACK`.
pub(crate) fn be_punctual() {
    // If this is not allowed, samples are that late.
    let _ = prctl::set_timerslack(1);
}

/// The minimum duration of a sleep: with shorter periods the thread does not sleep.
const SHORT_PERIOD_NS: u64 = 50_000;

/// The CPU time of falling asleep and waking up: for shorter times the thread spins.
const SPIN_NS: u64 = 10_000;

/// The maximum duration of a sleep, after which the thread checks whether to end.
const MAX_SLEEP_NS: u64 = 100_000_000;

/// The points in time at which samples are due.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// `None`: as fast as possible.
    period_ns: Option<u64>,
    due_ns: u64,
    /// The timers that wake this thread at the points in time; `None`: the thread sets each wake-up itself.
    timers: Option<Timers>,
}

impl Schedule {
    /// Starts a schedule whose first point in time is now.
    pub(crate) fn start(period_ns: Option<u64>) -> Self {
        let mut schedule = Self { period_ns, due_ns: 0, timers: None };
        schedule.restart();
        schedule
    }

    /// Restarts the schedule at the current time, without missed points.
    pub(crate) fn restart(&mut self) {
        self.due_ns = now_ns();
        let is_slept = |period_ns: &u64| (SHORT_PERIOD_NS + 1..=MAX_SLEEP_NS).contains(period_ns);
        let period_ns = self.period_ns.filter(is_slept);
        self.timers = period_ns.and_then(|period_ns| Timers::start(self.due_ns, period_ns));
    }

    /// Advances to the next point in time, and returns the number of points missed. A point that has passed by less
    /// than a period is late, not missed: it is taken at once.
    pub(crate) fn advance(&mut self) -> u64 {
        self.period_ns.map_or(0, |period_ns| self.advance_at(period_ns, now_ns()))
    }

    /// Waits until the next point in time, `limit_ns` or `is_over`. Returns whether the point has come. If timers are
    /// used and the point is near, it may come before the limit is checked.
    pub(crate) fn wait_until(&mut self, limit_ns: u64, is_over: impl Fn() -> bool) -> bool {
        let Some(period_ns) = self.period_ns else { return true };
        let spin_ns = if period_ns <= SHORT_PERIOD_NS { SHORT_PERIOD_NS } else { SPIN_NS };
        while !is_over() {
            let now_ns = now_ns();
            match self.due_ns.saturating_sub(now_ns) {
                0 => return true,
                _ if limit_ns <= now_ns => return false,
                left_ns if left_ns <= spin_ns => std::hint::spin_loop(),
                _ => self.sleep(now_ns, limit_ns),
            }
        }
        false
    }

    /// The number of points in time passed since the one last waited for.
    pub(crate) fn overdue(&self) -> u64 {
        self.period_ns.map_or(0, |period_ns| now_ns().saturating_sub(self.due_ns) / period_ns.max(1))
    }

    /// Sleeps until the next point in time, or for less.
    fn sleep(&mut self, now_ns: u64, limit_ns: u64) {
        let has_slept = self.timers.as_ref().is_some_and(|timers| timers.wait_for(self.due_ns));
        if !has_slept {
            self.timers = None;
            sleep_until(self.due_ns.min(limit_ns).min(now_ns + MAX_SLEEP_NS));
        }
    }

    fn advance_at(&mut self, period_ns: u64, now_ns: u64) -> u64 {
        self.due_ns = self.due_ns.saturating_add(period_ns);
        let missed = now_ns.saturating_sub(self.due_ns) / period_ns.max(1);
        self.due_ns = self.due_ns.saturating_add(missed.saturating_mul(period_ns));
        missed
    }
}

/// Two timers, each for every other point in time.
///
/// A thread that sleeps until a given time pays for setting the machine's clock event to that time, unless it is
/// already set to an earlier one. In a virtual machine, this was a sixth of the cost of sleeping and waking a thousand
/// times a second, and a third at ten thousand. So there are two timers: when a thread waits for one of them, that timer
/// requests its next time while the other timer's earlier time is already set.
///
/// Source: Linux 6.1, `fs/timerfd.c`: a periodic timer that went off asks for its next time when it is read
/// (`timerfd_read`), not when it goes off.
#[derive(Debug)]
struct Timers {
    start_ns: u64,
    period_ns: u64,
    timers: [TimerFd; 2],
}

impl Timers {
    /// Starts the timers for the points in time at whole periods after `start_ns`. `None` if the system has no timers to spare.
    fn start(start_ns: u64, period_ns: u64) -> Option<Self> {
        let timer = |first_ns| {
            let timer = TimerFd::new(TimerClock::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC).ok()?;
            let times = Expiration::IntervalDelayed(time(first_ns), time(period_ns.checked_mul(2)?));
            timer.set(times, TimerSetTimeFlags::TFD_TIMER_ABSTIME).ok()?;
            Some(timer)
        };
        let first_ns = start_ns.checked_add(period_ns)?;
        let timers = [timer(first_ns.checked_add(period_ns)?)?, timer(first_ns)?];
        Some(Self { start_ns, period_ns, timers })
    }

    /// Waits for a future point in time. Returns early if earlier times of the timer were not waited for. `false` if it
    /// cannot wait.
    fn wait_for(&self, due_ns: u64) -> bool {
        let number = due_ns.saturating_sub(self.start_ns) / self.period_ns;
        let [even, odd] = &self.timers;
        let timer = if number.is_multiple_of(2) { even } else { odd };
        // nix repeats the wait if a signal interrupts it.
        timer.wait().is_ok()
    }
}

fn time(ns: u64) -> TimeSpec {
    let part = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    TimeSpec::new(part(ns / 1_000_000_000), part(ns % 1_000_000_000))
}

fn sleep_until(time_ns: u64) {
    let time = time(time_ns);
    // A signal may end the sleep early; the caller checks the clock.
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_is_taken_and_what_has_passed_is_missed() {
        let mut schedule = Schedule { period_ns: Some(100), due_ns: 1000, timers: None };
        assert_eq!((schedule.advance_at(100, 1050), schedule.due_ns), (0, 1100));
        assert_eq!((schedule.advance_at(100, 1299), schedule.due_ns), (0, 1200));
        assert_eq!((schedule.advance_at(100, 1799), schedule.due_ns), (4, 1700));
        assert_eq!((schedule.advance_at(100, 1800), schedule.due_ns), (0, 1800));
    }

    #[test]
    fn points_in_time_do_not_drift() {
        let start = now_ns();
        let mut schedule = Schedule::start(Some(1_000_000));
        let mut passed = 0;
        for _ in 0..20 {
            passed += 1 + schedule.advance();
            assert!(schedule.wait_until(u64::MAX, || false));
        }
        assert!(now_ns() - start >= passed * 1_000_000);
        assert_eq!((schedule.due_ns - start) / 1_000_000, passed);
    }

    #[test]
    fn who_comes_late_goes_on_at_the_next_point_in_time() {
        let start = now_ns();
        let mut schedule = Schedule::start(Some(1_000_000));
        let mut passed = 0;
        for round in 0..20 {
            while now_ns() < schedule.due_ns + round * 200_000 {}
            let missed = schedule.advance();
            assert!(schedule.wait_until(u64::MAX, || false));
            passed += 1 + missed;
            assert!(missed + 1 >= round / 5, "{round}: {missed}");
            assert_eq!((schedule.due_ns - start) / 1_000_000, passed);
            assert!(now_ns() >= schedule.due_ns);
        }
    }

    #[test]
    fn a_long_wait_ends_when_it_is_over_or_at_its_limit() {
        let start = now_ns();
        let mut schedule = Schedule::start(Some(3_600_000_000_000));
        assert_eq!(schedule.advance(), 0);
        assert!(!schedule.wait_until(u64::MAX, || now_ns() - start > 1_000_000));
        let limit_ns = now_ns() + 2_000_000;
        assert!(!schedule.wait_until(limit_ns, || false));
        assert!(now_ns() >= limit_ns);
        assert!(now_ns() - start < 60_000_000_000);
    }
}
