//! Answers as profiles: for any query that selects a stack and a whole number.

use std::io;

use borehole_model::{
    Context, Frame, NameParts, NativeFrame, ProfileSink, Sample, Segment, StackId, StringId, Tables,
    ValueType,
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
use crate::row_facts::{BatchFacts, FactColumns, SampleFacts};
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
    facts: FactColumns,
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
        let is_text = |data_type: &DataType| matches!(data_type, DataType::Utf8View | DataType::Utf8);
        let folded = find(&|name, data_type| is_text(data_type) && !matches!(name, "kind" | "unit"));
        let stack = match (names, ids, folded) {
            (Some(names), ..) => Some(AnswerStacks::Names(names, frames)),
            (None, Some(ids), _) => Some(AnswerStacks::Ids(ids)),
            (None, None, folded) => folded.map(AnswerStacks::Folded),
        };
        let number = find(&|name, data_type| data_type.is_integer() && !matches!(name, "process" | "thread"));
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
            facts: FactColumns::of(schema),
        })
    }
}

/// Passes the stacks of an answer to a sink.
pub(crate) struct AnswerProfile<'s> {
    pub(crate) tables: Tables,
    pub(crate) segment: Segment,
    sink: &'s mut dyn ProfileSink,
    /// Whether the segment was passed on.
    has_begun: bool,
    /// Whether the sink has enough.
    pub(crate) is_full: bool,
    /// The number of stacks passed on.
    stacks: u64,
}

/// Interns the stack in a row of an answer.
type StackOfRow = dyn Fn(usize, &mut Tables) -> io::Result<Option<StackId>>;

