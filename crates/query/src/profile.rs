//! Answers as profiles: for any query that selects a stack and a whole number.

use std::io;

use borehole_model::{
    Context, Frame, NameParts, NativeFrame, ProfileSink, Sample, Segment, StackId, StringId, Tables,
};
use borehole_text::lossless::unescape;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray as _, Int64Array, ListArray, StringViewArray, StructArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, Schema, UInt64Type};
use hashbrown::HashMap;

use crate::addend::Addend;
use crate::ask::{LakeAnswer, LakeSession};
use crate::error::Error;
use crate::ids::{self, LakeStackId};
use crate::tables::ID_TYPE;

/// The column of an answer's stacks.
#[derive(Clone, Copy)]
enum AnswerStacks {
    /// Names, and the other properties of the frames.
    Names(usize, Option<usize>),
    /// Ids of stacks.
    Ids(usize),
    /// Names joined with `;`.
    Folded(usize),
}

/// The columns of an answer that make a profile.
#[derive(Clone, Copy)]
struct ProfileColumns {
    stack: AnswerStacks,
    number: usize,
}

impl ProfileColumns {
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
            (Some(names), ..) => Some(AnswerStacks::Names(names, frames)),
            (None, Some(ids), _) => Some(AnswerStacks::Ids(ids)),
            (None, None, folded) => folded.map(AnswerStacks::Folded),
        };
        let number = find(&|_, data_type| data_type.is_integer());
        let missing = |message: &str, hint: &str| Error::question(message).with_hint(hint);
        Ok(Self {
            stack: stack.ok_or_else(|| {
                missing("a profile needs a column of stacks", "select stack_id, stack or folded(stack)")
            })?,
            number: number.ok_or_else(|| {
                missing(
                    "a profile needs a column of whole numbers",
                    "use CAST(... AS BIGINT) to make whole numbers",
                )
            })?,
        })
    }
}

/// Passes the stacks of an answer to a sink.
struct AnswerProfile<'s> {
    tables: Tables,
    segment: Segment,
    sink: &'s mut dyn ProfileSink,
    /// Whether the sink has enough.
    is_full: bool,
    /// The number of stacks passed on.
    stacks: u64,
}

/// Interns the stack in a row of an answer.
type StackOfRow = dyn Fn(usize, &mut Tables) -> io::Result<Option<StackId>>;

