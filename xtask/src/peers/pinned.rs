//! Packages of Python and node, each file of them known by its hash: a registry that was broken into gives us nothing else.
//!
//! `pinned/NAME.txt` are pip's requirements, as `uv pip compile --universal --generate-hashes --no-header --no-annotate
//! --python-version 3.11` makes them of `PACKAGE==VERSION`; with `--no-deps` where the rest of the packages is not needed.
//! `pinned/NAME.json` are npm's lock files, as `npm install --package-lock-only --omit-lockfile-registry-resolved --save-exact
//! PACKAGE@VERSION` makes them in a folder with the `package.json` `{"private": true}`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::debian;
use crate::command;

/// Installs the packages of `requirements` for Python into a folder. They come built: nothing of theirs runs.
///
/// # Errors
/// When pip cannot, or a file has another hash.
pub(super) fn pip(into: &Path, requirements: &str) -> Result<()> {
    debian::ensure_installed("python3", "python3")?;
    debian::ensure_installed("pip3", "python3-pip")?;
    fs::create_dir_all(into)?;
    let list = into.join("requirements.txt");
    fs::write(&list, requirements)?;
    let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"];
    command::run(Command::new("python3").args(pip).arg("--target").arg(into).arg("--requirement").arg(list))
}

/// Installs the packages of the lock file `lock` for node. Their own scripts do not run: some download programs that nobody here
/// asks for.
///
/// # Errors
/// When npm cannot, or a file has another hash.
pub(super) fn npm(into: &Path, lock: &str) -> Result<()> {
    debian::ensure_installed("npm", "npm")?;
    fs::write(into.join("package-lock.json"), lock)?;
    fs::write(into.join("package.json"), package(lock)?)?;
    let npm = ["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"];
    command::run(Command::new("npm").args(npm).current_dir(into))
}

/// The description of a package that depends on what the lock file is of.
fn package(lock: &str) -> Result<String> {
    let lock: Value = serde_json::from_str(lock).context("invalid lock file")?;
    Ok(json!({"private": true, "dependencies": lock["packages"][""]["dependencies"]}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files in `pinned` with this ending, and their texts.
    fn files(ending: &str) -> Vec<(String, String)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/peers/pinned");
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let chosen = entries.filter(|path| path.extension().is_some_and(|found| found == ending));
        let found: Vec<_> =
            chosen.map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap())).collect();
        assert!(!found.is_empty(), "no .{ending}");
        found
    }

    #[test]
    fn each_package_of_node_has_a_hash() {
        for (name, lock) in files("json") {
            let lock: Value = serde_json::from_str(&lock).unwrap();
            let packages = lock["packages"].as_object().unwrap().iter().filter(|(path, _)| !path.is_empty());
            for (path, package) in packages {
                let hash = package["integrity"].as_str().unwrap_or_default();
                assert!(hash.starts_with("sha512-"), "{name}: {path} has the hash {hash:?}");
            }
        }
    }

    #[test]
    fn each_package_of_python_has_a_version_and_a_hash() {
        for (name, requirements) in files("txt") {
            for requirement in requirements.replace("\\\n", " ").lines() {
                let (package, hashes) = requirement.split_once("--hash=sha256:").unwrap_or((requirement, ""));
                assert!(package.contains("==") && hashes.len() >= 64, "{name}: {requirement}");
            }
        }
    }
}