impl LakeSession<'_> {
    /// Streams an answer into `sink` as samples, and finishes it. Returns the number of stacks passed on.
    ///
    /// The stack of a row comes from a column of names, ids or folded text; its count is the first whole number that is not a
    /// process or a thread. Columns called `time`, `process`, `thread`, `labels`, and `kind` with `unit`, become those of the
    /// samples. Rows without a stack get the empty stack. Rows with a negative number or without one are skipped.
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
        let mut profile = AnswerProfile::new(addend, sink);
        profile.segment.has_times = shape.facts.has_times();
        self.give(answer, shape, &mut profile)?;
        profile.finish()
    }

    /// Passes on samples of the answer's rows until the sink has enough.
    fn give(
        &self,
        mut answer: LakeAnswer<'_>,
        shape: ProfileColumns,
        profile: &mut AnswerProfile<'_>,
    ) -> Result<(), Error> {
        let mut counts: SumsOfStacks = HashMap::new();
        while !profile.is_full
            && let Some(batch) = answer.next_batch()?
        {
            // This cast makes negative numbers absent.
            let numbers = cast_to(batch.column(shape.number), &DataType::UInt64)?;
            let numbers = numbers.as_primitive::<UInt64Type>();
            let count = |row: usize| if numbers.is_null(row) { 0 } else { numbers.value(row) };
            let facts = shape.facts.read(&batch)?;
            let stack: Box<StackOfRow> = match shape.stack {
                AnswerStacks::Ids(column) => {
                    for row in 0..batch.num_rows() {
                        profile.measure(facts.value_type(row))?;
                        let of_row = profile.facts(&facts, row)?;
                        let sum = counts.entry((ids::at(batch.column(column), row), of_row)).or_default();
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
                profile.measure(facts.value_type(row))?;
                let of_row = profile.facts(&facts, row)?;
                profile.sample(|tables| stack(row, tables), [(of_row, count(row))])?;
            }
        }
        if counts.is_empty() { Ok(()) } else { self.resolve(counts, profile) }
    }

    /// Passes on samples of stacks given by id.
    fn resolve(&self, counts: SumsOfStacks, profile: &mut AnswerProfile<'_>) -> Result<(), Error> {
        let mut sums: Vec<_> = counts.into_iter().collect();
        sums.sort_unstable();
        let of = |id: Option<LakeStackId>, sums: &[((Option<LakeStackId>, SampleFacts), u64)]| {
            let from = sums.partition_point(|&((other, _), _)| other < id);
            from..from + sums[from..].partition_point(|&((other, _), _)| other == id)
        };
        let mut stacks = self.ask("SELECT stack_id, stack, frames FROM stacks")?;
        let mut left =
            sums.chunk_by(|one, other| one.0.0 == other.0.0).filter(|of| of[0].0.0.is_some()).count();
        while !profile.is_full
            && let Some(batch) = stacks.next_batch()?
        {
            let rows = StackArrays::new(batch.column(1), Some(batch.column(2)))?;
            for row in 0..batch.num_rows() {
                let range = of(ids::at(batch.column(0), row), &sums);
                left -= usize::from(!range.is_empty());
                let of_stack = sums[range].iter().map(|&((_, facts), count)| (facts, count));
                profile.sample(|tables| rows.stack(row, tables), of_stack)?;
            }
        }
        let of_none = sums[of(None, &sums)].iter().map(|&((_, facts), count)| (facts, count));
        profile.sample(|_| Ok(None), of_none)?;
        match left {
            0 => Ok(()),
            _ if profile.is_full => Ok(()),
            missing => Err(Error::lake(format!("{missing} stacks of samples are missing"))
                .with_hint("run borehole lake check to find damaged files")),
        }
    }
}

/// The sums of stacks, and of what else rows say of them.
type SumsOfStacks = HashMap<(Option<LakeStackId>, SampleFacts), u64>;

impl<'s> AnswerProfile<'s> {
    /// Begins a profile of numbers of a kind.
    pub(crate) fn new(addend: &Addend, sink: &'s mut dyn ProfileSink) -> Self {
        Self {
            tables: Tables::default(),
            segment: Segment { start_unix_ns: addend.start_unix_ns(), ..addend.segment() },
            sink,
            has_begun: false,
            is_full: false,
            stacks: 0,
        }
    }

    /// Finishes the sink, and returns the number of stacks passed on.
    pub(crate) fn finish(mut self) -> Result<u64, Error> {
        self.begin(None)?;
        // A sink that has enough is finished like any other.
        self.sink.finish(&self.tables).map_err(Error::sink)?;
        Ok(self.stacks)
    }

    /// Passes on the segment, which starts at the time of the first sample if that is known.
    fn begin(&mut self, first_us: Option<i64>) -> Result<(), Error> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        if let Some(first_us) = first_us {
            self.segment.start_unix_ns = first_us.checked_mul(1000);
        }
        let at = Context { tables: &self.tables, segment: &self.segment };
        self.sink.segment(at).map_err(Error::sink)
    }

    /// Takes what the following numbers measure, which is one value type for all of them.
    fn measure(&mut self, value_type: Option<ValueType>) -> Result<(), Error> {
        let Some(value_type) = value_type.filter(|value_type| !value_type.is_samples()) else {
            return Ok(());
        };
        match self.segment.value_types.first() {
            Some(known) if *known == value_type => Ok(()),
            None if !self.has_begun => {
                self.segment.value_types.push(value_type);
                self.segment.is_uncounted = true;
                Ok(())
            }
            known => {
                let known = known.map_or_else(|| "samples".to_owned(), ToString::to_string);
                let message =
                    format!("a profile needs numbers of one kind: expected {known}, found {value_type}");
                Err(Error::question(message).with_hint("add a condition on kind and unit"))
            }
        }
    }

    pub(crate) fn facts(&mut self, facts: &BatchFacts, row: usize) -> Result<SampleFacts, Error> {
        facts.facts(row, &mut self.tables).map_err(|error| Error::question(error.to_string()))
    }

    /// Passes on samples of a stack.
    pub(crate) fn sample(
        &mut self,
        stack: impl FnOnce(&mut Tables) -> io::Result<Option<StackId>>,
        sums: impl IntoIterator<Item = (SampleFacts, u64)>,
    ) -> Result<(), Error> {
        let mut sums = sums.into_iter().filter(|&(_, count)| count > 0).peekable();
        let Some(&(first, _)) = sums.peek() else { return Ok(()) };
        if self.is_full {
            return Ok(());
        }
        let stack = stack(&mut self.tables).map_err(|error| Error::question(error.to_string()))?;
        self.stacks += 1;
        self.begin(first.time_us)?;
        sums.try_for_each(|(facts, count)| self.give(stack, facts, count))
    }

    fn give(&mut self, stack: Option<StackId>, facts: SampleFacts, count: u64) -> Result<(), Error> {
        let start_ns = self.segment.start_unix_ns.unwrap_or(0);
        let time_ns = facts.time_us.map(|time_us| time_us.saturating_mul(1000).saturating_sub(start_ns));
        let value = [i64::try_from(count).unwrap_or(i64::MAX)];
        let SampleFacts { process, thread, labels, .. } = facts;
        let sample = Sample { stack, time_ns, process, thread, labels, ..Sample::default() };
        let sample = match self.segment.is_uncounted {
            true => Sample { count: 1, values: &value, ..sample },
            false => Sample { count, ..sample },
        };
        let at = Context { tables: &self.tables, segment: &self.segment };
        self.is_full |= self.sink.sample(at, &sample).map_err(Error::sink)?.is_break();
        Ok(())
    }
}

/// Stacks as Arrow columns.
pub(crate) struct StackArrays {
    names: ListArray,
    texts: StringViewArray,
    details: Option<(ListArray, FrameDetails)>,
}

impl StackArrays {
    pub(crate) fn new(names: &ArrayRef, frames: Option<&ArrayRef>) -> Result<Self, Error> {
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

    pub(crate) fn stack(&self, row: usize, tables: &mut Tables) -> io::Result<Option<StackId>> {
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

pub(crate) fn cast_to(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, Error> {
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
        let native =
            text("module")?.map(|module| NativeFrame { module, offset: int("offset"), file_offset: None });
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
