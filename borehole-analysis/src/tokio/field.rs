//! The fields of events that are looked at, by what they mean.

/// A field, by where a [`Plan`](super::plan::Plan) keeps its position. Those that no event has together share a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field(pub(super) usize);

/// How many places there are.
pub(super) const PLACES: usize = 5;

// Of what workers and tasks do, and of samples of their threads.
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

// Of what runtimes measure.
pub(super) const QUEUE_DEPTH: Field = Field(0);
pub(super) const ALIVE_TASKS: Field = Field(1);
pub(super) const RUNTIME: Field = Field(2);

// Of memory and symbols; the stack is that of samples.
pub(super) const ADDRESS: Field = Field(0);
pub(super) const SIZE: Field = Field(1);
pub(super) const ALLOCATED_AT: Field = Field(3);
pub(super) const INLINE_DEPTH: Field = Field(2);

// Of spans and symbols; the task is that of polls.
pub(super) const SPAN: Field = Field(0);
pub(super) const DURATION: Field = Field(0);
pub(super) const NAME: Field = Field(1);
pub(super) const SPAN_START: Field = Field(2);
pub(super) const SPAN_END: Field = Field(3);

// Of what the recorder says.
pub(super) const LOST: Field = Field(0);
pub(super) const LOST_FREES: Field = Field(1);
pub(super) const UNIX_TIME: Field = Field(0);
pub(super) const ENTRIES: Field = Field(0);
