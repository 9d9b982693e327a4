//! Samples and thread states.

use crate::ids::{LabelsId, StackId};

/// One observation of a stack, or a run of equal ones.
///
/// Absent: `None` is unknown, never 0. `stack: None` is the empty stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The stack that was executing; `None` if none was.
    pub stack: Option<StackId>,
    /// The number of equal observations.
    pub count: u64,
    /// The time in nanoseconds, on the segment's clock (see [`Segment`](crate::Segment)).
    pub time_ns: Option<i64>,
    /// Microseconds since the previous sample as stored in the file, for formats that store differences. A run of
    /// `count` samples stores one difference for all of them.
    pub delta_us: Option<i64>,
    /// The process, if the sample names it; otherwise the segment may.
    pub process: Option<i64>,
    /// The thread, as numbered by the operating system.
    pub thread: Option<u64>,
    /// The interpreter within the process.
    pub interpreter: Option<u64>,
    /// The state of the thread.
    pub status: Option<Status>,
    /// Its labels, such as the query or the URL. An empty set differs from `None`.
    pub labels: Option<LabelsId>,
    /// Measured values, one for each value type of the segment. Empty if a sample only counts.
    pub values: &'a [i64],
}

impl Sample<'_> {
    /// One observation of `stack`, about which nothing else is known.
    #[must_use]
    pub fn of(stack: Option<StackId>) -> Self {
        Self { stack, count: 1, ..Self::default() }
    }
}

/// The state of a thread at a sample: a set of flags.
///
/// Source: CPython 3.15, `_remote_debugging`, thread status bits of the binary profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status(pub u8);

impl Status {
    /// The names of the flags, from bit 0 upwards. The meaning of the last two is unknown.
    pub const NAMES: [&'static str; 8] =
        ["has_gil", "on_cpu", "unknown", "gil_requested", "has_exception", "main_thread", "bit6", "bit7"];

    /// The flag with a name; `None` if there is none.
    #[must_use]
    pub fn flag(name: &[u8]) -> Option<Self> {
        let mut names = (0..).zip(Self::NAMES);
        names.find(|(_, known)| known.as_bytes() == name).map(|(bit, _)| Self(1 << bit))
    }

    /// The names of the flags that are set, from bit 0 upwards.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        (0..).zip(Self::NAMES).filter_map(move |(bit, name)| (self.0 >> bit & 1 == 1).then_some(name))
    }
}
