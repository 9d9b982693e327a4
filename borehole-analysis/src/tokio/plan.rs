//! Where the fields of the events are that are looked at: worked out once for each shape.

use borehole_model::{Event, FieldKind, Shape, StringId, Tables, Value};

/// The most fields that are looked at.
const FIELDS: usize = 5;
/// No position.
const NONE: u16 = u16::MAX;

/// What an event tells.
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

/// Events by name, with the fields that are looked at. Source: dial9 0.3.2 and 0.5.7; of `EventsLostEvent`,
/// `borehole-recorder`.
const SORTS: [(&str, Sort, &[&str]); 19] = [
    (
        "PollStartEvent",
        Sort::PollStart,
        &["worker_id", "local_queue", "task_id", "spawn_loc", "scheduling_delay_ns"],
    ),
    ("PollEndEvent", Sort::PollEnd, &["worker_id"]),
    ("WorkerParkEvent", Sort::Park, &["worker_id", "local_queue", "cpu_time_ns", "tid"]),
    ("WorkerUnparkEvent", Sort::Unpark, &["worker_id", "local_queue", "cpu_time_ns", "tid", "sched_wait_ns"]),
    ("RuntimeMetricsEvent", Sort::Metrics, &["global_queue_depth", "alive_tasks", "runtime_name"]),
    ("QueueSampleEvent", Sort::Metrics, &["global_queue", "active_tasks"]),
    ("TaskSpawnEvent", Sort::Spawn, &["task_id", "spawn_loc"]),
    ("TaskTerminateEvent", Sort::Terminate, &["task_id"]),
    ("WakeEventEvent", Sort::Wake, &["waker_task_id", "woken_task_id", "target_worker"]),
    ("CpuSampleEvent", Sort::Cpu, &["worker_id", "tid", "source", "callchain"]),
    ("AllocEvent", Sort::Alloc, &["addr", "size", "callchain"]),
    ("FreeEvent", Sort::Free, &["addr", "size", "alloc_timestamp_ns"]),
    ("MemoryProfileOverflowEvent", Sort::Overflow, &["dropped_allocs", "dropped_frees"]),
    ("EventsLostEvent", Sort::Lost, &["lost_events"]),
    ("ClockSyncEvent", Sort::Clock, &["realtime_ns"]),
    ("SegmentMetadataEvent", Sort::Metadata, &["entries"]),
    ("SymbolTableEntry", Sort::Symbol, &["addr", "symbol_name", "inline_depth"]),
    ("TaskDumpEvent", Sort::TaskDump, &["task_id"]),
    ("SpanCloseEvent", Sort::SpanClose, &["span_id"]),
];

const SPAN_FIELDS: &[&str] = &["span_id", "span_name", "dial9.tokio.task_id"];

/// How to read the events of one shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) sort: Sort,
    /// Positions among the values; [`NONE`] where the shape has no such field.
    fields: [u16; FIELDS],
    /// What a number of [`Sort::WholeSpan`]'s duration is to be multiplied by to be in nanoseconds.
    pub(super) scale_ns: u64,
    /// The row of an event of [`Sort::Other`] among those.
    pub(super) other: u32,
}

impl Plan {
    pub(super) fn new(shape: &Shape, tables: &Tables) -> Self {
        let name = text(tables, shape.name);
        let mut plan = Self { sort: Sort::Other, fields: [NONE; FIELDS], scale_ns: 1, other: 0 };
        let known = SORTS.iter().find(|(known, ..)| *known == name);
        let (sort, names) = match known {
            Some(&(_, sort, names)) => (sort, names),
            None if name.starts_with("SpanEnter:") => (Sort::SpanEnter, SPAN_FIELDS),
            None if name.starts_with("SpanExit:") => (Sort::SpanExit, SPAN_FIELDS),
            None => {
                plan.find_whole_span(shape, tables);
                return plan;
            }
        };
        plan.sort = sort;
        for (field, name) in plan.fields.iter_mut().zip(names) {
            *field = position(shape, tables, name);
        }
        plan
    }

    /// Events say by annotations that they are spans.
    fn find_whole_span(&mut self, shape: &Shape, tables: &Tables) {
        let role = |wanted: &str| {
            let found = shape.annotations.iter().find(|annotation| {
                text(tables, annotation.key) == "dial9.role" && text(tables, annotation.value) == wanted
            });
            found.map(|annotation| annotation.field)
        };
        let Some(duration) = role("span.duration") else { return };
        self.sort = Sort::WholeSpan;
        self.fields[0] = u16::try_from(duration).unwrap_or(NONE);
        self.fields[1] = role("span.name").and_then(|field| u16::try_from(field).ok()).unwrap_or(NONE);
        self.scale_ns = match unit(shape, tables, duration).as_deref() {
            Some("us") => 1_000,
            Some("ms") => 1_000_000,
            Some("s") => 1_000_000_000,
            _ => 1,
        };
    }

    #[inline]
    pub(super) fn value<'v>(&self, event: &Event<'v>, field: usize) -> Option<&'v Value<'v>> {
        event.values.get(usize::from(self.fields[field]))
    }

    #[inline]
    pub(super) fn number(&self, event: &Event<'_>, field: usize) -> Option<u64> {
        match *self.value(event, field)? {
            Value::Unsigned(number) => Some(number),
            Value::Signed(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn text<'v>(&self, event: &Event<'v>, field: usize) -> Option<&'v str> {
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

/// The unit that is said of a field.
pub(super) fn unit(shape: &Shape, tables: &Tables, field: u32) -> Option<String> {
    annotation(shape, tables, field, &["unit", "metrique.unit"])
}

/// What is said of a field under one of these keys.
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
