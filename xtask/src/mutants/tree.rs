//! A copy of the project that keeps the times of files that stay as they are, so that cargo builds only what changed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Folders that no build reads.
const SKIPPED: &[&str] = &[".git", "node_modules", "target"];

/// Folders that tests only read, and that are too large to be copied.
const LINKED: &[&str] = &["corpus"];

/// Makes `copy` what `root` is.
///
/// # Errors
/// When a file cannot be read or written.
pub(super) fn copy(root: &Path, copy: &Path) -> Result<()> {
    fs::create_dir_all(copy).with_context(|| format!("{}", copy.display()))?;
    let mut kept = BTreeSet::new();
    for entry in fs::read_dir(root).with_context(|| format!("{}", root.display()))? {
        let entry = entry?;
        let (from, name) = (entry.path(), entry.file_name());
        let known = |names: &[&str]| names.iter().any(|known| *known == name);
        if known(SKIPPED) {
            continue;
        }
        let to = copy.join(&name);
        if from.is_dir() && known(LINKED) {
            if !to.exists() {
                symlink(&from, &to).with_context(|| format!("{}", to.display()))?;
            }
        } else if from.is_dir() {
            self::copy(&from, &to)?;
        } else {
            write(&to, &fs::read(&from).with_context(|| format!("{}", from.display()))?)?;
        }
        kept.insert(name);
    }
    for entry in fs::read_dir(copy)? {
        let entry = entry?;
        if !kept.contains(&entry.file_name()) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Writes `bytes` to `path`, unless they are there.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    fs::write(path, bytes).with_context(|| format!("{}", path.display()))
}

/// The Rust files below `folder`, in order.
///
/// # Errors
/// When a folder cannot be read.
pub(super) fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn remove(path: &Path) -> Result<()> {
    let is_folder = path.is_dir() && !path.is_symlink();
    let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.with_context(|| format!("{}", path.display()))
}
