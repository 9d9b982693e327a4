//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! Samples running processes: attaches to them or launches them, on a schedule, many at once.
//!
//! * A [`Subject`] is one process: [`PhpProcess`] attaches to one that runs PHP, [`PythonProcess`] to one that runs CPython,
//!   and [`attach`] to either.
//! * A [`SamplingSession`] samples any number of them on one thread, at absolute points in time, into one [`LiveSink`]. It counts
//!   the requested samples by outcome, and writes the counts into the file.
//! * A [`Coordinator`] finds processes by number, family or command line, attaches to them and assigns them to sessions.
//! * [`RbtOutput`] writes live `rbt` files: flushed data can be read whatever happens to this program.

#![forbid(unsafe_code)]

mod attach;
mod control;
mod coordinator;
mod environment;
mod error;
mod event_pace;
mod finder;
pub mod heap;
mod native;
mod native_counts;
mod native_modules;
mod native_names;
mod options;
mod oracle;
mod output;
mod pending;
mod php;
mod program;
mod program_events;
mod program_records;
mod program_waits;
mod python;
mod ready;
mod resting;
mod schedule;
mod segment;
mod session;
mod statistics;
mod subject;
mod symbol_thread;
mod thread_files;

pub use attach::{Runtimes, SubjectOptions, attach, attach_when_ready, is_python};
pub use borehole_process::Ending;
pub use borehole_python::{LocalVariable, OpcodeNames, PythonVersion, SampledTasks, TaskNames};
pub use control::{SessionControl, SessionProgress};
pub use coordinator::{Coordinator, News};
pub use error::Error;
pub use finder::{Attach, Finder, IsWanted, ProcessSelection, SearchOutcome};
pub use native::NativeFrames;
pub use native_counts::NativeCounts;
pub use options::{Grouping, Idle, SampleOptions, StopMode};
pub use oracle::MeasuredTruth;
pub use output::{LiveSink, RbtOptions, RbtOutput, SegmentStreams, SharedStream};
pub use php::{IsPhpFile, PhpOptions, PhpProcess, RequestLabels};
pub use program::{ProgramOptions, ProgramProcess};
pub use python::{PythonOptions, PythonProcess, SampledThreads};
pub use segment::SegmentMetadata;
pub use session::SamplingSession;
pub use statistics::SampleStatistics;
pub use subject::{Look, Patience, Subject, TakenSample};
