//! Programs that come as Debian packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use anyhow::{Context, Result, ensure};

use super::Ready;
use crate::command;

/// The program called `name`, installed from `package` if it is not there.
///
/// # Errors
/// When it is not there and cannot be installed.
pub(crate) fn program(name: &str, package: &str) -> Result<Ready> {
    ensure_installed(name, package)?;
    let path = command::find(name).with_context(|| format!("{package} brings no {name}"))?;
    Ok(Ready { command: vec![path.display().to_string()], version: version(package) })
}

/// Installs `package` unless the program `name` is there.
///
/// # Errors
/// When it cannot be installed.
pub(crate) fn ensure_installed(name: &str, package: &str) -> Result<()> {
    if command::find(name).is_some() {
        return Ok(());
    }
    ensure!(command::find("apt-get").is_some(), "{name} is not on the path, and there is no apt-get");
    install(package)
}

/// Installs `package`.
///
/// # Errors
/// When it cannot be installed.
pub(crate) fn install(package: &str) -> Result<()> {
    update();
    command::run(apt_get().args(["install", "--yes", "--no-install-recommends", package]))
}

/// Puts the files of `package` into a folder, without installing it.
///
/// # Errors
/// When it cannot be had.
pub(crate) fn unpack(package: &str, into: &Path) -> Result<()> {
    update();
    command::run(apt_get().args(["download", package]).current_dir(into))?;
    for entry in fs::read_dir(into)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            command::run(Command::new("dpkg-deb").arg("--extract").arg(&path).arg(into))?;
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Downloads the archive of a source package of `suite` into a folder, whatever suite the machine has. Returns its path.
///
/// # Errors
/// When it cannot be had.
pub(crate) fn source(package: &str, suite: &str, into: &Path) -> Result<PathBuf> {
    let lists = into.join("lists");
    fs::create_dir_all(lists.join("partial"))?;
    fs::create_dir_all(into.join("archives/partial"))?;
    let list = into.join("sources.list");
    let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
    fs::write(&list, format!("deb-src [signed-by={keys}] {} {suite} main\n", archive()?))?;
    let options = [
        format!("Dir::Etc::sourcelist={}", list.display()),
        "Dir::Etc::sourceparts=/dev/null".to_owned(),
        format!("Dir::State::lists={}", lists.display()),
        format!("Dir::Cache={}", into.display()),
        "APT::Sandbox::User=root".to_owned(),
    ];
    let options: Vec<&str> = options.iter().flat_map(|option| ["-o", option.as_str()]).collect();
    command::run(apt_get().args(&options).arg("update"))?;
    command::run(apt_get().args(&options).args(["source", "--tar-only", package]).current_dir(into))?;
    fs::remove_dir_all(lists)?;
    let names = fs::read_dir(into)?.flatten().map(|entry| entry.path());
    let is_source = |path: &PathBuf| path.to_string_lossy().contains(".orig.tar.");
    names.into_iter().find(is_source).with_context(|| format!("{package} brings no source"))
}

/// The archive that this machine's packages come from, without that of security updates.
fn archive() -> Result<String> {
    let wanted = ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"];
    let archives = command::output(apt_get().args(wanted))?;
    let archive = archives.lines().find(|archive| !archive.contains("security"));
    Ok(archive.context("apt-get knows no archive of packages")?.to_owned())
}

/// Brings the lists of packages up to date, once.
fn update() {
    static UPDATED: Once = Once::new();
    // Old lists are better than none: what counts is whether the installation succeeds.
    UPDATED.call_once(|| drop(command::run(apt_get().arg("update"))));
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.arg("--quiet").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// The version of an installed package; a program that somebody put there by hand has none.
fn version(package: &str) -> String {
    let query = command::output(Command::new("dpkg-query").args(["--show", "-f=${Version}", package]));
    query.unwrap_or_else(|_| "of unknown version".to_owned())
}
