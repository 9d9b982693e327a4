//! The buffer of events that one thread has recorded since the last flush.

use std::io::{self, Sink};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::trc::{Schema, TraceEvent, ValueDef, WriteOptions, Writer};

/// The buffer of a thread. The thread writes, the collector takes; they contend a few times a second.
pub(crate) struct ThreadBuffer {
    pub(crate) thread_name: Option<String>,
    content: Mutex<BufferedEvents>,
}

struct BufferedEvents {
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
pub(crate) struct FlushedBuffer {
    pub(crate) events: u64,
    pub(crate) lost_events: u64,
}

/// The collector is called early when one buffer is filled to 1/`URGENT_PART`.
const URGENT_PART: usize = 2;

impl ThreadBuffer {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        let options = WriteOptions { batch_bytes: usize::MAX, ..WriteOptions::default() };
        let content = BufferedEvents {
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
    fn lock(&self) -> MutexGuard<'_, BufferedEvents> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an event. Returns whether the collector must come early.
    #[inline]
    pub(crate) fn write<T: TraceEvent>(&self, event: &T) -> bool {
        self.write_by(|writer| writer.write(event))
    }

    /// Writes an event of a schema. Returns whether the collector must come early.
    pub(crate) fn write_values(&self, schema: &Schema, timestamp_ns: u64, values: &[ValueDef<'_>]) -> bool {
        self.write_by(|writer| writer.write_event(schema, timestamp_ns, values))
    }

    #[inline]
    fn write_by(&self, write: impl FnOnce(&mut Writer<Sink>) -> io::Result<()>) -> bool {
        let mut content = self.lock();
        let content = &mut *content;
        if content.is_closed {
            return false;
        }
        let ready_bytes = content.writer.pending_bytes();
        if ready_bytes < content.limit_bytes && write(&mut content.writer).is_ok() {
            content.events += 1;
        } else {
            content.lost_events += 1;
        }
        let is_urgent = ready_bytes >= content.limit_bytes / URGENT_PART;
        is_urgent && !std::mem::replace(&mut content.is_urgent, true)
    }

    /// Takes the content as a complete batch, and swaps in the memory of another batch.
    pub(crate) fn take(&self, batch: &mut Vec<u8>) -> FlushedBuffer {
        let mut content = self.lock();
        if content.events > 0 {
            content.writer.exchange_batch(batch);
        } else {
            batch.clear();
        }
        content.is_urgent = false;
        FlushedBuffer {
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
