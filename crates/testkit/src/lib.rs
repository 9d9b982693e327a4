//! The corpus and the reference programs, for tests.
//!
//! * [`corpus`] finds files that other programs wrote; [`manifest`] lists what those programs read from them.
//! * [`assert_golden`] compares an output with a golden file; [`Scratch`] is a temporary folder.
//! * [`peers`] runs the reference programs; [`python`] runs Python, which needs a root file system of its own.
//! * [`raw_profiles`] makes profiles that hold addresses only.
//! * [`engine_modes`] lists the modes of PHP's engine; [`servers`] starts database servers; [`LakeCluster`] starts a cluster for queries on lakes.
//! * `fuzzing` (feature of that name) lists the functions that take arbitrary bytes, and makes bytes for them.
//! * `images` (feature of that name) makes recorded memory fail, and damages it.
//! * `allocations` (feature of that name) counts the allocations of a piece of code.
//!
//! Everything here panics if something is missing, because a test that cannot run must fail.

#![forbid(unsafe_code)]

#[cfg(feature = "allocations")]
pub mod allocations;
mod corpus;
pub mod engine_modes;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod golden;
pub mod hostile_labels;
#[cfg(feature = "images")]
pub mod images;
mod lake_cluster;
pub mod manifest;
pub mod page_tables;
pub mod peers;
pub mod python;
pub mod raw_profiles;
mod scratch;
pub mod servers;

pub use corpus::{corpus, corpus_files, project_file, read_corpus, sha256_hex};
pub use golden::{assert_golden, updates_golden};
pub use lake_cluster::{LakeCluster, free_address};
pub use scratch::Scratch;
