//! Timers that wake a thread at regular points in time.
//!
//! A thread that sleeps until a given time pays for setting the machine's clock event to that time, unless it is
//! already set to an earlier one. In a virtual machine, this was a sixth of the cost of sleeping and waking a thousand
//! times a second, and a third at ten thousand. So there are two timers, each for every other point in time: when a
//! thread waits for one of them, that timer requests its next time while the other timer's earlier time is already set.
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
    /// Starts the timers for the points in time at whole periods after `start_ns`. `None` if the system has no timers to spare.
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

    /// Waits for a future point in time. Returns early if earlier times of the timer were not waited for. `false` if it
    /// cannot wait.
    pub(crate) fn wait_for(&self, due_ns: u64) -> bool {
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
