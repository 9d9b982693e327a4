//! What a profile is, whichever program wrote it.
//!
//! * [`Tables`] hold what repeats, once: strings, frames, stacks, label sets and shapes of events. Everything
//!   else refers to them by small ids. Stacks are parent pointers, parents before children, so a whole stack
//!   is one integer and shared callers are stored once.
//! * A [`Sample`] is one observation (or a run of equal ones); an [`Event`] is something else that happened,
//!   with fields of its own; a [`Segment`] says what a stretch of either has in common: its period, its
//!   process, its clock.
//! * A profile has one or more [value types](ValueType). A [`Weigher`] picks the one that is added up, so that numbers of
//!   different kinds never are; [`Lasting`] is how long a sample lasts, and a [`Lane`] is what draws a row over time.
//! * A [`ProfileSink`] takes samples and events as they are read. Importers push into one, exporters and
//!   views are one, and [`Tee`], [`Filter`] and [`Count`] stand in between.
//!
//! Memory grows with what is distinct, never with how many samples pass. Nothing here does I/O or knows a
//! file format.

mod adapters;
mod columns;
mod distinct;
mod duration;
mod event;
mod frames;
mod ids;
mod labels;
mod lane;
mod numbers;
mod sample;
mod segment;
pub mod shown;
mod sink;
mod stacks;
mod strings;
mod tables;
pub mod text;
mod threads;
mod value;
mod weigher;
mod workers;

pub use adapters::{Count, Filter, Tee};
pub use columns::{Column, StackColumn};
pub use distinct::Distinct;
pub use duration::{Lasting, goes_on};
pub use event::{Addresses, Annotation, Event, FieldKind, FieldShape, Shape, Value};
pub use frames::{Frame, FrameText, NameParts, NativeFrame};
pub use ids::{FrameId, LabelsId, ShapeId, StackId, StringId};
pub use labels::{Label, LabelValue};
pub use lane::{Lane, LaneId, LaneName};
pub use numbers::RowIndex;
pub use sample::{Sample, Status};
pub use segment::Segment;
pub use sink::{Context, ProfileSink, Recovery, Warning};
pub use stacks::FramesLeafFirst;
pub use tables::{TableFull, Tables};
pub use threads::{Thread, ThreadNames};
pub use value::{Measure, Mode, ValueType, nanoseconds_per};
pub use weigher::{Sampled, UnknownValueType, Weigher};
pub use workers::{UNKNOWN_WORKER, is_worker};
