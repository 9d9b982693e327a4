//! What becomes of completed files: compression, and room for others. It has a thread of its own, so that the
//! collector is never kept waiting.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use borehole_formats::envelope::GzipWriter;
#[cfg(feature = "zstd")]
use borehole_formats::zstd::ZstdWriter;

use crate::options::{Builder, Compression, SUFFIXES};
use crate::segment::{ACTIVE, COMPLETE, with_suffix};

/// The thread that looks after completed files.
pub(crate) struct Archive {
    completed: Sender<PathBuf>,
    thread: JoinHandle<()>,
}

impl Archive {
    /// `started` is a time before the recording made its first file.
    pub(crate) fn start(options: &Builder, started: SystemTime) -> io::Result<Self> {
        let (completed, arrivals) = mpsc::channel::<PathBuf>();
        let options = options.clone();
        let keep = move || {
            // Nobody is there to be told: a file that cannot be compressed stays as it is.
            let _ = make_room(&options, started);
            for path in arrivals {
                let _ = compress(&path, options.compression);
                let _ = make_room(&options, started);
            }
        };
        let thread = thread::Builder::new().name("borehole-archive".to_owned()).spawn(keep)?;
        Ok(Self { completed, thread })
    }

    /// Takes a completed file.
    pub(crate) fn add(&self, path: PathBuf) {
        // The thread ends after this one.
        let _ = self.completed.send(path);
    }

    /// Waits until all is done.
    pub(crate) fn finish(self) {
        drop(self.completed);
        let _ = self.thread.join();
    }
}

/// What a file ends in that is being compressed.
const PART: &str = ".part";

/// Puts a compressed file, if so is said, into the place of `path`; it appears whole or not at all.
fn compress(path: &Path, compression: Compression) -> io::Result<()> {
    let Some(suffix) = compression.suffix() else { return Ok(()) };
    let target = with_suffix(path, suffix);
    let part = with_suffix(&target, PART);
    let written = write_compressed(path, &part, compression).and_then(|()| fs::rename(&part, &target));
    match written {
        Ok(()) => fs::remove_file(path),
        Err(_) => fs::remove_file(&part),
    }
}

fn write_compressed(path: &Path, target: &Path, compression: Compression) -> io::Result<()> {
    // Anybody may know its name, and lay a link there to a file of ours.
    let _ = fs::remove_file(target);
    let (mut input, output) = (File::open(path)?, File::create_new(target)?);
    match compression {
        #[cfg(feature = "zstd")]
        Compression::Zstd => {
            let mut output = ZstdWriter::new(output)?;
            io::copy(&mut input, &mut output)?;
            output.complete().map(drop)
        }
        Compression::None | Compression::Gzip => {
            let mut output = GzipWriter::new(output);
            io::copy(&mut input, &mut output)?;
            output.complete().map(drop)
        }
    }
}

/// A completed file.
struct Kept {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

/// Removes the oldest completed files, until the others and one that is being written fit the budget.
fn make_room(options: &Builder, started: SystemTime) -> io::Result<()> {
    let room = options.budget_bytes.saturating_sub(options.segment_bytes);
    fit(kept(options, started)?, room, |path| fs::remove_file(path));
    Ok(())
}

/// Removes the oldest `files` until the others fit the `room`. One that cannot be removed takes of the room, and the next oldest
/// goes instead.
fn fit(mut files: Vec<Kept>, room: u64, mut remove: impl FnMut(&Path) -> io::Result<()>) {
    files.sort_by_key(|file| file.modified);
    let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
    for file in files {
        if bytes <= room {
            break;
        }
        match remove(&file.path) {
            Ok(()) => bytes -= file.bytes,
            // Another process makes room too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => bytes -= file.bytes,
            Err(_) => {}
        }
    }
}

/// The files that are kept, those that a process left when it was killed included.
fn kept(options: &Builder, started: SystemTime) -> io::Result<Vec<Kept>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(&options.folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(state) = State::of(&name.to_string_lossy(), &options.name) else { continue };
        // A file may vanish between its name and its size: another process makes room too.
        let Some(metadata) = entry.metadata().ok().filter(fs::Metadata::is_file) else { continue };
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let is_left = match state {
            State::Complete => true,
            // Numbers of processes come again, in containers at once.
            State::Active(process) if process == std::process::id() => modified < started,
            State::Active(process) => is_gone(process),
        };
        if is_left {
            found.push(Kept { path: entry.path(), bytes: metadata.len(), modified });
        }
    }
    Ok(found)
}

/// What a file of a recording is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Complete,
    /// The process of that number is writing it, or was when it was killed.
    Active(u32),
}

impl State {
    /// `None` if the file does not belong to the recordings called `name`: `NAME.PROCESS.NUMBER.bin`, compressed or
    /// not, or still being written or compressed.
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

/// Whether the process has ended. Where the system does not tell, it has not.
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
            assert_eq!(State::of(file, "trace"), Some(State::Complete), "{file}");
        }
        for file in ["trace.7.0.bin.active", "trace.7.0.bin.gz.part"] {
            assert_eq!(State::of(file, "trace"), Some(State::Active(7)), "{file}");
        }
        let others =
            ["trace.bin", "tracer.7.0.bin", "trace.7.0.bin.part", "trace.7.x.bin", "trace.7.0.9.bin"];
        for file in others.into_iter().chain(["trace.7.0.binary", "notes.txt"]) {
            assert_eq!(State::of(file, "trace"), None, "{file}");
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
