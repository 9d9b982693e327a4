//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! Profiles, heaps and traces of Tokio programs as pages and pictures: one self-contained file each, which needs no network.
//!
//! This crate reads views, which are plain data, never tables or formats. Names in a profile may be anything, even markup or
//! scripts. Pictures escape them; pages hold them as data in a script tag that is never run, and show them as text. A content
//! security policy in each page allows only this crate's style and script, which are made from the sources in `web/`.

#![forbid(unsafe_code)]

mod chart;
mod diff;
mod explorer;
mod heap;
mod heap_outline;
mod json;
mod names;
mod page;
mod report;
mod svg;
mod tokio;

pub use chart::{PAGE_CHART, chart_json};
pub use diff::{diff_html, diff_json};
pub use explorer::{EXPLORER_SCRIPT, EXPLORER_STYLE, explorer_html};
pub use heap::{heap_html, heap_json};
pub use heap_outline::heap_outline_json;
pub use names::is_shown_as;
pub use report::{report_html, report_json};
pub use svg::diff_svg;
pub use tokio::{tokio_html, tokio_json};