impl LakeSession<'_> {
    /// Streams an answer into `sink` as samples, and finishes it. Returns the number of stacks passed on.
    ///
    /// The stack of a row comes from a column of names, ids or folded text; its count is the first whole number. Rows without a
    /// stack get the empty stack. Rows with a negative number or without one are skipped.
    ///
    /// # Errors
    /// If the answer has no such columns, the query fails, or the sink fails ([`Error::into_sink_error`]).
    pub fn export(&self, answer: LakeAnswer<'_>, sink: &mut dyn ProfileSink) -> Result<u64, Error> {
        self.export_sums(answer, &Addend::default(), sink)
    }

    /// Like [`LakeSession::export`], for an answer whose numbers are sums of `addend`. Sums of anything but observations become
    /// values of its type.
    ///
    /// # Errors
    /// Like [`LakeSession::export`].
    pub fn export_sums(
        &self,
        answer: LakeAnswer<'_>,
        addend: &Addend,
        sink: &mut dyn ProfileSink,
    ) -> Result<u64, Error> {
        let shape = ProfileColumns::of(&answer.schema)?;
        let mut profile = AnswerProfile {
            tables: Tables::default(),
            segment: addend.segment(),
            sink,
            is_full: false,
            stacks: 0,
        };
        let at = Context { tables: &profile.tables, segment: &profile.segment };
        profile.sink.segment(at).map_err(Error::sink)?;
        self.give(answer, shape, &mut profile)?;
        // A sink that has enough is finished like any other.
        profile.sink.finish(&profile.tables).map_err(Error::sink)?;
        Ok(profile.stacks)
    }

    /// Passes on samples of the answer's rows until the sink has enough.
    fn give(
        &self,
        mut answer: LakeAnswer<'_>,
        shape: ProfileColumns,
        profile: &mut AnswerProfile<'_>,
    ) -> Result<(), Error> {
        let mut counts: HashMap<Option<LakeStackId>, u64> = HashMap::new();
        while !profile.is_full
            && let Some(batch) = answer.next_batch()?
        {
            // This cast makes negative numbers absent.
            let numbers = cast_to(batch.column(shape.number), &DataType::UInt64)?;
            let numbers = numbers.as_primitive::<UInt64Type>();
            let count = |row: usize| if numbers.is_null(row) { 0 } else { numbers.value(row) };
            let stack: Box<StackOfRow> = match shape.stack {
                AnswerStacks::Ids(column) => {
                    for row in 0..batch.num_rows() {
                        let sum = counts.entry(ids::at(batch.column(column), row)).or_default();
                        *sum = sum.saturating_add(count(row));
                    }
                    continue;
                }
                AnswerStacks::Names(names, frames) => {
                    let rows =
                        StackArrays::new(batch.column(names), frames.map(|frames| batch.column(frames)))?;
                    Box::new(move |row, tables| rows.stack(row, tables))
                }
                AnswerStacks::Folded(column) => {
                    let texts = text_column(batch.column(column))?;
                    Box::new(move |row, tables| folded(&texts, row, tables))
                }
            };
            for row in 0..batch.num_rows() {
                profile.sample(|tables| stack(row, tables), count(row))?;
            }
        }
        if counts.is_empty() { Ok(()) } else { self.resolve(counts, profile) }
    }

    /// Passes on samples of stacks given by id.
    fn resolve(
        &self,
        mut counts: HashMap<Option<LakeStackId>, u64>,
        profile: &mut AnswerProfile<'_>,
    ) -> Result<(), Error> {
        let mut stacks = self.ask("SELECT stack_id, stack, frames FROM stacks")?;
        while !profile.is_full
            && let Some(batch) = stacks.next_batch()?
        {
            let rows = StackArrays::new(batch.column(1), Some(batch.column(2)))?;
            for row in 0..batch.num_rows() {
                if let Some(count) = counts.remove(&ids::at(batch.column(0), row)) {
                    profile.sample(|tables| rows.stack(row, tables), count)?;
                }
            }
        }
        profile.sample(|_| Ok(None), counts.remove(&None).unwrap_or(0))?;
        match counts.len() {
            0 => Ok(()),
            _ if profile.is_full => Ok(()),
            missing => Err(Error::lake(format!("{missing} stacks of samples are missing"))
                .with_hint("run borehole lake check to find damaged files")),
        }
    }
}

impl AnswerProfile<'_> {
    fn sample(
        &mut self,
        stack: impl FnOnce(&mut Tables) -> io::Result<Option<StackId>>,
        count: u64,
    ) -> Result<(), Error> {
        if count == 0 || self.is_full {
            return Ok(());
        }
        let stack = stack(&mut self.tables).map_err(|error| Error::question(error.to_string()))?;
        self.stacks += 1;
        let at = Context { tables: &self.tables, segment: &self.segment };
        let value = [i64::try_from(count).unwrap_or(i64::MAX)];
        let sample = match self.segment.is_uncounted {
            true => Sample { stack, count: 1, values: &value, ..Sample::default() },
            false => Sample { stack, count, ..Sample::default() },
        };
        self.is_full = self.sink.sample(at, &sample).map_err(Error::sink)?.is_break();
        Ok(())
    }
}

/// Stacks as Arrow columns.
struct StackArrays {
    names: ListArray,
    texts: StringViewArray,
    details: Option<(ListArray, FrameDetails)>,
}

impl StackArrays {
    fn new(names: &ArrayRef, frames: Option<&ArrayRef>) -> Result<Self, Error> {
        let names = names.as_list::<i32>().clone();
        let texts = text_column(names.values())?;
        let details = match frames {
            None => None,
            Some(frames) => {
                let frames = frames.as_list::<i32>();
                Some((frames.clone(), FrameDetails::new(frames.values().as_struct())?))
            }
        };
        Ok(Self { texts, names, details })
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

fn cast_to(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, Error> {
    cast(column, data_type).map_err(|error| Error::question(error.to_string()))
}

fn text_column(column: &ArrayRef) -> Result<StringViewArray, Error> {
    Ok(cast_to(column, &DataType::Utf8View)?.as_string_view().clone())
}

/// The columns of a frame other than its name.
struct FrameDetails {
    texts: HashMap<String, StringViewArray>,
    ints: HashMap<String, Int64Array>,
}

impl FrameDetails {
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
