//! The explorer as its users see it, without a terminal.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod behaviour;
mod heap;
mod screens;
mod session;
mod tokio;
