//! The project on disk as a [`Tree`].

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::tree::{Dependency, Document, Package, Purpose, Source, Tree};

/// Folders that hold no source of ours: outputs, history, and the files that other programs wrote.
const SKIPPED: &[&str] = &["target", ".git", "corpus", "artifacts", "node_modules"];

/// Files that tools write.
const GENERATED: &[&str] = &["Cargo.lock"];

/// Reads the project at `root`.
///
/// # Errors
/// When cargo or a file cannot be read, or a source is not Rust.
pub(crate) fn tree(root: &Path) -> Result<Tree> {
    let packages = packages(root)?;
    let mut tree = Tree { packages, machine_paths: machine_paths(root), ..Tree::default() };
    for path in files(root)? {
        let Ok(text) = String::from_utf8(fs::read(&path)?) else { continue };
        let name = relative(root, &path)?;
        if name.ends_with(".rs") {
            tree.sources.push(Source::new(&name, text)?);
        } else {
            tree.documents.push(Document { path: name, text });
        }
    }
    Ok(tree)
}

/// The text files below `root`, in order of their names.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
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

/// The part of `cargo metadata` that the rules need.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
}

#[derive(Deserialize)]
struct MetadataPackage {
    name: String,
    dependencies: Vec<MetadataDependency>,
}

#[derive(Deserialize)]
struct MetadataDependency {
    name: String,
    kind: Option<String>,
}

fn packages(root: &Path) -> Result<Vec<Package>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--no-deps"]).current_dir(root);
    let output = command.output().context("cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    Ok(metadata.packages.into_iter().map(package).collect())
}

fn package(package: MetadataPackage) -> Package {
    let dependencies = package.dependencies.into_iter().map(|dependency| Dependency {
        purpose: if dependency.kind.as_deref() == Some("dev") { Purpose::Tests } else { Purpose::Product },
        name: dependency.name,
    });
    Package { name: package.name, dependencies: dependencies.collect() }
}
