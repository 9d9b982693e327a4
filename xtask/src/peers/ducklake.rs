//! DuckDB with its extension DuckLake, run under Python by the script of DuckDB.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Ready, debian, once, pinned};
use crate::command;

/// Of DuckDB and the extension on PyPI, which has none for later versions yet.
const VERSION: &str = "1.5.5";

const SCRIPT: &str = include_str!("duckdb.py");

/// Installs DuckDB and the extension unless they are there.
///
/// # Errors
/// When Python cannot, or the engine does not answer.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    debian::ensure_installed("python3", "python3")?;
    let home = once(folder, &format!("ducklake-{VERSION}"), install)?;
    let script = home.join("ask.py");
    fs::write(&script, SCRIPT)?;
    let python = command::find("python3").context("python3 is not on the path")?;
    let extension = format!("duckdb_extension_ducklake/extensions/v{VERSION}/ducklake.duckdb_extension");
    let load = format!("LOAD '{}'", home.join(extension).display());
    let command = vec![python.display().to_string(), script.display().to_string(), load];
    let mut ask = Command::new(&command[0]);
    let answer = command::output(ask.args(&command[1..]).arg("SELECT 1 + 1 AS two"))?;
    ensure!(answer.contains("{\"two\": 2}"), "DuckDB says {answer}");
    Ok(Ready { command, version: VERSION.to_owned() })
}

fn install(into: &Path) -> Result<()> {
    pinned::pip(into, include_str!("pinned/ducklake.txt"))
}
