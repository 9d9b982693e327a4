//! Programs that come as Debian packages.

use std::fs;
use std::path::Path;
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
