//! `cargo xtask pictures`: the pictures in the README and the guides, drawn by the programs themselves.

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

/// The test that takes the pictures of the explorer, and the variable that has it keep them.
const EXPLORER: (&str, &str) = ("pictures_of_the_explorer", "UPDATE_PICTURES");

/// Builds the programs and draws.
///
/// # Errors
/// When either fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    command::run(command::cargo(root).args(["build", "--package", "borehole-cli"]))?;
    let program = command::target(root).join("debug/borehole");
    command::run(Command::new(program).current_dir(root).args(ARGUMENTS))?;
    let (test, variable) = EXPLORER;
    let mut explorer = command::cargo(root);
    explorer.args(["test", "--package", "borehole-cli", "--features", "serve", "--test", "it", "--", test]);
    command::run(explorer.env(variable, "1"))
}
