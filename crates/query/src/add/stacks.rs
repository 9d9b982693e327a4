//! The stacks of inputs, and the files of them.

use std::sync::Arc;

use borehole_model::{Frame, FrameId, StackId, StatedModules, Tables};
use borehole_text::lossless::escape;
use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{Field, Fields};
use hashbrown::HashMap;

use super::files::{FileWriter, Partition};
use super::words::{ColumnWords, NO_WORD, Word};
use crate::code::FrameCode;
use crate::ids::{self, LakeStackId, StackIds};
use crate::journal::DataFile;
use crate::tables::{LakeTable, frame_fields};
use crate::{Error, Lake};

/// Frames per row group of stacks.
const GROUP_FRAMES: usize = 1 << 19;

#[derive(Debug)]
pub(super) struct InputStacks<'i> {
    ids: &'i mut StackIds,
    seen: Vec<bool>,
    modules: Arc<StatedModules>,
    /// The stacks of the input.
    pub(super) stacks: Vec<InputStack>,
    /// Whether frames are native.
    pub(super) has_native: bool,
}

/// A stack of an input.
#[derive(Clone, Debug)]
pub(super) struct InputStack {
    pub(super) id: LakeStackId,
    pub(super) stack: StackId,
    /// The files that its native frames are in.
    modules: Arc<StatedModules>,
}

impl<'i> InputStacks<'i> {
    pub(super) fn new(ids: &'i mut StackIds, modules: &StatedModules) -> Self {
        let modules = ids.state(modules);
        Self { ids, seen: Vec::new(), modules, stacks: Vec::new(), has_native: false }
    }

    /// Sets the files that native frames of the following stacks are in.
    pub(super) fn state(&mut self, modules: &StatedModules) {
        self.modules = self.ids.state(modules);
        self.seen.clear();
    }

    /// The stacks, each once.
    pub(super) fn distinct(mut self) -> Vec<InputStack> {
        self.stacks.sort_unstable_by_key(|stack| (stack.id, stack.stack));
        self.stacks.dedup_by_key(|stack| stack.id);
        self.stacks
    }

    /// The id of a sampled stack.
    #[inline]
    pub(super) fn id(&mut self, stack: StackId, tables: &Tables) -> LakeStackId {
        let id = self.ids.of(stack, tables);
        if self.seen.len() <= stack.index() {
            self.seen.resize(tables.stack_count().max(stack.index() + 1), false);
        }
        if !std::mem::replace(&mut self.seen[stack.index()], true) {
            let is_native = |frame| tables.frame(frame).native.is_some();
            self.has_native = self.has_native || tables.frames_leaf_first(Some(stack)).any(is_native);
            self.stacks.push(InputStack { id, stack, modules: Arc::clone(&self.modules) });
        }
        id
    }
}

/// Writes a file of stacks, in which stacks with the same callers are adjacent.
pub(super) async fn write_stacks(
    stacks: &mut [InputStack],
    lake: &Lake,
    tables: &Tables,
) -> Result<DataFile, Error> {
    // This is the preorder of the call tree. Callers come before callees, so the stacks are nearly in the order of ids.
    stacks.sort_by_key(|stack| stack.stack);
    let mut writer = None;
    let written = write_groups(stacks, lake, tables, &mut writer).await;
    match (written, writer) {
        (Ok(()), writer) => {
            let file = writer.expect("there are stacks").finish(&lake.place).await?;
            Ok(DataFile { repeats: true, ..file })
        }
        (Err(error), None) => Err(error),
        (Err(error), Some(writer)) => {
            writer.abandon().await;
            Err(error)
        }
    }
}

