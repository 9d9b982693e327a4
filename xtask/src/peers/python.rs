//! Python 3.15 with its profiler, as Debian has it, in a folder of its own.
//!
//! Debian's released suites have older ones only, and a Python that is put together otherwise would not be what
//! users run. So a small system is unpacked beside the host's, and entered with `chroot`: that takes root.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Ready, debian, once};
use crate::command;

/// The suite that has it.
const SUITE: &str = "sid";

const VERSION: &str = "3.15";

/// Unpacks the system unless it is there.
///
/// # Errors
/// When debootstrap cannot, or the profiler's reader is not in it.
pub(crate) fn prepare(folder: &Path) -> Result<Ready> {
    debian::ensure_installed("chroot", "coreutils")?;
    let home = once(folder, &format!("python-{VERSION}-{SUITE}"), unpack)?;
    let chroot = command::find("chroot").context("chroot is not on the path")?;
    let python = [chroot.display().to_string(), home.display().to_string(), format!("python{VERSION}")];
    // The peer is of use only if it has the profiler's reader and writer, with compression.
    let question = "import platform, _remote_debugging as r; \
                    print(platform.python_version(), r.zstd_available(), r.BinaryReader.__name__)";
    let answer = command::output(Command::new(&python[0]).args(&python[1..]).args(["-c", question]))?;
    let words: Vec<_> = answer.split_whitespace().collect();
    ensure!(words.get(1..) == Some(&["True", "BinaryReader"]), "python{VERSION} says {answer}");
    Ok(Ready { command: python.to_vec(), version: words[0].to_owned() })
}

fn unpack(into: &Path) -> Result<()> {
    debian::ensure_installed("debootstrap", "debootstrap")?;
    let include = format!("--include=python{VERSION}");
    command::run(Command::new("debootstrap").args(["--variant=minbase", &include, SUITE]).arg(into))?;
    // The packages have been unpacked: nobody installs them again.
    fs::remove_dir_all(into.join("var/cache/apt/archives"))?;
    Ok(())
}
