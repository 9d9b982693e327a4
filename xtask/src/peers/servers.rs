//! Servers of databases. They are set up, not started: tests start their own, on folders and ports of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Ready, debian, once};
use crate::command;

/// Where Debian's packages have the programs of PostgreSQL, a folder a version.
const POSTGRESQL: &str = "/usr/lib/postgresql";

/// The program that says that no service is to be started.
///
/// Source: Debian's `invoke-rc.d`: 101 means that an action is not allowed.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// PostgreSQL's server, installed if it is not there.
///
/// # Errors
/// When it cannot be installed.
pub(crate) fn postgresql(_: &Path) -> Result<Ready> {
    if newest_postgresql().is_none() {
        without_services(|| debian::install("postgresql"))?;
    }
    let (version, program) = newest_postgresql().context("the package postgresql brings no server")?;
    Ok(Ready { command: vec![program.display().to_string()], version })
}

fn newest_postgresql() -> Option<(String, PathBuf)> {
    let folders =
        fs::read_dir(POSTGRESQL).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let program = |version: &String| Path::new(POSTGRESQL).join(version).join("bin/postgres");
    let versions = folders.filter(|version| program(version).is_file());
    let newest = versions.max_by_key(|version| version.parse::<u32>().unwrap_or(0))?;
    let program = program(&newest);
    Some((newest, program))
}

/// MariaDB's server and its command line, installed if they are not there.
///
/// # Errors
/// When they cannot be installed.
pub(crate) fn mariadb(_: &Path) -> Result<Ready> {
    debian::ensure_installed("mariadb", "mariadb-client-core")?;
    debian::program("mariadbd", "mariadb-server-core")
}

/// The suite that has MySQL's own server.
const SUITE: &str = "sid";

/// MySQL's server, in a small system beside the host's: Debian's released suites do not have it.
///
/// # Errors
/// When debootstrap cannot unpack the system.
pub(crate) fn mysql(folder: &Path) -> Result<Ready> {
    debian::ensure_installed("chroot", "coreutils")?;
    let home = once(folder, &format!("mysql-{SUITE}"), unpack)?;
    let chroot = command::find("chroot").context("chroot is not on the path")?;
    let server = [chroot.display().to_string(), home.display().to_string(), "/usr/sbin/mysqld".to_owned()];
    let answer = command::output(Command::new(&server[0]).args(&server[1..]).arg("--version"))?;
    let version = answer.split_whitespace().skip_while(|word| *word != "Ver").nth(1);
    let version =
        version.with_context(|| format!("expected the version of MySQL, found {answer}"))?.to_owned();
    Ok(Ready { command: server.to_vec(), version })
}

fn unpack(into: &Path) -> Result<()> {
    debian::ensure_installed("debootstrap", "debootstrap")?;
    command::run(Command::new("debootstrap").args(["--variant=minbase", SUITE]).arg(into))?;
    let install = ["apt-get", "--quiet", "install", "--yes", "--no-install-recommends", "mysql-server-core"];
    command::run(Command::new("chroot").arg(into).args(install).env("DEBIAN_FRONTEND", "noninteractive"))?;
    // The packages have been unpacked: nobody installs them again.
    fs::remove_dir_all(into.join("var/cache/apt/archives"))?;
    Ok(())
}

/// Installs a package whose services do not start.
fn without_services(install: impl FnOnce() -> Result<()>) -> Result<()> {
    let policy = Path::new(POLICY);
    if policy.exists() {
        return install();
    }
    fs::write(policy, "#!/bin/sh\nexit 101\n").with_context(|| format!("cannot write {POLICY}; be root"))?;
    command::run(Command::new("chmod").arg("755").arg(policy))?;
    let installed = install();
    fs::remove_file(policy)?;
    ensure!(installed.is_ok() || newest_postgresql().is_some(), "{installed:?}");
    Ok(())
}
