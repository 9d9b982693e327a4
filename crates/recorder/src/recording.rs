//! The state shared by the threads of the program and the collector.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crate::buffer::ThreadBuffer;
use crate::metadata::Metadata;
use crate::numbers::WorkerNumbers;
use crate::options::Builder;
use crate::source::SourceBoard;
use crate::symbols::Symbols;
use crate::trc::{Schema, TraceEvent, ValueDef};
use crate::triggers::Debounce;

/// One recording.
pub(crate) struct Recording {
    /// Unique among the recordings of the process.
    id: u64,
    buffer_bytes: usize,
    is_ring: bool,
    buffers: Mutex<Buffers>,
    /// The number of events recorded without a buffer.
    lost_events: AtomicU64,
    orders: Mutex<Orders>,
    changed: Condvar,
    pub(crate) metadata: Metadata,
    pub(crate) workers: WorkerNumbers,
    pub(crate) sources: Arc<SourceBoard>,
    /// Looks up names, for which the other sources must not wait.
    pub(crate) names: Arc<SourceBoard>,
    pub(crate) symbols: Symbols,
    pub(crate) debounce: Debounce,
}

/// The maximum time that the end of a recording waits for the last measurements of the sources.
const SOURCE_PATIENCE: Duration = Duration::from_secs(1);

/// The buffers that the collector reads.
#[derive(Default)]
struct Buffers {
    list: Vec<Arc<ThreadBuffer>>,
    /// Whether the collector has read them for the last time.
    is_closed: bool,
}

/// The requests to the collector, and its progress.
#[derive(Default)]
struct Orders {
    /// Whether to collect before the regular time.
    wake: bool,
    /// The number of the last flush requested and of the last one done.
    asked: u64,
    done: u64,
    /// The number of the last flush before which something could not be written, requested or not yet; 0 if there is none.
    incomplete: u64,
    /// The reason to write the ring, or to complete the file early.
    dump: Option<String>,
    stop: bool,
    has_stopped: bool,
    collector: Option<ThreadId>,
}

/// The next work of the collector.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    flush: u64,
    pub(crate) dump: Option<String>,
    pub(crate) stop: bool,
}

/// The buffer of this thread in one recording.
struct RecordingBuffer {
    recording: u64,
    buffer: Arc<ThreadBuffer>,
}

thread_local! {
    /// One entry for each recording that the thread takes part in, usually one.
    static BUFFERS: RefCell<Vec<RecordingBuffer>> = const { RefCell::new(Vec::new()) };
}

