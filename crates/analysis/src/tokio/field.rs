//! The event fields in use, by meaning.

use borehole_model::dial9::field as name;

/// A field: the index of its position in a [`ShapePlan`](super::plan::ShapePlan), and its name. Fields that never occur
/// together share an index, and fields of one meaning have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldSlot(pub(super) usize, pub(super) &'static str);

/// The number of indexes.
pub(super) const PLACES: usize = 5;

// Fields of workers and tasks, and of samples of their threads.
pub(super) const WORKER: FieldSlot = FieldSlot(0, name::WORKER);
pub(super) const TARGET_WORKER: FieldSlot = FieldSlot(WORKER.0, name::TARGET_WORKER);
pub(super) const INSTRUMENTED: FieldSlot = FieldSlot(0, name::INSTRUMENTED);
pub(super) const LOCAL_QUEUE: FieldSlot = FieldSlot(1, name::LOCAL_QUEUE);
pub(super) const WAKER_TASK: FieldSlot = FieldSlot(1, name::WAKER_TASK);
pub(super) const SAMPLE_SOURCE: FieldSlot = FieldSlot(1, name::SAMPLE_SOURCE);
pub(super) const TASK: FieldSlot = FieldSlot(2, name::TASK);
pub(super) const WOKEN_TASK: FieldSlot = FieldSlot(TASK.0, name::WOKEN_TASK);
pub(super) const CPU_TIME: FieldSlot = FieldSlot(2, name::CPU_TIME);
pub(super) const STACK: FieldSlot = FieldSlot(2, name::STACK);
pub(super) const COUNT: FieldSlot = FieldSlot(4, name::COUNT);
pub(super) const SPAWNED_AT: FieldSlot = FieldSlot(3, name::SPAWNED_AT);
pub(super) const THREAD: FieldSlot = FieldSlot(3, name::THREAD);
pub(super) const DELAY: FieldSlot = FieldSlot(4, "scheduling_delay_ns");
pub(super) const CPU_WAIT: FieldSlot = FieldSlot(4, name::CPU_WAIT);

// Fields of runtime measurements, and the names of two of them in dial9 0.3.2.
pub(super) const QUEUE_DEPTH: FieldSlot = FieldSlot(0, name::QUEUE_DEPTH);
pub(super) const GLOBAL_QUEUE: FieldSlot = FieldSlot(QUEUE_DEPTH.0, "global_queue");
pub(super) const ALIVE_TASKS: FieldSlot = FieldSlot(1, name::ALIVE_TASKS);
pub(super) const ACTIVE_TASKS: FieldSlot = FieldSlot(ALIVE_TASKS.0, "active_tasks");
pub(super) const RUNTIME: FieldSlot = FieldSlot(2, name::RUNTIME);

// Fields of memory and symbols; the stack is that of samples.
pub(super) const ADDRESS: FieldSlot = FieldSlot(0, name::ADDRESS);
pub(super) const SIZE: FieldSlot = FieldSlot(1, name::SIZE);
pub(super) const SYMBOL: FieldSlot = FieldSlot(NAME.0, name::SYMBOL);
pub(super) const ALLOCATED_AT: FieldSlot = FieldSlot(3, "alloc_timestamp_ns");
pub(super) const INLINE_DEPTH: FieldSlot = FieldSlot(2, name::INLINE_DEPTH);

// Fields of spans; those of whole-span events are named by their role.
pub(super) const SPAN: FieldSlot = FieldSlot(0, name::SPAN);
pub(super) const SPAN_TASK: FieldSlot = FieldSlot(TASK.0, name::SPAN_TASK);
pub(super) const NAME: FieldSlot = FieldSlot(1, name::SPAN_NAME);
pub(super) const SPAN_PARENT: FieldSlot = FieldSlot(3, "parent_span_id");
pub(super) const NAME_ROLE: FieldSlot = FieldSlot(NAME.0, "span.name");
pub(super) const DURATION: FieldSlot = FieldSlot(0, "span.duration");
pub(super) const SPAN_START: FieldSlot = FieldSlot(2, "span.start");
pub(super) const SPAN_END: FieldSlot = FieldSlot(3, "span.end");

// Fields of the recorder's own events.
pub(super) const LOST: FieldSlot = FieldSlot(0, name::LOST_EVENTS);
pub(super) const LOST_ALLOCS: FieldSlot = FieldSlot(LOST.0, "dropped_allocs");
pub(super) const LOST_FREES: FieldSlot = FieldSlot(1, "dropped_frees");
pub(super) const UNIX_TIME: FieldSlot = FieldSlot(0, name::UNIX_TIME);
pub(super) const ENTRIES: FieldSlot = FieldSlot(0, name::ENTRIES);
