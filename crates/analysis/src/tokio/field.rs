//! The event fields in use, by meaning.

/// A field, as the index of its position in a [`Plan`](super::plan::Plan). Fields that never occur together share an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field(pub(super) usize);

/// The number of indexes.
pub(super) const PLACES: usize = 5;

// Fields of workers and tasks, and of samples of their threads.
pub(super) const WORKER: Field = Field(0);
pub(super) const INSTRUMENTED: Field = Field(0);
pub(super) const LOCAL_QUEUE: Field = Field(1);
pub(super) const WAKER_TASK: Field = Field(1);
pub(super) const SAMPLE_SOURCE: Field = Field(1);
pub(super) const TASK: Field = Field(2);
pub(super) const CPU_TIME: Field = Field(2);
pub(super) const STACK: Field = Field(2);
pub(super) const SPAWNED_AT: Field = Field(3);
pub(super) const THREAD: Field = Field(3);
pub(super) const DELAY: Field = Field(4);
pub(super) const CPU_WAIT: Field = Field(4);

// Fields of runtime measurements.
pub(super) const QUEUE_DEPTH: Field = Field(0);
pub(super) const ALIVE_TASKS: Field = Field(1);
pub(super) const RUNTIME: Field = Field(2);

// Fields of memory and symbols; the stack is that of samples.
pub(super) const ADDRESS: Field = Field(0);
pub(super) const SIZE: Field = Field(1);
pub(super) const ALLOCATED_AT: Field = Field(3);
pub(super) const INLINE_DEPTH: Field = Field(2);

// Fields of spans and symbols; the task is that of polls.
pub(super) const SPAN: Field = Field(0);
pub(super) const DURATION: Field = Field(0);
pub(super) const NAME: Field = Field(1);
pub(super) const SPAN_START: Field = Field(2);
pub(super) const SPAN_END: Field = Field(3);

// Fields of the recorder's own events.
pub(super) const LOST: Field = Field(0);
pub(super) const LOST_FREES: Field = Field(1);
pub(super) const UNIX_TIME: Field = Field(0);
pub(super) const ENTRIES: Field = Field(0);
