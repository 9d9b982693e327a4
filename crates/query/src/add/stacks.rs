//! The stacks of an input, and which of them are new to a lake.

use std::sync::Arc;

use borehole_model::text::escape;
use borehole_model::{Frame, FrameId, StackId, Tables};
use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema};
use hashbrown::{HashMap, HashSet};

use super::files::{FileWriter, Partition};
use super::words::{NO_WORD, Word, Words};
use crate::ids::{self, Id, Ids};
use crate::journal::{DataFile, State};
use crate::tables::{Table, frame_fields};
use crate::{Error, Lake};

/// Frames per row group of stacks.
const GROUP_FRAMES: usize = 1 << 19;

/// The stacks of samples.
#[derive(Debug)]
pub(super) struct StackRows<'i> {
    ids: &'i mut Ids,
    seen: Vec<bool>,
    stacks: Vec<(Id, StackId)>,
    /// The file of the stacks that were new when it was written.
    written: Option<(Vec<Id>, Option<DataFile>)>,
}

impl<'i> StackRows<'i> {
    pub(super) const fn new(ids: &'i mut Ids) -> Self {
        Self { ids, seen: Vec::new(), stacks: Vec::new(), written: None }
    }

    /// The id of a sampled stack.
    #[inline]
    pub(super) fn id(&mut self, stack: StackId, tables: &Tables) -> Id {
        let id = self.ids.of(stack, tables);
        if self.seen.len() <= stack.index() {
            self.seen.resize(tables.stack_count().max(stack.index() + 1), false);
        }
        if !std::mem::replace(&mut self.seen[stack.index()], true) {
            self.stacks.push((id, stack));
        }
        id
    }

    /// Writes a file of the stacks that are not in the given state of the lake; `None` if all are.
    pub(super) async fn file_beside(
        &mut self,
        state: &State,
        lake: &Lake,
        tables: &Tables,
    ) -> Result<Option<DataFile>, Error> {
        let mine: HashSet<Id> = self.stacks.iter().map(|&(id, _)| id).collect();
        let known = lake.known_of(&mine, state).await?;
        let mut new: Vec<_> = self.stacks.iter().filter(|(id, _)| !known.contains(id)).copied().collect();
        new.sort_unstable_by_key(|&(id, _)| id);
        new.dedup_by_key(|&mut (id, _)| id);
        let ids: Vec<Id> = new.iter().map(|&(id, _)| id).collect();
        if let Some((written, file)) = &self.written {
            if *written == ids {
                return Ok(file.clone());
            }
            if let Some(file) = file {
                lake.place().delete(&file.path).await?;
            }
        }
        let file = if new.is_empty() { None } else { Some(write(&mut new, lake, tables).await?) };
        self.written = Some((ids, file.clone()));
        Ok(file)
    }
}

/// Writes a file of stacks, in which stacks with the same callers are adjacent.
async fn write(stacks: &mut [(Id, StackId)], lake: &Lake, tables: &Tables) -> Result<DataFile, Error> {
    // Preorder of the call tree: callers come before what they call, so this is nearly the order of ids.
    stacks.sort_by_key(|&(_, stack)| stack);
    let mut writer = None;
    let written = write_groups(stacks, lake, tables, &mut writer).await;
    match (written, writer) {
        (Ok(()), writer) => writer.expect("there are stacks").finish(lake.place()).await,
        (Err(error), None) => Err(error),
        (Err(error), Some(writer)) => {
            writer.abandon().await;
            Err(error)
        }
    }
}

async fn write_groups(
    stacks: &[(Id, StackId)],
    lake: &Lake,
    tables: &Tables,
    writer: &mut Option<FileWriter>,
) -> Result<(), Error> {
    let mut known = KnownFrames::default();
    let mut rest = stacks;
    while !rest.is_empty() {
        let mut frames = 0;
        let end = rest.iter().position(|&(_, stack)| {
            frames += tables.depth(stack) as usize;
            frames > GROUP_FRAMES
        });
        let (group, others) = rest.split_at(end.unwrap_or(rest.len()).max(1));
        let batch = batch(group, tables, &mut known);
        let writer = match &mut *writer {
            Some(writer) => writer,
            none => none.insert(FileWriter::new(lake.place(), Table::Stacks, &Partition::default(), &batch)?),
        };
        writer.write(&batch, lake.place()).await?;
        rest = others;
    }
    Ok(())
}

