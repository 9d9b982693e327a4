//! Numbers of Tokio workers in events and labels.

/// The worker number of the threads that run blocking calls. Source: dial9 0.5.7.
const BLOCKING_POOL: u64 = 254;

/// The worker number of an unknown worker. Source: dial9 0.5.7.
pub const UNKNOWN_WORKER: u64 = 255;

/// Whether a number is that of a worker.
///
/// Large machines have worker numbers above these two reserved ones. With so many workers that some have the reserved
/// numbers, they cannot be distinguished.
#[must_use]
pub const fn is_worker(number: u64) -> bool {
    number != BLOCKING_POOL && number != UNKNOWN_WORKER
}
