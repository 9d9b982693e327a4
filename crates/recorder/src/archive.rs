//! Compresses completed files and removes old ones, on a separate thread so that the collector never waits for it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use borehole_wire::Compression;
use borehole_wire::envelope::CompressedWriter;

use crate::options::{Builder, OnComplete, OnFinish, SUFFIXES};
use crate::segment::{ACTIVE, COMPLETE, with_suffix};

/// The thread that processes completed files.
pub(crate) struct Archive {
    completed: Sender<PathBuf>,
    thread: JoinHandle<()>,
}

impl Archive {
    /// Starts the thread. `started` is a time before the first file of this recording was created.
    pub(crate) fn start(options: &Builder, started: SystemTime) -> io::Result<Self> {
        let (completed, arrivals) = mpsc::channel::<PathBuf>();
        let options = options.clone();
        let keep = move || {
            // An error has no recipient here: a file that cannot be compressed stays uncompressed.
            let _ = make_room(&options, started);
            for path in arrivals {
                let kept = compress(&path, options.compression).unwrap_or(path);
                if let Some(OnComplete(call)) = &options.on_complete {
                    call(&kept);
                }
                let _ = make_room(&options, started);
            }
            if let Some(OnFinish(call)) = &options.on_finish {
                call();
            }
        };
        let thread = thread::Builder::new().name("borehole-archive".to_owned()).spawn(keep)?;
        Ok(Self { completed, thread })
    }

    /// Queues a completed file.
    pub(crate) fn add(&self, path: PathBuf) {
        // Sending fails only if the thread has ended.
        let _ = self.completed.send(path);
    }

    /// Waits until all files are processed.
    pub(crate) fn finish(self) {
        drop(self.completed);
        let _ = self.thread.join();
    }
}

/// The suffix of a file that is being compressed.
const PART: &str = ".part";

/// Replaces `path` by a compressed file, if `compression` says so; the file appears complete or not at all.
/// Returns the path of the file that is there in the end.
fn compress(path: &Path, compression: Compression) -> io::Result<PathBuf> {
    let Some(extension) = compression.extension() else { return Ok(path.to_owned()) };
    let target = with_suffix(path, &format!(".{extension}"));
    let part = with_suffix(&target, PART);
    let written = write_compressed(path, &part, compression).and_then(|()| fs::rename(&part, &target));
    match written {
        Ok(()) => fs::remove_file(path).map(|()| target),
        Err(_) => fs::remove_file(&part).map(|()| path.to_owned()),
    }
}

fn write_compressed(path: &Path, target: &Path, compression: Compression) -> io::Result<()> {
    // The name is predictable: another user may have put a link to one of our files there.
    let _ = fs::remove_file(target);
    let (mut input, output) = (File::open(path)?, File::create_new(target)?);
    let mut output = CompressedWriter::new(output, compression)?;
    io::copy(&mut input, &mut output)?;
    output.complete().map(drop)
}

/// A completed file.
struct Kept {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

/// Removes the oldest completed files until the rest and one open file fit the budget.
fn make_room(options: &Builder, started: SystemTime) -> io::Result<()> {
    let room = options.budget_bytes.saturating_sub(options.segment_bytes);
    fit(kept(options, started)?, room, |path| fs::remove_file(path));
    Ok(())
}

/// Removes the oldest `files` until the rest fit the `room`. If a file cannot be removed, the next oldest one is
/// removed instead.
fn fit(mut files: Vec<Kept>, room: u64, mut remove: impl FnMut(&Path) -> io::Result<()>) {
    files.sort_by_key(|file| file.modified);
    let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
    for file in files {
        if bytes <= room {
            break;
        }
        match remove(&file.path) {
            Ok(()) => bytes -= file.bytes,
            // Another process removes files too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => bytes -= file.bytes,
            Err(_) => {}
        }
    }
}

/// The completed files, including those left by a killed process.
fn kept(options: &Builder, started: SystemTime) -> io::Result<Vec<Kept>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(&options.folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(state) = FileState::of(&name.to_string_lossy(), &options.name) else { continue };
        // A file may vanish between listing and reading its size, because another process removes files too.
        let Some(metadata) = entry.metadata().ok().filter(fs::Metadata::is_file) else { continue };
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let is_left = match state {
            FileState::Complete => true,
            // Process numbers are reused; containers may even use the same one at once.
            FileState::Active(process) if process == std::process::id() => modified < started,
            FileState::Active(process) => is_gone(process),
        };
        if is_left {
            found.push(Kept { path: entry.path(), bytes: metadata.len(), modified });
        }
    }
    Ok(found)
}

/// The kind of a recording's file, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileState {
    Complete,
    /// The process with this number is writing it, or was killed while it did.
    Active(u32),
}

impl FileState {
    /// Parses a file name; `None` if the file does not belong to the recordings called `name`:
    /// `NAME.PROCESS.NUMBER.bin`, compressed or not, or still being written or compressed.
    fn of(file: &str, name: &str) -> Option<Self> {
        let rest = file.strip_prefix(name)?.strip_prefix('.')?;
        let (numbers, end) = rest.split_once(COMPLETE)?;
        let (process, number) = numbers.split_once('.')?;
        let process = process.parse().ok()?;
        number.parse::<u64>().ok()?;
        match end {
            ACTIVE => Some(Self::Active(process)),
            end if end.strip_suffix(PART).is_some_and(|end| SUFFIXES.contains(&end)) => {
                Some(Self::Active(process))
            }
            end if end.is_empty() || SUFFIXES.contains(&end) => Some(Self::Complete),
            _ => None,
        }
    }
}

/// Whether the process has ended; `false` if the system does not say.
#[cfg(target_os = "linux")]
fn is_gone(process: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{process}")).exists()
}

#[cfg(not(target_os = "linux"))]
fn is_gone(_process: u32) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn files_of_others_are_never_counted() {
        for file in ["trace.7.0.bin", "trace.7.12.bin.gz", "trace.7.1.bin.zst"] {
            assert_eq!(FileState::of(file, "trace"), Some(FileState::Complete), "{file}");
        }
        for file in ["trace.7.0.bin.active", "trace.7.0.bin.gz.part"] {
            assert_eq!(FileState::of(file, "trace"), Some(FileState::Active(7)), "{file}");
        }
        let others =
            ["trace.bin", "tracer.7.0.bin", "trace.7.0.bin.part", "trace.7.x.bin", "trace.7.0.9.bin"];
        for file in others.into_iter().chain(["trace.7.0.binary", "notes.txt"]) {
            assert_eq!(FileState::of(file, "trace"), None, "{file}");
        }
    }

    #[test]
    fn what_cannot_be_removed_does_not_keep_the_rest_from_making_room() {
        let tried = |room| {
            let at = |s| SystemTime::UNIX_EPOCH + Duration::from_secs(s);
            let kept = |(name, s): (&str, u64)| Kept { path: name.into(), bytes: 100, modified: at(s) };
            let mut tried = Vec::new();
            fit([("last", 4), ("another's", 1), ("gone", 2), ("old", 3)].map(kept).into(), room, |path| {
                tried.push(path.to_str().unwrap().to_owned());
                match path.to_str() {
                    Some("another's") => Err(io::ErrorKind::PermissionDenied.into()),
                    Some("gone") => Err(io::ErrorKind::NotFound.into()),
                    _ => Ok(()),
                }
            });
            tried
        };
        assert_eq!(tried(400), Vec::<String>::new());
        assert_eq!(tried(300), ["another's", "gone"]);
        assert_eq!(tried(200), ["another's", "gone", "old"]);
    }
}
