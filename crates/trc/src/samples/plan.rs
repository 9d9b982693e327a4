//! The positions of the fields in the events that become samples.

use borehole_model::dial9::{event, field};

use super::super::event::Event;
use super::super::schema::Schema;
use super::super::value::Value;

/// The subject of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventTopic {
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

impl EventTopic {
    /// Whether sinks of samples need these events in no other form.
    pub(super) const fn is_about_samples(self) -> bool {
        !matches!(self, Self::Unpark | Self::Park | Self::Poll | Self::PollEnd | Self::Other)
    }
}

/// The topics of events by name.
const TOPICS: [(&str, EventTopic); 10] = [
    (event::CPU_SAMPLE, EventTopic::Cpu),
    (event::ALLOC, EventTopic::Allocation),
    (event::TASK_DUMP, EventTopic::TaskDump),
    (event::SYMBOL, EventTopic::Symbol),
    (event::WORKER_UNPARK, EventTopic::Unpark),
    (event::WORKER_PARK, EventTopic::Park),
    (event::POLL_START, EventTopic::Poll),
    (event::POLL_END, EventTopic::PollEnd),
    (event::METADATA, EventTopic::Metadata),
    (event::CLOCK_SYNC, EventTopic::Clock),
];

/// A field in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleField {
    Stack,
    Thread,
    Worker,
    Source,
    ThreadName,
    Count,
    Process,
    Labels,
    Size,
    Task,
    Address,
    Symbol,
    InlineDepth,
    File,
    Line,
    Entries,
    UnixTime,
}

/// The names of the fields. [`Exporter`](crate::Exporter) adds the count, the process and the labels.
const FIELDS: [(SampleField, &str); 17] = [
    (SampleField::Stack, field::STACK),
    (SampleField::Thread, field::THREAD),
    (SampleField::Worker, field::WORKER),
    (SampleField::Source, field::SAMPLE_SOURCE),
    (SampleField::ThreadName, field::THREAD_NAME),
    (SampleField::Count, field::COUNT),
    (SampleField::Process, field::PROCESS),
    (SampleField::Labels, field::LABELS),
    (SampleField::Size, field::SIZE),
    (SampleField::Task, field::TASK),
    (SampleField::Address, field::ADDRESS),
    (SampleField::Symbol, field::SYMBOL),
    (SampleField::InlineDepth, field::INLINE_DEPTH),
    (SampleField::File, field::FILE),
    (SampleField::Line, field::LINE),
    (SampleField::Entries, field::ENTRIES),
    (SampleField::UnixTime, field::UNIX_TIME),
];

/// The position of a missing field: a type has at most 65,535 fields.
const NOWHERE: u16 = u16::MAX;

/// How to read one type of events.
#[derive(Clone, Copy, Debug)]
pub(super) struct SamplePlan {
    pub(super) topic: EventTopic,
    /// The position of each [`SampleField`], or [`NOWHERE`].
    positions: [u16; FIELDS.len()],
}

impl SamplePlan {
    pub(super) fn new(schema: &Schema) -> Self {
        let topic = TOPICS.iter().find(|(name, _)| *name == schema.name());
        let topic = topic.map_or(EventTopic::Other, |(_, topic)| *topic);
        let mut positions = [NOWHERE; FIELDS.len()];
        for (field, name) in FIELDS {
            let position = schema.field_index(name).and_then(|position| u16::try_from(position).ok());
            positions[field as usize] = position.unwrap_or(NOWHERE);
        }
        Self { topic, positions }
    }

    #[inline]
    fn position(&self, field: SampleField) -> usize {
        self.positions[field as usize].into()
    }

    /// The value of a field, if the type has it.
    #[inline]
    pub(super) fn value<'e>(&self, event: &Event<'e>, field: SampleField) -> Option<Value<'e>> {
        event.value(self.position(field))
    }

    /// The number of a field of unsigned integers, if the type has it.
    #[inline]
    pub(super) fn number(&self, event: &Event<'_>, field: SampleField) -> Option<u64> {
        event.unsigned(self.position(field))
    }

    /// Whether the events are those of Borehole's exporter, which state everything themselves.
    pub(super) fn is_ours(&self) -> bool {
        self.topic == EventTopic::Cpu && self.positions[SampleField::Labels as usize] != NOWHERE
    }
}
