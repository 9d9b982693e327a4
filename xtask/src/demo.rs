//! `cargo xtask demo`: a recorded trace, where its time goes, and its flame graph.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;

/// A trace of a Laravel application of 54,000 samples, from the corpus.
const TRACE: &str = "examples/laravel-54k.rbt.gz";

/// Builds the command, shows a report, and draws the flame graph.
///
/// # Errors
/// When something of that fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    command::run(command::cargo(root).args(["build", "--release", "--package", "borehole-cli"]))?;
    let target = command::target(root);
    let borehole = target.join("release/borehole");
    let folder = target.join("demo");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let picture = folder.join("flame.svg");
    let start = || {
        let mut command = Command::new(&borehole);
        command.current_dir(root);
        command
    };
    command::run(start().args(["report", TRACE, "--top", "15"]))?;
    command::run(start().args(["convert", TRACE, "-o"]).arg(&picture).arg("--force"))?;
    println!("\nThe flame graph: {}", picture.display());
    println!("{}", advice(&borehole));
    Ok(())
}

/// What to try next.
fn advice(borehole: &Path) -> String {
    let borehole = borehole.display();
    format!(
        "\nNext:
  {borehole} info {TRACE}
  {borehole} report {TRACE} --no-line --callers PDO::query
  {borehole} convert {TRACE} -o profile.speedscope.json
  {borehole} --help"
    )
}
