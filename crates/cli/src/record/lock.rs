//! Locks on files that are written while recording, so that no two recordings write the same one.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Locks an open file until it is closed. Devices and pipes are not locked, because several programs may write to them.
///
/// # Errors
/// If another recording has locked it: the error names that process, if it is known.
pub(super) fn lock(file: &File) -> io::Result<()> {
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(in_use(file)),
        // Not every network file system has locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Fails if another recording writes the file at `path`. If it cannot be opened, opening it to write will tell.
pub(super) fn check(path: &Path) -> io::Result<()> {
    // Opening a named pipe would wait for its writer.
    if !path.is_file() {
        return Ok(());
    }
    File::open(path).map_or(Ok(()), |file| lock(&file))
}

fn in_use(file: &File) -> io::Error {
    let holder = file.metadata().ok().and_then(|found| {
        let locks = fs::read_to_string("/proc/locks").ok()?;
        holder(&locks, found.dev(), found.ino())
    });
    let by = holder.map_or_else(|| "another process".to_owned(), |holder| format!("process {holder}"));
    io::Error::new(io::ErrorKind::ResourceBusy, format!("file is being written by {by}"))
}

/// The process that has locked the file with this device and inode; `None` if it is in another PID namespace, or the file
/// system states other numbers.
///
/// Source: `proc_locks(5)`; the device as in Linux, `include/linux/kdev_t.h`, `new_decode_dev`.
fn holder(locks: &str, device: u64, inode: u64) -> Option<i32> {
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00));
    let place = format!("{major:02x}:{minor:02x}:{inode}");
    let mut rows = locks.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.get(1) == Some(&"FLOCK") && row.get(5) == Some(&place.as_str()))?;
    row.get(4)?.parse().ok().filter(|&process| process > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_named_by_device_and_inode() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 fe:00:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 12 fe:00:77 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 13 fe:00:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE -1 00:1f:78 0 EOF\n";
        assert_eq!(holder(locks, 0xfe00, 77), Some(12));
        assert_eq!(holder(locks, 0x1f, 78), None);
        assert_eq!(holder(locks, 0xfe01, 77), None);
    }
}
