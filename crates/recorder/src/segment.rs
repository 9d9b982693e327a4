//! The file that is being written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant};

use crate::clock::{now_ns, unix_ns};
use crate::events::{ClockSyncEvent, SegmentMetadataEvent};
use crate::options::{Builder, SUFFIXES};
use crate::trc::{Writer, dial9};

/// The suffix of a file that is being written, after its final name. Source: `dial9-core` 0.5.7.
pub(crate) const ACTIVE: &str = ".active";

/// The suffix of a completed file.
pub(crate) const COMPLETE: &str = ".bin";

/// A file of complete batches.
pub(crate) struct SegmentFile {
    file: File,
    /// The path of the file once it is complete.
    path: PathBuf,
    len: u64,
    opened: Instant,
}

impl SegmentFile {
    /// Creates a file, with the first unused number from `number` on. Returns its number too.
    pub(crate) fn create(
        options: &Builder,
        number: u64,
        metadata: &[(String, String)],
    ) -> io::Result<(Self, u64)> {
        fs::create_dir_all(&options.folder)?;
        for number in number.. {
            let path = path(&options.folder, &options.name, number);
            if path.exists() || SUFFIXES.iter().any(|suffix| with_suffix(&path, suffix).exists()) {
                continue;
            }
            match OpenOptions::new().write(true).create_new(true).open(with_suffix(&path, ACTIVE)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    let mut segment = Self { file, path, len: 0, opened: Instant::now() };
                    return match segment.describe(metadata, Part::Head) {
                        Ok(()) => Ok((segment, number)),
                        Err(error) => {
                            // Otherwise each attempt on a full disk would leave a file.
                            let _ = fs::remove_file(with_suffix(&segment.path, ACTIVE));
                            Err(error)
                        }
                    };
                }
            }
        }
        Err(io::Error::other("too many files: no number is left for another one"))
    }

    /// Whether it is time for a new file.
    pub(crate) fn is_full(&self, max_bytes: u64, max_age: Duration) -> bool {
        self.len >= max_bytes || self.opened.elapsed() >= max_age
    }

    /// Appends complete batches, or none of them.
    pub(crate) fn append(&mut self, batches: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(batches);
        if written.is_ok() {
            self.len += batches.len() as u64;
        } else {
            // Remove the incomplete batch. If that fails too, readers find the next header.
            let _ = self.file.set_len(self.len).and_then(|()| self.file.seek(SeekFrom::Start(self.len)));
        }
        written
    }

    /// Marks the file as complete, at its end.
    pub(crate) fn end(&mut self, metadata: &[(String, String)]) -> io::Result<()> {
        self.describe(metadata, Part::Tail)
    }

    /// States metadata that have changed.
    pub(crate) fn update(&mut self, metadata: &[(String, String)]) -> io::Result<()> {
        self.describe(metadata, Part::Middle)
    }

    /// Renames the file to its final name. Returns its path.
    pub(crate) fn seal(self) -> io::Result<PathBuf> {
        fs::rename(with_suffix(&self.path, ACTIVE), &self.path)?;
        Ok(self.path)
    }

    fn describe(&mut self, metadata: &[(String, String)], part: Part) -> io::Result<()> {
        let mut entries = metadata.to_vec();
        let mut writer = Writer::new(Vec::new());
        let clocks = || ClockSyncEvent { timestamp_ns: now_ns(), realtime_ns: unix_ns() };
        match part {
            Part::Head => writer.write(&clocks())?,
            Part::Middle => {}
            Part::Tail => entries.push((dial9::metadata::COMPLETE.to_owned(), "true".to_owned())),
        }
        writer.write(&SegmentMetadataEvent { timestamp_ns: now_ns(), entries })?;
        writer.write(&clocks())?;
        self.append(&writer.finish()?)
    }
}

/// The place of a metadata event in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Head,
    Middle,
    Tail,
}

fn path(folder: &Path, name: &str, number: u64) -> PathBuf {
    folder.join(format!("{name}.{}.{number}{COMPLETE}", process::id()))
}

/// Appends a suffix to the path.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
