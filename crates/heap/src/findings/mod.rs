//! Problems of a heap as findings, each with observations, their likely meaning, and next steps.
//!
//! A finding is reported if somebody could act on it. Normal properties of programs are left out, or reported as
//! `FindingSeverity::Info`, which needs no action. The thresholds are constants in the module that uses them, each with its
//! reason; those of reli's report are kept unless they raise false alarms.
//!
//! Every pass is linear in nodes and references, none is recursive, and no divisor can be zero: graphs from damaged
//! files are analysed like any other.

mod allocator;
mod amounts;
mod array;
mod arrays;
mod blame;
mod bottleneck;
mod census;
mod closures;
mod content;
mod cycles;
mod dominance;
mod finding;
mod limits;
mod objects;
mod overview;
mod owner;
mod properties;
mod rankings;
mod report;
mod resources;
mod severity;
mod shapes;
mod strings;
mod strong;
mod subject;
mod summary;
mod survey;
mod told;
mod words;

pub use arrays::LargeArray;
pub use blame::RootBlame;
pub use finding::{Confidence, Fact, FindingKind, FindingPlace, FindingSeverity, HeapFinding};
pub use overview::HeapOverview;
pub use rankings::LargeString;
pub use report::{HeapReport, report};
