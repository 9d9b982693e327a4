//! The `borehole-lake` command, which `borehole lake` runs.

use std::process::ExitCode;

fn main() -> ExitCode {
    borehole_cli::borehole_lake()
}
