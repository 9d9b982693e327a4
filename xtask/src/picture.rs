//! `cargo xtask picture`: the picture in the README, drawn by the command itself.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::command;

/// The arguments of the command that draws it, from the root of the project; a test compares.
const ARGUMENTS: [&str; 7] = [
    "convert",
    "examples/python/before.bin",
    "--no-line",
    "--title=examples/python/before.bin",
    "--force",
    "-o",
    "docs/images/flame.svg",
];

/// Builds the command and draws.
///
/// # Errors
/// When either fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    command::run(command::cargo(root).args(["build", "--package", "borehole-cli"]))?;
    let program = command::target(root).join("debug/borehole");
    command::run(Command::new(program).current_dir(root).args(ARGUMENTS))
}
