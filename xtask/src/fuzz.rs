//! `cargo xtask fuzz`: builds the program of `borehole-testkit` that mutates seeds, and runs it.

use std::path::Path;

use anyhow::Result;

use crate::command;

/// The example of the crate that has the targets.
const RUN: [&str; 6] = ["run", "--quiet", "--package", "borehole-testkit", "--example", "fuzz"];

/// Runs the fuzz targets with `arguments`.
///
/// # Errors
/// When the program cannot be built, or an input makes a target fail.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    let folder = command::target(root).join("fuzz");
    command::run(command::cargo(root).args(RUN).arg("--").arg("--failures").arg(folder).args(arguments))
}
