//! The format of all sources. `cargo fmt` does not see modules that a macro declares, such as those of the formats; this does.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{command, tidy};

/// Formats every Rust file of the project at `root`, or says which ones `rustfmt` would change.
///
/// # Errors
/// When a file cannot be formatted, or would be changed and is only checked.
pub(crate) fn run(root: &Path, only_checks: bool) -> Result<()> {
    let files = tidy::rust_files(root)?;
    for batch in files.chunks(200) {
        let mut rustfmt = Command::new("rustfmt");
        rustfmt.current_dir(root).args(["--edition", "2024"]);
        rustfmt.args(only_checks.then_some("--check")).args(batch);
        command::run_quietly(&mut rustfmt)?;
    }
    Ok(())
}
