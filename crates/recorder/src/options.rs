//! The options of a recording.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use borehole_wire::Compression;

/// The suffixes that completed files may have, whoever wrote them.
pub(crate) const SUFFIXES: &[&str] = &[".gz", ".zst"];

/// The options of a recording; [`Builder::start`] begins it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use borehole_recorder::{Builder, Compression, Recorder};
///
/// # let folder = borehole_testkit::Scratch::new();
/// # let folder = folder.folder();
/// let options: Builder = Recorder::builder(folder)
///     .name("shop")
///     .rotate_every(Duration::from_secs(10))
///     .budget_bytes(256 << 20)
///     .compression(Compression::None);
/// let summary = options.start()?.finish()?;
/// assert_eq!(summary.lost_events, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
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
    pub(crate) ring_bytes: Option<u64>,
    pub(crate) dump_every: Duration,
    pub(crate) on_complete: Option<OnComplete>,
    pub(crate) on_finish: Option<OnFinish>,
}

/// Called with each completed file, on a thread of its own, before the oldest files are removed.
#[derive(Clone)]
pub(crate) struct OnComplete(pub(crate) Arc<dyn Fn(&Path) + Send + Sync>);

impl fmt::Debug for OnComplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnComplete")
    }
}

/// Called after the last completed file.
#[derive(Clone)]
pub(crate) struct OnFinish(pub(crate) Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for OnFinish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnFinish")
    }
}

/// The maximum time between flushes, which limits the loss of a killed process.
const MAX_FLUSH: Duration = Duration::from_secs(1);

/// The minimum time between flushes: with a shorter time, the collector would do nothing else.
const MIN_FLUSH: Duration = Duration::from_millis(1);

/// A segment takes at most this fraction of the budget, so that freeing space never removes everything.
pub(crate) const BUDGET_SEGMENTS: u64 = 4;

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
            compression: Compression::Gzip,
            metadata: Vec::new(),
            ring_bytes: None,
            dump_every: Duration::from_secs(10),
            on_complete: None,
            on_finish: None,
        }
    }

    /// Sets the folder of the files.
    #[must_use]
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        folder.as_ref().clone_into(&mut self.folder);
        self
    }

    /// Sets the start of the file names, before a dot. Default: `trace`.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the time between flushes to the file. Default: half a second; limited to 1 ms to 1 s.
    #[must_use]
    pub fn flush_every(mut self, interval: Duration) -> Self {
        self.flush_every = interval.clamp(MIN_FLUSH, MAX_FLUSH);
        self
    }

    /// Sets the age at which a file is completed and a new one begins. Default: one minute.
    #[must_use]
    pub fn rotate_every(mut self, interval: Duration) -> Self {
        self.rotate_every = interval;
        self
    }

    /// Sets the approximate size at which a file is completed and a new one begins. Default: 64 MiB; at most a quarter
    /// of the budget.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Sets the total size of all files of that name in the folder, including those of earlier processes. Default: 1
    /// GiB. The oldest are removed.
    #[must_use]
    pub fn budget_bytes(mut self, bytes: u64) -> Self {
        self.budget_bytes = bytes;
        self
    }

    /// Sets the size of the buffer of a thread: if it fills up between two flushes, events are lost. Default: 1 MiB.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// Sets the compression of completed files, which happens in the background. Default: gzip. Zstandard needs the feature
    /// `zstd`: without it, [`Builder::start`] fails.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Adds a fact to the metadata of each file.
    #[must_use]
    pub fn metadata(mut self, key: &str, value: &str) -> Self {
        self.metadata.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Keeps the newest events in memory, up to this size, and writes a file of them only when something happens: a call
    /// of [`Handle::dump`](crate::Handle::dump), a trigger, a panic, or a signal. Default: all events are written.
    ///
    /// With a ring, [`Recorder::finish`](crate::Recorder::finish) writes nothing.
    #[must_use]
    pub fn ring_bytes(mut self, bytes: u64) -> Self {
        self.ring_bytes = Some(bytes);
        self
    }

    /// Sets the minimum time between two dumps by [`Handle::trigger`](crate::Handle::trigger). Default: 10 s.
    #[must_use]
    pub fn dump_every(mut self, interval: Duration) -> Self {
        self.dump_every = interval;
        self
    }

    /// Calls a function with the path of each completed file, once it is compressed, on the thread that compresses. The
    /// file may be moved. It is removed later if the folder exceeds its budget.
    #[must_use]
    pub fn on_complete(mut self, call: impl Fn(&Path) + Send + Sync + 'static) -> Self {
        self.on_complete = Some(OnComplete(Arc::new(call)));
        self
    }

    /// Calls a function after the last file, on the same thread. The end of the recording waits for it.
    #[must_use]
    pub fn on_finish(mut self, call: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_finish = Some(OnFinish(Arc::new(call)));
        self
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
