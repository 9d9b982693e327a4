//! The recorder and its handles.

use std::io;
use std::ops::Range;
use std::panic;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use borehole_wire::envelope::WRITTEN;

use crate::clock::now_ns;
use crate::collect::{Collector, Summary};
use crate::options::{BUDGET_SEGMENTS, Builder};
use crate::recording::Recording;
use crate::source::Source;
#[cfg(feature = "stacks")]
use crate::source::SourceState;
use crate::trc::{Schema, TraceEvent, ValueDef};

/// A recording of this process. Dropping it completes it, like [`Recorder::finish`].
pub struct Recorder {
    handle: Handle,
    collector: Option<JoinHandle<io::Result<Summary>>>,
}

/// Records events, from any thread.
#[derive(Clone)]
pub struct Handle {
    recording: Arc<Recording>,
}

/// The maximum time to wait for a flush or for the completion, because a disk may hang.
const PATIENCE: Duration = Duration::from_secs(10);

/// The maximum time that a panic waits for a flush. The panicking thread may hold a lock that the collector needs.
const PANIC_PATIENCE: Duration = Duration::from_secs(1);

impl Builder {
    /// Begins to record.
    ///
    /// # Errors
    /// If the folder or the first file cannot be created, or the system cannot create a thread.
    pub fn start(mut self) -> io::Result<Recorder> {
        self.compression.among(WRITTEN)?;
        self.segment_bytes = self.segment_bytes.min(self.budget_bytes / BUDGET_SEGMENTS).max(1);
        Recorder::start(self)
    }
}

impl Recorder {
    /// Starts to configure a recording into files in `folder`, which is created if it does not exist.
    #[must_use]
    pub fn builder(folder: impl AsRef<Path>) -> Builder {
        Builder::new(folder.as_ref())
    }

    fn start(options: Builder) -> io::Result<Self> {
        let recording = Arc::new(Recording::new(&options));
        let is_ring = options.ring_bytes.is_some();
        let collector = Collector::new(Arc::clone(&recording), options)?;
        let named = thread::Builder::new().name("borehole-recorder".to_owned());
        let collector = named.spawn(move || collector.run())?;
        flush_on_panic(Arc::downgrade(&recording), is_ring);
        Ok(Self { handle: Handle { recording }, collector: Some(collector) })
    }

    /// A handle that records events. It is cheap to clone, so each thread and task can have one.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Completes the recording. Events recorded afterwards are ignored.
    ///
    /// # Errors
    /// The first error of writing the files. Everything that could be written was written.
    pub fn finish(mut self) -> io::Result<Summary> {
        self.stop().unwrap_or_else(|| Err(io::Error::other("the recording has already ended")))
    }

    fn stop(&mut self) -> Option<io::Result<Summary>> {
        let collector = self.collector.take()?;
        self.handle.recording.stop(Duration::ZERO);
        let died = |_| Err(io::Error::other("the recorder's thread panicked"));
        Some(collector.join().unwrap_or_else(died))
    }

    /// Completes the recording when the process is asked to end. SIGINT, SIGTERM, SIGHUP and SIGQUIT then have their
    /// usual effect, a moment later; an ignored signal, as under `nohup`, stays ignored. Programs that handle these
    /// signals themselves should call [`Recorder::finish`] instead.
    ///
    /// # Errors
    /// If the system does not allow signal handlers.
    #[cfg(all(unix, feature = "signal"))]
    pub fn finish_on_signals(&self) -> io::Result<()> {
        crate::signals::finish_on_signals(Arc::downgrade(&self.handle.recording), PATIENCE)
    }

    /// Dumps, as [`Handle::dump`] does, each time that the process gets a signal, such as `SIGUSR1`.
    ///
    /// # Errors
    /// If the system does not allow a handler of this signal.
    #[cfg(all(unix, feature = "signal"))]
    pub fn dump_on_signal(&self, signal: i32) -> io::Result<()> {
        crate::signals::dump_on_signal(Arc::downgrade(&self.handle.recording), signal)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Programs that need the result call `finish`.
        let _ = self.stop();
    }
}

impl Handle {
    /// Records an event.
    #[inline]
    pub fn record<T: TraceEvent>(&self, event: &T) {
        self.recording.record(event);
    }

