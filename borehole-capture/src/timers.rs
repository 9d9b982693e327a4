//! What wakes a thread at points in time that are equally far apart.
//!
//! A thread that asks to be woken pays for setting the machine's clock to the time it asks for, unless the clock is set to an
//! earlier one already: in a virtual machine, that was a sixth of what it takes to sleep and wake a thousand times a second, and
//! a third at ten thousand. So there are two timers, for every other point in time. When one of them is waited for, it asks for
//! its next time, and the other's is before that.
//!
//! Source: Linux 6.1, `fs/timerfd.c`: a periodic timer that went off asks for its next time when it is read (`timerfd_read`),
//! not when it goes off.

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// Two timers, each for every other point in time.
#[derive(Debug)]
pub(crate) struct Timers {
    start_ns: u64,
    period_ns: u64,
    timers: [TimerFd; 2],
}

impl Timers {
    /// For the points in time that are whole periods behind `start_ns`. `None` where the system has no such timers to spare.
    pub(crate) fn start(start_ns: u64, period_ns: u64) -> Option<Self> {
        let timer = |first_ns| {
            let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC).ok()?;
            let times = Expiration::IntervalDelayed(time(first_ns), time(period_ns.checked_mul(2)?));
            timer.set(times, TimerSetTimeFlags::TFD_TIMER_ABSTIME).ok()?;
            Some(timer)
        };
        let first_ns = start_ns.checked_add(period_ns)?;
        let timers = [timer(first_ns.checked_add(period_ns)?)?, timer(first_ns)?];
        Some(Self { start_ns, period_ns, timers })
    }

    /// Waits for a point in time that is to come, or for less if others of its timer have passed without being waited for.
    /// `false` if it cannot be waited for.
    pub(crate) fn wait_for(&self, due_ns: u64) -> bool {
        let number = due_ns.saturating_sub(self.start_ns) / self.period_ns;
        let [even, odd] = &self.timers;
        let timer = if number.is_multiple_of(2) { even } else { odd };
        // Where a signal ends it nix waits again.
        timer.wait().is_ok()
    }
}

fn time(ns: u64) -> TimeSpec {
    let part = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    TimeSpec::new(part(ns / 1_000_000_000), part(ns % 1_000_000_000))
}
