//! DuckDB, run under Python by a small script of ours.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Ready, debian, once, pinned};
use crate::command;

/// Of DuckDB on PyPI.
const VERSION: &str = "2.0.0";

const SCRIPT: &str = include_str!("duckdb.py");

/// Installs DuckDB unless it is there.
///
/// # Errors
/// When Python cannot, or the engine does not answer.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    debian::ensure_installed("python3", "python3")?;
    let home = once(folder, &format!("duckdb-{VERSION}"), install)?;
    let script = home.join("ask.py");
    fs::write(&script, SCRIPT)?;
    let python = command::find("python3").context("python3 is not on the path")?;
    let command = vec![python.display().to_string(), script.display().to_string()];
    let mut ask = Command::new(&command[0]);
    let answer = command::output(ask.arg(&command[1]).arg("SELECT 1 + 1 AS two"))?;
    ensure!(answer.contains("{\"two\": 2}"), "DuckDB says {answer}");
    Ok(Ready { command, version: VERSION.to_owned() })
}

fn install(into: &Path) -> Result<()> {
    pinned::pip(into, include_str!("pinned/duckdb.txt"))
}
