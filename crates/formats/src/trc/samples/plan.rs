//! The positions of the fields in the events that become samples.

use super::super::event::Event;
use super::super::schema::Schema;
use super::super::value::Value;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Cpu,
    Allocation,
    TaskDump,
    Symbol,
    Unpark,
    Park,
    Poll,
    PollEnd,
    Metadata,
    Clock,
    Other,
}

impl Sort {
    /// Whether events of the kind are only about samples.
    pub(super) const fn is_about_samples(self) -> bool {
        !matches!(self, Self::Unpark | Self::Park | Self::Poll | Self::PollEnd | Self::Other)
    }
}

/// The number of places for the fields of one event.
const FIELDS: usize = 8;

/// The places of fields in a [`Plan`]: those of all plans that have them.
pub(super) const CALLCHAIN: usize = 0;
pub(super) const THREAD: usize = 1;
pub(super) const WORKER: usize = 2;

/// Places in the plan of a CPU sample.
pub(super) const SOURCE: usize = 3;
pub(super) const THREAD_NAME: usize = 4;
pub(super) const COUNT: usize = 5;
pub(super) const PROCESS: usize = 6;
pub(super) const LABELS: usize = 7;

/// Places in the plans of an allocation, and of a task dump or poll.
pub(super) const SIZE: usize = 2;
pub(super) const TASK: usize = 3;

/// Places in the plan of a symbol.
pub(super) const ADDRESS: usize = 0;
pub(super) const SYMBOL: usize = 1;
pub(super) const INLINE_DEPTH: usize = 2;
pub(super) const FILE: usize = 3;
pub(super) const LINE: usize = 4;

/// Places in the plans of metadata and of the clock.
pub(super) const ENTRIES: usize = 0;
pub(super) const REALTIME: usize = 0;

/// An event by its name, with the places and names of its fields.
type Row = (&'static str, Sort, &'static [(usize, &'static str)]);

/// Events by name, with the fields used. Source: dial9 0.5.7; [`Exporter`](super::super::Exporter) adds `count`, `pid`
/// and `labels`.
const SORTS: [Row; 10] = [
    (
        "CpuSampleEvent",
        Sort::Cpu,
        &[
            (CALLCHAIN, "callchain"),
            (THREAD, "tid"),
            (WORKER, "worker_id"),
            (SOURCE, "source"),
            (THREAD_NAME, "thread_name"),
            (COUNT, "count"),
            (PROCESS, "pid"),
            (LABELS, "labels"),
        ],
    ),
    ("AllocEvent", Sort::Allocation, &[(CALLCHAIN, "callchain"), (THREAD, "tid"), (SIZE, "size")]),
    ("TaskDumpEvent", Sort::TaskDump, &[(CALLCHAIN, "callchain"), (TASK, "task_id")]),
    (
        "SymbolTableEntry",
        Sort::Symbol,
        &[
            (ADDRESS, "addr"),
            (SYMBOL, "symbol_name"),
            (INLINE_DEPTH, "inline_depth"),
            (FILE, "source_file"),
            (LINE, "source_line"),
        ],
    ),
    ("WorkerUnparkEvent", Sort::Unpark, &[(WORKER, "worker_id"), (THREAD, "tid")]),
    ("WorkerParkEvent", Sort::Park, &[(WORKER, "worker_id"), (THREAD, "tid")]),
    ("PollStartEvent", Sort::Poll, &[(WORKER, "worker_id"), (TASK, "task_id")]),
    ("PollEndEvent", Sort::PollEnd, &[(WORKER, "worker_id")]),
    ("SegmentMetadataEvent", Sort::Metadata, &[(ENTRIES, "entries")]),
    ("ClockSyncEvent", Sort::Clock, &[(REALTIME, "realtime_ns")]),
];

/// The reading of one type of events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) sort: Sort,
    fields: [Option<u16>; FIELDS],
}

impl Plan {
    pub(super) fn new(schema: &Schema) -> Self {
        let mut plan = Self { sort: Sort::Other, fields: [None; FIELDS] };
        let Some((_, sort, fields)) = SORTS.iter().find(|(name, ..)| *name == schema.name()) else {
            return plan;
        };
        plan.sort = *sort;
        for &(place, name) in *fields {
            plan.fields[place] = schema.field_index(name).and_then(|index| u16::try_from(index).ok());
        }
        plan
    }

    /// The value of the field at one of the places above, if the type has it.
    #[inline]
    pub(super) fn value<'e>(&self, event: &Event<'e>, place: usize) -> Option<Value<'e>> {
        event.value(usize::from(self.fields[place]?))
    }

    #[inline]
    pub(super) fn number(&self, event: &Event<'_>, place: usize) -> Option<u64> {
        event.unsigned(usize::from(self.fields[place]?))
    }

    /// Whether the events are those of Borehole's exporter, which state everything themselves.
    pub(super) fn is_ours(&self) -> bool {
        self.sort == Sort::Cpu && self.fields[LABELS].is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_of_an_event_has_a_place_of_its_own() {
        for (name, _, fields) in SORTS {
            let mut places: Vec<_> = fields.iter().map(|(place, _)| *place).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), fields.len(), "{name}");
        }
    }
}
