//! The positions of the event fields in use, computed once for each shape.

use borehole_model::dial9::event;
use borehole_model::{Event, FieldKind, Shape, StringId, Tables, Value};

use super::field::{self, FieldSlot};
use super::view::Contents;

const NONE: u16 = u16::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventSort {
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

impl EventSort {
    /// The counter of events of this kind that are not of the runtime itself.
    pub(super) const fn counter(self, contents: &mut Contents) -> Option<&mut u64> {
        match self {
            Self::Cpu | Self::TaskDump => Some(&mut contents.cpu_samples),
            Self::Alloc | Self::Free => Some(&mut contents.allocations),
            Self::SpanEnter | Self::SpanExit | Self::SpanClose | Self::WholeSpan => Some(&mut contents.spans),
            Self::Other => Some(&mut contents.custom),
            _ => None,
        }
    }
}

/// Events by name, with the fields in use. Source: dial9 0.3.2 and 0.5.7; for `EventsLostEvent`, `borehole-recorder`.
const SORTS: [(&str, EventSort, &[FieldSlot]); 19] = [
    (
        event::POLL_START,
        EventSort::PollStart,
        &[field::WORKER, field::LOCAL_QUEUE, field::TASK, field::SPAWNED_AT, field::DELAY],
    ),
    (event::POLL_END, EventSort::PollEnd, &[field::WORKER]),
    (
        event::WORKER_PARK,
        EventSort::Park,
        &[field::WORKER, field::LOCAL_QUEUE, field::CPU_TIME, field::THREAD],
    ),
    (
        event::WORKER_UNPARK,
        EventSort::Unpark,
        &[field::WORKER, field::LOCAL_QUEUE, field::CPU_TIME, field::THREAD, field::CPU_WAIT],
    ),
    (event::RUNTIME_METRICS, EventSort::Metrics, &[field::QUEUE_DEPTH, field::ALIVE_TASKS, field::RUNTIME]),
    (event::QUEUE_SAMPLE, EventSort::Metrics, &[field::GLOBAL_QUEUE, field::ACTIVE_TASKS]),
    (event::TASK_SPAWN, EventSort::Spawn, &[field::TASK, field::SPAWNED_AT, field::INSTRUMENTED]),
    (event::TASK_TERMINATE, EventSort::Terminate, &[field::TASK]),
    (event::WAKE, EventSort::Wake, &[field::WAKER_TASK, field::WOKEN_TASK, field::TARGET_WORKER]),
    (
        event::CPU_SAMPLE,
        EventSort::Cpu,
        &[field::WORKER, field::THREAD, field::SAMPLE_SOURCE, field::STACK, field::COUNT],
    ),
    (event::ALLOC, EventSort::Alloc, &[field::ADDRESS, field::SIZE, field::STACK]),
    ("FreeEvent", EventSort::Free, &[field::ADDRESS, field::ALLOCATED_AT]),
    ("MemoryProfileOverflowEvent", EventSort::Overflow, &[field::LOST_ALLOCS, field::LOST_FREES]),
    (event::EVENTS_LOST, EventSort::Lost, &[field::LOST]),
    (event::CLOCK_SYNC, EventSort::Clock, &[field::UNIX_TIME]),
    (event::METADATA, EventSort::Metadata, &[field::ENTRIES]),
    (event::SYMBOL, EventSort::Symbol, &[field::ADDRESS, field::SYMBOL, field::INLINE_DEPTH]),
    (event::TASK_DUMP, EventSort::TaskDump, &[]),
    (event::SPAN_CLOSE, EventSort::SpanClose, &[field::SPAN]),
];

const SPAN_FIELDS: &[FieldSlot] = &[field::SPAN, field::NAME, field::SPAN_TASK, field::SPAN_PARENT];

/// The fields of whole-span events by role. Source: dial9 0.5.7, `docs/design/single-event-spans.md`.
const SPAN_ROLES: [FieldSlot; 4] = [field::SPAN_START, field::DURATION, field::SPAN_END, field::NAME_ROLE];

/// The plan for reading the events of one shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShapePlan {
    pub(super) sort: EventSort,
    /// Positions among the values; [`NONE`] if the shape has no such field.
    fields: [u16; field::PLACES],
    /// For [`EventSort::WholeSpan`], the power of 1000 that converts each field to nanoseconds.
    scales: [u8; field::PLACES],
    /// The row of a [`EventSort::Other`] event among those.
    pub(super) other: u32,
    /// The layout of the text fields of spans.
    pub(super) texts: u32,
}

impl ShapePlan {
    pub(super) fn new(shape: &Shape, tables: &Tables) -> Self {
        let name = text(tables, shape.name);
        let mut plan = Self {
            sort: EventSort::Other,
            fields: [NONE; field::PLACES],
            scales: [0; field::PLACES],
            other: 0,
            texts: 0,
        };
        let known = SORTS.iter().find(|(known, ..)| *known == name);
        let (sort, fields) = match known {
            Some(&(_, sort, fields)) => (sort, fields),
            None if name.starts_with(event::SPAN_ENTER_PREFIX) => (EventSort::SpanEnter, SPAN_FIELDS),
            None if name.starts_with(event::SPAN_EXIT_PREFIX) => (EventSort::SpanExit, SPAN_FIELDS),
            None => {
                plan.find_whole_span(shape, tables);
                return plan;
            }
        };
        plan.sort = sort;
        for &FieldSlot(place, name) in fields {
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
        for FieldSlot(place, wanted) in SPAN_ROLES {
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
                self.sort = EventSort::WholeSpan;
            }
        }
    }

    /// A number of a [`EventSort::WholeSpan`] event, in nanoseconds.
    pub(super) fn nanoseconds(&self, event: &Event<'_>, field: FieldSlot) -> Option<u64> {
        self.number(event, field)?.checked_mul(1000u64.pow(self.scales[field.0].into()))
    }

    #[inline]
    pub(super) fn value<'v>(&self, event: &Event<'v>, field: FieldSlot) -> Option<&'v Value<'v>> {
        event.values.get(usize::from(self.fields[field.0]))
    }

    #[inline]
    pub(super) fn number(&self, event: &Event<'_>, field: FieldSlot) -> Option<u64> {
        match *self.value(event, field)? {
            Value::Unsigned(number) => Some(number),
            Value::Signed(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn text<'v>(&self, event: &Event<'v>, field: FieldSlot) -> Option<&'v str> {
        match self.value(event, field)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Whether a field of spans has a meaning of its own. Source: dial9 0.5.7.
pub(super) fn is_span_field(name: &str) -> bool {
    let known = [field::SPAN.1, field::NAME.1, field::SPAN_TASK.1, field::SPAN_PARENT.1];
    known.contains(&name) || name.starts_with("dial9.")
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
            let mut places: Vec<_> = fields.iter().map(|&FieldSlot(place, _)| place).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), fields.len(), "{fields:?}");
        }
    }
}
