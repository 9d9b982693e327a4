//! A server that speaks as Azure's storage does: Azurite, run under node.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Ready, debian, once};
use crate::command;

const VERSION: &str = "3.35.0";

const SCRIPT: &str = include_str!("azure.cjs");

/// Installs the server unless it is there.
///
/// # Errors
/// When npm cannot.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    debian::ensure_installed("node", "nodejs")?;
    let home = once(folder, &format!("azurite-{VERSION}"), install)?;
    let script = home.join("azure.cjs");
    if fs::read_to_string(&script).ok().as_deref() != Some(SCRIPT) {
        fs::write(&script, SCRIPT)?;
    }
    let node = command::find("node").context("node is not on the path")?;
    let command = vec![node.display().to_string(), script.display().to_string()];
    Ok(Ready { command, version: VERSION.to_owned() })
}

fn install(into: &Path) -> Result<()> {
    debian::ensure_installed("npm", "npm")?;
    let npm =
        ["install", "--silent", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--prefix"];
    command::run(Command::new("npm").args(npm).arg(into).arg(format!("azurite@{VERSION}")))
}
