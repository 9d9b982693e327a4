//! Python in its own system, as something to compare with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use xtask::peers;

use super::measure::Work;
use super::{Bench, inputs};

/// Python in its own system, and a folder there.
pub(crate) struct PythonPeer {
    /// The command line that enters the system and runs Python.
    command: Vec<String>,
    version: String,
    folder: PathBuf,
}

impl PythonPeer {
    /// Python; `None`, said on stderr, if it is not set up, so that `what` is compared with nothing.
    ///
    /// # Errors
    /// When the list of peers cannot be read, or the folder cannot be made.
    pub(crate) fn find(bench: &Bench, what: &str) -> Result<Option<Self>> {
        let Some(ready) = peers::ready("python")? else {
            eprintln!("WITHOUT python: {what} is compared with nothing; `cargo xtask peers` sets it up");
            return Ok(None);
        };
        let root = ready.command.get(1).context("Python has no system")?;
        let folder =
            Path::new(root).join("tmp").join(bench.folder.file_name().context("a folder has a name")?);
        fs::create_dir_all(&folder)?;
        Ok(Some(Self { command: ready.command, version: ready.version, folder }))
    }

    /// Program and version.
    pub(crate) fn name(&self) -> String {
        format!("Python {}", self.version)
    }

    /// The path of the file `name` of its folder, as Python sees it.
    pub(crate) fn inside(&self, name: &str) -> String {
        let folder = self.folder.file_name().unwrap_or_default();
        Path::new("/tmp").join(folder).join(name).display().to_string()
    }

    /// Puts a copy of `file` where Python sees it.
    ///
    /// # Errors
    /// When it cannot be copied.
    pub(crate) fn lend(&self, file: &Path) -> Result<String> {
        let name = inputs::name(file);
        fs::copy(file, self.folder.join(&name))?;
        Ok(self.inside(&name))
    }

    /// Puts a program of ours where Python sees it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn script(&self, name: &str, text: &str) -> Result<String> {
        fs::write(self.folder.join(name), text)?;
        Ok(self.inside(name))
    }

    /// Python with `arguments`, to be run.
    pub(crate) fn command(&self, arguments: &[impl AsRef<str>]) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).args(arguments.iter().map(AsRef::as_ref));
        command
    }

    /// Python with `arguments`, to be measured.
    pub(crate) fn work(&self, arguments: &[impl AsRef<str>]) -> Work {
        let words = self.command[1..].iter().map(String::as_str).chain(arguments.iter().map(AsRef::as_ref));
        Work::new(Path::new(&self.command[0]), words.map(str::to_owned).collect::<Vec<_>>())
    }
}
