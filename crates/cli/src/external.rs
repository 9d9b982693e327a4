//! Commands that are programs of their own.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::exit::Exit;

/// Becomes the program called `name`: the one beside this program, or else the first that `PATH` leads to.
pub(crate) fn run(name: &str, arguments: &[OsString]) -> anyhow::Result<Exit> {
    let error = command(name)?.args(arguments).exec();
    Err(error).context(name.to_owned())
}

/// The program called `name`, ready to be started.
pub(crate) fn command(name: &str) -> anyhow::Result<Command> {
    let beside = env::current_exe().ok().and_then(|own| own.parent().map(Path::to_owned));
    let listed = env::var_os("PATH").map(|list| env::split_paths(&list).collect::<Vec<_>>());
    let folders = beside.into_iter().chain(listed.unwrap_or_default());
    let found: Option<PathBuf> = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    let Some(path) = found else {
        bail!(
            "{name}: no such program; cargo install --path crates/cli --features lake --bin {name} installs it"
        );
    };
    Ok(Command::new(path))
}
