//! Commands that run another program.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::exit::Exit;

/// A program that is installed apart.
pub(crate) struct External {
    name: &'static str,
    /// The feature that builds it.
    feature: &'static str,
}

/// Lakes.
pub(crate) const LAKE: External = External { name: "borehole-lake", feature: "lake" };
/// The server.
pub(crate) const SERVE: External = External { name: "borehole-serve", feature: "serve" };

/// The command itself, for the programs beside it.
#[cfg(feature = "serve")]
pub(crate) const BOREHOLE: External = External { name: "borehole", feature: "default" };

/// Replaces this process by a program, found beside this program or on `PATH`.
pub(crate) fn run(program: &External, arguments: &[OsString]) -> anyhow::Result<Exit> {
    let error = command(program)?.args(arguments).exec();
    Err(error).context(program.name)
}

/// A command for a program.
pub(crate) fn command(program: &External) -> anyhow::Result<Command> {
    Ok(Command::new(path(program)?))
}

/// The path of a program.
pub(crate) fn path(program: &External) -> anyhow::Result<PathBuf> {
    let External { name, feature } = program;
    let beside = env::current_exe().ok().and_then(|own| own.parent().map(Path::to_owned));
    let listed = env::var_os("PATH").map(|list| env::split_paths(&list).collect::<Vec<_>>());
    let folders = beside.into_iter().chain(listed.unwrap_or_default());
    let found: Option<PathBuf> = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    let Some(path) = found else {
        bail!(
            "{name}: no such program; install it with cargo install --path crates/cli --features {feature} --bin {name}"
        );
    };
    Ok(path)
}
