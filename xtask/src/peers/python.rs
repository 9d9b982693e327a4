//! Python 3.15 with its profiler, as Debian has it, in a folder of its own; and the older releases that the machine has.
//!
//! Debian's released suites have older ones only, and a Python that is put together otherwise would not be what
//! users run. So a small system is unpacked beside the host's, and entered with `chroot`: that takes root. Releases that the
//! machine lacks come from the same system, as far as Debian still has them. Builds without a global lock are made of Debian's
//! sources.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use super::{Ready, debian, once};
use crate::command;

/// The older releases that live sampling is tested with, where the machine has them.
pub(crate) const MACHINES: &[(&str, &str)] = &[
    ("python3.8", "3.8"),
    ("python3.9", "3.9"),
    ("python3.10", "3.10"),
    ("python3.11", "3.11"),
    ("python3.12", "3.12"),
    ("python3.13", "3.13"),
    ("python3.14", "3.14"),
];

/// The interpreter of a release that pyenv has installed, or that is on the path; `None` if the machine has none.
pub(crate) fn of_machine(version: &str) -> Option<Ready> {
    let name = format!("python{version}");
    let mut by_pyenv = pyenv_versions().into_iter().map(|home| home.join("bin").join(&name));
    let program = by_pyenv.rfind(|program| program.is_file()).or_else(|| command::find(&name))?;
    let question = "import platform; print(platform.python_version())";
    let answer = command::output(Command::new(&program).args(["-c", question])).ok()?;
    let found = answer.trim().to_owned();
    found.starts_with(version).then(|| Ready { command: vec![program.display().to_string()], version: found })
}

/// The interpreter of a release that Debian's suite has beside the newest one, in the system of that one; `None` if there is no
/// such system or package.
pub(crate) fn of_suite(folder: &Path, version: &str) -> Option<Ready> {
    let home = folder.join(format!("python-{VERSION}-{SUITE}"));
    let (chroot, name) = (command::find("chroot")?, format!("python{version}"));
    if !home.join("usr/bin").join(&name).is_file() {
        // The suite drops releases in time.
        let known = Command::new(&chroot).arg(&home).args(["apt-cache", "pkgnames", &name]).output().ok()?;
        if !String::from_utf8_lossy(&known.stdout).lines().any(|package| package == name) {
            return None;
        }
        let install = ["apt-get", "--quiet", "install", "--yes", "--no-install-recommends", &name];
        let mut installing = Command::new(&chroot);
        installing.arg(&home).args(install).env("DEBIAN_FRONTEND", "noninteractive");
        command::run(&mut installing).ok()?;
    }
    let python = vec![chroot.display().to_string(), home.display().to_string(), name];
    let question = "import platform; print(platform.python_version())";
    let answer = command::output(Command::new(&python[0]).args(&python[1..]).args(["-c", question])).ok()?;
    Some(Ready { command: python, version: answer.trim().to_owned() })
}

/// The folders of pyenv's releases, in order of their names.
fn pyenv_versions() -> Vec<PathBuf> {
    let root = env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".pyenv")));
    let entries =
        root.and_then(|root| fs::read_dir(root.join("versions")).ok()).into_iter().flatten().flatten();
    let mut folders: Vec<_> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// The newest release whose source a released suite of Debian has, and that suite.
const FREE_THREADED: (&str, &str) = ("3.13", "trixie");

/// A build without a global lock, made from Debian's source package: nobody packages it.
///
/// # Errors
/// When the source cannot be had or built.
pub(crate) fn free_threaded(folder: &Path) -> Result<Ready> {
    let (version, suite) = FREE_THREADED;
    let home = once(folder, &format!("python{version}t"), |into| build_free_threaded(into, version, suite))?;
    let program = home.join("build/python").display().to_string();
    let question = "import platform, sys; print(platform.python_version(), sys._is_gil_enabled())";
    let answer = command::output(Command::new(&program).args(["-c", question]))?;
    let words: Vec<_> = answer.split_whitespace().collect();
    ensure!(words.get(1) == Some(&"False"), "{program} says {answer}");
    Ok(Ready { command: vec![program], version: words[0].to_owned() })
}

fn build_free_threaded(into: &Path, version: &str, suite: &str) -> Result<()> {
    debian::ensure_installed("gcc", "gcc")?;
    debian::ensure_installed("make", "make")?;
    let source = debian::source(&format!("python{version}"), suite, into)?;
    let build = into.join("build");
    fs::create_dir(&build)?;
    let mut unpacking = Command::new("tar");
    unpacking.arg("xf").arg(&source).args(["--strip-components=1", "-C"]).arg(&build);
    command::run(&mut unpacking)?;
    command::run(Command::new("./configure").args(["--quiet", "--disable-gil"]).current_dir(&build))?;
    // Programs need the modules of the standard library too: the interpreter finds them beside itself.
    command::run(Command::new("make").args(["--silent", "-j2"]).current_dir(&build))?;
    // What the interpreter was made of takes half a gigabyte.
    let made_of = ["-name", "*.[acho]", "-delete"];
    command::run(Command::new("find").arg(&build).args(made_of))?;
    fs::remove_file(source)?;
    Ok(())
}

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
