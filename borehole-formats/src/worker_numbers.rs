//! Numbers of Tokio workers that are none. Source: dial9 0.5.7, where 254 is the blocking pool and 255 a worker that is
//! not known.

/// Workers from here on are none.
pub(crate) const FIRST_NO_WORKER: u64 = 254;

/// The worker that is not known.
#[cfg(feature = "trc")]
pub(crate) const UNKNOWN_WORKER: u64 = 255;
