//! A file system that is soon full.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system of few bytes, until this is dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Puts one of `size`, as `mount` has it, at `folder`.
    ///
    /// # Panics
    /// When we are not root.
    #[must_use]
    pub fn mount(folder: &Path, size: &str) -> Self {
        let option = format!("size={size}");
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", &option, "tmpfs"]).arg(folder).status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "be root, to mount a file system of few bytes at {}",
            folder.display()
        );
        Self(folder.to_owned())
    }

    /// Changes its size.
    ///
    /// # Panics
    /// When it holds more than that.
    pub fn resize(&self, size: &str) {
        let option = format!("remount,size={size}");
        let status = Command::new("mount").args(["-o", &option]).arg(&self.0).status();
        assert!(status.is_ok_and(|status| status.success()), "{} cannot be resized", self.0.display());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Whoever still has a file open there keeps it until they close it.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
