//! The corpus and the reference programs, for tests.
//!
//! * [`corpus`] finds the files that other programs wrote, [`manifest`] what those programs read in them.
//! * [`assert_golden`] compares with a file that is kept, [`Scratch`] is a folder that vanishes.
//! * [`peers`] runs the reference programs, [`python`] the one that needs a system of its own.
//! * [`servers`] starts servers of databases, [`LakeCluster`] what a lake is asked through.
//! * `fuzzing` (feature of that name) lists the functions that take any bytes whatever, and makes bytes for
//!   them.
//! * `allocations` (feature of that name) counts what a piece of code allocates.
//!
//! Everything here panics when something is missing: a test that cannot run is a test that fails.

#[cfg(feature = "allocations")]
pub mod allocations;
mod corpus;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod golden;
mod lake_cluster;
pub mod manifest;
pub mod peers;
pub mod python;
mod scratch;
pub mod servers;

pub use corpus::{corpus, corpus_files, project_file, read_corpus, sha256_hex};
pub use golden::{assert_golden, updates_golden};
pub use lake_cluster::{LakeCluster, free_address};
pub use scratch::Scratch;
