//! Answers as profiles: any query that selects a stack and a whole number.

use std::io;
use std::ops::ControlFlow;

use borehole_model::text::unescape;
use borehole_model::{
    Context, Frame, NameParts, NativeFrame, ProfileSink, Sample, Segment, StackId, StringId, Tables,
};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray as _, Int64Array, ListArray, RecordBatch, StringViewArray, StructArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, Schema, UInt64Type};
use hashbrown::HashMap;

use crate::ids::{self, Id};
use crate::tables::ID_TYPE;
use crate::{Addend, Answer, Error, Session};

/// The column of an answer's stacks.
#[derive(Clone, Copy)]
enum StackColumn {
    /// Names, and the other properties of the frames.
    Names(usize, Option<usize>),
    /// Ids of stacks.
    Ids(usize),
    /// Names joined with `;`.
    Folded(usize),
}

/// The hint for answers that are not profiles.
const HINT: &str =
    "SELECT stack_id, sum(value) FROM samples GROUP BY stack_id; CAST(... AS BIGINT) makes whole numbers";

/// The columns of an answer that make a profile.
#[derive(Clone, Copy)]
struct Shape {
    stack: StackColumn,
    number: usize,
}

impl Shape {
    fn of(schema: &Schema) -> Result<Self, Error> {
        let find = |is: &dyn Fn(&str, &DataType) -> bool| {
            schema.fields().iter().position(|field| is(field.name(), field.data_type()))
        };
        let is_names = |data_type: &DataType| matches!(data_type, DataType::List(item) if matches!(item.data_type(), DataType::Utf8View | DataType::Utf8));
        let names = find(&|_, data_type| is_names(data_type));
        let frames = find(&|name, data_type| {
            name == "frames" && matches!(data_type, DataType::List(_)) && !is_names(data_type)
        });
        let ids = find(&|_, data_type| *data_type == ID_TYPE);
        let folded = find(&|_, data_type| matches!(data_type, DataType::Utf8View | DataType::Utf8));
        let stack = match (names, ids, folded) {
            (Some(names), ..) => Some(StackColumn::Names(names, frames)),
            (None, Some(ids), _) => Some(StackColumn::Ids(ids)),
            (None, None, folded) => folded.map(StackColumn::Folded),
        };
        let number = find(&|_, data_type| data_type.is_integer());
        match (stack, number) {
            (Some(stack), Some(number)) => Ok(Self { stack, number }),
            _ => {
                let error = Error::question(
                    "expected a stack and a whole number among the columns of the answer, found none",
                );
                Err(error.with_hint(HINT))
            }
        }
    }
}

/// Stacks of an answer on their way into a sink.
struct Profile<'s> {
    tables: Tables,
    segment: Segment,
    sink: &'s mut dyn ProfileSink,
    /// The number of stacks passed on.
    stacks: u64,
}

