//! The tables of a lake, described once. The schemas of the files, `docs/lake.md` and the tests come from here.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array as _, ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

use crate::error::Error;
use crate::labels;

/// The version of these tables. Lakes of later versions are not read, and those of earlier ones must be upgraded. In version 1,
/// samples have no mode, and heap samples are mixed with the others. Before version 3, rows have no source, and labels are only
/// those of samples. Before version 4, labels are JSON text, and frames have no build ID.
pub(crate) const SCHEMA_VERSION: u32 = 4;

/// The length of a day in microseconds; files are split by day.
pub(crate) const DAY_US: i64 = 86_400_000_000;

/// The column of stack ids, in every table that has one.
pub(crate) const STACK_ID: &str = "stack_id";

/// The time zone of all times.
pub(crate) const UTC: &str = "+00:00";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum LakeTable {
    Samples,
    Measures,
    Stacks,
    Spans,
    Polls,
    Events,
    Heaps,
    Sources,
}

pub(crate) struct TableDescription {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) columns: &'static [TableColumn],
    /// The sort order of compacted files; empty to keep rows as they come.
    pub(crate) order: &'static [&'static str],
}

pub(crate) struct TableColumn {
    pub(crate) name: &'static str,
    pub(crate) kind: ColumnKind,
    pub(crate) about: &'static str,
}

/// The type of a column's values. Any may be absent in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Text,
    /// Microseconds since 1970 (UTC).
    Time,
    Int,
    Unsigned,
    Float,
    /// 128 bits.
    Id,
    /// Names, root first.
    Names,
    /// Properties of frames other than their names, root first.
    Frames,
    /// Texts by key.
    Labels,
}

impl ColumnKind {
    fn data_type(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8View,
            Self::Time => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            Self::Int => DataType::Int64,
            Self::Unsigned => DataType::UInt64,
            Self::Float => DataType::Float64,
            Self::Id => ID_TYPE,
            Self::Names => DataType::List(names_item()),
            Self::Frames => list_of(frame_fields()),
            Self::Labels => labels::data_type(),
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
            Self::Labels => "map of text to text",
        }
    }
}

/// The type of stack ids. Bytes of variable length rather than of a fixed one, because Parquet writers support dictionaries
/// of them, which take 1.3 instead of 3.2 bytes a sample, and the engine needs three quarters of the time to group by them.
pub(crate) const ID_TYPE: DataType = DataType::BinaryView;

/// The items of a list of names.
pub(crate) fn names_item() -> FieldRef {
    Arc::new(Field::new("item", DataType::Utf8View, true))
}

fn list_of(fields: Fields) -> DataType {
    DataType::List(Arc::new(Field::new("item", DataType::Struct(fields), true)))
}

/// The number of properties of frames in version 3.
const EARLIER_FRAME_FIELDS: usize = 11;

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
        text("build_id"),
        int("file_offset"),
    ])
}

const fn column(name: &'static str, kind: ColumnKind, about: &'static str) -> TableColumn {
    TableColumn { name, kind, about }
}

const fn text(name: &'static str, about: &'static str) -> TableColumn {
    column(name, ColumnKind::Text, about)
}

const fn time(name: &'static str, about: &'static str) -> TableColumn {
    column(name, ColumnKind::Time, about)
}

const fn int(name: &'static str, about: &'static str) -> TableColumn {
    column(name, ColumnKind::Int, about)
}

const fn unsigned(name: &'static str, about: &'static str) -> TableColumn {
    column(name, ColumnKind::Unsigned, about)
}

const fn map(name: &'static str, about: &'static str) -> TableColumn {
    column(name, ColumnKind::Labels, about)
}

const SERVICE: TableColumn = text("service", "the service that the program belongs to");
const TIME: TableColumn = time("time", "when it happened; for spans and polls, when it began");
const HOST: TableColumn = text("host", "the machine");
const PROCESS: TableColumn = int("process", "the process id on that machine");
const THREAD: TableColumn = unsigned("thread", "the thread id of the operating system");
const THREAD_NAME: TableColumn = text("thread_name", "the name of the thread");
const LABELS: TableColumn =
    map("labels", "the labels of the sample and of where it comes from; `labels['key']` is one");
