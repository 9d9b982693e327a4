//! The recorder, and handles to it.

use std::io;
use std::panic;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::buffer;
use crate::clock::now_ns;
use crate::collect::Collector;
use crate::options::Builder;
use crate::recording::Recording;
use crate::trc::TraceEvent;

/// A recording of this process. Dropping it completes it, as [`Recorder::finish`] does.
pub struct Recorder {
    handle: Handle,
    collector: Option<JoinHandle<io::Result<Summary>>>,
}

/// Records events, from any thread.
#[derive(Clone)]
pub struct Handle {
    recording: Arc<Recording>,
}

/// What has become of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Events of the program that are in files.
    pub events: u64,
    /// Events of the program that are not. The files say where they are missing.
    pub lost_events: u64,
    /// Files that were begun.
    pub segments: u64,
}

/// How long a flush and the completion may take before it is given up: a disk may hang.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a panic waits for a flush. The thread that panics may hold what the collector waits for.
const PANIC_PATIENCE: Duration = Duration::from_secs(1);

impl Recorder {
    /// Says how to record into files in `folder`, which is made if there is none.
    #[must_use]
    pub fn builder(folder: impl AsRef<Path>) -> Builder {
        Builder::new(folder.as_ref())
    }

    pub(crate) fn start(options: Builder) -> io::Result<Self> {
        let recording = Arc::new(Recording::new(options.buffer_bytes));
        let collector = Collector::new(Arc::clone(&recording), options)?;
        let named = thread::Builder::new().name("borehole-recorder".to_owned());
        let collector = named.spawn(move || collector.run())?;
        flush_on_panic(Arc::downgrade(&recording));
        Ok(Self { handle: Handle { recording }, collector: Some(collector) })
    }

    /// What records: cheap to clone, for every thread and task that has something to say.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Completes the recording. What is recorded afterwards is not heard.
    ///
    /// # Errors
    /// The first error that the files have met. What could be written is.
    pub fn finish(mut self) -> io::Result<Summary> {
        self.stop().unwrap_or_else(|| Err(io::Error::other("the recording ended before")))
    }

    fn stop(&mut self) -> Option<io::Result<Summary>> {
        let collector = self.collector.take()?;
        self.handle.recording.stop(Duration::ZERO);
        let died = |_| Err(io::Error::other("the thread of the recorder has panicked"));
        Some(collector.join().unwrap_or_else(died))
    }

    /// Completes the recording when the process is asked to end: SIGINT, SIGTERM, SIGHUP and SIGQUIT do what they
    /// would have done, a moment later; one that is ignored, as under `nohup`, stays ignored. Not for programs that
    /// handle those signals themselves: they call [`Recorder::finish`].
    ///
    /// # Errors
    /// When the system does not let signals be handled.
    #[cfg(all(unix, feature = "signal"))]
    pub fn finish_on_signals(&self) -> io::Result<()> {
        crate::signals::finish_on_signals(Arc::downgrade(&self.handle.recording), PATIENCE)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Who wants to know calls `finish`.
        let _ = self.stop();
    }
}

impl Handle {
    /// Records an event.
    #[inline]
    pub fn record<T: TraceEvent>(&self, event: &T) {
        buffer::record(&self.recording, event);
    }

    /// Records an event that happens now; `event` is given the time.
    #[inline]
    pub fn record_now<T: TraceEvent>(&self, event: impl FnOnce(u64) -> T) {
        self.record(&event(now_ns()));
    }

    /// Brings everything that was recorded before into the file. Answers whether all that was recorded since the flush before is
    /// there: not if that takes too long, if the file could not be written, if a buffer was full, or if the recording has ended.
    pub fn flush(&self) -> bool {
        self.recording.flush(PATIENCE)
    }
}

/// Flushes after whatever else is done on a panic.
fn flush_on_panic(recording: Weak<Recording>) {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        before(info);
        if let Some(recording) = recording.upgrade() {
            recording.flush(PANIC_PATIENCE);
        }
    }));
}
