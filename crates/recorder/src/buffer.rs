//! The buffer of events that one thread has recorded since the last flush.

use std::cell::RefCell;
use std::io::{self, Sink};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::recording::Recording;
use crate::trc::{TraceEvent, WriteOptions, Writer};

/// The buffer of a thread. The thread writes, the collector takes; they contend a few times a second.
pub(crate) struct ThreadBuffer {
    pub(crate) thread_name: Option<String>,
    content: Mutex<Content>,
}

struct Content {
    /// Encodes one batch, which is handed to the collector unchanged.
    writer: Writer<Sink>,
    /// The number of events in the batch.
    events: u64,
    /// The number of events lost since the last flush.
    lost_events: u64,
    limit_bytes: usize,
    /// Whether the collector was asked to come early.
    is_urgent: bool,
    /// Whether the recording has ended.
    is_closed: bool,
}

/// The number of events that a flush took, and the number lost before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) events: u64,
    pub(crate) lost_events: u64,
}

/// The collector is called early when one buffer is filled to 1/`URGENT_PART`.
const URGENT_PART: usize = 2;

impl ThreadBuffer {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        let options = WriteOptions { batch_bytes: usize::MAX, ..WriteOptions::default() };
        let content = Content {
            writer: Writer::with_options(io::sink(), options),
            events: 0,
            lost_events: 0,
            limit_bytes,
            is_urgent: false,
            is_closed: false,
        };
        Self { thread_name: thread::current().name().map(str::to_owned), content: Mutex::new(content) }
    }

    /// A panic in the middle of an event discards that event: the next one begins after the last complete one.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an event. Returns whether the collector must come early.
    #[inline]
    fn write<T: TraceEvent>(&self, event: &T) -> bool {
        let mut content = self.lock();
        let content = &mut *content;
        if content.is_closed {
            return false;
        }
        let ready_bytes = content.writer.pending_bytes();
        if ready_bytes < content.limit_bytes && content.writer.write(event).is_ok() {
            content.events += 1;
        } else {
            content.lost_events += 1;
        }
        let is_urgent = ready_bytes >= content.limit_bytes / URGENT_PART;
        is_urgent && !std::mem::replace(&mut content.is_urgent, true)
    }

    /// Takes the content as a complete batch, and swaps in the memory of another batch.
    pub(crate) fn take(&self, batch: &mut Vec<u8>) -> Taken {
        let mut content = self.lock();
        if content.events > 0 {
            content.writer.exchange_batch(batch);
        } else {
            batch.clear();
        }
        content.is_urgent = false;
        Taken {
            events: std::mem::take(&mut content.events),
            lost_events: std::mem::take(&mut content.lost_events),
        }
    }

    /// Rejects all further events.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }
}

/// The buffer of this thread in one recording.
struct Entry {
    recording: u64,
    buffer: Arc<ThreadBuffer>,
}

thread_local! {
    /// One entry for each recording that the thread takes part in, usually one.
    static BUFFERS: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// Records `event` in the buffer of this thread.
#[inline]
pub(crate) fn record<T: TraceEvent>(recording: &Recording, event: &T) {
    let written = BUFFERS.try_with(|entries| {
        // Events recorded while another one is being recorded, as by an allocator, are ignored.
        let mut entries = entries.try_borrow_mut().ok()?;
        let found = entries.iter().position(|entry| entry.recording == recording.id);
        let place = found.unwrap_or_else(|| join(&mut entries, recording));
        Some(entries[place].buffer.write(event))
    });
    match written {
        Ok(Some(false)) => {}
        Ok(Some(true)) => recording.wake(),
        // The thread is ending, or an event is being recorded.
        Ok(None) | Err(_) => recording.lose(1),
    }
}

/// Creates a buffer for this thread. Returns its index.
#[cold]
fn join(entries: &mut Vec<Entry>, recording: &Recording) -> usize {
    entries.retain(|entry| !entry.buffer.is_closed());
    let buffer = Arc::new(ThreadBuffer::new(recording.buffer_bytes));
    recording.add(Arc::clone(&buffer));
    entries.push(Entry { recording: recording.id, buffer });
    entries.len() - 1
}
