//! The project on disk as a [`ProjectTree`].

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result};

use super::tree::{Dependency, DependencyPurpose, Package, ProjectTree, SourceFile, TextFile};
use crate::metadata::{self, Manifest};

/// Folders that hold no source of ours: outputs, history, and the files that other programs wrote.
const SKIPPED: &[&str] = &["target", ".git", "corpus", "artifacts", "node_modules"];

/// Files that tools write.
const GENERATED: &[&str] = &["Cargo.lock"];

/// Reads the project at `root`.
///
/// # Errors
/// When cargo or a file cannot be read, or a source is not Rust.
pub(crate) fn tree(root: &Path) -> Result<ProjectTree> {
    let packages = metadata::manifests(root)?.into_iter().map(package).collect();
    let mut tree = ProjectTree { packages, machine_paths: machine_paths(root), ..ProjectTree::default() };
    for path in files(root)? {
        let Ok(text) = String::from_utf8(fs::read(&path)?) else { continue };
        let name = relative(root, &path)?;
        if name.ends_with(".rs") {
            tree.sources.push(SourceFile::new(&name, text)?);
        } else {
            tree.documents.push(TextFile { path: name, text });
        }
    }
    Ok(tree)
}

/// The text files below `root`, in order of their names.
pub(super) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
            let entry = entry?;
            let name = entry.file_name();
            let skipped = |names: &[&str]| names.iter().any(|skipped| *skipped == name);
            let kind = entry.file_type()?;
            if kind.is_dir() && !skipped(SKIPPED) {
                folders.push(entry.path());
            } else if kind.is_file() && !skipped(GENERATED) && !skipped(SKIPPED) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn relative(root: &Path, path: &Path) -> Result<String> {
    Ok(path.strip_prefix(root)?.to_string_lossy().replace('\\', "/"))
}

/// The folders of this machine: this checkout, and the user's home unless it says too little.
fn machine_paths(root: &Path) -> Vec<String> {
    let here = [Some(root.to_owned()), env::var_os("HOME").map(PathBuf::from)];
    let telling = here.into_iter().flatten().filter(|path| path.components().count() > 2);
    telling.map(|path| path.display().to_string()).collect()
}

fn package(manifest: Manifest) -> Package {
    let dependencies = manifest.dependencies.into_iter().map(|(name, is_for_tests)| Dependency {
        purpose: if is_for_tests { DependencyPurpose::Tests } else { DependencyPurpose::Product },
        name,
    });
    Package { name: manifest.name, dependencies: dependencies.collect() }
}
