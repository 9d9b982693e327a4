//! `cargo xtask web`: the scripts and styles of the pages, made from the sources in `web/`. What is made is committed, so that
//! a build of the project needs no node.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::{command, peers};

/// The sources.
const SOURCES: &str = "web";

/// The bundles made of them.
const BUNDLES: &str = "crates/web/src/assets";

/// The variable that names another folder to build into. Source: `web/vite.config.ts`.
const OUTPUT_VARIABLE: &str = "BOREHOLE_WEB_OUTPUT";

/// Makes the bundles from the sources, after their checks and tests.
///
/// # Errors
/// When a check or a test fails, or node is missing.
pub(crate) fn make(root: &Path) -> Result<()> {
    test(root)?;
    build(root, &root.join(BUNDLES))
}

/// Checks and tests the sources, and that the committed bundles are what they make, byte for byte.
///
/// # Errors
/// When a check or a test fails, a bundle differs, or node is missing.
pub(crate) fn check(root: &Path) -> Result<()> {
    test(root)?;
    let made = command::target(root).join("web");
    if made.exists() {
        fs::remove_dir_all(&made).with_context(|| format!("cannot empty {}", made.display()))?;
    }
    build(root, &made)?;
    let (committed, made) = (files(&root.join(BUNDLES))?, files(&made)?);
    let different = differences(&committed, &made);
    if different.is_empty() {
        return Ok(());
    }
    bail!("{BUNDLES} is not what {SOURCES} makes: {}; `cargo xtask web` makes it anew", different.join(", "))
}

fn test(root: &Path) -> Result<()> {
    npm(root, &["ci"])?;
    npm(root, &["run", "check"])?;
    npm(root, &["test"])
}

fn build(root: &Path, into: &Path) -> Result<()> {
    let mut npm = npm_command(root)?;
    command::run(npm.args(["run", "build"]).env(OUTPUT_VARIABLE, into))
}

fn npm(root: &Path, arguments: &[&str]) -> Result<()> {
    command::run(npm_command(root)?.args(arguments))
}

fn npm_command(root: &Path) -> Result<Command> {
    let mut npm = Command::new(peers::npm()?);
    npm.current_dir(root.join(SOURCES));
    Ok(npm)
}

/// The files of a folder by name.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files = BTreeMap::new();
    for entry in entries {
        let entry = entry?;
        files.insert(entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?);
    }
    Ok(files)
}

/// The names of files that are not the same on both sides.
fn differences<'f>(one: &'f BTreeMap<String, Vec<u8>>, other: &'f BTreeMap<String, Vec<u8>>) -> Vec<&'f str> {
    let missing = other.keys().filter(|name| !one.contains_key(*name));
    let changed = one.iter().filter(|(name, bytes)| other.get(*name) != Some(bytes)).map(|(name, _)| name);
    changed.chain(missing).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_that_is_changed_missing_or_left_over_is_found() {
        let side = |files: &[(&str, &str)]| {
            files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
        };
        let committed = side(&[("a.js", "1"), ("b.css", "2"), ("old.js", "3")]);
        let made = side(&[("a.js", "1"), ("b.css", "9"), ("new.js", "4")]);
        assert_eq!(differences(&committed, &made), ["b.css", "old.js", "new.js"]);
        assert!(differences(&made, &made).is_empty());
    }
}
