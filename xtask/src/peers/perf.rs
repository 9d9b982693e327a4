//! The kernel's own profiler.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Ready, debian};
use crate::command;

/// Installs `perf` unless it is there, and tries whether the system lets it sample.
///
/// # Errors
/// When it cannot be installed, or may not sample.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    let perf = debian::program("perf", "linux-perf")?;
    let trial = folder.join("perf.data");
    let mut record = Command::new(&perf.command[0]);
    record.args(["record", "-q", "-e", "cpu-clock:u", "-o"]).arg(&trial).args(["--", "true"]);
    let tried = command::output(&mut record).context("perf may not sample");
    drop(fs::remove_file(&trial));
    tried.map(|_| perf)
}
