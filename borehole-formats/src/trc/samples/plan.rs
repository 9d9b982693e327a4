//! Where the fields of the events are that samples are made of.

use super::super::event::Event;
use super::super::schema::Schema;
use super::super::value::Value;

/// What an event tells.
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
    /// Whether events of the sort tell of nothing else.
    pub(super) const fn is_about_samples(self) -> bool {
        !matches!(self, Self::Unpark | Self::Park | Self::Poll | Self::PollEnd | Self::Other)
    }
}

/// The most fields that are looked at.
const FIELDS: usize = 9;

/// Events by name, with the fields that are looked at. Source: dial9 0.5.7; `count`, `pid` and `labels` are what
/// [`Exporter`](super::super::Exporter) adds.
const SORTS: [(&str, Sort, &[&str]); 10] = [
    (
        "CpuSampleEvent",
        Sort::Cpu,
        &["callchain", "tid", "worker_id", "source", "thread_name", "cpu", "count", "pid", "labels"],
    ),
    ("AllocEvent", Sort::Allocation, &["callchain", "tid", "size"]),
    ("TaskDumpEvent", Sort::TaskDump, &["callchain", "task_id"]),
    (
        "SymbolTableEntry",
        Sort::Symbol,
        &["addr", "symbol_name", "inline_depth", "source_file", "source_line"],
    ),
    ("WorkerUnparkEvent", Sort::Unpark, &["worker_id", "tid"]),
    ("WorkerParkEvent", Sort::Park, &["worker_id", "tid"]),
    ("PollStartEvent", Sort::Poll, &["worker_id", "task_id"]),
    ("PollEndEvent", Sort::PollEnd, &["worker_id"]),
    ("SegmentMetadataEvent", Sort::Metadata, &["entries"]),
    ("ClockSyncEvent", Sort::Clock, &["realtime_ns"]),
];

/// How to read the events of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) sort: Sort,
    fields: [Option<u16>; FIELDS],
}

impl Plan {
    pub(super) fn new(schema: &Schema) -> Self {
        let mut plan = Self { sort: Sort::Other, fields: [None; FIELDS] };
        let Some((_, sort, names)) = SORTS.iter().find(|(name, ..)| *name == schema.name()) else {
            return plan;
        };
        plan.sort = *sort;
        for (field, name) in plan.fields.iter_mut().zip(*names) {
            *field = schema.field_index(name).and_then(|index| u16::try_from(index).ok());
        }
        plan
    }

    /// The value of one of the fields that are looked at, if the type has it.
    #[inline]
    pub(super) fn value<'e>(&self, event: &Event<'e>, field: usize) -> Option<Value<'e>> {
        event.value(usize::from(self.fields[field]?))
    }

    #[inline]
    pub(super) fn number(&self, event: &Event<'_>, field: usize) -> Option<u64> {
        event.unsigned(usize::from(self.fields[field]?))
    }

    /// Whether the events are those that our exporter writes, which say everything themselves.
    pub(super) fn is_ours(&self) -> bool {
        self.sort == Sort::Cpu && self.fields[8].is_some()
    }
}
