//! The stacks of an input, and which of them are new to a lake.

use std::sync::Arc;

use borehole_model::{Frame, FrameId, StackId, Tables};
use borehole_text::lossless::escape;
use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{Field, Fields};
use hashbrown::{HashMap, HashSet};

use super::files::{FileWriter, Partition};
use super::words::{ColumnWords, NO_WORD, Word};
use crate::ids::{self, LakeStackId, StackIds};
use crate::journal::{DataFile, LakeState};
use crate::tables::{LakeTable, frame_fields};
use crate::{Error, Lake};

/// Frames per row group of stacks.
const GROUP_FRAMES: usize = 1 << 19;

#[derive(Debug)]
pub(super) struct InputStacks<'i> {
    ids: &'i mut StackIds,
    seen: Vec<bool>,
    stacks: Vec<(LakeStackId, StackId)>,
    /// The ids that were new when the file was last written, and the file.
    written: Option<(Vec<LakeStackId>, Option<DataFile>)>,
}

impl<'i> InputStacks<'i> {
    pub(super) const fn new(ids: &'i mut StackIds) -> Self {
        Self { ids, seen: Vec::new(), stacks: Vec::new(), written: None }
    }

    /// The id of a sampled stack.
    #[inline]
    pub(super) fn id(&mut self, stack: StackId, tables: &Tables) -> LakeStackId {
        let id = self.ids.of(stack, tables);
        if self.seen.len() <= stack.index() {
            self.seen.resize(tables.stack_count().max(stack.index() + 1), false);
        }
        if !std::mem::replace(&mut self.seen[stack.index()], true) {
            self.stacks.push((id, stack));
        }
        id
    }

    /// Writes a file of the stacks that are not in the given state of the lake. Returns `None` if all are.
    pub(super) async fn file_beside(
        &mut self,
        state: &LakeState,
        lake: &Lake,
        tables: &Tables,
    ) -> Result<Option<DataFile>, Error> {
        let mine: HashSet<LakeStackId> = self.stacks.iter().map(|&(id, _)| id).collect();
        let known = lake.known_of(&mine, state).await?;
        let mut new: Vec<_> = self.stacks.iter().filter(|(id, _)| !known.contains(id)).copied().collect();
        new.sort_unstable_by_key(|&(id, _)| id);
        new.dedup_by_key(|&mut (id, _)| id);
        let ids: Vec<LakeStackId> = new.iter().map(|&(id, _)| id).collect();
        if let Some((written, file)) = &self.written {
            if *written == ids {
                return Ok(file.clone());
            }
            if let Some(file) = file {
                lake.place.delete(&file.path).await?;
            }
        }
        let file = if new.is_empty() { None } else { Some(write(&mut new, lake, tables).await?) };
        self.written = Some((ids, file.clone()));
        Ok(file)
    }
}

/// Writes a file of stacks, in which stacks with the same callers are adjacent.
async fn write(
    stacks: &mut [(LakeStackId, StackId)],
    lake: &Lake,
    tables: &Tables,
) -> Result<DataFile, Error> {
    // This is the preorder of the call tree. Callers come before callees, so the stacks are nearly in the order of ids.
    stacks.sort_by_key(|&(_, stack)| stack);
    let mut writer = None;
    let written = write_groups(stacks, lake, tables, &mut writer).await;
    match (written, writer) {
        (Ok(()), writer) => writer.expect("there are stacks").finish(&lake.place).await,
        (Err(error), None) => Err(error),
        (Err(error), Some(writer)) => {
            writer.abandon().await;
            Err(error)
        }
    }
}

async fn write_groups(
    stacks: &[(LakeStackId, StackId)],
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
            none => {
                none.insert(FileWriter::new(&lake.place, LakeTable::Stacks, &Partition::default(), &batch)?)
            }
        };
        writer.write(&batch, &lake.place).await?;
        rest = others;
    }
    Ok(())
}

/// A frame as cells of its columns.
#[derive(Clone, Copy)]
struct FrameCells {
    /// Function, file, opcode, namespace, class, method, module.
    texts: [Word; 7],
    /// Line, end line, column, end column, offset.
    ints: [Option<i64>; 5],
}

impl FrameCells {
    fn new(frame: &Frame, tables: &Tables, words: &mut ColumnWords) -> Self {
        let Frame { function, parts, file, line, end_line, column, end_column, opcode, native } = *frame;
        let [namespace, class, method] =
            parts.map_or([None; 3], |parts| [parts.namespace, parts.class, parts.method].map(Some));
        let module = native.map(|native| native.module);
        let texts = [Some(function), file, opcode, namespace, class, method, module];
        let [column, end_column] = [column, end_column].map(|column| column.map(i64::from));
        Self {
            texts: texts.map(|text| text.map_or(NO_WORD, |text| words.word(&escape(tables.string(text))))),
            ints: [line, end_line, column, end_column, native.and_then(|native| native.offset)],
        }
    }
}

/// Frames and their texts, each converted once.
#[derive(Default)]
struct KnownFrames {
    words: ColumnWords,
    rows: HashMap<FrameId, u32>,
    cells: Vec<FrameCells>,
}

impl KnownFrames {
    /// The row of a frame in `cells`.
    fn row(&mut self, frame: FrameId, tables: &Tables) -> u32 {
        let Self { words, rows, cells } = self;
        *rows.entry(frame).or_insert_with(|| {
            cells.push(FrameCells::new(&tables.frame(frame), tables, words));
            u32::try_from(cells.len() - 1).expect("frame ids have 32 bits")
        })
    }

    /// The names of the frames in `rows`, and their other columns in the order of [`frame_fields`].
    fn arrays(&mut self, rows: &[u32]) -> (ArrayRef, Vec<ArrayRef>) {
        let Self { words, cells, .. } = self;
        let frames = || rows.iter().map(|&row| &cells[row as usize]);
        let texts = std::array::from_fn(|place| words.column(frames().map(|frame| frame.texts[place])));
        let ints = std::array::from_fn(|place| -> ArrayRef {
            Arc::new(frames().map(|frame| frame.ints[place]).collect::<Int64Array>())
        });
        let [names, file, opcode, namespace, class, method, module] = texts;
        let [line, end_line, column, end_column, offset] = ints;
        let details =
            vec![file, line, end_line, column, end_column, opcode, namespace, class, method, module, offset];
        (names, details)
    }
}

fn batch(stacks: &[(LakeStackId, StackId)], tables: &Tables, known: &mut KnownFrames) -> RecordBatch {
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
    let ids = ids::array(stacks.iter().map(|&(id, _)| Some(id)));
    LakeTable::Stacks.batch(vec![ids, list(names), list(details)])
}
