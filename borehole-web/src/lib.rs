//! Profiles as pages and pictures: one file each, that opens anywhere and asks nobody for anything.
//!
//! This crate sees views, which are plain data, never tables or formats. Names of a profile may be anything, what a
//! browser would obey included: in pictures they are escaped ([`svg`] only writes text), in pages they are data in a
//! script tag that runs nothing, and are shown as text.

mod escape;
mod svg;

pub use svg::diff_svg;
