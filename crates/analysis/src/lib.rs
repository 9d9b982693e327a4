//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! Views of profiles as plain data: what a report, a terminal or a web page shows.
//!
//! A [`Query`] defines a report. [`ReportSink`] is the [`ProfileSink`](borehole_model::ProfileSink) that reads a profile and
//! returns a [`ReportView`] when the profile is finished. [`tokio`] does the same for the events of Tokio programs.
//!
//! * A sample costs one addition in a column indexed by its stack. Names, patterns and tables are computed afterwards, once per
//!   distinct frame and stack, so a hundred million samples of a thousand stacks cost as much as a thousand stacks.
//! * Time and memory are linear in the distinct stacks, whatever their depth: every property of a stack follows from its
//!   caller's, and totals come from one walk over the tree of calls.
//! * Nothing here prints, reads or writes, and views contain neither tables nor ids.

#![forbid(unsafe_code)]

mod answer;
mod call_paths;
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
mod lanes;
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
mod tree;
mod view;
mod weighing;

pub use calls::{Calls, StackSamples, TopRow};
pub use frame_name::{FrameName, PathStyle};
pub use heat_map::{HeatMap, HeatMapSink};
pub use inventory::{DistinctNumbers, Inventory, SegmentFacts};
pub use lanes::{ChartBox, ChartFrame, ChartLane, ChartLimits, FlameChart, LaneRuns, LaneRunsSink};
pub use page::{
    CallPattern, Dimension, DimensionKind, DimensionValue, PageCall, PageCell, PageFunction, PageLimits,
    PageRow, ProfilePage, Pruned,
};
pub use path_map::PathMap;
pub use pattern::{Pattern, PatternError};
pub use profile::{Profile, ProfileBuilder, Timespan};
pub use query::{By, Collapse, LineRows, OpcodeRows, Query, Recursion, RowKind};
pub use ranking::{SortKey, leading};
pub use report::ReportSink;
pub use reshape::ReshapeSink;
pub use selection::{SampleSelection, TimeRange, Weight};
pub use ticks::DistinctTimes;
pub use timeline::{Timeline, TimelineRow};
pub use tops::{GroupRow, SortBy};
pub use tree::{CallBranch, LazyTree, TreeDirection};
pub use view::{
    Breakdown, FrameGroup, GroupValue, LabelText, LimitedRows, PeriodSamples, ProfileSummary, RecentRun,
    ReportRow, ReportTable, ReportView, SampleGroup, Share, StateRow, StateTable, ThreadStates,
};
