//! A folder that vanishes. The one of `borehole-testkit` may come with an allocator of its own, and this program has another.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
