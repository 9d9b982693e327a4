//! The stacks of an input, and those of them that a lake does not know.

use std::sync::Arc;

use borehole_model::text::escape;
use borehole_model::{Frame, StackId, Tables};
use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema};
use hashbrown::HashSet;

use super::files::{FileWriter, Partition};
use super::words::{NO_WORD, Word, Words};
use crate::ids::{self, Id, Ids};
use crate::journal::{DataFile, State};
use crate::tables::{Table, frame_fields};
use crate::{Error, Lake};

/// Frames of stacks that are encoded together.
const GROUP_FRAMES: usize = 1 << 19;

/// The stacks of samples.
#[derive(Debug, Default)]
pub(super) struct StackRows {
    ids: Ids,
    seen: Vec<bool>,
    stacks: Vec<(Id, StackId)>,
    /// The file of those that were new when it was written.
    written: Option<(Vec<Id>, Option<DataFile>)>,
}

impl StackRows {
    /// The id of a stack that is sampled.
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

    /// A file of the stacks that the lake in this state does not know; `None` if it knows all.
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

/// Writes stacks so that those with the same callers stand together.
async fn write(stacks: &mut [(Id, StackId)], lake: &Lake, tables: &Tables) -> Result<DataFile, Error> {
    // Preorder of the tree of callers: parents come before their children, so this is nearly that of the ids.
    stacks.sort_by_key(|&(_, stack)| stack);
    let mut words = Words::default();
    let mut writer: Option<FileWriter> = None;
    let mut rest = &*stacks;
    while !rest.is_empty() {
        let mut frames = 0;
        let end = rest.iter().position(|&(_, stack)| {
            frames += tables.depth(stack) as usize;
            frames > GROUP_FRAMES
        });
        let (group, others) = rest.split_at(end.unwrap_or(rest.len()).max(1));
        let batch = batch(group, tables, &mut words);
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(FileWriter::new(lake.place(), Table::Stacks, &Partition::default(), &batch)?),
        };
        writer.write(&batch, lake.place()).await?;
        rest = others;
    }
    writer.expect("there are stacks").finish(lake.place()).await
}

/// Columns of frames.
#[derive(Default)]
struct FrameColumns {
    function: Vec<Word>,
    file: Vec<Word>,
    line: Vec<Option<i64>>,
    end_line: Vec<Option<i64>>,
    column: Vec<Option<i64>>,
    end_column: Vec<Option<i64>>,
    opcode: Vec<Word>,
    namespace: Vec<Word>,
    class: Vec<Word>,
    method: Vec<Word>,
    module: Vec<Word>,
    offset: Vec<Option<i64>>,
}

impl FrameColumns {
    fn push(&mut self, frame: &Frame, tables: &Tables, words: &mut Words) {
        let mut text = |text| words.word(&escape(tables.string(text)));
        let Frame { function, parts, file, line, end_line, column, end_column, opcode, native } = *frame;
        self.function.push(text(function));
        self.file.push(file.map_or(NO_WORD, &mut text));
        self.line.push(line);
        self.end_line.push(end_line);
        self.column.push(column.map(i64::from));
        self.end_column.push(end_column.map(i64::from));
        self.opcode.push(opcode.map_or(NO_WORD, &mut text));
        self.namespace.push(parts.map_or(NO_WORD, |parts| text(parts.namespace)));
        self.class.push(parts.map_or(NO_WORD, |parts| text(parts.class)));
        self.method.push(parts.map_or(NO_WORD, |parts| text(parts.method)));
        self.module.push(native.map_or(NO_WORD, |native| text(native.module)));
        self.offset.push(native.and_then(|native| native.offset));
    }

    /// Names, and all else in the order of [`frame_fields`].
    fn into_arrays(self, words: &mut Words) -> (ArrayRef, Vec<ArrayRef>) {
        let mut texts = |column: Vec<Word>| words.column(column.into_iter());
        let ints = |column: Vec<Option<i64>>| Arc::new(Int64Array::from(column)) as ArrayRef;
        let names = texts(self.function);
        let details = vec![
            texts(self.file),
            ints(self.line),
            ints(self.end_line),
            ints(self.column),
            ints(self.end_column),
            texts(self.opcode),
            texts(self.namespace),
            texts(self.class),
            texts(self.method),
            texts(self.module),
            ints(self.offset),
        ];
        (names, details)
    }
}

fn batch(stacks: &[(Id, StackId)], tables: &Tables, words: &mut Words) -> RecordBatch {
    let mut columns = FrameColumns::default();
    for &(_, stack) in stacks {
        let mut frames: Vec<_> = tables.frames_leaf_first(Some(stack)).collect();
        frames.reverse();
        frames.into_iter().for_each(|frame| columns.push(tables.frame(frame), tables, words));
    }
    let offsets = OffsetBuffer::from_lengths(stacks.iter().map(|&(_, stack)| tables.depth(stack) as usize));
    let (names, details) = columns.into_arrays(words);
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
