//! Maintenance of a lake, safe while others add to it and query it.

mod check;
mod clear;
mod compact;
mod info;
mod retain;

pub use check::{Checked, LakeFinding};
pub use clear::Cleared;
pub use compact::Compacted;
pub use info::{LakeInfo, TableInfo};
pub use retain::Retained;
