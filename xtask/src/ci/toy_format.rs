//! The page on adding a format, followed in a copy of the project.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Surroundings, TaskOutcome, passed};
use crate::command;

/// The page whose code the copy gets.
const PAGE: &str = "docs/contributing/adding-a-format.md";

/// The files and folders of the project that a build needs.
const COPIED: [&str; 8] =
    ["Cargo.toml", "Cargo.lock", "clippy.toml", "bench", "crates", "docs", "examples", "xtask"];

/// The manifest that gets the feature, and the line before which it stands.
const MANIFEST: (&str, &str) = ("crates/formats/Cargo.toml", "phpspy = []\n");

/// The source that gets the line, and the line after which it stands.
const REGISTRY: (&str, &str) = ("crates/formats/src/lib.rs", "registry::formats! {\n");

/// Adds the format of the page to a copy of the project, and runs the format's own test there.
pub(super) fn run(at: &Surroundings<'_>) -> Result<TaskOutcome> {
    let copy = command::target(at.root).join("toy-format");
    if copy.exists() {
        fs::remove_dir_all(&copy).with_context(|| format!("{}", copy.display()))?;
    }
    fs::create_dir_all(&copy)?;
    for name in COPIED {
        copy_all(&at.root.join(name), &copy.join(name))?;
    }
    follow(&fs::read_to_string(at.root.join(PAGE))?, &copy)?;
    let mut cargo = command::cargo(&copy);
    cargo.args(["test", "--quiet", "--offline", "--package", "borehole-formats", "--no-default-features"]);
    passed(command::run(cargo.args(["--features", "toy", "--lib", "toy"])))
}

/// Writes the files of `page` below `root`, and inserts its lines.
fn follow(page: &str, root: &Path) -> Result<()> {
    for name in ["facts", "mod"] {
        let path = format!("crates/formats/src/toy/{name}.rs");
        let file = root.join(&path);
        fs::create_dir_all(file.parent().context("a file is in a folder")?)?;
        fs::write(file, block(page, &format!("`{path}`:\n\n```rust\n"))?)?;
    }
    let feature = block(page, "```toml\n")?;
    insert(root, MANIFEST.0, MANIFEST.1, &format!("{feature}{}", MANIFEST.1))?;
    let line = block(page, "Lists show the formats in this order.\n\n```rust\n")?;
    insert(root, REGISTRY.0, REGISTRY.1, &format!("{}{line}", REGISTRY.1))
}

/// The code of `page` from behind `begin` to the end of its block.
fn block<'p>(page: &'p str, begin: &str) -> Result<&'p str> {
    let code = page.split_once(begin).and_then(|(_, rest)| rest.split_once("```"));
    code.map(|(code, _)| code).with_context(|| format!("{PAGE}: missing {begin:?}"))
}

fn insert(root: &Path, path: &str, place: &str, text: &str) -> Result<()> {
    let file = root.join(path);
    let before = fs::read_to_string(&file)?;
    anyhow::ensure!(before.contains(place), "{path}: missing {place:?}");
    Ok(fs::write(file, before.replacen(place, text, 1))?)
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        fs::copy(from, to).with_context(|| format!("{}", from.display()))?;
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
