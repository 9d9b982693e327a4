//! The explorer as its users see it, without a terminal.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls as well")]

mod behaviour;
mod heap;
mod screens;
mod session;
