//! Derives for the events of `trc`: a struct becomes a type of events, written and read without a value being
//! copied or boxed on the way.
//!
//! The traits live in `borehole_formats::trc`; its feature `derive` re-exports these macros beside them, and so
//! do the crates that programs depend on.
//!
//! # Examples
//!
//! ```
//! use borehole_formats::trc::{Reader, TraceEvent, TypedEvents, Writer};
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
//! Of the struct:
//!
//! * `name = "…"`: what the events are called, if not as the struct. Any constant string.
//! * `wire_slot`: the events have the same low number in every batch that the process writes, as long as the
//!   255 of them last.
//! * `crate = "…"`: where the traits are, if not where the macro comes from.
//!
//! Of a field:
//!
//! * `timestamp`: when it happened, in nanoseconds: a `u64`. There has to be exactly one.
//! * `name = "…"`: what the field is called, if not as in the struct.
//! * `pooled`: text or a stack that repeats; it is stored once a batch.
//! * `unit`: `ns`, `us`, `ms`, `s` or `bytes`.
//! * `kind`: `gauge`, `counter` or `updown-counter`.
//! * `role`: `span.start`, `span.duration`, `span.name`, `thread_id`, `tokio.task_id` or `tokio.worker_id`.
//!
//! # Types of fields
//!
//! `u8`, `u16`, `u32`, `u64`, `usize`, `i64`, `f64`, `bool`, `&str`, `String`, `&[u8]`, `Vec<u8>`, `StackFrames`,
//! `Vec<u64>` (a stack), `Vec<(String, String)>` (a map), and `Option` of each.
//!
//! What is read borrows from its event. So a struct with a field that borrows for `'static`, as `&'static str`, can be
//! written and not read: to read its events, give another struct of that name a lifetime, or a `String`.
//!
//! # What is refused
//!
//! A field of another type:
//!
//! ```compile_fail,E0277
//! #[derive(borehole_formats::trc::TraceEvent)]
//! struct Request {
//!     #[traceevent(timestamp)]
//!     at_ns: u64,
//!     took: std::time::Duration,
//! }
//! ```
//!
//! A pool of what is not pooled:
//!
//! ```compile_fail,E0277
//! #[derive(borehole_formats::trc::TraceEvent)]
//! struct Request {
//!     #[traceevent(timestamp)]
//!     at_ns: u64,
//!     #[traceevent(pooled)]
//!     status: u16,
//! }
//! ```
//!
//! A struct without a time:
//!
//! ```compile_fail
//! #[derive(borehole_formats::trc::TraceEvent)]
//! struct Request {
//!     status: u16,
//! }
//! ```

mod attributes;
mod event;
mod expand;

use proc_macro::TokenStream;

/// Makes a struct a type of events, which can be written and, if nothing in it is `'static`, read.
///
/// See the [crate](self).
#[proc_macro_derive(TraceEvent, attributes(traceevent))]
pub fn derive_trace_event(input: TokenStream) -> TokenStream {
    expand::trace_event(input.into(), "::borehole_formats::trc").into()
}

/// Makes a struct readable from events, or an enum of such structs: one event of several types.
///
/// The variants of the enum hold one struct each; an event is the first of them that has its name.
#[proc_macro_derive(ReadEvent, attributes(traceevent))]
pub fn derive_read_event(input: TokenStream) -> TokenStream {
    expand::read_event(input.into(), "::borehole_formats::trc").into()
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
