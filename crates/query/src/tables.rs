//! The tables of a lake, described once. The schemas of the files, `docs/lake.md` and the tests come from here.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

/// The version of these tables. Lakes of later versions are not read. In version 1, samples have no mode, and heap samples
/// are mixed with the others.
pub(crate) const SCHEMA_VERSION: u32 = 2;

/// The length of a day in microseconds; files are split by day.
pub(crate) const DAY_US: i64 = 86_400_000_000;

/// The column of stack ids, in every table that has one.
pub(crate) const STACK_ID: &str = "stack_id";

/// The time zone of all times.
pub(crate) const UTC: &str = "+00:00";

/// A table of the lake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Table {
    Samples,
    Measures,
    Stacks,
    Spans,
    Polls,
    Events,
    Heaps,
    Sources,
}

/// The properties of a table.
pub(crate) struct Description {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) columns: &'static [Column],
    /// The sort order of compacted files; empty to keep rows as they come.
    pub(crate) order: &'static [&'static str],
}

/// A column of a table.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) about: &'static str,
}

/// The type of a column's values. Any may be absent in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// Microseconds since 1970 (UTC).
    Time,
    Int,
    Unsigned,
    Float,
    /// 128 bits.
    Id,
    /// Names, the root first.
    Names,
    /// Properties of frames other than their names, the root first.
    Frames,
}

impl Kind {
    fn data_type(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8View,
            Self::Time => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            Self::Int => DataType::Int64,
            Self::Unsigned => DataType::UInt64,
            Self::Float => DataType::Float64,
            Self::Id => ID_TYPE,
            Self::Names => DataType::List(Arc::new(names_item())),
            Self::Frames => DataType::List(Arc::new(frames_item())),
        }
    }

    /// Its name in documents.
    pub(crate) const fn sql(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Time => "timestamp (µs, UTC)",
            Self::Int => "bigint",
            Self::Unsigned => "bigint unsigned",
            Self::Float => "double",
            Self::Id => "128 bits",
            Self::Names => "list of text",
            Self::Frames => "list of struct",
        }
    }
}

/// The type of stack ids. Bytes of variable length rather than of a fixed one, because Parquet writers support dictionaries
/// of them, which take 1.3 instead of 3.2 bytes a sample, and the engine needs three quarters of the time to group by them.
pub(crate) const ID_TYPE: DataType = DataType::BinaryView;

fn names_item() -> Field {
    Field::new("item", DataType::Utf8View, true)
}

fn frames_item() -> Field {
    Field::new("item", DataType::Struct(frame_fields()), true)
}

/// The properties of a frame other than its name.
pub(crate) fn frame_fields() -> Fields {
    let text = |name| Field::new(name, DataType::Utf8View, true);
    let int = |name| Field::new(name, DataType::Int64, true);
    Fields::from(vec![
        text("file"),
        int("line"),
        int("end_line"),
        int("column"),
        int("end_column"),
        text("opcode"),
        text("namespace"),
        text("class"),
        text("method"),
        text("module"),
        int("offset"),
    ])
}

impl Column {
    const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, about }
    }
}

const SERVICE: Column = Column::new("service", Kind::Text, "what the program is a part of");
const TIME: Column = Column::new("time", Kind::Time, "when");
const HOST: Column = Column::new("host", Kind::Text, "the machine");
const PROCESS: Column = Column::new("process", Kind::Int, "the process, as its machine numbers it");
const THREAD: Column =
    Column::new("thread", Kind::Unsigned, "the thread, as the operating system numbers it");
const LABELS: Column = Column::new(
    "labels",
    Kind::Text,
    "what else was true, as a JSON object; `label(labels, 'key')` takes one out",
);

const SAMPLES: Description = Description {
    name: "samples",
    about: "One observation of a stack, or a run of equal ones",
    columns: &[
        SERVICE,
        TIME,
        HOST,
        PROCESS,
        THREAD,
        Column::new("interpreter", Kind::Unsigned, "the interpreter within the process"),
        Column::new(STACK_ID, Kind::Id, "what was executing, a row of `stacks`; absent where nothing was"),
        Column::new("value", Kind::Int, "how many observations"),
        Column::new("period_ns", Kind::Int, "the sampling period in nanoseconds"),
        Column::new(
            "status",
            Kind::Text,
            "what the thread was doing: `has_gil`, `on_cpu` and so on, with commas",
        ),
        LABELS,
        Column::new(
            "time_ns",
            Kind::Int,
            "how much time that is, in nanoseconds; absent without a period, and where `measures` has the time",
        ),
        Column::new(
            "mode",
            Kind::Text,
            "which clock was sampled: `wall`, `cpu`, `gil` or `exception`; absent is `wall`",
        ),
    ],
    order: &["minute", "host", "time"],
};

const MEASURES: Description = Description {
    name: "measures",
    about: "What else was measured of a stack: time on the CPU, bytes allocated, waits",
    columns: &[
        SERVICE,
        TIME,
        HOST,
        PROCESS,
        THREAD,
        Column::new(STACK_ID, Kind::Id, "what was executing, a row of `stacks`"),
        Column::new("kind", Kind::Text, "what was measured: `cpu`, `alloc_space`, `off-cpu`"),
        Column::new("unit", Kind::Text, "in which unit: `nanoseconds`, `bytes`, `count`"),
        Column::new("value", Kind::Int, "how much"),
        LABELS,
    ],
    order: &["minute", "host", "time"],
};

