//! The loader of Firefox Profiler, as its own command line program has it, run under node by a small script of
//! ours.

use std::path::Path;

use anyhow::Result;

use super::{Ready, node, pinned};

const VERSION: &str = "0.10.0";

const SCRIPT: node::Script = ("firefox.cjs", include_str!("firefox.cjs"));

/// Installs Firefox Profiler's command line program unless it is there.
///
/// # Errors
/// When npm cannot.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    let install = |into: &Path| pinned::npm(into, include_str!("pinned/firefox.json"));
    node::prepare(folder, ["firefox-profiler", VERSION], SCRIPT, install, |_| Ok(()))
}
