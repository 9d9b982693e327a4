//! Sessions over subjects that do as they are told, and over real processes.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls as well")]

mod fake;
mod finding;
mod heap;
mod output;
mod session;
mod stopping;
