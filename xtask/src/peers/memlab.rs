//! memlab's parser of heap snapshots of V8, run under node by a small script of ours.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Ready, debian, once};
use crate::command;

const VERSION: &str = "2.0.5";

const SCRIPT: &str = include_str!("memlab.cjs");

/// Installs memlab's core unless it is there.
///
/// # Errors
/// When npm cannot.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    debian::ensure_installed("node", "nodejs")?;
    let home = once(folder, &format!("memlab-{VERSION}"), install)?;
    let script = home.join("memlab.cjs");
    if fs::read_to_string(&script).ok().as_deref() != Some(SCRIPT) {
        fs::write(&script, SCRIPT)?;
    }
    let node = command::find("node").context("node is not on the path")?;
    let command = vec![node.display().to_string(), script.display().to_string()];
    Ok(Ready { command, version: VERSION.to_owned() })
}

fn install(into: &Path) -> Result<()> {
    debian::ensure_installed("npm", "npm")?;
    let package = format!("@memlab/core@{VERSION}");
    // Without its scripts no browser is downloaded: the parser needs none.
    let npm = ["install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"];
    command::run(Command::new("npm").args(npm).arg(into).arg(package))
}
