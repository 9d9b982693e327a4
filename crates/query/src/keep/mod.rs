//! Maintenance of a lake, safe while others add to it and query it.

mod amend;
mod check;
mod clear;
mod compact;
mod duckdb_views;
mod info;
mod relabel;
mod retain;
mod symbolize;
mod upgrade;

pub(crate) use amend::Changes;
pub use amend::{AmendMode, Amended, RowChoice};
pub use check::{Checked, LakeFinding};
pub use clear::Cleared;
pub use compact::Compacted;
pub use info::{LakeInfo, TableInfo};
pub use relabel::Relabeling;
pub use retain::Retention;
pub use symbolize::{NamedCode, Symbolized, UnnamedCode};
pub use upgrade::Upgraded;
