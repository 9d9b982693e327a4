//! Records what a program does, as a trace of events of its own types.
//!
//! Each thread writes into its own buffer. A thread of the recorder collects the events and appends them to a file, a
//! few times a second. Files are rotated by time and size, completed files are compressed, and the oldest are removed
//! when the folder reaches its budget.
//!
//! * A killed process loses only the events since the last flush, half a second by default. The file up to there is intact.
//! * A panic flushes. [`Recorder::finish_on_signals`] completes the recording when the process is asked to end.
//! * Nothing blocks the program. If events come faster than the disk can write them, they are dropped and counted, and
//!   the trace contains the count: [`EventsLostEvent`].
//!
//! The files are in the format `trc`, which dial9's viewer and all tools that read its traces can open.
//!
//! # Examples
//!
//! ```
//! use borehole_recorder::{Recorder, trc::TraceEvent};
//!
//! #[derive(TraceEvent)]
//! struct RequestEvent<'a> {
//!     #[traceevent(timestamp)]
//!     at_ns: u64,
//!     #[traceevent(pooled)]
//!     route: &'a str,
//!     status: u16,
//! }
//!
//! # let folder = borehole_testkit::Scratch::new();
//! # let folder = folder.folder();
//! let recorder = Recorder::builder(folder).metadata("service", "shop").start()?;
//! let handle = recorder.handle();
//! std::thread::spawn(move || {
//!     handle.record_now(|at_ns| RequestEvent { at_ns, route: "/carts/{id}", status: 200 });
//! }).join().unwrap();
//! let summary = recorder.finish()?;
//! assert_eq!((summary.events, summary.lost_events), (1, 0));
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

mod archive;
mod buffer;
mod clock;
mod collect;
mod events;
mod losses;
mod measures;
mod metadata;
mod numbers;
mod options;
mod recorder;
mod recording;
mod ring;
mod segment;
mod settings;
#[cfg(all(unix, feature = "signal"))]
mod signals;
mod source;
mod symbols;
mod triggers;

#[cfg(feature = "allocations")]
pub use borehole_memory::SampledAllocator;
pub use borehole_wire::Compression;
pub use clock::now_ns;
pub use collect::Summary;
pub use events::{
    AllocEvent, ClockSyncEvent, CpuSampleEvent, DumpTriggeredEvent, EventsLostEvent, FreeEvent,
    SegmentMetadataEvent, SymbolTableEntry,
};
#[cfg(feature = "allocations")]
pub use measures::MemoryProfileOverflowEvent;
#[cfg(unix)]
pub use measures::ProcessResourceUsageEvent;
#[cfg(target_os = "linux")]
pub use measures::{CgroupEvent, TcpAcceptQueueEvent};
pub use options::Builder;
pub use recorder::{Handle, Recorder};
pub use settings::{PREFIX, SETTINGS, Settings};
pub use source::{Source, SourceState};
#[cfg(feature = "stacks")]
pub use symbols::capture_stack;
pub use triggers::TailLatency;

/// The format of the recording, and the derives for events.
pub mod trc {
    pub use borehole_derive::{RecorderReadEvent as ReadEvent, RecorderTraceEvent as TraceEvent};
    pub use borehole_trc::*;
}

// The derives refer to this crate by its external name.
extern crate self as borehole_recorder;
