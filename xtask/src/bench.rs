//! `cargo xtask bench`: builds the benchmarks and what they measure, and runs them.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::command;

/// The command with its lakes and its server, and the program that measures it.
const BUILD: [&str; 8] = [
    "build",
    "--release",
    "--package",
    "borehole-cli",
    "--package",
    "borehole-bench",
    "--features",
    "borehole-cli/lake-cluster,borehole-cli/serve",
];

/// Builds for release and runs the benchmarks with `arguments`.
///
/// # Errors
/// When something cannot be built, or a claim misses its goal.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    command::run(command::cargo(root).args(BUILD))?;
    let program = command::target(root).join("release/borehole-bench");
    command::run(Command::new(program).args(arguments))
}
