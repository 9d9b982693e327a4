//! A server that speaks S3: moto, run under Python.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Ready, debian, once, pinned};
use crate::command;

/// Of moto on PyPI. Since 5.0.21 it refuses to make an object twice when it is asked to (`If-None-Match`).
const VERSION: &str = "5.2.5";

/// Installs the server unless it is there.
///
/// # Errors
/// When Python cannot, or the server does not say its version.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    debian::ensure_installed("python3", "python3")?;
    let home = once(folder, &format!("s3-{VERSION}"), install)?;
    let python = command::find("python3").context("python3 is not on the path")?;
    // Its own script names the folder that it was installed into first.
    let start =
        format!("import sys; sys.path.insert(0, {:?}); from moto.server import main; main()", home.display());
    let command = vec![python.display().to_string(), "-c".to_owned(), start];
    command::output(Command::new(&command[0]).args(&command[1..]).arg("--help"))?;
    Ok(Ready { command, version: VERSION.to_owned() })
}

fn install(into: &Path) -> Result<()> {
    pinned::pip(into, include_str!("pinned/s3.txt"))
}
