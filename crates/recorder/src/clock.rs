//! The clocks of the process.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time of events in nanoseconds. It never goes back, and stops only while the machine is suspended. It counts from
/// the zero of the system's clock (`CLOCK_MONOTONIC`) if there is one, otherwise from the first call.
///
/// # Examples
///
/// ```
/// let before = borehole_recorder::now_ns();
/// assert!(borehole_recorder::now_ns() >= before);
/// ```
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    monotonic_ns()
}

#[cfg(unix)]
#[inline]
fn monotonic_ns() -> u64 {
    use nix::time::{ClockId, clock_gettime};
    // Every system has this clock, and its zero is in the past.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        time.tv_sec().unsigned_abs().wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec().unsigned_abs())
    })
}

#[cfg(not(unix))]
fn monotonic_ns() -> u64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The wall-clock time in nanoseconds since 1970; 0 if the machine's clock is set before 1970.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_as_long_as_the_program_sleeps() {
        let (start, world) = (now_ns(), unix_ns());
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(now_ns() - start >= 2_000_000);
        assert!(world > 1_600_000_000_000_000_000);
    }
}