async fn write_groups(
    stacks: &[InputStack],
    lake: &Lake,
    tables: &Tables,
    writer: &mut Option<FileWriter>,
) -> Result<(), Error> {
    let mut known = KnownFrames::default();
    let mut rest = stacks;
    while !rest.is_empty() {
        let mut frames = 0;
        let end = rest.iter().position(|stack| {
            frames += tables.depth(stack.stack) as usize;
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
    /// Function, file, opcode, namespace, class, method, module, build ID.
    texts: [Word; 8],
    /// Line, end line, column, end column, offset, offset in the file.
    ints: [Option<i64>; 6],
}

impl FrameCells {
    fn new(frame: &Frame, modules: &StatedModules, tables: &Tables, words: &mut ColumnWords) -> Self {
        let Frame { function, parts, file, line, end_line, column, end_column, opcode, native } = *frame;
        let [namespace, class, method] =
            parts.map_or([None; 3], |parts| [parts.namespace, parts.class, parts.method].map(Some));
        let module = native.map(|native| native.module);
        let texts = [Some(function), file, opcode, namespace, class, method, module];
        let [column, end_column] = [column, end_column].map(|column| column.map(i64::from));
        let code = FrameCode::of(frame, modules, tables);
        let mut word = |text: &str| words.word(&escape(text.as_bytes()));
        let build_id = code.as_ref().map_or(NO_WORD, |code| word(code.build_id));
        let name = code.as_ref().and_then(|code| code.name.as_ref()).map(|name| word(name));
        let path = code.as_ref().and_then(|code| code.path).map(word);
        let [of_function, file, opcode, namespace, class, method, of_file] =
            texts.map(|text| text.map_or(NO_WORD, |text| words.word(&escape(tables.string(text)))));
        let (function, module) = (name.unwrap_or(of_function), path.unwrap_or(of_file));
        let offset = native.and_then(|native| native.offset);
        Self {
            texts: [function, file, opcode, namespace, class, method, module, build_id],
            ints: [line, end_line, column, end_column, offset, code.and_then(|code| code.file_offset)],
        }
    }
}

/// Frames and their texts, each converted once.
#[derive(Default)]
struct KnownFrames {
    words: ColumnWords,
    /// By frame, and for native ones by the number of the files that they are in.
    rows: HashMap<(FrameId, usize), u32>,
    cells: Vec<FrameCells>,
    modules: Vec<Arc<StatedModules>>,
}

impl KnownFrames {
    /// The number of the files of a stack.
    fn module_number(&mut self, stack: &InputStack) -> usize {
        let known = self.modules.iter().rposition(|known| Arc::ptr_eq(known, &stack.modules));
        known.unwrap_or_else(|| {
            self.modules.push(Arc::clone(&stack.modules));
            self.modules.len() - 1
        })
    }

    /// The row of a frame in `cells`.
    fn row(&mut self, id: FrameId, modules: usize, tables: &Tables) -> u32 {
        let frame = tables.frame(id);
        let key = (id, if frame.native.is_some() { modules } else { 0 });
        let Self { words, rows, cells, modules: all } = self;
        *rows.entry(key).or_insert_with(|| {
            cells.push(FrameCells::new(&frame, &all[modules], tables, words));
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
        let [names, file, opcode, namespace, class, method, module, build_id] = texts;
        let [line, end_line, column, end_column, offset, file_offset] = ints;
        let details = [file, line, end_line, column, end_column, opcode, namespace, class, method, module];
        (names, details.into_iter().chain([offset, build_id, file_offset]).collect())
    }
}

fn batch(stacks: &[InputStack], tables: &Tables, known: &mut KnownFrames) -> RecordBatch {
    let mut rows = Vec::new();
    for input in stacks {
        let (from, modules) = (rows.len(), known.module_number(input));
        let frames = tables.frames_leaf_first(Some(input.stack));
        rows.extend(frames.map(|frame| known.row(frame, modules, tables)));
        rows[from..].reverse();
    }
    let depths = stacks.iter().map(|input| tables.depth(input.stack) as usize);
    let offsets = OffsetBuffer::from_lengths(depths);
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
    let ids = ids::array(stacks.iter().map(|input| Some(input.id)));
    LakeTable::Stacks.batch(vec![ids, list(names), list(details)])
}
