//! Profiles and heaps as pages and pictures: one file each, that opens anywhere and asks nobody for anything.
//!
//! This crate sees views, which are plain data, never tables or formats. Names of a profile may be anything, what a
//! browser would obey included: in pictures they are escaped, in pages they are data in a script tag that runs nothing, and
//! are shown as text. A page tells the browser by a policy which style and which program it may obey: those of this crate.

mod diff;
mod escape;
mod heap;
mod json;
mod names;
mod page;
mod report;
mod svg;

pub use diff::diff_html;
pub use heap::heap_html;
pub use report::report_html;
pub use svg::diff_svg;