impl Session<'_> {
    /// Streams an answer into `sink` as samples, and finishes it. Returns the number of stacks passed on.
    ///
    /// Each row gives its stack (a column of names, of ids or of folded text) and its first whole number, as the count. Rows
    /// without a stack get the empty stack. Rows with a negative number or without one are skipped.
    ///
    /// # Errors
    /// If the answer has no such columns, the query fails, or the sink fails ([`Error::into_sink_error`]).
    pub fn export(&self, answer: Answer<'_>, sink: &mut dyn ProfileSink) -> Result<u64, Error> {
        self.export_sums(answer, &Addend::default(), sink)
    }

    /// Like [`Session::export`], for an answer whose numbers are sums of `addend`: sums of something other than observations
    /// become values of its type.
    ///
    /// # Errors
    /// Like [`Session::export`].
    pub fn export_sums(
        &self,
        answer: Answer<'_>,
        addend: &Addend,
        sink: &mut dyn ProfileSink,
    ) -> Result<u64, Error> {
        let shape = Shape::of(answer.schema())?;
        let mut profile = Profile { tables: Tables::default(), segment: addend.segment(), sink, stacks: 0 };
        profile.begin()?;
        // A sink that has enough is finished like any other.
        let _ = self.give(answer, shape, &mut profile)?;
        profile.finish()
    }

    /// Passes on samples of the answer's rows until the sink has enough.
    fn give(
        &self,
        mut answer: Answer<'_>,
        shape: Shape,
        profile: &mut Profile<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let mut counts: HashMap<Option<Id>, u64> = HashMap::new();
        while let Some(batch) = answer.next_batch()? {
            // This cast makes negative numbers absent.
            let numbers = cast(batch.column(shape.number), &DataType::UInt64);
            let numbers = numbers.map_err(|error| Error::question(error.to_string()))?;
            let numbers = numbers.as_primitive::<UInt64Type>();
            let count = |row: usize| if numbers.is_null(row) { 0 } else { numbers.value(row) };
            match shape.stack {
                StackColumn::Ids(column) => {
                    for row in 0..batch.num_rows() {
                        let sum = counts.entry(ids::at(batch.column(column), row)).or_default();
                        *sum = sum.saturating_add(count(row));
                    }
                }
                StackColumn::Names(names, frames) => {
                    let rows =
                        StackRows::new(batch.column(names), frames.map(|frames| batch.column(frames)))?;
                    for row in 0..batch.num_rows() {
                        if profile.sample(|tables| rows.stack(row, tables), count(row))?.is_break() {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                }
                StackColumn::Folded(column) => {
                    let texts = cast(batch.column(column), &DataType::Utf8View);
                    let texts = texts.map_err(|error| Error::question(error.to_string()))?;
                    for row in 0..batch.num_rows() {
                        let stack = |tables: &mut Tables| folded(texts.as_string_view(), row, tables);
                        if profile.sample(stack, count(row))?.is_break() {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                }
            }
        }
        if counts.is_empty() { Ok(ControlFlow::Continue(())) } else { self.resolve(counts, profile) }
    }

    /// Passes on samples of stacks given by id.
    fn resolve(
        &self,
        mut counts: HashMap<Option<Id>, u64>,
        profile: &mut Profile<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let mut stacks = self.ask("SELECT stack_id, stack, frames FROM stacks")?;
        while let Some(batch) = stacks.next_batch()? {
            let rows = StackRows::of_batch(&batch)?;
            for row in 0..batch.num_rows() {
                if let Some(count) = counts.remove(&ids::at(batch.column(0), row))
                    && profile.sample(|tables| rows.stack(row, tables), count)?.is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        if let Some(count) = counts.remove(&None)
            && profile.sample(|_| Ok(None), count)?.is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        match counts.len() {
            0 => Ok(ControlFlow::Continue(())),
            missing => Err(Error::lake(format!(
                "{missing} stacks of samples are missing: borehole lake check says why"
            ))),
        }
    }
}

impl Profile<'_> {
    fn begin(&mut self) -> Result<(), Error> {
        let at = Context { tables: &self.tables, segment: &self.segment };
        self.sink.segment(at).map_err(Error::sink)
    }

    fn sample(
        &mut self,
        stack: impl FnOnce(&mut Tables) -> io::Result<Option<StackId>>,
        count: u64,
    ) -> Result<ControlFlow<()>, Error> {
        if count == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let stack = stack(&mut self.tables).map_err(|error| Error::question(error.to_string()))?;
        self.stacks += 1;
        let at = Context { tables: &self.tables, segment: &self.segment };
        let value = [i64::try_from(count).unwrap_or(i64::MAX)];
        let sample = match self.segment.is_uncounted {
            true => Sample { stack, count: 1, values: &value, ..Sample::default() },
            false => Sample { stack, count, ..Sample::default() },
        };
        self.sink.sample(at, &sample).map_err(Error::sink)
    }

    fn finish(self) -> Result<u64, Error> {
        self.sink.finish(&self.tables).map_err(Error::sink)?;
        Ok(self.stacks)
    }
}

/// Columns of stacks.
struct StackRows {
    names: ListArray,
    texts: StringViewArray,
    details: Option<(ListArray, Details)>,
}

impl StackRows {
    fn new(names: &ArrayRef, frames: Option<&ArrayRef>) -> Result<Self, Error> {
        let names = names.as_list::<i32>().clone();
        let texts = text_column(names.values())?;
        let details = match frames {
            None => None,
            Some(frames) => {
                let frames = frames.as_list::<i32>();
                Some((frames.clone(), Details::new(frames.values().as_struct())?))
            }
        };
        Ok(Self { texts, names, details })
    }

    fn of_batch(batch: &RecordBatch) -> Result<Self, Error> {
        Self::new(batch.column(1), Some(batch.column(2)))
    }

    fn stack(&self, row: usize, tables: &mut Tables) -> io::Result<Option<StackId>> {
        if self.names.is_null(row) {
            return Ok(None);
        }
        let range = |list: &ListArray| {
            let end = |row: usize| usize::try_from(list.value_offsets()[row]).unwrap_or(0);
            end(row)..end(row + 1)
        };
        let mut stack = None;
        let mut rows = self.details.as_ref().map(|(list, _)| range(list));
        for name in range(&self.names) {
            let function = tables.intern_string(&unescape(self.texts.value(name)))?;
            let row = rows.as_mut().and_then(Iterator::next);
            let frame = match (&self.details, row) {
                (Some((_, details)), Some(row)) => details.frame(function, row, tables)?,
                _ => Frame::named(function),
            };
            let frame = tables.intern_frame(&frame)?;
            stack = Some(tables.intern_stack(stack, frame)?);
        }
        Ok(stack)
    }
}

fn text_column(column: &ArrayRef) -> Result<StringViewArray, Error> {
    let texts = cast(column, &DataType::Utf8View).map_err(|error| Error::question(error.to_string()))?;
    Ok(texts.as_string_view().clone())
}

/// The columns of a frame other than its name.
struct Details {
    texts: HashMap<String, StringViewArray>,
    ints: HashMap<String, Int64Array>,
}

impl Details {
    fn new(frames: &StructArray) -> Result<Self, Error> {
        let mut details = Self { texts: HashMap::new(), ints: HashMap::new() };
        for (field, column) in frames.fields().iter().zip(frames.columns()) {
            match column.as_primitive_opt::<Int64Type>() {
                Some(ints) => drop(details.ints.insert(field.name().clone(), ints.clone())),
                None => drop(details.texts.insert(field.name().clone(), text_column(column)?)),
            }
        }
        Ok(details)
    }

    /// The frame in a row.
    fn frame(&self, function: StringId, row: usize, tables: &mut Tables) -> io::Result<Frame> {
        let int = |name: &str| {
            let ints = self.ints.get(name).filter(|ints| !ints.is_null(row));
            ints.map(|ints| ints.value(row))
        };
        let narrow = |name: &str| int(name).and_then(|value| u32::try_from(value).ok());
        let mut text = |name: &str| {
            let texts = self.texts.get(name).filter(|texts| !texts.is_null(row));
            texts.map(|texts| tables.intern_string(&unescape(texts.value(row)))).transpose()
        };
        let parts = match (text("namespace")?, text("class")?, text("method")?) {
            (Some(namespace), Some(class), Some(method)) => Some(NameParts { namespace, class, method }),
            _ => None,
        };
        let native = text("module")?.map(|module| NativeFrame { module, offset: int("offset") });
        Ok(Frame {
            parts,
            file: text("file")?,
            line: int("line"),
            end_line: int("end_line"),
            column: narrow("column"),
            end_column: narrow("end_column"),
            opcode: text("opcode")?,
            native,
            ..Frame::named(function)
        })
    }
}

fn folded(texts: &StringViewArray, row: usize, tables: &mut Tables) -> io::Result<Option<StackId>> {
    let mut stack = None;
    let text = if texts.is_null(row) { "" } else { texts.value(row) };
    for name in text.split(';').filter(|name| !name.is_empty()) {
        let function = tables.intern_string(&unescape(name))?;
        let frame = tables.intern_frame(&Frame::named(function))?;
        stack = Some(tables.intern_stack(stack, frame)?);
    }
    Ok(stack)
}