impl Recording {
    pub(crate) fn new(options: &Builder) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            buffer_bytes: options.buffer_bytes,
            is_ring: options.ring_bytes.is_some(),
            buffers: Mutex::default(),
            lost_events: AtomicU64::new(0),
            orders: Mutex::default(),
            changed: Condvar::new(),
            metadata: Metadata::of_process(&options.metadata),
            workers: WorkerNumbers::default(),
            sources: SourceBoard::new("borehole-sources"),
            names: SourceBoard::new("borehole-names"),
            symbols: Symbols::default(),
            debounce: Debounce::new(options.dump_every),
        }
    }

    /// Records `event` in the buffer of this thread.
    #[inline]
    pub(crate) fn record<T: TraceEvent>(&self, event: &T) {
        self.write(|buffer| buffer.write(event));
    }

    /// Records an event of a schema that the program makes as it runs.
    pub(crate) fn record_values(&self, schema: &Schema, timestamp_ns: u64, values: &[ValueDef<'_>]) {
        self.write(|buffer| buffer.write_values(schema, timestamp_ns, values));
    }

    #[inline]
    fn write(&self, write: impl FnOnce(&ThreadBuffer) -> bool) {
        let written = BUFFERS.try_with(|entries| {
            // Events recorded while another one is being recorded, as by an allocator, are ignored.
            let mut entries = entries.try_borrow_mut().ok()?;
            let found = entries.iter().position(|entry| entry.recording == self.id);
            let place = found.unwrap_or_else(|| self.join(&mut entries));
            Some(write(&entries[place].buffer))
        });
        match written {
            Ok(Some(false)) => {}
            Ok(Some(true)) => self.wake(),
            // The thread is ending, or an event is being recorded.
            Ok(None) | Err(_) => self.lose(1),
        }
    }

    /// Creates a buffer for this thread. Returns its index.
    #[cold]
    fn join(&self, entries: &mut Vec<RecordingBuffer>) -> usize {
        entries.retain(|entry| !entry.buffer.is_closed());
        let buffer = Arc::new(ThreadBuffer::new(self.buffer_bytes));
        self.add(Arc::clone(&buffer));
        entries.push(RecordingBuffer { recording: self.id, buffer });
        entries.len() - 1
    }

    /// Adds a buffer. After the last collection, the buffer is closed instead.
    fn add(&self, buffer: Arc<ThreadBuffer>) {
        let mut buffers = self.lock_buffers();
        if buffers.is_closed {
            buffer.close();
        } else {
            buffers.list.push(buffer);
        }
    }

    fn lose(&self, events: u64) {
        self.lost_events.fetch_add(events, Ordering::Relaxed);
    }

    pub(crate) fn take_lost(&self) -> u64 {
        self.lost_events.swap(0, Ordering::Relaxed)
    }

    /// Lists all buffers; those whose threads have ended are listed for the last time. After a call with `is_last`, no
    /// more are added.
    pub(crate) fn buffers(&self, into: &mut Vec<Arc<ThreadBuffer>>, is_last: bool) {
        let mut buffers = self.lock_buffers();
        buffers.is_closed |= is_last;
        into.extend(buffers.list.iter().cloned());
        // One reference is in the list, one in the copy just made.
        buffers.list.retain(|buffer| Arc::strong_count(buffer) > 2);
    }

    fn wake(&self) {
        self.orders().wake = true;
        self.changed.notify_all();
    }

    /// Requests a flush, and waits for it for at most `patience`. Returns whether it was done, and everything since the
    /// previous flush could be written.
    pub(crate) fn flush(&self, patience: Duration) -> bool {
        self.flush_for(None, patience)
    }

    /// Requests a dump for `reason`, without waiting for it. Of several reasons, the first counts.
    pub(crate) fn request_dump(&self, reason: &str) {
        self.orders().dump.get_or_insert_with(|| reason.to_owned());
        self.changed.notify_all();
    }

    /// Flushes like [`Recording::flush`], and dumps if there is a reason to.
    pub(crate) fn flush_for(&self, reason: Option<&str>, patience: Duration) -> bool {
        let mut orders = self.orders();
        if orders.collector == Some(thread::current().id()) {
            return false;
        }
        if let Some(reason) = reason {
            orders.dump.get_or_insert_with(|| reason.to_owned());
        }
        orders.asked += 1;
        let asked = orders.asked;
        self.changed.notify_all();
        let orders = self.wait_until(orders, patience, |orders| orders.done >= asked || orders.has_stopped);
        // A stopped recording accepts no more events.
        orders.done >= asked && orders.incomplete < asked
    }

    /// Asks the collector to end, and waits for at most `patience`. Returns whether it has ended.
    pub(crate) fn stop(&self, patience: Duration) -> bool {
        self.names.stop(Duration::ZERO);
        self.sources.stop(SOURCE_PATIENCE);
        let mut orders = self.orders();
        orders.stop = true;
        self.changed.notify_all();
        self.wait_until(orders, patience, |orders| orders.has_stopped).has_stopped
    }

    /// Asks the collector to end, like [`Recording::stop`]. A ring is written first.
    pub(crate) fn stop_on(&self, reason: &str, patience: Duration) -> bool {
        if self.is_ring {
            self.request_dump(reason);
        }
        self.stop(patience)
    }

    fn wait_until<'a>(
        &self,
        orders: MutexGuard<'a, Orders>,
        patience: Duration,
        is_done: impl Fn(&Orders) -> bool,
    ) -> MutexGuard<'a, Orders> {
        let waited = self.changed.wait_timeout_while(orders, patience, |orders| !is_done(orders));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits for a request or until `interval` has passed. For the collector.
    pub(crate) fn wait(&self, interval: Duration) -> Order {
        let deadline = Instant::now() + interval;
        let mut orders = self.orders();
        orders.collector = Some(thread::current().id());
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let is_asked = orders.wake || orders.asked > orders.done || orders.dump.is_some() || orders.stop;
            if is_asked || left.is_zero() {
                orders.wake = false;
                return Order { flush: orders.asked, dump: orders.dump.take(), stop: orders.stop };
            }
            let waited = self.changed.wait_timeout(orders, left);
            orders = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Marks `order` as done, and notes whether everything could be written. For the collector.
    pub(crate) fn done(&self, order: &Order, is_complete: bool) {
        let mut orders = self.orders();
        if !is_complete {
            // Flushes requested meanwhile may be incomplete too; if none is waiting, the next one is.
            orders.incomplete = orders.asked.max(orders.done + 1);
        }
        orders.done = orders.done.max(order.flush);
        orders.has_stopped |= order.stop;
        drop(orders);
        self.changed.notify_all();
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_buffers(&self) -> MutexGuard<'_, Buffers> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_flush_is_told_of_what_could_not_be_written_since_the_one_before() {
        let (recording, minute) =
            (Recording::new(&Builder::new(Path::new("")).buffer_bytes(1_000)), Duration::from_secs(60));
        // The collector's thread may not flush.
        let round = |patience, is_complete| recording.done(&recording.wait(patience), is_complete);
        let flush = |is_complete| {
            thread::scope(|scope| {
                scope.spawn(|| round(minute, is_complete));
                recording.flush(minute)
            })
        };
        assert_eq!([true, false, true].map(flush), [true, false, true]);
        // This one was not requested.
        thread::scope(|scope| drop(scope.spawn(|| round(Duration::ZERO, false))));
        assert_eq!([true, true].map(flush), [false, true]);
        recording.stop(Duration::ZERO);
        thread::scope(|scope| drop(scope.spawn(|| round(minute, true))));
        assert!(!recording.flush(minute), "what comes now is not heard");
    }

    #[test]
    fn a_thread_that_comes_while_the_recording_is_completed_is_not_heard() {
        let recording = Recording::new(&Builder::new(Path::new("")).buffer_bytes(1_000));
        let [early, late] = [(); 2].map(|()| Arc::new(ThreadBuffer::new(1_000)));
        recording.add(Arc::clone(&early));
        let mut buffers = Vec::new();
        recording.buffers(&mut buffers, true);
        recording.add(Arc::clone(&late));
        assert_eq!((buffers.len(), early.is_closed(), late.is_closed()), (1, false, true));
    }
}
