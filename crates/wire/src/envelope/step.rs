//! A step of decompression.

/// The result of a step of decompression.
pub(crate) struct InflateStep {
    pub(crate) consumed: usize,
    pub(crate) produced: usize,
    pub(crate) state: MemberState,
}

/// The state of a member after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberState {
    Inside,
    Ended,
    Failed(MemberFault),
}

/// The fault of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberFault {
    /// The input ends too early.
    Truncated,
    /// The member cannot be decompressed.
    Invalid,
    /// Decompression needs a larger window than is allowed.
    WindowTooLarge {
        /// The largest window allowed.
        max_bytes: u64,
    },
}
