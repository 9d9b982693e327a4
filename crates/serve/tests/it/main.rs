//! The server, as its clients see it.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod assistant;
mod client;
mod events;
mod given;
mod growth;
mod guard;
mod heaps;
mod load;
mod pages;
mod questions;
