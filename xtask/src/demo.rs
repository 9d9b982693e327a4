//! `cargo xtask demo`: a PHP program while it runs, where its time goes, and its flame graph.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{command, peers, progress};

/// A web shop that serves made-up requests for so many seconds.
const PROGRAM: [&str; 2] = ["examples/php/shop.php", "5"];

/// The profile of the command: its build takes a third of the time of a release.
const PROFILE: &str = "quick";

/// Installs PHP if it is missing, builds the command, samples the program, shows a report, and draws the flame graph.
///
/// # Errors
/// When something of that fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    eprintln!(
        "This builds borehole, records a PHP program for 5 seconds, and draws its flame graph.\n\
         The first build takes 2 to 4 minutes on 2 cores; the next ones take seconds."
    );
    // First, since it fails at once where PHP cannot be installed.
    let php = peers::php()?;
    let borehole = progress::build(root, "borehole-cli", "borehole", PROFILE)?;
    let folder = command::target(root).join("demo");
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

/// Commands to try next.
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
