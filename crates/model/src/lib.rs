//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! The data model of profiles, whichever program wrote them.
//!
//! * [`Tables`] hold repeated data once: strings, frames, stacks, label sets and shapes of events. Everything else refers
//!   to them by small ids. Stacks are parent pointers, parents before children, so a whole stack is one integer and
//!   shared callers are stored once.
//! * A [`Sample`] is one observation, or a run of equal ones. An [`Event`] is anything else that happened, with fields of
//!   its own. A [`Segment`] holds what a stretch of samples and events shares: its period, its process, its clock.
//! * A profile has one or more [value types](ValueType). A [`Weigher`] picks the one to add up, so that numbers of
//!   different kinds are never mixed. [`Lasting`] is how long a sample lasts, and a [`Lane`] is a row in a view over
//!   time.
//! * A [`ProfileSink`] takes samples and events as they are read. Importers push into a sink; exporters and views are
//!   sinks; [`Tee`], [`Filter`] and [`Count`] sit in between.
//! * [`dial9`] has the names of the events, fields and labels that traces of Tokio programs use.
//!
//! Memory grows with the number of distinct rows, never with the number of samples. This crate does no I/O and knows no
//! file format.

#![forbid(unsafe_code)]

mod adapters;
mod columns;
pub mod dial9;
mod distinct;
mod duration;
mod event;
mod export;
mod frames;
mod ids;
mod labels;
mod lane;
mod native_module;
mod numbers;
mod options;
mod sample;
mod segment;
mod sink;
mod stacks;
mod stated_modules;
mod tables;
mod threads;
mod value;
mod weigher;

pub use borehole_text::{Warning, WarningKind, nanoseconds_per};

pub use adapters::{Count, Filter, Tee};
pub use columns::{Column, StackColumn};
pub use distinct::{Distinct, InternedRows};
pub use duration::{Lasting, goes_on};
pub use event::{Addresses, Annotation, Event, FieldKind, FieldShape, Shape, Value};
pub use export::{Export, Losses};
pub use frames::{Frame, FrameText, NameParts, NativeFrame};
pub use ids::{FrameId, LabelsId, ShapeId, StackId, StringId};
pub use labels::{Label, LabelValue};
pub use lane::{Lane, LaneId, LaneName};
pub use native_module::NativeModule;
pub use numbers::RowIndex;
pub use options::{CodePlaces, Limits, OnDamage, ReadOptions, SampleKind};
pub use sample::{Sample, Status};
pub use segment::{OneClock, Segment};
pub use sink::{Context, ProfileSink, Recovery};
pub use stacks::FramesLeafFirst;
pub use stated_modules::StatedModules;
pub use tables::{TableFull, Tables};
pub use threads::{Thread, ThreadNames};
pub use value::{Measure, Mode, ValueType};
pub use weigher::{Sampled, UnknownValueType, Weigher};
