//! Running other programs.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs `command` with its output shown and nothing to read.
///
/// # Errors
/// When it cannot be started, or does not succeed.
pub fn run(command: &mut Command) -> Result<()> {
    let line = describe(command);
    eprintln!("$ {line}");
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot start {line}"))?;
    if status.success() { Ok(()) } else { bail!("{line}: {status}") }
}

/// Runs `command` with its output shown and nothing to read, without a word of its own: the command line may be long.
///
/// # Errors
/// When it cannot be started, or does not succeed.
pub fn run_quietly(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot start {program}"))?;
    if status.success() { Ok(()) } else { bail!("{program}: {status}") }
}

/// Runs `command` and gives what it wrote to stdout.
///
/// # Errors
/// When it cannot be started, or does not succeed; then with what it wrote to stderr.
pub fn output(command: &mut Command) -> Result<String> {
    let line = describe(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {line}"))?;
    if !output.status.success() {
        bail!("{line}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The cargo that runs this program, or else the one of the path, at work on the project at `root`.
pub fn cargo(root: &Path) -> Command {
    building(Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())), root)
}

/// `command`, which runs a cargo, at work on the project at `root`.
#[must_use]
pub fn building(mut command: Command, root: &Path) -> Command {
    command.current_dir(root);
    // What cargo says of this package is no business of the packages that it builds next: some are built anew when it differs.
    for (name, _) in env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Where `program` is found on the path.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The user's cache folder for this project.
///
/// # Errors
/// When neither `XDG_CACHE_HOME` nor `HOME` says where.
pub fn cache() -> Result<PathBuf> {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
    Ok(folder.context("neither XDG_CACHE_HOME nor HOME is set")?.join("borehole"))
}

/// The folder that cargo builds the project at `root` into.
pub fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder))
}

fn describe(command: &Command) -> String {
    let words: Vec<OsString> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(ToOwned::to_owned).collect();
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
