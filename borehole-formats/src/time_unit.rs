//! Units of time by their names.

/// How many nanoseconds a unit of time has; `None` for a unit of something else.
///
/// Source: google/pprof, `internal/measurement/measurement.go`, the names that the tool takes for a time.
pub(crate) fn nanoseconds_per(unit: &str) -> Option<u64> {
    match unit {
        "nanoseconds" | "nanosecond" | "ns" => Some(1),
        "microseconds" | "microsecond" | "us" => Some(1_000),
        "milliseconds" | "millisecond" | "ms" => Some(1_000_000),
        "seconds" | "second" | "s" => Some(1_000_000_000),
        _ => None,
    }
}
