//! `cargo xtask demo`: a PHP program while it runs, where its time goes, and its flame graph.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{command, peers};

/// A web shop that serves made-up requests for so many seconds.
const PROGRAM: [&str; 2] = ["examples/php/shop.php", "5"];

/// Builds the command, installs PHP if it is missing, samples the program, shows a report, and draws the flame graph.
///
/// # Errors
/// When something of that fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    command::run(command::cargo(root).args(["build", "--release", "--package", "borehole-cli"]))?;
    let php = peers::php()?;
    let target = command::target(root);
    let borehole = target.join("release/borehole");
    let folder = target.join("demo");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let (trace, picture) = (folder.join("shop.rbt"), folder.join("flame.svg"));
    let start = || {
        let mut command = Command::new(&borehole);
        command.current_dir(root);
        command
    };
    let mut record = start();
    record.args(["record", "--rate", "1000", "--force", "--output"]).arg(&trace).arg("--");
    command::run(record.args(&php.command).args(PROGRAM))?;
    command::run(start().arg("report").arg(&trace).args(["--no-line", "--top", "10"]))?;
    command::run(start().arg("convert").arg(&trace).args(["--force", "--output"]).arg(&picture))?;
    println!("\nThe flame graph: {}", picture.display());
    println!("{}", advice(&borehole, &trace));
    Ok(())
}

/// What to try next.
fn advice(borehole: &Path, trace: &Path) -> String {
    let (borehole, trace) = (borehole.display(), trace.display());
    format!(
        "\nNext:
  {borehole} report {trace} --callers iterator_to_array
  {borehole} convert {trace} -o profile.speedscope.json
  {borehole} doctor
  {borehole} --help"
    )
}
