//! Sessions with scripted subjects and with real processes.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod fake;
mod finding;
mod heap;
mod languages;
mod native;
mod native_shares;
mod output;
mod program_events;
mod python;
mod session;
mod stopping;
