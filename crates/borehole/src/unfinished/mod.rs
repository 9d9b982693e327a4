//! Files that are being written, and what killed programs left of them.
//!
//! An unfinished file is beside the file that it becomes, and its name says what that is and which process writes it:
//! `.trace.folded.borehole-4711-x8Kq2f.tmp`. It is locked as long as that process has it open. The kernel releases the lock when the
//! process ends, however it ends. So whoever gets the lock knows that the writer is gone, and may remove the file: the next output
//! in the same directory does.
//!
//! A file without a name (`O_TMPFILE`) would leave nothing at all, but it cannot replace another file without a name of its own,
//! SQLite needs a name, and many file systems have none.

mod entry;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use crate::destination::folder_of;
use entry::UnfinishedEntry;
pub(crate) use entry::UnfinishedPath;
pub use entry::remove_unfinished;

/// The part of the name between that of the file and the number of the process.
const MARK: &str = ".borehole-";

/// The end of the name.
const ENDING: &str = ".tmp";

/// The maximum number of characters of the file's name in that of the unfinished one; some file systems allow 143 bytes in all.
const MAX_NAME_CHARACTERS: usize = 24;

/// The maximum number of names in a directory that are read to find what was left, so that no output waits long for it.
const MAX_NAMES: usize = 100_000;

/// Creates an empty, locked file for what will become `path`, in the same directory, and removes what killed programs left
/// there. Every temporary file with a name is created here.
pub(crate) fn create(path: &Path, readers: Readers) -> io::Result<(File, UnfinishedPath)> {
    let folder = folder_of(path);
    loop {
        let mut entry = None;
        let created =
            tempfile::Builder::new().prefix(&prefix(path)).suffix(ENDING).make_in(folder, |unfinished| {
                // Copied before the file is there, so that no file is left because the memory for its entry is lacking.
                let path = unfinished.to_owned();
                let file = readers.options().open(unfinished)?;
                entry = UnfinishedEntry::new(path);
                Ok(file)
            })?;
        // Separate the two: combined, their errors name the temporary file and lack the error number.
        let (file, path) = created.into_parts();
        let unfinished = UnfinishedPath { path, entry };
        // Before the lock, another program may have taken the file for one that was left.
        if lock(&file)? && is_at(&file, &unfinished) {
            remove_left(folder, &file);
            return Ok((file, unfinished));
        }
    }
}

/// The beginning of the unfinished file's name.
fn prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take(MAX_NAME_CHARACTERS).collect();
    format!(".{name}{MARK}{}-", std::process::id())
}

/// The users who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Those that the process's umask allows.
    Others,
    /// The owner only.
    Owner,
}

impl Readers {
    /// The options for creating a file that does not exist.
    pub(crate) fn options(self) -> OpenOptions {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        if self == Self::Owner {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        options
    }
}

/// Locks a file until it is closed. Returns `false` if another process has locked it.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        // Not every network file system has locks. Nobody gets one there, so nobody removes the file.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether the open `file` is still the one at `path`, which is not a link.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |found: fs::Metadata| (found.dev(), found.ino());
    fs::symlink_metadata(path).is_ok_and(|found| file.metadata().is_ok_and(|own| id(own) == id(found)))
}

#[cfg(not(unix))]
pub(crate) fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// Removes the files in `folder` that killed programs of the user who owns `own` left. Whatever cannot be removed stays.
fn remove_left(folder: &Path, own: &File) {
    let entries = fs::read_dir(folder).into_iter().flatten().take(MAX_NAMES).flatten();
    for entry in entries.filter(|entry| is_unfinished(&entry.file_name())) {
        let _ = remove_if_left(&entry.path(), own);
    }
}

/// Whether this is the name of an unfinished file.
fn is_unfinished(name: &OsStr) -> bool {
    let inner = |name: &str| -> Option<()> {
        let (_, writer) = name.strip_prefix('.')?.strip_suffix(ENDING)?.rsplit_once(MARK)?;
        let (process, random) = writer.split_once('-')?;
        (process.parse::<u32>().is_ok() && random.bytes().all(|byte| byte.is_ascii_alphanumeric()))
            .then_some(())
    };
    name.to_str().and_then(inner).is_some()
}

fn remove_if_left(path: &Path, own: &File) -> io::Result<()> {
    if !is_file_of_owner(&fs::symlink_metadata(path)?, &own.metadata()?) {
        return Ok(());
    }
    // For writing too, because opening a named pipe that takes the place of the file must not wait for its other end.
    let file = File::options().read(true).write(true).open(path)?;
    // Without an error only if the lock was given: then the writer is gone.
    file.try_lock()?;
    if is_at(&file, path) { fs::remove_file(path) } else { Ok(()) }
}

/// Whether `found` is a file, and of the same user as `own`.
fn is_file_of_owner(found: &fs::Metadata, own: &fs::Metadata) -> bool {
    #[cfg(unix)]
    let is_same = std::os::unix::fs::MetadataExt::uid(found) == std::os::unix::fs::MetadataExt::uid(own);
    #[cfg(not(unix))]
    let is_same = own.is_file();
    found.is_file() && is_same
}

#[cfg(test)]
mod tests {
    use borehole_testkit::Scratch;

    use super::*;

    #[test]
    fn only_files_without_a_writer_are_removed() {
        let scratch = Scratch::new();
        let path = scratch.path("trace.folded");
        let (file, running) = create(&path, Readers::Others).unwrap();
        let name = running.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(
            name.starts_with(&format!(".trace.folded.borehole-{}-", std::process::id()))
                && name.ends_with(".tmp"),
            "{name}"
        );
        let left = scratch.write(".other.svg.borehole-1-Ab3xYz.tmp", b"left");
        let others = [
            ".other.svg.borehole-1-Ab3xYz",
            "other.svg.borehole-1-Ab3xYz.tmp",
            ".other.borehole-x-Ab3xYz.tmp",
            ".borehole-worker_7.rbt.gz-4096",
        ];
        for other in others {
            let _ = scratch.write(other, b"");
        }
        fs::create_dir(scratch.path(".folder.borehole-1-Ab3xYz.tmp")).unwrap();
        let second = create(&path, Readers::Owner).unwrap();
        assert!(running.exists() && !left.exists());
        drop(file);
        drop(create(&path, Readers::Owner).unwrap());
        assert!(!running.exists() && second.1.exists());
        drop(second);
        assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), others.len() + 1);
    }

    #[test]
    fn long_names_are_cut() {
        let scratch = Scratch::new();
        let path = scratch.path(&"\u{1f600}".repeat(63));
        drop(create(&path, Readers::Others).unwrap());
    }
}
