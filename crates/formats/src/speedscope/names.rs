//! The frames of a document: the displayed part of each, stored once.

use std::io::{self, Write};

use borehole_model::{Frame, StackId, StringId, Tables};
use hashbrown::HashMap;

use super::utf8::Utf8Errors;
use crate::Losses;
use crate::json_stream::JsonStream;

/// Frames numbered in the order of first use.
#[derive(Debug)]
pub(super) struct Names<'t> {
    tables: &'t Tables,
    /// By frame: its number in the document plus one, 0 if it has none.
    column: Vec<u64>,
    shown: Vec<Shown>,
    index: HashMap<Shown, u64>,
    losses: Losses,
}

/// The parts of a frame that the format holds. Frames that differ only in others (an opcode) are one frame there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shown {
    name: StringId,
    file: Option<StringId>,
    line: Option<i64>,
    column: Option<u32>,
}

impl Shown {
    pub(super) fn of(frame: &Frame) -> Self {
        Self {
            name: frame.function,
            // For native code without a known source, the library takes the place of the file.
            file: frame.file.or(frame.native.map(|native| native.module)),
            line: frame.line.filter(|&line| line != -1),
            column: frame.column,
        }
    }
}

impl<'t> Names<'t> {
    /// Collects the frames of `stacks`.
    pub(super) fn of_stacks(tables: &'t Tables, stacks: &[StackId]) -> Self {
        let mut names = Self {
            tables,
            column: vec![0; tables.frame_count()],
            shown: Vec::new(),
            index: HashMap::new(),
            losses: Losses::default(),
        };
        let mut seen = vec![false; tables.stack_count()];
        for &stack in stacks {
            let mut next = Some(stack);
            while let Some(stack) = next {
                if std::mem::replace(&mut seen[stack.index()], true) {
                    break;
                }
                names.add(tables.leaf(stack));
                next = tables.parent(stack);
            }
        }
        names
    }

    fn add(&mut self, id: borehole_model::FrameId) {
        if self.column[id.index()] != 0 {
            return;
        }
        let frame = self.tables.frame(id);
        let shown = Shown::of(&frame);
        let Self { shown: rows, index, .. } = self;
        self.column[id.index()] = *index.entry(shown).or_insert_with(|| {
            rows.push(shown);
            rows.len() as u64
        });
        let losses = &mut self.losses;
        losses.add("opcodes", u64::from(frame.opcode.is_some()));
        losses.add("ends of expressions", u64::from(frame.end_line.is_some() || frame.end_column.is_some()));
        losses.add(
            "offsets in native functions",
            u64::from(frame.native.is_some_and(|native| native.offset.is_some_and(|offset| offset != 0))),
        );
    }

    /// Puts the numbers of a stack's frames, root first, into `out`.
    pub(super) fn frames_root_first(&self, stack: Option<StackId>, out: &mut Vec<u64>) {
        out.clear();
        out.extend(self.tables.frames_leaf_first(stack).map(|frame| self.column[frame.index()] - 1));
        out.reverse();
    }

    /// Writes the array of frames, and returns its losses.
    pub(super) fn write<W: Write>(
        &mut self,
        output: &mut JsonStream<W>,
        utf8_errors: Utf8Errors,
    ) -> io::Result<Losses> {
        output.raw("[");
        for (index, shown) in self.shown.iter().enumerate() {
            let mut text = |id: StringId| {
                let bytes = self.tables.string(id);
                let invalid = std::str::from_utf8(bytes).is_err();
                self.losses.add("bytes outside UTF-8 (in names)", u64::from(invalid));
                utf8_errors.text(bytes)
            };
            output.raw(if index == 0 { "{\"name\":" } else { ",\n{\"name\":" }).string(&text(shown.name)?);
            if let Some(file) = shown.file {
                output.raw(",\"file\":").string(&text(file)?);
            }
            if let Some(line) = shown.line {
                output.raw(",\"line\":").signed(line.into());
            }
            if let Some(column) = shown.column {
                output.raw(",\"col\":").number(u64::from(column) + 1);
            }
            output.raw("}");
            output.spill()?;
        }
        output.raw("]");
        Ok(std::mem::take(&mut self.losses))
    }
}
