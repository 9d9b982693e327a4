//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! Derives for the events of `trc`: a struct becomes a type of events, whose values are written and read without copies
//! or allocations.
//!
//! The traits are in `borehole_trc`. Its feature `derive` re-exports these macros beside them, and so do the
//! crates that programs depend on.
//!
//! # Examples
//!
//! ```
//! use borehole_trc::{Reader, TraceEvent, TypedEvents, Writer};
//!
//! #[derive(TraceEvent, Debug, PartialEq)]
//! #[traceevent(name = "RequestEvent")]
//! struct Request<'a> {
//!     #[traceevent(timestamp)]
//!     at_ns: u64,
//!     #[traceevent(pooled)]
//!     route: &'a str,
//!     status: u16,
//!     #[traceevent(unit = "us")]
//!     took: u64,
//!     user: Option<&'a str>,
//! }
//!
//! let request = Request { at_ns: 1_000, route: "/carts/{id}", status: 200, took: 310, user: None };
//! let mut writer = Writer::new(Vec::new());
//! writer.write(&request)?;
//! let trace = writer.finish()?;
//!
//! let mut reader = Reader::new(trace.as_slice());
//! let mut typed = TypedEvents::default();
//! while let Some(event) = reader.next_event()? {
//!     assert_eq!(typed.read(&event)?, Some(request.reborrow()));
//! }
//! # impl Request<'_> { fn reborrow(&self) -> Request<'_> { Request { ..*self } } }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Attributes
//!
//! On the struct:
//!
//! * `name = "…"`: the name of the events; default: the name of the struct. Any constant string.
//! * `wire_slot`: the events have the same low number in every batch that the process writes, until all 255 of these
//!   numbers are taken.
//! * `crate = "…"`: the path of the traits; default: the crate that exports the macro.
//!
//! On a field:
//!
//! * `timestamp`: the time of the event in nanoseconds, a `u64`. Exactly one field must have it.
//! * `name = "…"`: the name of the field in the stream; default: its name in the struct.
//! * `pooled`: text or a stack that repeats; it is stored once per batch.
//! * `unit`: `ns`, `us`, `ms`, `s` or `bytes`.
//! * `kind`: `gauge`, `counter` or `updown-counter`.
//! * `role`: `span.start`, `span.duration`, `span.name`, `thread_id`, `tokio.task_id` or `tokio.worker_id`.
//!
//! # Types of fields
//!
//! `u8`, `u16`, `u32`, `u64`, `usize`, `i64`, `f64`, `bool`, `&str`, `String`, `&[u8]`, `Vec<u8>`, `StackFrames`,
//! `Vec<u64>` (a stack), `Vec<(String, String)>` (a map), and `Option` of each.
//!
//! Read values borrow from their event. So a struct with a field that borrows for `'static`, such as `&'static str`,
//! can be written but not read. To read its events, define another struct of that name with a lifetime, or with a
//! `String`.
//!
//! # Compile errors
//!
//! A field of an unsupported type:
//!
//! ```compile_fail,E0277
//! #[derive(borehole_trc::TraceEvent)]
//! struct Request {
//!     #[traceevent(timestamp)]
//!     at_ns: u64,
//!     took: std::time::Duration,
//! }
//! ```
//!
//! `pooled` on a type that cannot be pooled:
//!
//! ```compile_fail,E0277
//! #[derive(borehole_trc::TraceEvent)]
//! struct Request {
//!     #[traceevent(timestamp)]
//!     at_ns: u64,
//!     #[traceevent(pooled)]
//!     status: u16,
//! }
//! ```
//!
//! A struct without a timestamp:
//!
//! ```compile_fail
//! #[derive(borehole_trc::TraceEvent)]
//! struct Request {
//!     status: u16,
//! }
//! ```

#![forbid(unsafe_code)]

mod attributes;
mod event;
mod expand;
mod program;

use proc_macro::TokenStream;

/// Derives a type of events from a struct. They can be written and, if no field borrows for `'static`, read.
///
/// See the [crate documentation](self).
#[proc_macro_derive(TraceEvent, attributes(traceevent))]
pub fn derive_trace_event(input: TokenStream) -> TokenStream {
    expand::trace_event(input.into(), "::borehole_trc").into()
}

/// Derives reading for a struct, or for an enum of such structs: one event of several types.
///
/// Each variant of the enum contains one struct; an event becomes the first variant whose struct has the event's name.
#[proc_macro_derive(ReadEvent, attributes(traceevent))]
pub fn derive_read_event(input: TokenStream) -> TokenStream {
    expand::read_event(input.into(), "::borehole_trc").into()
}

/// [`TraceEvent`] for programs that depend on `borehole`.
#[doc(hidden)]
#[proc_macro_derive(FacadeTraceEvent, attributes(traceevent))]
pub fn derive_facade_trace_event(input: TokenStream) -> TokenStream {
    expand::trace_event(input.into(), "::borehole::trc").into()
}

/// [`ReadEvent`] for programs that depend on `borehole`.
#[doc(hidden)]
#[proc_macro_derive(FacadeReadEvent, attributes(traceevent))]
pub fn derive_facade_read_event(input: TokenStream) -> TokenStream {
    expand::read_event(input.into(), "::borehole::trc").into()
}

/// [`TraceEvent`] for programs that depend on `borehole-recorder`.
#[doc(hidden)]
#[proc_macro_derive(RecorderTraceEvent, attributes(traceevent))]
pub fn derive_recorder_trace_event(input: TokenStream) -> TokenStream {
    expand::trace_event(input.into(), "::borehole_recorder::trc").into()
}

/// [`ReadEvent`] for programs that depend on `borehole-recorder`.
#[doc(hidden)]
#[proc_macro_derive(RecorderReadEvent, attributes(traceevent))]
pub fn derive_recorder_read_event(input: TokenStream) -> TokenStream {
    expand::read_event(input.into(), "::borehole_recorder::trc").into()
}

/// Makes an asynchronous `main` a program that records itself, as its environment says. Re-exported as
/// `borehole_tokio::main`.
///
/// # Arguments
///
/// * `flavor = "…"`: `multi_thread` (default) or `current_thread`.
/// * `worker_threads = …`: the number of workers; default: that of Tokio.
/// * `name = "…"`: the name of the runtime; default: `main`.
/// * `crate = …`: the path of the crate, if it is renamed: `crate = "::renamed"`.
///
/// # Panics
/// The program panics at its start if a setting in its environment is wrong or it cannot record. `BOREHOLE_TRACE=off` turns
/// recording off.
#[proc_macro_attribute]
pub fn tokio_main(arguments: TokenStream, function: TokenStream) -> TokenStream {
    program::main(arguments.into(), function.into()).into()
}
