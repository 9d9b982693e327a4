//! The model alone: tables that only grow, and adapters.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod adapters;
mod recovery;
mod tables;
