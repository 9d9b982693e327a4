//! Problems of a heap as findings, each with observations, their likely meaning, and next steps.
//!
//! A finding is reported if somebody could act on it. Normal properties of programs are left out, or reported as
//! `Severity::Info`, which needs no action. The thresholds are constants in the module that uses them, each with its
//! reason; those of reli's report are kept unless they raise false alarms.
//!
//! Every pass is linear in nodes and references, none is recursive, and no divisor can be zero: graphs from damaged
//! files are analysed like any other.

mod allocator;
mod amounts;
mod arrays;
mod blame;
mod bottleneck;
mod census;
mod closures;
mod content;
mod context;
mod cycles;
mod dominance;
mod finding;
mod objects;
mod overview;
mod owner;
mod properties;
mod rankings;
mod report;
mod resources;
mod strings;
mod strong;
mod summary;
mod words;

pub use arrays::LargeArray;
pub use blame::RootBlame;
pub use finding::{Confidence, Fact, Finding, Kind, Place, Severity};
pub use overview::Overview;
pub use rankings::LargeString;
pub use report::{Report, report};

/// The minimum size that is called large, in bytes: smaller sizes are normal in any program.
const MEBIBYTE: u64 = 1 << 20;

/// The minimum size to report, in bytes.
const NOTEWORTHY: u64 = 256 << 10;

/// The maximum number of findings of a kind, and of lines of a finding.
const MOST: usize = 5;

/// The severity of a finding about this many bytes, if a mebibyte is worth a look.
fn medium_from_mebibyte(bytes: u64) -> Severity {
    if bytes >= MEBIBYTE { Severity::Medium } else { Severity::Low }
}

/// A count and the total bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        *self = self.with(Self { count: 1, bytes });
    }

    fn with(self, other: Self) -> Self {
        Self { count: self.count.saturating_add(other.count), bytes: self.bytes.saturating_add(other.bytes) }
    }
}
