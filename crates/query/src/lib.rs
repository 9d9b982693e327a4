//! Lakes: the profiles of a fleet in Parquet files, queried in SQL.
//!
//! A [`Lake`] is a folder, or a prefix in an object store. An [`Addition`] is a sink: its input appears in the lake all at
//! once, when it is committed. A [`Session`] queries one state of the lake with a third-party engine (DataFusion).
//!
//! Nothing but Parquet files, and numbered commits that name them, is stored: any other engine can read the files as well.

mod add;
mod addend;
mod ask;
#[cfg(feature = "cluster")]
mod cluster;
mod error;
mod functions;
mod ids;
mod journal;
mod keep;
mod lake;
mod page;
mod place;
mod profile;
mod questions;
mod scan;
mod tables;
mod time;
mod value;
mod views;

pub use add::{Added, Adding, Addition, Source, sha256};
pub use addend::Addend;
pub use ask::{Answer, Session};
#[cfg(feature = "cluster")]
pub use cluster::{ExecutorOptions, SchedulerOptions, run_executor, run_scheduler};
pub use error::Error;
pub use keep::{Checked, Cleared, Compacted, Finding, LakeInfo, Retained, TableInfo};
pub use lake::Lake;
pub use page::page;
pub use questions::{Choice, diff, stack_with, top, trend};
pub use time::{format_time_us, parse_time_us};
pub use value::Value;
