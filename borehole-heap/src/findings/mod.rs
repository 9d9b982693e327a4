//! What is wrong with a heap: findings, each with what was seen, what it likely means, and what to do next.
//!
//! A finding is said when somebody could act on it. What any program has, however small, is not said, or said to be nothing to
//! do: `Severity::Info`. The thresholds are constants beside what uses them, each with its reason; those of reli's report are
//! kept where they do not raise false alarms.
//!
//! Every pass is linear in nodes and references, nothing recurses, and nothing is divided by what may be nothing: graphs that
//! were read from damaged files are answered like any other.

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

/// What is said to be large, in bytes: less is any program's.
const MEBIBYTE: u64 = 1 << 20;

/// What is worth a word, in bytes.
const NOTEWORTHY: u64 = 256 << 10;

/// As many findings of a kind are reported, and as many lines of one.
const MOST: usize = 5;

/// What a finding about so many bytes matters, where a mebibyte is worth a look.
fn medium_from_mebibyte(bytes: u64) -> Severity {
    if bytes >= MEBIBYTE { Severity::Medium } else { Severity::Low }
}

/// How many of something, and how many bytes together.
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
