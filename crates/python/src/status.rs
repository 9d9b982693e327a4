//! The state of a thread at a sample.

/// The state of a thread, as far as its interpreter says it. Absent: `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStatus {
    /// Whether it holds the global lock of its interpreter. `None` without such a lock.
    pub holds_gil: Option<bool>,
    /// Whether it waits for that lock.
    pub requests_gil: Option<bool>,
    /// Whether it raises or handles an exception.
    pub has_exception: Option<bool>,
}
