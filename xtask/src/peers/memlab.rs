//! memlab's parser of heap snapshots of V8, run under node by a small script of ours.

use std::path::Path;

use anyhow::Result;

use super::{Ready, node, pinned};

const VERSION: &str = "2.0.5";

const SCRIPT: node::Script = ("memlab.cjs", include_str!("memlab.cjs"));

/// Installs memlab's core unless it is there.
///
/// # Errors
/// When npm cannot.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    let install = |into: &Path| pinned::npm(into, include_str!("pinned/memlab.json"));
    node::prepare(folder, ["memlab", VERSION], SCRIPT, install, |_| Ok(()))
}
