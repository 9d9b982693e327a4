//! speedscope's importer and schema, run under node by a small script of ours.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::{Ready, node, pinned};

const VERSION: &str = "1.25.0";

/// Speedscope, and ajv, which checks JSON documents against JSON schemas.
const LOCK: &str = include_str!("pinned/speedscope.json");

const SCRIPT: node::Script = ("speedscope.cjs", include_str!("speedscope.cjs"));

/// Installs speedscope unless it is there.
///
/// # Errors
/// When npm cannot, or the importer does not answer.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    node::prepare(folder, ["speedscope", VERSION], SCRIPT, |into| pinned::npm(into, LOCK), try_out)
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
