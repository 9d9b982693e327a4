//! Commands that run another program.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::exit::Exit;

/// Replaces this process by the program `name`, found beside this program or on `PATH`.
pub(crate) fn run(name: &str, arguments: &[OsString]) -> anyhow::Result<Exit> {
    let error = command(name)?.args(arguments).exec();
    Err(error).context(name.to_owned())
}

/// A command for the program `name`.
pub(crate) fn command(name: &str) -> anyhow::Result<Command> {
    let beside = env::current_exe().ok().and_then(|own| own.parent().map(Path::to_owned));
    let listed = env::var_os("PATH").map(|list| env::split_paths(&list).collect::<Vec<_>>());
    let folders = beside.into_iter().chain(listed.unwrap_or_default());
    let found: Option<PathBuf> = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    let Some(path) = found else {
        bail!(
            "{name}: no such program; install it with cargo install --path crates/cli --features lake --bin {name}"
        );
    };
    Ok(Command::new(path))
}
