//! Samples running processes: attaches to them or launches them, on a schedule, many at once.
//!
//! * A [`Subject`] is one process: [`PhpProcess`] attaches to one that runs PHP.
//! * A [`SamplingSession`] samples any number of them on one thread, at absolute points in time, into one [`LiveSink`]. It counts
//!   the requested samples by outcome, and writes the counts into the file.
//! * A [`Coordinator`] finds processes by number, family or command line, attaches to them and assigns them to sessions.
//! * [`RbtOutput`] writes live `rbt` files: flushed data can be read whatever happens to this program.

#![forbid(unsafe_code)]

mod control;
mod coordinator;
mod error;
mod finder;
pub mod heap;
mod options;
mod output;
mod php;
mod ready;
mod schedule;
mod segment;
mod session;
mod statistics;
mod subject;

pub use borehole_process::Ending;
pub use control::{SessionControl, SessionProgress};
pub use coordinator::{Coordinator, News};
pub use error::Error;
pub use finder::{Attach, Finder, IsWanted, ProcessSelection, SearchOutcome};
pub use options::{Grouping, Idle, SampleOptions, StopMode};
pub use output::{LiveSink, RbtOptions, RbtOutput, SegmentStreams, SharedStream};
pub use php::{IsPhpFile, PhpOptions, PhpProcess, RequestLabels};
pub use segment::SegmentMetadata;
pub use session::SamplingSession;
pub use statistics::SampleStatistics;
pub use subject::{Look, Subject};