const ORIGIN: TableColumn = map("labels", "the labels of where it comes from; `labels['key']` is one");
const TRACE_ID: TableColumn =
    text("trace_id", "the trace that the sample is of, as its label; found without reading all rows");
const SPAN_ID: TableColumn = text("span_id", "the span that the sample is of, as its label");
const SOURCE: TableColumn = text("source", "the file that it was read from, a row of `sources`");

const SAMPLES: TableDescription = TableDescription {
    name: "samples",
    about: "Observations of stacks; one row is one observation or a run of equal ones",
    columns: &[
        SERVICE,
        TIME,
        HOST,
        PROCESS,
        THREAD,
        unsigned("interpreter", "the interpreter within the process"),
        column(
            STACK_ID,
            ColumnKind::Id,
            "the stack that was executing, a row of `stacks`; absent if none was",
        ),
        int("value", "the number of observations"),
        int("period_ns", "the sampling period in nanoseconds"),
        text("status", "the state of the thread, such as `has_gil` or `on_cpu`; commas separate several"),
        LABELS,
        int(
            "time_ns",
            "the time that the row stands for, in nanoseconds; absent without a period, and where `measures` has the time",
        ),
        text("mode", "the sampled clock: `wall`, `cpu`, `gil` or `exception`; absent means `wall`"),
        THREAD_NAME,
        SOURCE,
        TRACE_ID,
        SPAN_ID,
    ],
    order: &["minute", "host", "time"],
};

const MEASURES: TableDescription = TableDescription {
    name: "measures",
    about: "Other values measured for stacks: CPU time, allocated bytes, waits",
    columns: &[
        SERVICE,
        TIME,
        HOST,
        PROCESS,
        THREAD,
        column(STACK_ID, ColumnKind::Id, "the stack that was executing, a row of `stacks`"),
        text("kind", "what was measured, such as `cpu`, `alloc_space` or `off-cpu`"),
        text("unit", "the unit of the value, such as `nanoseconds`, `bytes` or `count`"),
        int("value", "the measured value"),
        LABELS,
        THREAD_NAME,
        SOURCE,
        TRACE_ID,
        SPAN_ID,
    ],
    order: &["minute", "host", "time"],
};

const STACKS: TableDescription = TableDescription {
    name: "stacks",
    about: "Distinct stacks, each once for the whole lake",
    columns: &[
        column(STACK_ID, ColumnKind::Id, "the checksum of the frames; equal on every machine"),
        column("stack", ColumnKind::Names, "the function names, root first"),
        column("frames", ColumnKind::Frames, "files, lines and other properties of the frames, root first"),
    ],
    // The stacks of each input are grouped by callers already; sorting lists takes more memory than it saves.
    order: &[],
};

const SPANS: TableDescription = TableDescription {
    name: "spans",
    about: "Completed spans of traces",
    columns: &[
        SERVICE,
        TIME,
        HOST,
        PROCESS,
        text("name", "the name of the span"),
        unsigned("duration_ns", "the duration in nanoseconds"),
        unsigned("span", "the number of the span in its trace; absent for spans that are a single event"),
        unsigned("parent", "the number of the span that it was created in"),
        unsigned("task", "the Tokio task that entered it first"),
        map(
            "labels",
            "the text fields of the span, such as its route, and the labels of where it comes from",
        ),
        SOURCE,
    ],
    order: &["minute", "host", "time"],
};

const POLLS: TableDescription = TableDescription {
    name: "polls",
    about: "Completed polls of Tokio tasks",
    columns: &[
        SERVICE,
        TIME,
        HOST,
        PROCESS,
        unsigned("worker", "the worker that polled the task"),
        unsigned("task", "the task"),
        text("place", "where the task was spawned"),
        unsigned("duration_ns", "the duration in nanoseconds"),
        ORIGIN,
        SOURCE,
    ],
    order: &["minute", "host", "time"],
};

const EVENTS: TableDescription = TableDescription {
    name: "events",
    about: "Numbers and texts in events of traces, one row per field",
    columns: &[
        SERVICE,
        TIME,
        HOST,
        PROCESS,
        text("name", "the name of the event"),
        text("field", "the name of the field"),
        column("value", ColumnKind::Float, "the number"),
        text("unit", "the unit, if the trace names it"),
        text("text", "the text, if the field is one"),
        ORIGIN,
        SOURCE,
    ],
    order: &["minute", "host", "process", "name", "field", "time"],
};

