//! Profiles of many formats: open, convert, recover, write.
//!
//! Rust programs depend on this crate. It opens any readable file by its content ([`Input`]), streams its samples and
//! events into any [`ProfileSink`], writes any writable format ([`Target`]), and recovers the intact parts of damaged
//! files. A program that records itself uses the writers of [`rbt`](formats::rbt) and [`trc`] directly.
//!
//! | to | use |
//! |---|---|
//! | convert files | [`convert`] |
//! | look at samples as they are read | [`Input::read_into`] with a [`ProfileSink`], or [`Samples`] one by one |
//! | read bytes that the program has | [`BorrowedInput`] |
//! | hold a profile, or make one | [`Profile`] |
//! | write samples that come from elsewhere | [`Target::exporter`] |
//! | cancel, or show progress | [`Input::cancelled_by`], [`Input::on_progress`] |
//! | add a format | [`OwnFormat`] |
//!
//! Whatever reads or writes can move to another thread. Nothing here prints, ends the process or handles signals.
//!
//! Inputs may be hostile. [`InputOptions::memory_bytes`] bounds what a conversion holds; reaching it is an error of the kind
//! [`ErrorKind::Memory`], never a shorter result. Sinks of a program's own are not among it. A program that installs
//! [`memory::CountingAllocator`] and calls [`memory::set_budget`] bounds to the byte everything that it holds.
//!
//! # Features
//!
//! All formats are on by default. Without default features and with `rbt` alone, this crate compiles in seconds.
//!
//! - **formats** (default): every format, and `zstd`. Each format is a feature of its own, called as [`Format::name`] says. A build
//!   without a format still detects its files, and says so with [`Error::NotReadable`].
//! - **archives** (default): inputs in zip and tar archives: [`Archive`](https://docs.rs/borehole/latest/borehole/struct.Archive.html).
//! - **zstd**: inputs that are Zstandard frames. Needs a C compiler, as `capture` and `sqlite` do.
//! - **derive**: structs as events of [`trc`].
//! - **serde**: `Serialize` for [`Recovery`], [`Warning`], [`Losses`], value types and counts of records, with the keys of the command's
//!   JSON. Views of profiles and heaps always have it.
//! - **analysis**: views of profiles as plain data: tops, trees, callers, timelines, diffs.
//! - **heap**: graphs of PHP's heaps in files, with their findings and exports. On any system, without a C compiler.
//! - **capture**: sampling of running processes, and with `heap` their memory, in dumps and core files too. Linux only.
//! - **sqlite**, **postgresql**, **mysql**: heaps in databases of each kind. **tls** encrypts the connections to servers.
//!
//! # Stability
//!
//! Enums that may grow, and structs that only this crate builds, are `#[non_exhaustive]`. What a program builds (options, samples,
//! segments, frames, events) has public fields and a constructor or `Default`: write `..Default::default()`, because a minor version
//! may add fields. What is complete by its meaning (a label, a thread) stays as it is, and so do enums that have to be handled
//! whole, such as [`Value`](model::Value). Traits are for programs to implement: [`ProfileSink`] and [`Export`] need one method each, and whatever is added to
//! them later has a default.
//!
//! # Examples
//!
//! Convert a file of any format, and recover the rest of it if it is damaged:
//!
//! ```
//! # #[cfg(all(feature = "rbt", feature = "folded"))] {
//! use borehole::{Format, Input, InputOptions, Source, Target, convert};
//!
//! let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/data/daemon_worker.rbt");
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
//! let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/data/daemon_worker.rbt");
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
//! use borehole::Compression;
//! use borehole::formats::rbt::{FrameDef, SegmentedWriter};
//!
//! let mut files = Vec::new();
//! let open = |hour: u64| Ok(Vec::from(format!("stands for hour {hour}.rbt.gz: ")));
//! let close = |file: Vec<u8>| Ok(files.push(file));
//! let hour_us = 3_600_000_000;
//! let mut writer = SegmentedWriter::rotating(open, close, 10_000, hour_us, Compression::Gzip)?;
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

mod advice;
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
mod profile;
mod reading;
#[cfg(all(feature = "jsonl", any(feature = "rbt", feature = "trc")))]
mod records;
mod redact;
mod samples;
mod sorted;
mod source;
mod spared;
mod spool;
mod stored;
mod target;
mod unfinished;
mod watch;

pub use advice::Advice;
#[cfg(feature = "archives")]
pub use archive::{Archive, ArchiveMember, Unpacked};
/// Views of profiles as plain data: tops, trees, callers and callees, timelines, diffs.
#[cfg(feature = "analysis")]
pub use borehole_analysis as analysis;
/// Sampling of running processes.
#[cfg(feature = "capture")]
pub use borehole_capture as capture;
/// The formats, each with its own options, readers and writers.
pub use borehole_formats as formats;
pub use borehole_formats::detect::Foreign;
pub use borehole_formats::{
    AddressSymbols, Compression, ErrorKind, Export, Facts, FilledAddresses, FilledLine, Format, Limits,
    Losses, OnDamage, OwnFormat, Position, ReadError, ReadOptions, SampleKind, StatedMapping, WriteOptions,
};
/// The memory that the program holds, and a budget for it.
pub use borehole_memory as memory;
pub use borehole_model as model;
pub use borehole_model::{ProfileSink, Recovery, Warning, WarningKind};
pub use convert::{Outcome, convert, finish_before, import_all};
pub use error::Error;
#[cfg(any(feature = "pprof", feature = "otlp"))]
pub use filled::FilledProfile;
pub use input::{BorrowedInput, Input, InputOptions};
pub use output::{Existing, Output, append_live, create_live, open_live};
pub use profile::Profile;
#[cfg(all(feature = "jsonl", any(feature = "rbt", feature = "trc")))]
pub use records::{RecordCounts, count_records, dump_records};
pub use redact::{Redact, RedactKey};
pub use samples::Samples;
pub use sorted::SortByTime;
pub use source::{Source, decompressed, open_input};
pub use target::Target;
pub use unfinished::remove_unfinished;
pub use watch::{CancelToken, Progress};

/// Events: the format, and with the feature `derive` structs as event types.
#[cfg(feature = "trc")]
pub mod trc {
    #[cfg(feature = "derive")]
    pub use borehole_derive::{FacadeReadEvent as ReadEvent, FacadeTraceEvent as TraceEvent};
    pub use borehole_formats::trc::*;
}