    /// Records an event that happens now; `event` receives the time.
    #[inline]
    pub fn record_now<T: TraceEvent>(&self, event: impl FnOnce(u64) -> T) {
        self.record(&event(now_ns()));
    }

    /// Writes everything recorded so far to the file. Returns whether all events since the previous flush are in the
    /// file: `false` if it takes too long, the file could not be written, a buffer was full, or the recording has
    /// ended.
    ///
    /// With a ring, `true` means that the events are in the ring.
    pub fn flush(&self) -> bool {
        self.recording.flush(PATIENCE)
    }

    /// Records an event of a schema that the program makes as it runs.
    pub fn record_values(&self, schema: &Schema, timestamp_ns: u64, values: &[ValueDef<'_>]) {
        self.recording.record_values(schema, timestamp_ns, values);
    }

    /// Writes the ring into a file; without a ring, completes the file and begins another one. Both state the `reason`.
    /// Returns, like [`Handle::flush`], whether everything is in the file.
    pub fn dump(&self, reason: &str) -> bool {
        self.recording.flush_for(Some(reason), PATIENCE)
    }

    /// Dumps without waiting for it, unless the last trigger was too short a time ago. Returns whether it will.
    ///
    /// For everything in a program that notices that something is wrong.
    pub fn trigger(&self, reason: &str) -> bool {
        let is_due = self.recording.debounce.is_due();
        if is_due {
            self.recording.request_dump(reason);
        }
        is_due
    }

    /// Sets a fact of the metadata, for the files to come and the one that is being written. Returns whether that changed
    /// anything.
    pub fn set_metadata(&self, key: &str, value: &str) -> bool {
        self.recording.metadata.set(key, value)
    }

    /// Adds a measurement that is taken regularly.
    ///
    /// # Errors
    /// If the system cannot create a thread.
    pub fn add_source(&self, source: Box<dyn Source>) -> io::Result<()> {
        self.recording.sources.add(source, self)
    }

    /// Reserves the numbers of workers, which no other call gets.
    #[must_use]
    pub fn reserve_workers(&self, count: u64) -> Range<u64> {
        self.recording.workers.reserve(count)
    }

    /// Asks for the names of the return addresses of a stack, at the end of the file.
    #[cfg(feature = "stacks")]
    pub fn name_stack(&self, addresses: &[u64]) {
        self.recording.symbols.want(addresses);
    }

    /// Asks for the names of the addresses of a sample: the leaf was running, all others are return addresses.
    #[cfg(all(target_os = "linux", feature = "cpu-samples"))]
    pub(crate) fn name_sample(&self, addresses: &[u64]) {
        self.recording.symbols.want_exact(addresses.first().copied());
        self.name_stack(addresses);
    }

    /// Looks up the names that were asked for as the program runs, on a thread of its own, so that the end of a file does not
    /// take long.
    ///
    /// # Errors
    /// If the system cannot create a thread.
    #[cfg(feature = "stacks")]
    pub fn look_up_names(&self) -> io::Result<()> {
        self.recording.names.add(Box::new(NameSource), self)
    }
}

/// Looks up names in advance.
#[cfg(feature = "stacks")]
struct NameSource;

/// The most addresses whose names are looked up at once.
#[cfg(feature = "stacks")]
const LOOK_UP: usize = 500;

#[cfg(feature = "stacks")]
impl Source for NameSource {
    fn name(&self) -> &'static str {
        "names"
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(100)
    }

    fn sample(&mut self, handle: &Handle) -> SourceState {
        let symbols = &handle.recording.symbols;
        symbols.look_up(LOOK_UP);
        if symbols.left_out() > 0 {
            handle.set_metadata("symbols.left_out", &symbols.left_out().to_string());
        }
        SourceState::Continues
    }
}

/// Installs a panic hook that flushes after the existing hook, or writes the ring.
fn flush_on_panic(recording: Weak<Recording>, is_ring: bool) {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        before(info);
        if let Some(recording) = recording.upgrade() {
            // A server may survive any number of panics.
            let is_dumped = is_ring && recording.debounce.is_due();
            recording.flush_for(is_dumped.then_some("panic"), PANIC_PATIENCE);
        }
    }));
}
