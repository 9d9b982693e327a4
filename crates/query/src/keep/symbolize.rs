//! Names and lines for native code that had none where it was recorded.
//!
//! Stacks keep their ids, which stand for what was recorded, so samples stay as they are. New files of stacks take the place of
//! those with such code, in one commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Int64Array, ListArray, RecordBatch, StringViewArray, StructArray,
    UInt32Array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use futures::StreamExt as _;
use hashbrown::HashMap;

use super::compact::{CompactionGroup, SORT_BYTES, sorted_where};
use crate::code::is_unnamed;
use crate::journal::{Commit, DataFile, Intent, LakeState, Operation, now_us};
use crate::tables::{LakeTable, frame_fields, names_item};
use crate::{Error, Lake};

/// Code without a name or a line: a place in a build of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnnamedCode {
    /// The path of the file, as its process saw it.
    pub path: String,
    /// The build ID, in hexadecimal.
    pub build_id: String,
    /// The offset in the file.
    pub file_offset: u64,
}

/// A function at a place in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedCode {
    /// The name of the function.
    pub function: String,
    /// Its source file.
    pub file: Option<String>,
    /// The line, 1-based.
    pub line: Option<u32>,
}

/// The result of naming code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Symbolized {
    /// The number of distinct places that got names or lines.
    pub named: u64,
    /// The number of those for which nothing was found.
    pub unknown: u64,
    /// The number of files of stacks that were replaced.
    pub files: u64,
}

/// Finds the functions at a place, innermost first; none if they are not known.
type FindFunctions<'f> = dyn FnMut(&UnnamedCode) -> Vec<NamedCode> + 'f;

/// The functions of places that have some, outermost first.
type FoundNames = HashMap<UnnamedCode, Vec<NamedCode>>;

/// A frame of native code with a place, and without something that is known of the place elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LackingFrame {
    code: UnnamedCode,
    /// The name of one that has no line; `None` for one that has no name.
    function: Option<String>,
}

/// The symbols that were found for a frame.
#[derive(Clone, Copy)]
enum FoundFrame<'n> {
    /// The functions at its place, outermost first.
    Functions(&'n [NamedCode]),
    /// Its line.
    Line(&'n NamedCode),
}

impl LackingFrame {
    fn found_in<'n>(&self, names: &'n FoundNames) -> Option<FoundFrame<'n>> {
        let found = names.get(&self.code)?;
        let Some(function) = &self.function else { return Some(FoundFrame::Functions(found)) };
        // Profiles spell names of C++ and Rust in several ways. Of several functions at a place, one of that name is meant.
        let of_name = match &found[..] {
            [only] => Some(only),
            several => several.iter().find(|code| code.function == *function),
        };
        of_name.filter(|code| code.line.is_some()).map(FoundFrame::Line)
    }
}

impl Lake {
    /// Names native code that has no names yet, and finds lines of code that has names only: `find` is asked once for each distinct
    /// place.
    ///
    /// # Errors
    /// If the storage fails. Then nothing was changed, unless the storage's reply was lost.
    pub fn symbolize(&self, find: &mut FindFunctions<'_>) -> Result<Symbolized, Error> {
        let state = self.state()?;
        let (mut asked, mut names) = (BTreeSet::new(), FoundNames::new());
        let mut filled = BTreeSet::new();
        let mut commit = Commit::new(Operation::Symbolize, now_us());
        let files: Vec<_> = state.files_of(LakeTable::Stacks).cloned().collect();
        for file in &files {
            let lacking = self.lacking_frames(file, &state)?;
            for LackingFrame { code, .. } in &lacking {
                if asked.insert(code.clone()) {
                    let mut found = find(code);
                    found.reverse();
                    if !found.is_empty() {
                        names.insert(code.clone(), found);
                    }
                }
            }
            let of_file = lacking.into_iter().filter(|frame| frame.found_in(&names).is_some());
            let of_file: Vec<_> = of_file.map(|frame| frame.code).collect();
            if !of_file.is_empty() {
                filled.extend(of_file);
                let named = self.named_file(file, &state, &names);
                match named {
                    Ok(named) => commit.add.extend(named),
                    Err(error) => {
                        self.block_on(self.discard(&commit.add));
                        return Err(error);
                    }
                }
                commit.remove.push(file.path.clone());
            }
        }
        let (all, named) = (asked.len() as u64, filled.len() as u64);
        let symbolized = Symbolized { named, unknown: all - named, files: commit.remove.len() as u64 };
        if !commit.remove.is_empty() {
            self.commit_names(&commit)?;
        }
        Ok(symbolized)
    }

