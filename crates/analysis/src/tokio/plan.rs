//! The positions of the event fields in use, computed once for each shape.

use borehole_model::{Event, FieldKind, Shape, StringId, Tables, Value};

use super::field::{self, Field};

/// No position.
const NONE: u16 = u16::MAX;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    PollStart,
    PollEnd,
    Park,
    Unpark,
    Metrics,
    Spawn,
    Terminate,
    Wake,
    Cpu,
    Alloc,
    Free,
    Overflow,
    /// Events that the recorder lost.
    Lost,
    Clock,
    Metadata,
    Symbol,
    TaskDump,
    SpanEnter,
    SpanExit,
    SpanClose,
    /// An event that is a whole span: start, duration and name in its fields.
    WholeSpan,
    Other,
}

/// Fields and their names.
type Fields = &'static [(Field, &'static str)];

/// Events by name, with the fields in use. Source: dial9 0.3.2 and 0.5.7; for `EventsLostEvent`, `borehole-recorder`.
const SORTS: [(&str, Sort, Fields); 19] = [
    (
        "PollStartEvent",
        Sort::PollStart,
        &[
            (field::WORKER, "worker_id"),
            (field::LOCAL_QUEUE, "local_queue"),
            (field::TASK, "task_id"),
            (field::SPAWNED_AT, "spawn_loc"),
            (field::DELAY, "scheduling_delay_ns"),
        ],
    ),
    ("PollEndEvent", Sort::PollEnd, &[(field::WORKER, "worker_id")]),
    (
        "WorkerParkEvent",
        Sort::Park,
        &[
            (field::WORKER, "worker_id"),
            (field::LOCAL_QUEUE, "local_queue"),
            (field::CPU_TIME, "cpu_time_ns"),
            (field::THREAD, "tid"),
        ],
    ),
    (
        "WorkerUnparkEvent",
        Sort::Unpark,
        &[
            (field::WORKER, "worker_id"),
            (field::LOCAL_QUEUE, "local_queue"),
            (field::CPU_TIME, "cpu_time_ns"),
            (field::THREAD, "tid"),
            (field::CPU_WAIT, "sched_wait_ns"),
        ],
    ),
    (
        "RuntimeMetricsEvent",
        Sort::Metrics,
        &[
            (field::QUEUE_DEPTH, "global_queue_depth"),
            (field::ALIVE_TASKS, "alive_tasks"),
            (field::RUNTIME, "runtime_name"),
        ],
    ),
    (
        "QueueSampleEvent",
        Sort::Metrics,
        &[(field::QUEUE_DEPTH, "global_queue"), (field::ALIVE_TASKS, "active_tasks")],
    ),
    (
        "TaskSpawnEvent",
        Sort::Spawn,
        &[(field::TASK, "task_id"), (field::SPAWNED_AT, "spawn_loc"), (field::INSTRUMENTED, "instrumented")],
    ),
    ("TaskTerminateEvent", Sort::Terminate, &[(field::TASK, "task_id")]),
    (
        "WakeEventEvent",
        Sort::Wake,
        &[
            (field::WAKER_TASK, "waker_task_id"),
            (field::TASK, "woken_task_id"),
            (field::WORKER, "target_worker"),
        ],
    ),
    (
        "CpuSampleEvent",
        Sort::Cpu,
        &[
            (field::WORKER, "worker_id"),
            (field::THREAD, "tid"),
            (field::SAMPLE_SOURCE, "source"),
            (field::STACK, "callchain"),
        ],
    ),
    (
        "AllocEvent",
        Sort::Alloc,
        &[(field::ADDRESS, "addr"), (field::SIZE, "size"), (field::STACK, "callchain")],
    ),
    ("FreeEvent", Sort::Free, &[(field::ADDRESS, "addr"), (field::ALLOCATED_AT, "alloc_timestamp_ns")]),
    (
        "MemoryProfileOverflowEvent",
        Sort::Overflow,
        &[(field::LOST, "dropped_allocs"), (field::LOST_FREES, "dropped_frees")],
    ),
    ("EventsLostEvent", Sort::Lost, &[(field::LOST, "lost_events")]),
    ("ClockSyncEvent", Sort::Clock, &[(field::UNIX_TIME, "realtime_ns")]),
    ("SegmentMetadataEvent", Sort::Metadata, &[(field::ENTRIES, "entries")]),
    (
        "SymbolTableEntry",
        Sort::Symbol,
        &[(field::ADDRESS, "addr"), (field::NAME, "symbol_name"), (field::INLINE_DEPTH, "inline_depth")],
    ),
    ("TaskDumpEvent", Sort::TaskDump, &[]),
    ("SpanCloseEvent", Sort::SpanClose, &[(field::SPAN, "span_id")]),
];

const SPAN_FIELDS: Fields =
    &[(field::SPAN, "span_id"), (field::NAME, "span_name"), (field::TASK, "dial9.tokio.task_id")];

