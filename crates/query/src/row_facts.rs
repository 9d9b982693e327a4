//! Facts in the rows of an answer beside their stack and number: the time, the thread, the labels, and the value type.

use std::io;

use borehole_model::{Label, LabelValue, LabelsId, Tables, ValueType};
use borehole_text::lossless::unescape;
use datafusion::arrow::array::{
    Array as _, AsArray as _, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray,
    UInt64Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Schema, TimeUnit, TimestampMicrosecondType};

use crate::error::Error;
use crate::labels::LabelRows;

/// The columns of an answer with such facts: `time`, `process`, `thread`, `labels`, and `kind` with `unit`, if it has them with
/// these types.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FactColumns {
    time: Option<usize>,
    process: Option<usize>,
    thread: Option<usize>,
    labels: Option<usize>,
    value_type: Option<[usize; 2]>,
}

/// The facts of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SampleFacts {
    pub(crate) time_us: Option<i64>,
    pub(crate) process: Option<i64>,
    pub(crate) thread: Option<u64>,
    pub(crate) labels: Option<LabelsId>,
}

/// The facts of the rows of a batch.
pub(crate) struct BatchFacts {
    times: Option<TimestampMicrosecondArray>,
    processes: Option<Int64Array>,
    threads: Option<UInt64Array>,
    labels: Option<LabelRows>,
    value_type: Option<[StringViewArray; 2]>,
}

impl FactColumns {
    pub(crate) fn of(schema: &Schema) -> Self {
        let find = |name: &str, is: &dyn Fn(&DataType) -> bool| {
            schema.fields().iter().position(|field| field.name() == name && is(field.data_type()))
        };
        let is_text = |data_type: &DataType| matches!(data_type, DataType::Utf8View | DataType::Utf8);
        let kind = find("kind", &is_text).zip(find("unit", &is_text));
        Self {
            time: find("time", &|data_type| matches!(data_type, DataType::Timestamp(..))),
            process: find("process", &|data_type| *data_type == DataType::Int64),
            thread: find("thread", &|data_type| *data_type == DataType::UInt64),
            labels: find("labels", &|data_type| matches!(data_type, DataType::Map(..))),
            value_type: kind.map(|(kind, unit)| [kind, unit]),
        }
    }

    /// Whether rows have times.
    pub(crate) const fn has_times(&self) -> bool {
        self.time.is_some()
    }

    /// The facts of the rows of a batch.
    pub(crate) fn read(&self, batch: &RecordBatch) -> Result<BatchFacts, Error> {
        let to = |column: usize, data_type: &DataType| {
            cast(batch.column(column), data_type).map_err(|error| Error::question(error.to_string()))
        };
        let text = |column| Ok::<_, Error>(to(column, &DataType::Utf8View)?.as_string_view().clone());
        let microseconds = DataType::Timestamp(TimeUnit::Microsecond, None);
        let times = self.time.map(|column| to(column, &microseconds)).transpose()?;
        let processes = self.process.map(|column| batch.column(column).as_primitive().clone());
        let threads = self.thread.map(|column| batch.column(column).as_primitive().clone());
        let labels = self.labels.map(|column| LabelRows::new(batch.column(column))).transpose()?;
        let value_type = match self.value_type {
            Some([kind, unit]) => Some([text(kind)?, text(unit)?]),
            None => None,
        };
        let times = times.map(|times| times.as_primitive::<TimestampMicrosecondType>().clone());
        Ok(BatchFacts { times, processes, threads, labels, value_type })
    }
}

impl BatchFacts {
    pub(crate) fn facts(&self, row: usize, tables: &mut Tables) -> io::Result<SampleFacts> {
        let times = self.times.as_ref().filter(|times| !times.is_null(row));
        let processes = self.processes.as_ref().filter(|processes| !processes.is_null(row));
        let threads = self.threads.as_ref().filter(|threads| !threads.is_null(row));
        let labels = self.labels.as_ref().and_then(|labels| labels.row(row));
        let labels = labels.map(|labels| interned(labels, tables)).transpose()?;
        Ok(SampleFacts {
            time_us: times.map(|times| times.value(row)),
            process: processes.map(|processes| processes.value(row)),
            thread: threads.map(|threads| threads.value(row)),
            labels,
        })
    }

    /// The value type of the number of a row; `None` if the answer does not say it.
    pub(crate) fn value_type(&self, row: usize) -> Option<ValueType> {
        let text =
            |column: &StringViewArray| if column.is_null(row) { "" } else { column.value(row) }.to_owned();
        self.value_type.as_ref().map(|[kind, unit]| ValueType::new(text(kind), text(unit)))
    }
}

fn interned<'r>(
    labels: impl Iterator<Item = (&'r str, &'r str)>,
    tables: &mut Tables,
) -> io::Result<LabelsId> {
    let mut set = Vec::new();
    for (key, value) in labels {
        let (key, value) = (tables.intern_string(&unescape(key))?, tables.intern_string(&unescape(value))?);
        set.push(Label { key, value: LabelValue::Text(value) });
    }
    Ok(tables.intern_labels(&set)?)
}
