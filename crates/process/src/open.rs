//! Opens files that another process or a file names. They may be anything, so only regular files are opened.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};

/// Opens a regular file, or the regular file that a link refers to. Does not wait. Use it for names that come from another process or
/// from a file.
///
/// # Errors
/// If it cannot be opened, is no regular file, or another program holds a lease on it. Then nothing has been opened: no device
/// acts, and no program that waits at a pipe is woken.
pub fn open_regular(path: &Path) -> io::Result<File> {
    reopened(&OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?.into())
}

/// Opens the regular file whose absolute path is `path` for a process with the root folder `root`. Links lead to no file outside
/// that folder.
///
/// # Errors
/// As [`open_regular`], or if the path contains `..`, which no path of a mapped file does.
pub fn open_below(root: &Path, path: &[u8]) -> io::Result<File> {
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(io::Error::other("expected a path without `..`"));
    }
    let folder = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(root)?;
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC);
    let how = how.resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    match openat2(&folder, path, how) {
        Ok(place) => reopened(&place),
        // Linux before 5.6, or a sandbox.
        Err(Errno::ENOSYS | Errno::EPERM) => open_regular(&root.join(path.strip_prefix("/").unwrap_or(path))),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens what a descriptor of a place refers to, if it is a regular file.
fn reopened(place: &OwnedFd) -> io::Result<File> {
    if !File::from(place.try_clone()?).metadata()?.is_file() {
        return Err(io::Error::other("expected a regular file"));
    }
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(link);
    opened.map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => io::Error::other("another program holds a lease on it"),
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::os::unix::fs::symlink;
    use std::process::{Command, Stdio};

    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

    use super::*;

    /// Opening a device may make it act, and opening a pipe makes those go on who wait for a reader.
    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(&file, "text").unwrap();
        let watch = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
        for path in [&*pipe, &*file, Path::new("/dev/zero")] {
            watch.add_watch(path, AddWatchFlags::IN_OPEN).unwrap();
        }
        for path in [&*pipe, Path::new("/dev/zero")] {
            assert_eq!(open_regular(path).unwrap_err().to_string(), "expected a regular file");
            assert_eq!(watch.read_events().unwrap_err(), Errno::EAGAIN, "{path:?}");
        }
        open_regular(&file).unwrap();
        assert_eq!(watch.read_events().unwrap().len(), 1);
    }

    #[test]
    fn a_leased_file_is_left_to_the_other_program() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        let program = "import fcntl, signal, sys\n\
                       signal.signal(signal.SIGIO, signal.SIG_IGN)\n\
                       file = open(sys.argv[1], 'r+')\n\
                       fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
                       print('leased', flush=True)\n\
                       sys.stdin.read()";
        let path = file.into_temp_path();
        let mut python = Command::new("python3");
        python.args(["-c", program]).arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = python.spawn().unwrap();
        let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        assert_eq!(lines.map(Result::unwrap).next().unwrap(), "leased");
        assert_eq!(open_regular(&path).unwrap_err().to_string(), "another program holds a lease on it");
        drop(holder.stdin.take());
        holder.wait().unwrap();
        open_regular(&path).unwrap();
    }

    #[test]
    fn links_below_a_root_folder_do_not_lead_out_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("lib")).unwrap();
        std::fs::write(folder.path().join("secret"), "outside").unwrap();
        std::fs::write(root.join("secret"), "inside").unwrap();
        symlink("../../secret", root.join("lib/relative")).unwrap();
        symlink("/secret", root.join("lib/absolute")).unwrap();
        for path in ["/lib/relative", "/lib/absolute", "/secret"] {
            let mut text = String::new();
            open_below(&root, path.as_bytes()).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside", "{path}");
        }
        let error = open_below(&root, b"/lib/../../secret").unwrap_err();
        assert_eq!(error.to_string(), "expected a path without `..`");
    }
}
