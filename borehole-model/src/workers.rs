//! Numbers of Tokio workers, as events and labels give them.

/// The number of the threads that blocking calls run on. Source: dial9 0.5.7.
const BLOCKING_POOL: u64 = 254;

/// The number of a worker that is not known. Source: dial9 0.5.7.
pub const UNKNOWN_WORKER: u64 = 255;

/// Whether that is the number of a worker. Large machines have some above the two that are none; where there are so many
/// that workers have those two as well, they cannot be told apart.
#[must_use]
pub const fn is_worker(number: u64) -> bool {
    number != BLOCKING_POOL && number != UNKNOWN_WORKER
}
