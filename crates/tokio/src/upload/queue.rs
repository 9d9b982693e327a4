//! The files that wait to be copied, and the budget for copying.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The files that wait.
pub(crate) struct UploadQueue {
    bytes_per_second: u64,
    limit_bytes: u64,
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<WaitingFile>,
    /// The size of those that wait and of the one that is being copied.
    pending_bytes: u64,
    is_copying: bool,
    /// Whether the recording has ended, and so no more files come.
    is_ending: bool,
    /// Whether nothing may be copied any more.
    is_over: bool,
    counts: UploadCounts,
}

/// A file that waits.
#[derive(Clone, Debug)]
pub(crate) struct WaitingFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The files so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UploadCounts {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) lost_files: u64,
    pub(crate) lost_bytes: u64,
}

impl UploadQueue {
    pub(crate) fn new(bytes_per_second: u64, limit_bytes: u64) -> Self {
        Self { bytes_per_second, limit_bytes, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Adds a completed file. It is lost if too much is waiting.
    pub(crate) fn push(&self, path: &Path) {
        let Ok(bytes) = fs::metadata(path).map(|metadata| metadata.len()) else { return };
        let mut state = self.lock();
        if state.is_over || state.pending_bytes.saturating_add(bytes) > self.limit_bytes {
            state.counts.lose(bytes);
            return;
        }
        state.pending_bytes += bytes;
        state.waiting.push_back(WaitingFile { path: path.to_owned(), bytes });
        drop(state);
        self.changed.notify_all();
    }

    /// The next file, when there is one; `None` when the recording has ended and no file waits.
    pub(crate) fn next(&self) -> Option<WaitingFile> {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(file) = state.waiting.pop_front() {
                state.is_copying = true;
                return Some(file);
            }
            if state.is_ending {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Counts a file as copied or lost.
    pub(crate) fn done(&self, file: &WaitingFile, is_copied: bool) {
        let mut state = self.lock();
        state.is_copying = false;
        state.pending_bytes -= file.bytes;
        if state.is_over {
            // It is counted as lost already.
        } else if is_copied {
            state.counts.files += 1;
            state.counts.bytes += file.bytes;
        } else {
            state.counts.lose(file.bytes);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits as long as the budget says after `bytes`, less the time that they took. At the end of the recording, it does not.
    pub(crate) fn pace(&self, bytes: u64, begun: Instant) {
        let due = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let left = due.saturating_sub(begun.elapsed());
        let state = self.lock();
        // Nothing to do with the result: it is time, or the end.
        drop(self.changed.wait_timeout_while(state, left, |state| !state.is_ending));
    }

    /// Waits until all files are copied, for at most `patience`. The rest is lost.
    pub(crate) fn finish(&self, patience: Duration) {
        let mut state = self.lock();
        state.is_ending = true;
        self.changed.notify_all();
        let is_busy = |state: &mut QueueState| state.is_copying || !state.waiting.is_empty();
        let waited = self.changed.wait_timeout_while(state, patience, is_busy);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.is_over = true;
        let lost = std::mem::take(&mut state.waiting);
        lost.iter().for_each(|file| state.counts.lose(file.bytes));
        if state.is_copying {
            let waiting: u64 = lost.iter().map(|file| file.bytes).sum();
            let copying = state.pending_bytes.saturating_sub(waiting);
            state.counts.lose(copying);
        }
    }

    pub(crate) fn counts(&self) -> UploadCounts {
        self.lock().counts
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UploadCounts {
    fn lose(&mut self, bytes: u64) {
        self.lost_files += 1;
        self.lost_bytes = self.lost_bytes.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use borehole_testkit::Scratch;

    use super::*;

    #[test]
    fn files_beyond_the_budget_are_lost_and_counted() {
        let folder = Scratch::new();
        let queue = UploadQueue::new(1 << 30, 1_000);
        let files = [400, 400, 400].map(|bytes| folder.write(&bytes.to_string(), &vec![0; bytes]));
        files.iter().for_each(|file| queue.push(file));
        queue.push(&folder.path("gone"));
        let first = queue.next().unwrap();
        queue.done(&first, true);
        let second = queue.next().unwrap();
        queue.done(&second, false);
        queue.push(&files[0]);
        queue.finish(Duration::ZERO);
        assert!(queue.next().is_none());
        queue.push(&files[0]);
        let expected = UploadCounts { files: 1, bytes: 400, lost_files: 4, lost_bytes: 1_600 };
        assert_eq!(queue.counts(), expected);
    }

    #[test]
    fn the_end_waits_for_no_budget() {
        let queue = UploadQueue::new(1, 1_000);
        queue.finish(Duration::ZERO);
        // A million seconds otherwise.
        queue.pace(1_000_000, Instant::now());
    }
}
