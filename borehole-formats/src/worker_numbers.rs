//! Numbers of Tokio workers that are none. Source: dial9 0.5.7, where 254 is the blocking pool and 255 a worker that is
//! not known.

const BLOCKING_POOL: u64 = 254;

/// The worker that is not known.
pub(crate) const UNKNOWN_WORKER: u64 = 255;

/// Whether that is the number of a worker. Large machines have some above the two.
pub(crate) const fn is_worker(number: u64) -> bool {
    number != BLOCKING_POOL && number != UNKNOWN_WORKER
}
