//! Temporary folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A folder, empty at first, that is deleted with its contents when this is dropped.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    /// Creates a folder.
    ///
    /// # Panics
    /// If the system has no space for it.
    #[must_use]
    pub fn new() -> Self {
        Self(TempDir::new().expect("the system has a folder for temporary files"))
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// The path of `name` in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes the file `name` and returns its path.
    ///
    /// # Panics
    /// If it cannot be written.
    #[must_use]
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Copies a program into the folder, or a folder in it, to start it from there.
    ///
    /// Another process does it: what this one has open for writing cannot be started, and processes that other threads start
    /// meanwhile have it open too.
    ///
    /// # Panics
    /// If it cannot be copied.
    #[must_use]
    pub fn program(&self, name: impl AsRef<Path>, from: impl AsRef<Path>) -> PathBuf {
        let path = self.folder().join(name);
        let copied = Command::new("cp").arg(from.as_ref()).arg(&path).status();
        assert!(copied.is_ok_and(|status| status.success()), "cannot copy {}", from.as_ref().display());
        path
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}
