//! The `borehole-serve` command, which `borehole serve` runs.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use borehole_memory::CountingAllocator;

/// Counts what the command holds, so that no input makes it large.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    borehole_cli::borehole_serve()
}