/// A frame as cells of its columns.
#[derive(Clone, Copy)]
struct FrameCells {
    function: Word,
    file: Word,
    line: Option<i64>,
    end_line: Option<i64>,
    column: Option<i64>,
    end_column: Option<i64>,
    opcode: Word,
    namespace: Word,
    class: Word,
    method: Word,
    module: Word,
    offset: Option<i64>,
}

impl FrameCells {
    fn new(frame: &Frame, tables: &Tables, words: &mut Words) -> Self {
        let mut text = |text| words.word(&escape(tables.string(text)));
        let Frame { function, parts, file, line, end_line, column, end_column, opcode, native } = *frame;
        Self {
            function: text(function),
            file: file.map_or(NO_WORD, &mut text),
            line,
            end_line,
            column: column.map(i64::from),
            end_column: end_column.map(i64::from),
            opcode: opcode.map_or(NO_WORD, &mut text),
            namespace: parts.map_or(NO_WORD, |parts| text(parts.namespace)),
            class: parts.map_or(NO_WORD, |parts| text(parts.class)),
            method: parts.map_or(NO_WORD, |parts| text(parts.method)),
            module: native.map_or(NO_WORD, |native| text(native.module)),
            offset: native.and_then(|native| native.offset),
        }
    }
}

/// Frames and their texts, each converted once.
#[derive(Default)]
struct KnownFrames {
    words: Words,
    rows: HashMap<FrameId, u32>,
    cells: Vec<FrameCells>,
}

impl KnownFrames {
    /// The row of a frame in `cells`.
    fn row(&mut self, frame: FrameId, tables: &Tables) -> u32 {
        let Self { words, rows, cells } = self;
        *rows.entry(frame).or_insert_with(|| {
            cells.push(FrameCells::new(&tables.frame(frame), tables, words));
            u32::try_from(cells.len() - 1).expect("there are fewer frames than their ids have numbers for")
        })
    }

    /// The names of the frames in `rows`, and their other columns in the order of [`frame_fields`].
    fn arrays(&mut self, rows: &[u32]) -> (ArrayRef, Vec<ArrayRef>) {
        let Self { words, cells, .. } = self;
        let frames = || rows.iter().map(|&row| &cells[row as usize]);
        let mut texts = |of: fn(&FrameCells) -> Word| words.column(frames().map(of));
        let names = texts(|frame| frame.function);
        let [file, opcode] = [texts(|frame| frame.file), texts(|frame| frame.opcode)];
        let [namespace, class, method] =
            [texts(|frame| frame.namespace), texts(|frame| frame.class), texts(|frame| frame.method)];
        let module = texts(|frame| frame.module);
        let ints = |of: fn(&FrameCells) -> Option<i64>| -> ArrayRef {
            Arc::new(frames().map(of).collect::<Int64Array>())
        };
        let details = vec![
            file,
            ints(|frame| frame.line),
            ints(|frame| frame.end_line),
            ints(|frame| frame.column),
            ints(|frame| frame.end_column),
            opcode,
            namespace,
            class,
            method,
            module,
            ints(|frame| frame.offset),
        ];
        (names, details)
    }
}

fn batch(stacks: &[(Id, StackId)], tables: &Tables, known: &mut KnownFrames) -> RecordBatch {
    let mut rows = Vec::new();
    for &(_, stack) in stacks {
        let from = rows.len();
        rows.extend(tables.frames_leaf_first(Some(stack)).map(|frame| known.row(frame, tables)));
        rows[from..].reverse();
    }
    let offsets = OffsetBuffer::from_lengths(stacks.iter().map(|&(_, stack)| tables.depth(stack) as usize));
    let (names, details) = known.arrays(&rows);
    let fields: Fields = frame_fields()
        .iter()
        .zip(&details)
        .map(|(field, array)| Field::new(field.name(), array.data_type().clone(), true))
        .collect();
    let details: ArrayRef = Arc::new(StructArray::new(fields, details, None));
    let list = |items: ArrayRef| -> ArrayRef {
        let item = Arc::new(Field::new("item", items.data_type().clone(), true));
        Arc::new(ListArray::new(item, offsets.clone(), items, None))
    };
    let arrays = vec![ids::array(stacks.iter().map(|&(id, _)| Some(id))), list(names), list(details)];
    let fields = Table::Stacks.description().columns.iter().zip(&arrays);
    let fields = fields.map(|(column, array): (_, &ArrayRef)| -> Field {
        let data_type: DataType = array.data_type().clone();
        Field::new(column.name, data_type, true)
    });
    RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), arrays)
        .expect("columns of one length")
}
