//! Profiles of many formats: open, convert, recover, write.
//!
//! Rust programs depend on this crate. It opens any readable file by its content ([`Input`]), streams its samples and
//! events into any [`ProfileSink`], writes any writable format ([`Target`]), and recovers the intact parts of damaged
//! files. A program that records itself uses the writers of [`rbt`](formats::rbt) and [`trc`] directly.
//!
//! Every format is a Cargo feature. All are on by default.
//!
//! Inputs may be hostile. [`Limits::memory_bytes`] bounds what one reader holds. A program that also installs
//! [`memory::CountingAllocator`] and calls [`memory::set_budget`] bounds everything that it holds: tables of names and stacks,
//! sinks, spools. Without that allocator only the limits of readers apply.
//!
//! # Examples
//!
//! Convert a file of any format, and recover the rest of it if it is damaged:
//!
//! ```
//! # #[cfg(all(feature = "rbt", feature = "folded"))] {
//! use borehole::{Format, Input, InputOptions, Source, Target, convert};
//!
//! let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/rbt/daemon_worker.rbt");
//! let input = Input::open(Source::path(trace)?, &InputOptions::default())?;
//! let mut folded = Vec::new();
//! let outcome = convert([input], &Target::new(Format::Folded), &mut folded)?;
//! assert_eq!(outcome.recovery.samples, 30);
//! assert!(folded.ends_with(b"\n"));
//! # }
//! # Ok::<(), borehole::Error>(())
//! ```
//!
//! Look at samples one by one, without converting the file:
//!
//! ```
//! # #[cfg(feature = "rbt")] {
//! use std::ops::ControlFlow;
//! use borehole::model::{Context, ProfileSink, Sample, Tables};
//! use borehole::{Input, InputOptions, Source};
//!
//! /// Counts the samples of which some frame is in a namespace.
//! struct InNamespace(&'static [u8], u64);
//!
//! impl ProfileSink for InNamespace {
//!     fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> std::io::Result<ControlFlow<()>> {
//!         let tables = at.tables;
//!         let mut names = tables.frames_leaf_first(sample.stack).map(|id| tables.string(tables.frame(id).function));
//!         if names.any(|name| name.starts_with(self.0)) {
//!             self.1 += sample.count;
//!         }
//!         Ok(ControlFlow::Continue(()))
//!     }
//! }
//!
//! let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/rbt/daemon_worker.rbt");
//! let input = Input::open(Source::path(trace)?, &InputOptions::default())?;
//! let mut app = InNamespace(b"App\\", 0);
//! input.read_into(&mut Tables::default(), &mut app)?;
//! assert!(app.1 > 0);
//! # }
//! # Ok::<(), borehole::Error>(())
//! ```

//! Record a program's own samples, one file per hour:
//!
//! ```
//! # #[cfg(feature = "rbt")] {
//! use borehole::formats::rbt::{FrameDef, SegmentCompression, SegmentedWriter};
//!
//! let mut files = Vec::new();
//! let open = |hour: u64| Ok(Vec::from(format!("stands for hour {hour}.rbt.gz: ")));
//! let close = |file: Vec<u8>| Ok(files.push(file));
//! let hour_us = 3_600_000_000;
//! let mut writer = SegmentedWriter::rotating(open, close, 10_000, hour_us, SegmentCompression::Gzip)?;
//! let stack_leaf_first =
//!     [FrameDef::php("App\\Db::query", "/app/Db.php", 42), FrameDef::php("<main>", "/app/index.php", 7)];
//! writer.write_trace(&stack_leaf_first, 0)?;
//! writer.write_trace(&stack_leaf_first, 10_000)?;
//! writer.write_trace(&stack_leaf_first, hour_us + 5)?;
//! writer.finish()?;
//! assert_eq!(files.len(), 2);
//! # }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Write everything into one trace, as it arrives:
//!
//! ```
//! # #[cfg(feature = "rbt")] {
//! use borehole::formats::rbt::{FrameDef, Header, SampleDef, Writer};
//! # use borehole::{Input, InputOptions, Source, import_all, model::Count};
//!
//! let header = Header { period_us: 10_000, has_timestamps: false };
//! let mut writer = Writer::new(Vec::new(), header)?;
//! let stack = writer.define_trace(&[FrameDef::php("<main>", "/app/index.php", 7)])?;
//! writer.write_sample(&SampleDef { count: 3, ..SampleDef::of(stack) })?;
//! let trace = writer.finish()?;
//! # let input = Input::open(Source::reader("trace", std::io::Cursor::new(trace)), &InputOptions::default())?;
//! # let mut count = Count::default();
//! # import_all([input], &mut count)?;
//! # assert_eq!(count.samples, 3);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

