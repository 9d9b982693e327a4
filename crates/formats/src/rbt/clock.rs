//! The wall clock of a segment.
//!
//! The format has differences of time only. Reli's readers keep metadata that they do not know and use none of it.

/// The metadata key of the wall time from which the differences of a segment count: nanoseconds since 1970 (UTC), in decimal
/// digits. Only an entry before the first sample counts.
pub(super) const CLOCK_KEY: &[u8] = b"start_unix_ns";

/// The wall time that a metadata entry states, if it states one.
pub(super) fn stated_unix_ns(key: &[u8], value: &[u8]) -> Option<i64> {
    if key == CLOCK_KEY { std::str::from_utf8(value).ok()?.parse().ok() } else { None }
}
