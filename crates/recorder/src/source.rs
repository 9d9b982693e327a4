//! Measurements at regular times, such as of the queues of a runtime or of the process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::recorder::Handle;

/// A measurement that is taken again and again, on a thread that all sources of a recording share.
///
/// This is also how samples of the program's own threads are taken: they are
/// [`CpuSampleEvent`](crate::CpuSampleEvent)s, and [`Handle::name_stack`] asks for the names of their addresses.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use borehole_recorder::trc::TraceEvent;
/// use borehole_recorder::{Handle, Recorder, Source, SourceState};
///
/// #[derive(TraceEvent)]
/// struct ConnectionsEvent {
///     #[traceevent(timestamp)]
///     at_ns: u64,
///     #[traceevent(kind = "gauge")]
///     open: u32,
/// }
///
/// struct Connections;
///
/// impl Source for Connections {
///     fn name(&self) -> &str {
///         "connections"
///     }
///
///     fn interval(&self) -> Duration {
///         Duration::from_millis(100)
///     }
///
///     fn sample(&mut self, handle: &Handle) -> SourceState {
///         handle.record_now(|at_ns| ConnectionsEvent { at_ns, open: 3 });
///         SourceState::Continues
///     }
/// }
///
/// # let folder = borehole_testkit::Scratch::new();
/// # let folder = folder.folder();
/// let recorder = Recorder::builder(folder).start()?;
/// recorder.handle().add_source(Box::new(Connections))?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Source: Send {
    /// A name, for the metadata `source.NAME.panicked`.
    fn name(&self) -> &str;

    /// The time between two measurements.
    fn interval(&self) -> Duration;

    /// Takes a measurement and records it. A source that panics is not asked again.
    fn sample(&mut self, handle: &Handle) -> SourceState;
}

/// Whether a source has more to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceState {
    /// There will be another measurement.
    Continues,
    /// This was the last one.
    Ended,
}

/// The sources of a recording, and the time at which each is next.
pub(crate) struct SourceBoard {
    thread_name: &'static str,
    list: Mutex<SourceList>,
    changed: Condvar,
}

#[derive(Default)]
struct SourceList {
    sources: Vec<ScheduledSource>,
    has_thread: bool,
    stop: bool,
    has_ended: bool,
}

struct ScheduledSource {
    source: Box<dyn Source>,
    next: Instant,
}

/// The shortest time between two measurements of one source.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// The longest time without a look at the list.
const IDLE: Duration = Duration::from_secs(3600);

impl SourceBoard {
    pub(crate) fn new(thread_name: &'static str) -> Arc<Self> {
        Arc::new(Self { thread_name, list: Mutex::default(), changed: Condvar::new() })
    }

    /// Adds a source, and starts the thread with the first one.
    pub(crate) fn add(self: &Arc<Self>, source: Box<dyn Source>, handle: &Handle) -> io::Result<()> {
        let mut list = self.lock();
        if list.stop {
            return Ok(());
        }
        if !list.has_thread {
            let (board, handle) = (Arc::clone(self), handle.clone());
            let named = thread::Builder::new().name(self.thread_name.to_owned());
            named.spawn(move || board.run(&handle))?;
            list.has_thread = true;
        }
        list.sources.push(ScheduledSource { source, next: Instant::now() });
        drop(list);
        self.changed.notify_all();
        Ok(())
    }

    /// Ends the thread after a last measurement of each source. Waits for that, for at most `patience`.
    pub(crate) fn stop(&self, patience: Duration) {
        let mut list = self.lock();
        list.stop = true;
        self.changed.notify_all();
        let is_busy = |list: &mut SourceList| list.has_thread && !list.has_ended;
        // Nothing to do with the result: the recording ends in any case.
        drop(self.changed.wait_timeout_while(list, patience, is_busy));
    }

    fn run(&self, handle: &Handle) {
        let mut list = self.lock();
        while !list.stop {
            let now = Instant::now();
            if let Some(place) = list.sources.iter().position(|scheduled| scheduled.next <= now) {
                let mut due = list.sources.swap_remove(place);
                // A source may add another one, or take its time.
                drop(list);
                let state = due.sample(handle);
                list = self.lock();
                if state == SourceState::Continues {
                    due.next = Instant::now() + due.source.interval().max(MIN_INTERVAL);
                    list.sources.push(due);
                }
                continue;
            }
            let next = list.sources.iter().map(|scheduled| scheduled.next).min();
            let left = next.map_or(IDLE, |next| next.saturating_duration_since(now));
            list = self.changed.wait_timeout(list, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let mut last = std::mem::take(&mut list.sources);
        drop(list);
        for scheduled in &mut last {
            scheduled.sample(handle);
        }
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, SourceList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScheduledSource {
    fn sample(&mut self, handle: &Handle) -> SourceState {
        catch_unwind(AssertUnwindSafe(|| self.source.sample(handle))).unwrap_or_else(|_| {
            handle.set_metadata(&format!("source.{}.panicked", self.source.name()), "true");
            SourceState::Ended
        })
    }
}
