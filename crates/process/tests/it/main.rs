//! Real processes: this test program itself, started once more in a role of `child`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests, and children that say where to look"
)]

mod child;
mod dumps;
mod find;
mod live;
mod page;
mod stop;
mod stored;