    fn commit_names(&self, commit: &Commit) -> Result<(), Error> {
        let mut is_current = false;
        let intend = async |now: &LakeState| {
            is_current = commit.remove.iter().all(|path| now.files.contains_key(path));
            Ok(if is_current { Intent::Commit(commit.clone()) } else { Intent::Nothing })
        };
        self.block_on(self.journal.transact(intend))?;
        if is_current {
            return Ok(());
        }
        self.block_on(self.discard(&commit.add));
        let error = Error::lake(format!("{}: other programs replaced files meanwhile", self.place));
        Err(error.with_hint("run the command again"))
    }

    /// The frames without names or lines in a file of stacks.
    fn lacking_frames(&self, file: &DataFile, state: &LakeState) -> Result<BTreeSet<LackingFrame>, Error> {
        let context = self.context_of(&only(file, state), Some(SORT_BYTES))?;
        let mut lacking = BTreeSet::new();
        self.block_on(async {
            let mut stream = context.sql("SELECT stack, frames FROM stacks").await?.execute_stream().await?;
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                let frames = FrameRows::new(batch.column(0), batch.column(1))?;
                lacking.extend((0..frames.count()).filter_map(|row| frames.lacking(row)));
            }
            Ok::<_, Error>(())
        })?;
        Ok(lacking)
    }

    /// The stacks of a file, with names, in new files.
    fn named_file(
        &self,
        file: &DataFile,
        state: &LakeState,
        names: &FoundNames,
    ) -> Result<Vec<DataFile>, Error> {
        let context = self.context_of(&only(file, state), Some(SORT_BYTES))?;
        let group: CompactionGroup = (LakeTable::Stacks, None, None);
        let sql = sorted_where(LakeTable::Stacks, "true", None);
        let written = self.rewrite_as(&context, &group, &sql, |batch| named_batch(&batch, names))?;
        let described =
            |new: DataFile| DataFile { named: true, repeats: file.repeats, added_us: file.added_us, ..new };
        Ok(written.into_iter().map(described).collect())
    }
}

/// The state with one of its files only.
fn only(file: &DataFile, state: &LakeState) -> LakeState {
    let file = DataFile { repeats: false, ..file.clone() };
    LakeState { version: state.version, files: [(file.path.clone(), file)].into(), ..LakeState::default() }
}

/// The frames of a batch of stacks, end to end.
struct FrameRows {
    names: StringViewArray,
    module: StringViewArray,
    build_id: StringViewArray,
    file_offset: Int64Array,
    line: Int64Array,
}

impl FrameRows {
    fn new(names: &ArrayRef, frames: &ArrayRef) -> Result<Self, Error> {
        let (names, frames) = (names.as_list::<i32>(), frames.as_list::<i32>());
        let details = frames.values().as_struct();
        if names.offsets() != frames.offsets() {
            return Err(Error::lake("stacks with more or fewer frames than names"));
        }
        let text = |column: &ArrayRef| -> Result<StringViewArray, Error> {
            Ok(cast(column, &DataType::Utf8View).map_err(invalid)?.as_string_view().clone())
        };
        let of = |name: &str| details.column_by_name(name).ok_or_else(|| Error::lake("missing column"));
        Ok(Self {
            names: text(names.values())?,
            module: text(of("module")?)?,
            build_id: text(of("build_id")?)?,
            file_offset: of("file_offset")?.as_primitive::<Int64Type>().clone(),
            line: of("line")?.as_primitive::<Int64Type>().clone(),
        })
    }

    fn count(&self) -> usize {
        self.names.len()
    }

    /// A frame without a name or a line, if its place is known.
    fn lacking(&self, row: usize) -> Option<LackingFrame> {
        let is_placed =
            !self.module.is_null(row) && !self.build_id.is_null(row) && !self.file_offset.is_null(row);
        let file_offset = is_placed.then(|| u64::try_from(self.file_offset.value(row)).ok()).flatten()?;
        let (path, build_id) = (self.module.value(row), self.build_id.value(row));
        let name = self.names.value(row);
        let has_name = !is_unnamed(name, path, build_id, file_offset);
        let has_line = !self.line.is_null(row) && self.line.value(row) > 0;
        if has_name && has_line {
            return None;
        }
        let (path, build_id) = (path.to_owned(), build_id.to_owned());
        let code = UnnamedCode { path, build_id, file_offset };
        Some(LackingFrame { code, function: has_name.then(|| name.to_owned()) })
    }
}

fn invalid(error: datafusion::arrow::error::ArrowError) -> Error {
    Error::lake(error.to_string())
}