const STACKS: Description = Description {
    name: "stacks",
    about: "A distinct stack, once for the whole lake",
    columns: &[
        Column::new(STACK_ID, Kind::Id, "the checksum of its frames: equal on every machine"),
        Column::new("stack", Kind::Names, "the names of its functions, the root first"),
        Column::new("frames", Kind::Frames, "files, lines and so on of its frames, the root first"),
    ],
    // The stacks of each input are grouped by callers already; sorting lists takes more memory than it saves.
    order: &[],
};

const SPANS: Description = Description {
    name: "spans",
    about: "A span of a trace that began and ended",
    columns: &[
        SERVICE,
        TIME,
        HOST,
        PROCESS,
        Column::new("name", Kind::Text, "what it is called"),
        Column::new("duration_ns", Kind::Unsigned, "how long it took, in nanoseconds"),
    ],
    order: &["minute", "host", "time"],
};

const POLLS: Description = Description {
    name: "polls",
    about: "A poll of a task of Tokio that began and ended",
    columns: &[
        SERVICE,
        TIME,
        HOST,
        PROCESS,
        Column::new("worker", Kind::Unsigned, "the worker"),
        Column::new("task", Kind::Unsigned, "the task"),
        Column::new("place", Kind::Text, "where the task was spawned"),
        Column::new("duration_ns", Kind::Unsigned, "how long it took, in nanoseconds"),
    ],
    order: &["minute", "host", "time"],
};

const EVENTS: Description = Description {
    name: "events",
    about: "A number that an event of a trace carries: a row a field",
    columns: &[
        SERVICE,
        TIME,
        HOST,
        PROCESS,
        Column::new("name", Kind::Text, "what the event is called"),
        Column::new("field", Kind::Text, "what the number is called"),
        Column::new("value", Kind::Float, "the number"),
        Column::new("unit", Kind::Text, "its unit, where the trace says it"),
    ],
    order: &["minute", "host", "process", "name", "field", "time"],
};

const HEAPS: Description = Description {
    name: "heaps",
    about: "What a class, or a type of location, takes of a heap at one moment",
    columns: &[
        SERVICE,
        TIME,
        HOST,
        PROCESS,
        Column::new("kind", Kind::Text, "`class`, `type`, or `summary` for what is true of the whole heap"),
        Column::new("name", Kind::Text, "the class, the type, or the fact"),
        Column::new("count", Kind::Unsigned, "how many there are"),
        Column::new("bytes", Kind::Unsigned, "their own bytes"),
    ],
    order: &["minute", "host", "process", "kind", "name"],
};

const SOURCES: Description = Description {
    name: "sources",
    about: "A file that was added, and what of it was lost",
    columns: &[
        SERVICE,
        Column::new("time", Kind::Time, "when its first sample or event was taken"),
        HOST,
        Column::new("until", Kind::Time, "when its last one was taken"),
        Column::new("added", Kind::Time, "when it was added"),
        Column::new(
            "source",
            Kind::Text,
            "the checksum of its bytes (SHA-256, its first half, in hexadecimal)",
        ),
        Column::new("name", Kind::Text, "what it was called"),
        Column::new("format", Kind::Text, "its format"),
        Column::new("clock", Kind::Text, "where its times are from: `recorded`, `given` or `file`"),
        Column::new("samples", Kind::Unsigned, "how many samples it held, runs in full"),
        Column::new("events", Kind::Unsigned, "how many events it held"),
        Column::new("lost_bytes", Kind::Unsigned, "bytes that could not be used"),
        Column::new(
            "future",
            Kind::Unsigned,
            "samples and events that were later than the moment of adding by a day",
        ),
        Column::new("warnings", Kind::Text, "what was odd or lost and where, a line each"),
    ],
    order: &["added"],
};

impl Table {
    pub(crate) const ALL: [Self; 8] = [
        Self::Samples,
        Self::Measures,
        Self::Stacks,
        Self::Spans,
        Self::Polls,
        Self::Events,
        Self::Heaps,
        Self::Sources,
    ];

    pub(crate) const fn description(self) -> &'static Description {
        match self {
            Self::Samples => &SAMPLES,
            Self::Measures => &MEASURES,
            Self::Stacks => &STACKS,
            Self::Spans => &SPANS,
            Self::Polls => &POLLS,
            Self::Events => &EVENTS,
            Self::Heaps => &HEAPS,
            Self::Sources => &SOURCES,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        self.description().name
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// The schema that queries see.
    pub(crate) fn schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<Vec<SchemaRef>> = LazyLock::new(|| {
            Table::ALL.into_iter().map(|table| Arc::new(schema_of(table.description()))).collect()
        });
        Arc::clone(&SCHEMAS[self as usize])
    }
}

fn schema_of(description: &Description) -> Schema {
    let fields =
        description.columns.iter().map(|column| Field::new(column.name, column.kind.data_type(), true));
    Schema::new(fields.collect::<Fields>())
}
