//! The `borehole` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    borehole_cli::borehole()
}
