//! OpenTelemetry's generated classes, run under Python by a small script of ours.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Ready, debian, once, pinned};
use crate::command;

/// Of opentelemetry-proto on PyPI, whose messages are those of release 1.10.0.
const VERSION: &str = "1.45.2";

const SCRIPT: &str = include_str!("otlp.py");

/// Installs the classes unless they are there.
///
/// # Errors
/// When Python cannot, or they do not read what they wrote.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    debian::ensure_installed("python3", "python3")?;
    let home = once(folder, &format!("otlp-{VERSION}"), install)?;
    let python = command::find("python3").context("python3 is not on the path")?;
    let script = home.join("otlp.py");
    if fs::read_to_string(&script).ok().as_deref() != Some(SCRIPT) {
        fs::write(&script, SCRIPT)?;
        let made = home.join("try.otlp");
        command::run(Command::new(&python).arg(&script).arg("make").arg(&made))?;
        command::output(Command::new(&python).arg(&script).arg("read").arg(&made))?;
    }
    let command = vec![python.display().to_string(), script.display().to_string()];
    Ok(Ready { command, version: VERSION.to_owned() })
}

fn install(into: &Path) -> Result<()> {
    pinned::pip(into, include_str!("pinned/otlp.txt"))
}
