//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! Lakes: the profiles of a fleet in Parquet files, queried in SQL.
//!
//! A [`Lake`] is a folder, or a prefix in an object store. An [`Addition`] is a sink: its input appears in the lake all at
//! once, when it is committed. A [`LakeSession`] queries one state of the lake with a third-party engine (DataFusion).
//!
//! Only Parquet files, and numbered commits that name them, are stored, so other engines can read the files as well.

#![forbid(unsafe_code)]

mod add;
mod addend;
mod ask;
mod checksum;
mod choice;
mod chosen;
#[cfg(feature = "cluster")]
mod cluster;
mod code;
mod error;
mod functions;
mod ids;
mod journal;
mod keep;
mod keys;
mod labels;
mod lake;
mod literal;
mod page;
mod place;
mod profile;
mod questions;
mod replay;
mod row_facts;
mod scan;
mod settings;
mod tables;
mod time;
mod value;
mod views;

pub use add::{AddedInput, Adding, Addition, CommittedInputs, FinishedInput, InputDetails, Precursor};
pub use addend::Addend;
pub use ask::{LakeAnswer, LakeSession};
pub use checksum::{ContentPrefixes, content_sums, sha256};
pub use choice::SampleChoice;
pub use chosen::ChosenFacts;
#[cfg(feature = "cluster")]
pub use cluster::{ExecutorOptions, SchedulerOptions, run_executor, run_scheduler};
pub use error::Error;
pub use keep::{
    AmendMode, Amended, Checked, Cleared, Compacted, LakeFinding, LakeInfo, NamedCode, Relabeling, Retention,
    RowChoice, Symbolized, TableInfo, UnnamedCode, Upgraded,
};
pub use keys::{SampleKey, SampleSelector};
pub use lake::Lake;
pub use page::page;
pub use questions::{groups, stack_with, top, trend};
pub use replay::ChosenSpan;
pub use time::{format_time_us, parse_time_us};
pub use value::LakeValue;
