//! The place of an output: what its path leads to, by links that may be followed.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::Existing;
use crate::error::Taken;

/// The maximum number of links to follow, which is that of the kernel.
const MAX_LINKS: usize = 40;

/// The kind of file at the destination of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DestinationKind {
    /// A character device or named pipe, which is written directly.
    Device,
    /// Nothing, or a file that may be replaced.
    FileOrNothing,
}

/// The place of an output.
pub(crate) struct Destination {
    pub(crate) kind: DestinationKind,
    /// The file, with all links resolved; of a device, the path that was given, because links of `/proc` to a pipe have no
    /// target with a name.
    pub(crate) path: PathBuf,
}

impl Destination {
    /// Finds out what is at `path`.
    ///
    /// # Errors
    /// If that is a directory, a block device, a file that should be kept, or something that others have put into a shared directory;
    /// or if the links in `path` are circular, or may not be followed.
    pub(crate) fn at(path: &Path, existing: Existing) -> io::Result<Self> {
        let resolved = resolve(path)?;
        let (kind, path) = match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(io::Error::new(
                    io::ErrorKind::IsADirectory,
                    "expected a file, found a directory",
                ));
            }
            Ok(found) if !found.is_file() => {
                refuse_block_device(&found)?;
                refuse_strangers(&resolved, &found, "named pipe")?;
                (DestinationKind::Device, path.to_owned())
            }
            Ok(_) if existing == Existing::Keep => return Err(exists()),
            _ => (DestinationKind::FileOrNothing, resolved),
        };
        Ok(Self { kind, path })
    }
}

/// Fails if `found` is a block device. Written to, it would lose its file system; read, it could be anything.
///
/// # Errors
/// If it is one.
#[cfg(unix)]
pub(crate) fn refuse_block_device(found: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    if !found.file_type().is_block_device() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a file, found a block device"))
}

#[cfg(not(unix))]
pub(crate) fn refuse_block_device(_found: &Metadata) -> io::Result<()> {
    Ok(())
}

/// The error that there is a file to be kept.
pub(crate) fn exists() -> io::Error {
    Taken { is_unfinished: false }.into()
}

/// The directory of `path`.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path that `path` leads to, whether something is there or not: without links, those of directories included.
///
/// # Errors
/// If there are too many links, as there are in a circle, or one that may not be followed.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut resolved = PathBuf::new();
    let mut links = 0;
    let mut pending = parts_last_first(path);
    while let Some(part) = pending.pop() {
        if matches!(Path::new(&part).components().next(), Some(Component::ParentDir)) {
            leave(&mut resolved);
            continue;
        }
        let next = resolved.join(&part);
        let Ok(target) = fs::read_link(&next) else {
            resolved = next;
            continue;
        };
        links += 1;
        if links > MAX_LINKS {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "too many levels of symbolic links: they may be circular",
            ));
        }
        refuse_strangers(&next, &fs::symlink_metadata(&next)?, "link")?;
        pending.extend(parts_last_first(&target));
    }
    Ok(resolved)
}

/// The parts of a path in reverse, so that the next one is at the end.
fn parts_last_first(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let mut parts: Vec<_> = parts.map(|part| part.as_os_str().to_owned()).collect();
    parts.reverse();
    parts
}

/// Goes to the parent directory of a path without links.
fn leave(resolved: &mut PathBuf) {
    match resolved.components().next_back() {
        Some(Component::Normal(_)) => drop(resolved.pop()),
        Some(Component::RootDir) => {}
        _ => resolved.push(".."),
    }
}

/// Fails if `found` at `path` is by another user than this process's and the owner of the directory, and the directory is one in
/// which everyone may create files, but remove only their own, such as `/tmp`. Else any user could choose what is written there,
/// and who reads it.
///
/// Source: Linux, `Documentation/admin-guide/sysctl/fs.rst`, `protected_symlinks` and `protected_fifos`. The kernel has these
/// rules for paths that it opens, if it is told to; here links are read, and their targets replaced.
fn refuse_strangers(path: &Path, found: &Metadata, what: &str) -> io::Result<()> {
    match stranger(path, found)? {
        None => Ok(()),
        Some(user) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "expected your own file or link, found a {what} of user {user} in a directory that everyone can write to"
            ),
        )),
    }
}

/// The owner of `found` at `path`, if that is neither this process's user nor the owner of the shared directory that it is in.
#[cfg(unix)]
pub(crate) fn stranger(path: &Path, found: &Metadata) -> io::Result<Option<u32>> {
    use std::os::unix::fs::MetadataExt as _;
    /// The mode of a directory in which everyone may create files, but remove only their own.
    const SHARED: u32 = 0o1002;
    let Ok(folder) = fs::metadata(folder_of(path)) else { return Ok(None) };
    if folder.mode() & SHARED != SHARED || folder.uid() == found.uid() {
        return Ok(None);
    }
    // The only way to learn the own user without unsafe code, other than /proc, which tells root of a program with capabilities.
    let own = tempfile::tempfile()?.metadata()?.uid();
    Ok(Some(found.uid()).filter(|&user| user != own))
}

#[cfg(not(unix))]
pub(crate) fn stranger(_path: &Path, _found: &Metadata) -> io::Result<Option<u32>> {
    Ok(None)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

    use borehole_testkit::Scratch;

    use super::*;

    #[test]
    fn links_are_resolved_as_the_kernel_does() {
        let scratch = Scratch::new();
        let folder = fs::canonicalize(scratch.folder()).unwrap();
        fs::create_dir_all(folder.join("a/b")).unwrap();
        symlink("../b", folder.join("a/b/self")).unwrap();
        symlink("a/b", folder.join("b")).unwrap();
        symlink(folder.join("b/../x"), folder.join("a/b/last")).unwrap();
        for path in ["b/self", "a/b", "./b/self/self/..", "b/self/.."] {
            assert_eq!(resolve(&folder.join(path)).unwrap(), fs::canonicalize(folder.join(path)).unwrap());
        }
        assert_eq!(resolve(&folder.join("b/last")).unwrap(), folder.join("a/x"));
        for path in ["x", "../x", "a/../x", "a/../../x"] {
            assert!(!resolve(Path::new(path)).unwrap().is_absolute());
        }
        assert_eq!(resolve(Path::new("../../x")).unwrap(), Path::new("../../x"));
    }

    /// Whether the test may make files of other users.
    fn is_root(scratch: &Scratch) -> bool {
        lchown(scratch.write("probe", b""), Some(65534), None).is_ok()
    }

    #[test]
    fn links_of_others_in_shared_directories_are_not_followed() {
        let scratch = Scratch::new();
        if !is_root(&scratch) {
            return;
        }
        let shared = scratch.path("tmp");
        fs::create_dir(&shared).unwrap();
        let place = |path: &str| Destination::at(&shared.join(path), Existing::Replace);
        for (link, target) in [("x.rbt", "../victim"), ("folder", "..")] {
            symlink(target, shared.join(link)).unwrap();
        }
        for (mode, owner, is_followed) in
            [(0o1777, 65534, false), (0o1777, 0, true), (0o777, 65534, true), (0o755, 65534, true)]
        {
            fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
            for link in ["x.rbt", "folder"] {
                lchown(shared.join(link), Some(owner), None).unwrap();
            }
            for path in ["x.rbt", "folder/victim"] {
                assert_eq!(place(path).is_ok(), is_followed, "{path} {mode:o} {owner}");
            }
        }
        // The owner of a directory may put links there.
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        lchown(&shared, Some(65534), None).unwrap();
        assert!(place("x.rbt").is_ok());
    }
}
