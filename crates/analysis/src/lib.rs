//! Views of profiles as plain data: what a report, a terminal or a web page shows.
//!
//! A [`Query`] says what is asked; [`ReportSink`] is the [`ProfileSink`](borehole_model::ProfileSink) that
//! answers it with a [`ReportView`] once the profile is finished.
//!
//! [`tokio`] does the same for the events of Tokio programs.
//!
//! * A sample costs an addition in a column indexed by its stack. Names, patterns and tables are worked out
//!   afterwards, once per distinct frame and stack: a hundred million samples of a thousand stacks are a
//!   thousand stacks' work.
//! * Time and memory are linear in the distinct stacks, whatever their depth: every property of a stack is
//!   derived from its caller's, and inclusive counts come from one walk over the tree of calls.
//! * Nothing here prints, reads or writes, and views name neither tables nor ids.

pub mod amount;
mod answer;
mod call_paths;
mod call_sums;
mod call_tree;
mod calls;
mod counts;
pub mod diff;
mod facts;
mod frame_name;
mod groups;
mod heat_map;
mod inventory;
mod json;
mod page;
mod path_map;
mod pattern;
mod profile;
mod query;
mod ranking;
mod recent;
mod report;
mod reshape;
mod sample_groups;
mod selection;
mod states;
mod ticks;
mod timeline;
pub mod tokio;
mod tops;
mod totals;
mod tree;
mod view;
mod weighing;

pub use calls::{Calls, StackSamples};
pub use frame_name::{FrameName, Paths};
pub use heat_map::{HeatMap, HeatMapSink};
pub use inventory::{Inventory, Numbers, SegmentFacts};
pub use page::{
    Dimension, DimensionKind, DimensionValue, Page, PageCall, PageCell, PageFunction, PageLimits, PageRow,
    Pruned,
};
pub use path_map::PathMap;
pub use pattern::{Pattern, PatternError};
pub use profile::{Profile, ProfileBuilder, TimeRange, Timespan};
pub use query::{By, Collapse, Lines, Opcodes, Query, Recursion, Rows};
pub use ranking::{SortKey, leading};
pub use report::ReportSink;
pub use reshape::Reshape;
pub use selection::{Selection, Weight};
pub use ticks::Ticks;
pub use timeline::{Timeline, TimelineRow};
pub use tops::{GroupRow, SortBy, TopRow};
pub use tree::{Branch, Direction, Tree};
pub use view::{
    Breakdown, FrameGroup, GroupValue, LabelText, PeriodSamples, RecentRun, ReportView, Row, SampleGroup,
    Share, StateRow, StateTable, Summary, Table, ThreadStates,
};