//! Write events of the program's own types, and read them back (with the feature `derive`):
//!
//! ```
//! # #[cfg(feature = "derive")] {
//! use borehole::trc::{Reader, TraceEvent, TypedEvents, Writer};
//!
//! #[derive(TraceEvent, Debug, PartialEq)]
//! struct Request<'a> {
//!     #[traceevent(timestamp)]
//!     at_ns: u64,
//!     #[traceevent(pooled)]
//!     route: &'a str,
//!     #[traceevent(unit = "us")]
//!     took: u64,
//! }
//!
//! let mut writer = Writer::new(Vec::new());
//! writer.write(&Request { at_ns: 1_000, route: "/carts", took: 310 })?;
//! let trace = writer.finish()?;
//!
//! let (mut reader, mut typed) = (Reader::new(trace.as_slice()), TypedEvents::default());
//! while let Some(event) = reader.next_event()? {
//!     assert_eq!(typed.read(&event)?, Some(Request { at_ns: 1_000, route: "/carts", took: 310 }));
//! }
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "archives")]
mod archive;
mod budgeted;
mod convert;
mod destination;
mod error;
mod eventless;
#[cfg(any(feature = "pprof", feature = "otlp"))]
mod filled;
#[cfg(feature = "heap")]
pub mod heap;
#[cfg(feature = "heap")]
mod heap_format;
mod input;
mod mapped;
mod output;
#[cfg(all(feature = "jsonl", any(feature = "rbt", feature = "trc")))]
mod records;
mod redact;
mod sorted;
mod source;
mod spared;
mod spool;
mod target;
mod unfinished;

#[cfg(feature = "archives")]
pub use archive::{Archive, ArchiveMember, Unpacked};
/// Sampling of running processes.
#[cfg(feature = "capture")]
pub use borehole_capture as capture;
/// The formats, each with its own options, readers and writers.
pub use borehole_formats as formats;
pub use borehole_formats::detect::Foreign;
pub use borehole_formats::{
    AddressSymbols, Export, Facts, FilledAddresses, FilledLine, Format, Limits, Losses, OnDamage, ReadError,
    ReadOptions, SampleKind, StatedMapping, WriteOptions,
};
/// The memory that the program holds, and a budget for it.
pub use borehole_memory as memory;
pub use borehole_model as model;
pub use borehole_model::{ProfileSink, Recovery, Warning};
pub use convert::{Outcome, convert, finish_before, import_all};
pub use error::Error;
pub use input::{Input, InputOptions};
pub use output::{Compression, Existing, Output, append_live, create_live, open_live};
#[cfg(all(feature = "jsonl", any(feature = "rbt", feature = "trc")))]
pub use records::{RecordCounts, count_records, dump_records};
pub use redact::{Redact, RedactKey};
pub use sorted::SortByTime;
pub use source::{Source, open_input};
pub use target::Target;
pub use unfinished::remove_unfinished;

/// Events: the format, and with the feature `derive` structs as event types.
#[cfg(feature = "trc")]
pub mod trc {
    #[cfg(feature = "derive")]
    pub use borehole_derive::{FacadeReadEvent as ReadEvent, FacadeTraceEvent as TraceEvent};
    pub use borehole_formats::trc::*;
}