/// A batch of stacks with names. Code of inlined functions becomes several frames.
fn named_batch(batch: &RecordBatch, names: &FoundNames) -> Result<RecordBatch, Error> {
    let [ids, stacks, frames] = batch.columns() else { return Err(Error::lake("not a batch of stacks")) };
    let rows = FrameRows::new(stacks, frames)?;
    let lists = frames.as_list::<i32>();
    let mut new = NewFrames { of: Vec::new(), found: Vec::new() };
    let mut lengths = Vec::with_capacity(batch.num_rows());
    for ends in lists.value_offsets().windows(2) {
        let before = new.of.len();
        let [from, to] = [ends[0], ends[1]].map(|end| usize::try_from(end).unwrap_or(0));
        for row in from..to {
            match rows.lacking(row).and_then(|frame| frame.found_in(names)) {
                Some(FoundFrame::Functions(found)) => {
                    found.iter().for_each(|name| new.push(row, Some((name, FrameFill::All))));
                }
                Some(FoundFrame::Line(found)) => new.push(row, Some((found, FrameFill::Line))),
                None => new.push(row, None),
            }
        }
        lengths.push(new.of.len() - before);
    }
    let offsets = OffsetBuffer::from_lengths(lengths);
    let functions = new.texts(&rows.names, |found, was| match found {
        (name, FrameFill::All) => Some(&name.function),
        (_, FrameFill::Line) => was,
    });
    let details = new.details(lists.values().as_struct())?;
    let item = Arc::new(Field::new("item", details.data_type().clone(), true));
    let stacks = ListArray::new(names_item(), offsets.clone(), Arc::new(functions), stacks.nulls().cloned());
    let frames = ListArray::new(item, offsets, Arc::new(details), frames.nulls().cloned());
    Ok(LakeTable::Stacks.batch(vec![Arc::clone(ids), Arc::new(stacks), Arc::new(frames)]))
}

/// The part of a frame that was found.
#[derive(Clone, Copy)]
enum FrameFill {
    All,
    Line,
}

/// Frames in the place of others: for each, the row of the old one, and what was found of it.
struct NewFrames<'n> {
    of: Vec<usize>,
    found: Vec<Option<(&'n NamedCode, FrameFill)>>,
}

impl<'n> NewFrames<'n> {
    fn push(&mut self, row: usize, found: Option<(&'n NamedCode, FrameFill)>) {
        self.of.push(row);
        self.found.push(found);
    }

    /// A column of texts; `text` returns those of frames of which something was found, given the old ones.
    fn texts<'o>(
        &'o self,
        old: &'o StringViewArray,
        text: impl Fn((&'n NamedCode, FrameFill), Option<&'o str>) -> Option<&'o str>,
    ) -> StringViewArray {
        let rows = self.of.iter().zip(&self.found);
        rows.map(|(&row, &found)| {
            let was = (!old.is_null(row)).then(|| old.value(row));
            found.map_or(was, |found| text(found, was))
        })
        .collect()
    }

    fn details(&self, old: &StructArray) -> Result<StructArray, Error> {
        let rows: Result<Vec<u32>, _> = self.of.iter().map(|&row| u32::try_from(row)).collect();
        let rows = UInt32Array::from(rows.map_err(|_| Error::lake("too many frames"))?);
        let fields = frame_fields();
        let columns = fields.iter().map(|field| {
            let column = old.column_by_name(field.name()).ok_or_else(|| Error::lake("missing column"))?;
            let column = cast(column, field.data_type()).map_err(invalid)?;
            Ok(match field.name().as_str() {
                "file" => Arc::new(self.texts(column.as_string_view(), |found, was| match found {
                    (name, FrameFill::All) => name.file.as_deref(),
                    (name, FrameFill::Line) => name.file.as_deref().or(was),
                })) as ArrayRef,
                "line" => self.numbers(column.as_primitive(), |(name, _)| name.line.map(i64::from)),
                // The distance from the start of the symbol, which is not known.
                "offset" => self.numbers(column.as_primitive(), |_| None),
                _ => take(&column, &rows, None).map_err(invalid)?,
            })
        });
        let columns = columns.collect::<Result<Vec<_>, Error>>()?;
        Ok(StructArray::new(fields.clone(), columns, None))
    }

    /// A column of numbers; `number` returns those of frames of which something was found.
    fn numbers(
        &self,
        old: &Int64Array,
        number: impl Fn((&'n NamedCode, FrameFill)) -> Option<i64>,
    ) -> ArrayRef {
        let numbers = self.of.iter().zip(&self.found).map(|(&row, found)| match found {
            Some(found) => number(*found),
            None => (!old.is_null(row)).then(|| old.value(row)),
        });
        Arc::new(numbers.collect::<Int64Array>())
    }
}
