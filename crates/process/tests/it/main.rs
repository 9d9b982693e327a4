//! Real processes: this test program, started again in a role of `child`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests, and child processes that print addresses"
)]

mod child;
mod dumps;
mod elf;
mod find;
mod live;
mod page;
mod reuse;
mod stop;
mod stored;