const HEAPS: TableDescription = TableDescription {
    name: "heaps",
    about: "Sizes of the classes and location types in a heap at one moment",
    columns: &[
        SERVICE,
        TIME,
        HOST,
        PROCESS,
        text("kind", "`class`, `type`, or `summary` for a number about the whole heap"),
        text("name", "the name of the class, type or number"),
        unsigned("count", "the number of such nodes"),
        unsigned("bytes", "their shallow size in bytes; for `summary`, the number"),
        ORIGIN,
        SOURCE,
    ],
    order: &["minute", "host", "process", "kind", "name"],
};

const SOURCES: TableDescription = TableDescription {
    name: "sources",
    about: "Files that were added, and what could not be read of them",
    columns: &[
        SERVICE,
        time("time", "the time of the first sample or event"),
        HOST,
        time("until", "the time of the last sample or event"),
        time("added", "when the file was added"),
        text("source", "the first half of the SHA-256 of its decompressed contents, in hexadecimal"),
        text("name", "the name of the file"),
        text("format", "the format"),
        text("clock", "the origin of its times: `recorded`, `given` or `file`"),
        unsigned("samples", "the number of samples, with runs counted in full"),
        unsigned("events", "the number of events"),
        unsigned("lost_bytes", "the bytes that could not be read"),
        unsigned("future", "samples and events dated more than a day after the file was added"),
        text("warnings", "warnings with their positions, one per line"),
        int("duration_ns", "the time from the first sample or event to the last, in nanoseconds"),
        unsigned("bytes", "the length of its decompressed contents"),
        text("beginning", "the checksum of its first bytes, by which it is known when it has grown"),
        map(
            "labels",
            "everything that the file and the user say about where it comes from; several values of a key are a JSON list",
        ),
    ],
    order: &["added"],
};

impl LakeTable {
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

    pub(crate) const fn description(self) -> &'static TableDescription {
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

    /// The table with a name.
    pub(crate) fn expect(name: &str) -> Result<Self, Error> {
        Self::of_name(name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::missing(format!("unknown table {name}: expected one of {names}"))
        })
    }

    /// Whether its rows name the file that they were read from.
    pub(crate) fn has_origin(self) -> bool {
        self != Self::Sources && self.description().columns.iter().any(|column| column.name == SOURCE.name)
    }

    /// The schema that queries see.
    pub(crate) fn schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<Vec<SchemaRef>> = LazyLock::new(|| {
            let field = |column: &TableColumn| Field::new(column.name, column.kind.data_type(), true);
            let schema = |table: LakeTable| table.description().columns.iter().map(field).collect::<Fields>();
            LakeTable::ALL.into_iter().map(|table| Arc::new(Schema::new(schema(table)))).collect()
        });
        Arc::clone(&SCHEMAS[self as usize])
    }

    /// The schema of files of version 3, which has all columns of earlier ones.
    pub(crate) fn earlier_schema(self) -> SchemaRef {
        let earlier = |column: &TableColumn| match column.kind {
            ColumnKind::Labels => DataType::Utf8View,
            ColumnKind::Frames => {
                list_of(frame_fields().iter().take(EARLIER_FRAME_FIELDS).cloned().collect())
            }
            kind => kind.data_type(),
        };
        let columns = self.description().columns.iter();
        let fields = columns.map(|column| Field::new(column.name, earlier(column), true));
        Arc::new(Schema::new(fields.collect::<Fields>()))
    }

    /// Rows of all columns, with the types of `arrays`.
    ///
    /// # Panics
    /// If `arrays` has not one array per column, or their lengths differ.
    pub(crate) fn batch(self, arrays: Vec<ArrayRef>) -> RecordBatch {
        let columns = self.description().columns.iter().zip(&arrays);
        let fields = columns.map(|(column, array)| Field::new(column.name, array.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Fields>()));
        RecordBatch::try_new(schema, arrays).expect("columns of one length")
    }
}
