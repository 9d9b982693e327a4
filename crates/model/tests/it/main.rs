//! The model on its own: tables that only grow, and sinks in between.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls as well")]

mod adapters;
mod recovery;
mod tables;
