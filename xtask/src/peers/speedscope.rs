//! speedscope's importer and schema, run under node by a small script of ours.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Ready, debian, once};
use crate::command;

const VERSION: &str = "1.25.0";

/// Checks JSON documents against JSON schemas.
const AJV_VERSION: &str = "8.20.0";

const SCRIPT: &str = include_str!("speedscope.cjs");

/// Installs speedscope unless it is there.
///
/// # Errors
/// When npm cannot, or the importer does not answer.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    debian::ensure_installed("node", "nodejs")?;
    let home = once(folder, &format!("speedscope-{VERSION}"), install)?;
    let script = home.join("speedscope.cjs");
    if fs::read_to_string(&script).ok().as_deref() != Some(SCRIPT) {
        fs::write(&script, SCRIPT)?;
        try_out(&home)?;
    }
    let node = command::find("node").context("node is not on the path")?;
    let command = vec![node.display().to_string(), script.display().to_string()];
    Ok(Ready { command, version: VERSION.to_owned() })
}

fn install(into: &Path) -> Result<()> {
    debian::ensure_installed("npm", "npm")?;
    let packages = [format!("speedscope@{VERSION}"), format!("ajv@{AJV_VERSION}")];
    let npm = ["install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"];
    command::run(Command::new("npm").args(npm).arg(into).args(packages))
}

/// Shows that the importer reads what it should and rejects what it should not.
fn try_out(home: &Path) -> Result<()> {
    let run = |name: &str, text: &str| -> Result<String> {
        let file = home.join(name);
        fs::write(&file, text)?;
        let script = home.join("speedscope.cjs");
        let output = Command::new("node").arg(script).arg("import").arg(file).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let good = run("try-out.folded", "main;work 3\nmain;rest 4\n")?;
    ensure!(good.contains("\"total_weight\":7") && good.contains("\"frames\":3"), "the importer says {good}");
    let bad = run("try-out.json", "{}")?;
    ensure!(bad.contains("\"error\""), "the importer accepts anything: {bad}");
    Ok(())
}
