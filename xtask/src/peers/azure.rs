//! A server that speaks as Azure's storage does: Azurite, run under node.

use std::path::Path;

use anyhow::Result;

use super::{Ready, node, pinned};

const VERSION: &str = "3.35.0";

const SCRIPT: node::Script = ("azure.cjs", include_str!("azure.cjs"));

/// Installs the server unless it is there.
///
/// # Errors
/// When npm cannot.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    let install = |into: &Path| pinned::npm(into, include_str!("pinned/azure.json"));
    node::prepare(folder, ["azurite", VERSION], SCRIPT, install, |_| Ok(()))
}
