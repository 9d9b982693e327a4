//! Frames and stacks as the format displays them: those that differ only in data that it cannot hold are one.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::{self, Write};
use std::num::NonZeroU32;

use borehole_model::{Column, Frame, FrameId, StackColumn, StackId, StringId, Tables};
use hashbrown::HashMap;

use crate::Losses;
use crate::documents::json_stream::JsonStream;

/// The frames of a document, numbered in the order of first use.
#[derive(Debug)]
pub(super) struct FrameList<'t> {
    tables: &'t Tables,
    /// By frame: its number in the document plus one, 0 if it has none.
    column: Vec<u64>,
    shown: Vec<ShownFrame>,
    index: HashMap<ShownFrame, u64>,
    losses: Losses,
}

/// The parts of a frame that the format holds. Frames that differ only in others (an opcode) are one frame there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ShownFrame {
    name: StringId,
    file: Option<StringId>,
    line: Option<i64>,
    column: Option<u32>,
}

impl ShownFrame {
    fn of(frame: &Frame) -> Self {
        Self {
            name: frame.function,
            // For native code without a known source, the library takes the place of the file.
            file: frame.file.or(frame.native.map(|native| native.module)),
            line: frame.line.filter(|&line| line != -1),
            column: frame.column,
        }
    }
}

impl<'t> FrameList<'t> {
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

    fn add(&mut self, id: FrameId) {
        if self.column[id.index()] != 0 {
            return;
        }
        let frame = self.tables.frame(id);
        let shown = ShownFrame::of(&frame);
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

/// The stacks of samples, numbered by their displayed form.
#[derive(Debug, Default)]
pub(super) struct ShownStacks {
    /// The first stack of each form.
    pub(super) stacks: Vec<StackId>,
    /// By stack: the place of its form among these, 1-based.
    places: Column<NonZeroU32>,
    /// By the number of the form: its place.
    form_places: Column<NonZeroU32>,
    /// The forms of these stacks and of their callers.
    forms: StackColumn<NonZeroU32>,
    /// By the form of the caller and that of the frame.
    form_index: HashMap<(Option<NonZeroU32>, NonZeroU32), NonZeroU32>,
    frames: ShownFrames,
}

/// Numbers frames by their displayed form.
#[derive(Debug, Default)]
struct ShownFrames {
    numbers: Column<NonZeroU32>,
    index: HashMap<ShownFrame, NonZeroU32>,
}

impl ShownStacks {
    /// The place of a stack, shared by all stacks of equal displayed form.
    #[inline]
    pub(super) fn place(&mut self, stack: StackId, tables: &Tables) -> NonZeroU32 {
        self.places.get(stack.index()).unwrap_or_else(|| self.new_place(stack, tables))
    }

    #[cold]
    fn new_place(&mut self, stack: StackId, tables: &Tables) -> NonZeroU32 {
        let form = self.form(stack, tables).get() as usize;
        let place = self.form_places.get(form).unwrap_or_else(|| {
            let place = next_number(self.stacks.len());
            self.stacks.push(stack);
            self.form_places.set(form, place)
        });
        self.places.set(stack.index(), place)
    }

    fn form(&mut self, stack: StackId, tables: &Tables) -> NonZeroU32 {
        let Self { forms, form_index, frames, .. } = self;
        let Ok(form) = forms.derive(stack, tables, |caller, stack| {
            let frame = frames.number(tables.leaf(stack), tables);
            let fresh = next_number(form_index.len());
            Ok::<_, Infallible>(*form_index.entry((caller, frame)).or_insert(fresh))
        });
        form
    }
}

impl ShownFrames {
    fn number(&mut self, frame: FrameId, tables: &Tables) -> NonZeroU32 {
        self.numbers.get(frame.index()).unwrap_or_else(|| {
            let fresh = next_number(self.index.len());
            let number = *self.index.entry(ShownFrame::of(&tables.frame(frame))).or_insert(fresh);
            self.numbers.set(frame.index(), number)
        })
    }
}

fn next_number(len: usize) -> NonZeroU32 {
    let number = u32::try_from(len).ok().and_then(|len| NonZeroU32::MIN.checked_add(len));
    number.expect("there are as many rows as ids at most")
}

/// The handling of bytes in names that are not UTF-8, which JSON cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Utf8Errors {
    /// Omit them.
    #[default]
    Ignore,
    /// Replace them by U+FFFD.
    Substitute,
    /// Fail.
    Fail,
}

impl Utf8Errors {
    /// Converts `bytes` to text.
    ///
    /// # Errors
    /// If they are not UTF-8 and [`Fail`](Self::Fail) is chosen.
    pub(super) fn text(self, bytes: &[u8]) -> io::Result<Cow<'_, str>> {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => return Ok(Cow::Borrowed(text)),
            Err(error) => error,
        };
        match self {
            Self::Ignore => Ok(bytes.utf8_chunks().map(|chunk| chunk.valid()).collect::<String>().into()),
            Self::Substitute => Ok(String::from_utf8_lossy(bytes)),
            Self::Fail => {
                let name = String::from_utf8_lossy(bytes);
                let at = error.valid_up_to();
                let message =
                    format!("invalid name {name:?}: expected UTF-8, found other bytes, at byte {at}");
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_outside_utf8_are_left_out_replaced_or_refused() {
        let bytes = b"caf\xe9 \xf0\x9f";
        assert_eq!(Utf8Errors::Ignore.text(bytes).unwrap(), "caf ");
        assert_eq!(Utf8Errors::Substitute.text(bytes).unwrap(), "caf\u{fffd} \u{fffd}");
        let error = Utf8Errors::Fail.text(bytes).unwrap_err();
        let text = "invalid name \"caf\u{fffd} \u{fffd}\": expected UTF-8, found other bytes, at byte 3";
        assert_eq!(error.to_string(), text);
    }
}
