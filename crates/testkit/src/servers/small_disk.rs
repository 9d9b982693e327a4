//! Small file systems, for tests of full disks.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system, unmounted when this is dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one at `folder`, with a `size` as `mount` takes it.
    ///
    /// # Panics
    /// If the current user is not root.
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
    /// If it holds more than that.
    pub fn resize(&self, size: &str) {
        let option = format!("remount,size={size}");
        let status = Command::new("mount").args(["-o", &option]).arg(&self.0).status();
        assert!(status.is_ok_and(|status| status.success()), "{} cannot be resized", self.0.display());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Programs keep files that they have open until they close them.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