/// The fields of whole-span events by role. Source: dial9 0.5.7, `docs/design/single-event-spans.md`.
const SPAN_ROLES: [(Field, &str); 4] = [
    (field::SPAN_START, "span.start"),
    (field::DURATION, "span.duration"),
    (field::SPAN_END, "span.end"),
    (field::NAME, "span.name"),
];

/// How to read the events of one shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) sort: Sort,
    /// Positions among the values; [`NONE`] if the shape has no such field.
    fields: [u16; field::PLACES],
    /// For [`Sort::WholeSpan`], the power of 1000 that converts each field to nanoseconds.
    scales: [u8; field::PLACES],
    /// The row of a [`Sort::Other`] event among those.
    pub(super) other: u32,
}

impl Plan {
    pub(super) fn new(shape: &Shape, tables: &Tables) -> Self {
        let name = text(tables, shape.name);
        let mut plan =
            Self { sort: Sort::Other, fields: [NONE; field::PLACES], scales: [0; field::PLACES], other: 0 };
        let known = SORTS.iter().find(|(known, ..)| *known == name);
        let (sort, fields) = match known {
            Some(&(_, sort, fields)) => (sort, fields),
            None if name.starts_with("SpanEnter:") => (Sort::SpanEnter, SPAN_FIELDS),
            None if name.starts_with("SpanExit:") => (Sort::SpanExit, SPAN_FIELDS),
            None => {
                plan.find_whole_span(shape, tables);
                return plan;
            }
        };
        plan.sort = sort;
        for &(Field(place), name) in fields {
            plan.fields[place] = position(shape, tables, name);
        }
        plan
    }

    /// Detects events whose annotations say that they are spans.
    fn find_whole_span(&mut self, shape: &Shape, tables: &Tables) {
        let role = |wanted: &str| {
            let found = shape.annotations.iter().find(|annotation| {
                text(tables, annotation.key) == "dial9.role" && text(tables, annotation.value) == wanted
            });
            found.map(|annotation| annotation.field)
        };
        // The time of the event is one of start, duration and end, so one more makes it a span.
        for (Field(place), wanted) in SPAN_ROLES {
            let Some((found, row)) = role(wanted).and_then(|row| Some((u16::try_from(row).ok()?, row)))
            else {
                continue;
            };
            self.fields[place] = found;
            self.scales[place] = match unit(shape, tables, row).as_deref() {
                Some("us") => 1,
                Some("ms") => 2,
                Some("s") => 3,
                _ => 0,
            };
            if place != field::NAME.0 {
                self.sort = Sort::WholeSpan;
            }
        }
    }

    /// A number of a [`Sort::WholeSpan`] event, in nanoseconds.
    pub(super) fn nanoseconds(&self, event: &Event<'_>, field: Field) -> Option<u64> {
        self.number(event, field)?.checked_mul(1000u64.pow(self.scales[field.0].into()))
    }

    #[inline]
    pub(super) fn value<'v>(&self, event: &Event<'v>, field: Field) -> Option<&'v Value<'v>> {
        event.values.get(usize::from(self.fields[field.0]))
    }

    #[inline]
    pub(super) fn number(&self, event: &Event<'_>, field: Field) -> Option<u64> {
        match *self.value(event, field)? {
            Value::Unsigned(number) => Some(number),
            Value::Signed(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn text<'v>(&self, event: &Event<'v>, field: Field) -> Option<&'v str> {
        match self.value(event, field)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

fn position(shape: &Shape, tables: &Tables, name: &str) -> u16 {
    let found = shape.fields.iter().position(|field| tables.string(field.name) == name.as_bytes());
    found.and_then(|position| u16::try_from(position).ok()).unwrap_or(NONE)
}

/// The unit in a field's annotations.
pub(super) fn unit(shape: &Shape, tables: &Tables, field: u32) -> Option<String> {
    annotation(shape, tables, field, &["unit", "metrique.unit"])
}

/// The annotation of a field under one of these keys.
pub(super) fn annotation(shape: &Shape, tables: &Tables, field: u32, keys: &[&str]) -> Option<String> {
    let found = shape
        .annotations
        .iter()
        .find(|annotation| annotation.field == field && keys.contains(&&*text(tables, annotation.key)));
    found.map(|annotation| text(tables, annotation.value))
}

pub(super) fn text(tables: &Tables, id: StringId) -> String {
    String::from_utf8_lossy(tables.string(id)).into_owned()
}

/// Whether values of a field can be numbers.
pub(super) const fn is_numeric(kind: FieldKind) -> bool {
    matches!(
        kind,
        FieldKind::Undeclared
            | FieldKind::Unsigned8
            | FieldKind::Unsigned16
            | FieldKind::Unsigned32
            | FieldKind::Unsigned64
            | FieldKind::Signed64
            | FieldKind::Float64
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_fields_of_an_event_have_one_place() {
        for fields in SORTS.iter().map(|&(_, _, fields)| fields).chain([SPAN_FIELDS]) {
            let mut places: Vec<_> = fields.iter().map(|&(Field(place), _)| place).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), fields.len(), "{fields:?}");
        }
    }
}
