//! How to record.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::recorder::Recorder;

/// What becomes of completed files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// They stay as they are.
    None,
    /// They are compressed with gzip, aside.
    #[default]
    Gzip,
    /// They are compressed with zstd, aside.
    #[cfg(feature = "zstd")]
    Zstd,
}

impl Compression {
    /// What the names of such files have behind the others'.
    pub(crate) const fn suffix(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip => Some(".gz"),
            #[cfg(feature = "zstd")]
            Self::Zstd => Some(".zst"),
        }
    }
}

/// What completed files may have behind their names, whoever wrote them.
pub(crate) const SUFFIXES: &[&str] = &[".gz", ".zst"];

/// How to record; [`Builder::start`] begins.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) folder: PathBuf,
    pub(crate) name: String,
    pub(crate) flush_every: Duration,
    pub(crate) rotate_every: Duration,
    pub(crate) segment_bytes: u64,
    pub(crate) budget_bytes: u64,
    pub(crate) buffer_bytes: usize,
    pub(crate) compression: Compression,
    pub(crate) metadata: Vec<(String, String)>,
}

/// Flushes are no rarer than that, so that a killed process loses no more.
const MAX_FLUSH: Duration = Duration::from_secs(1);

/// Flushes are no more frequent than that: the collector would do nothing else.
const MIN_FLUSH: Duration = Duration::from_millis(1);

/// A segment is at most this part of the budget, so that making room does not take everything.
const BUDGET_SEGMENTS: u64 = 4;

impl Builder {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            name: "trace".to_owned(),
            flush_every: Duration::from_millis(500),
            rotate_every: Duration::from_secs(60),
            segment_bytes: 64 << 20,
            budget_bytes: 1 << 30,
            buffer_bytes: 1 << 20,
            compression: Compression::default(),
            metadata: Vec::new(),
        }
    }

    /// What the names of the files begin with, before a dot: `trace`, unless something else is said.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// How often what was recorded goes to the file: every half second, unless something else is said, at
    /// least once a second, and at most every millisecond.
    #[must_use]
    pub fn flush_every(mut self, interval: Duration) -> Self {
        self.flush_every = interval.clamp(MIN_FLUSH, MAX_FLUSH);
        self
    }

    /// When a file is completed and another one begun: after a minute, unless something else is said.
    #[must_use]
    pub fn rotate_every(mut self, interval: Duration) -> Self {
        self.rotate_every = interval;
        self
    }

    /// How large a file becomes, roughly, before another one is begun: 64 MiB, unless something else is said, and
    /// at most a quarter of the budget.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// How much all files of that name in the folder may take together, those of earlier processes included:
    /// 1 GiB, unless something else is said. The oldest make room.
    #[must_use]
    pub fn budget_bytes(mut self, bytes: u64) -> Self {
        self.budget_bytes = bytes;
        self
    }

    /// How much a thread may record between two flushes before events are lost: 1 MiB, unless something else is
    /// said.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// What becomes of completed files: gzip, unless something else is said.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// A fact that each file says about itself.
    #[must_use]
    pub fn metadata(mut self, key: &str, value: &str) -> Self {
        self.metadata.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Begins to record.
    ///
    /// # Errors
    /// When the folder or the first file cannot be made, or the system has no threads left.
    pub fn start(mut self) -> io::Result<Recorder> {
        self.segment_bytes = self.segment_bytes.min(self.budget_bytes / BUDGET_SEGMENTS).max(1);
        Recorder::start(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_come_neither_without_pause_nor_too_rarely() {
        let flush_every = |interval| Builder::new(Path::new("")).flush_every(interval).flush_every;
        assert_eq!(flush_every(Duration::ZERO), Duration::from_millis(1));
        assert_eq!(flush_every(Duration::from_millis(20)), Duration::from_millis(20));
        assert_eq!(flush_every(Duration::MAX), Duration::from_secs(1));
    }
}
