//! Programs that run under node by a small script of ours, which stands beside what it uses.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Ready, debian, once};
use crate::command;

/// A script of ours: the name of its file, and what is in it.
pub(super) type Script = (&'static str, &'static str);

/// Fills the folder `name-version` by `install` unless it is there, and puts the script into it. Where the script was another
/// or none, `try_out` shows in the folder that it does what it should.
///
/// # Errors
/// When node is missing and cannot be installed, or what is to be done fails.
pub(super) fn prepare(
    folder: &Path,
    [name, version]: [&str; 2],
    (file, text): Script,
    install: impl FnOnce(&Path) -> Result<()>,
    try_out: impl FnOnce(&Path) -> Result<()>,
) -> Result<Ready> {
    debian::ensure_installed("node", "nodejs")?;
    let home = once(folder, &format!("{name}-{version}"), install)?;
    let script = home.join(file);
    if fs::read_to_string(&script).ok().as_deref() != Some(text) {
        fs::write(&script, text)?;
        try_out(&home)?;
    }
    let node = command::find("node").context("node is not on the path")?;
    let command = vec![node.display().to_string(), script.display().to_string()];
    Ok(Ready { command, version: version.to_owned() })
}
