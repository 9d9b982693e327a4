//! Folded stacks: one line per stack, with the frames from the root to the leaf separated by semicolons, and a count.
//! The folded format consists of them, and flame graphs are drawn from them.
//!
//! Characters that would break a line are replaced: a semicolon in a name by a colon (like `stackcollapse-perf.pl`), a
//! tab or a line break by a space; other control characters are escaped. At the ends of a line, where readers trim and guess, an underscore replaces what they would
//! misread: white space at the end, the space before a last word that is a number (it would be a second count), `#`
//! before a space at the beginning (a comment).

use std::borrow::Cow;

use borehole_model::{Frame, FrameId, StackColumn, StringId, TableFull, Tables};
use borehole_text::make_line;

use crate::sums::stacks::StackCounts;

/// The form of frames in a folded stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameStyle {
    /// `FUNCTION FILE:LINE`, with -1 for an unknown line; only the function if both file and line are unknown. The file
    /// of a native frame is its module.
    #[default]
    FunctionFileLine,
    /// The function alone, so that stacks that differ only in lines are merged.
    Function,
}

/// Stacks of named frames. Stacks with equal text are one stack.
pub(crate) struct FoldedLines<'a> {
    tables: &'a Tables,
    counts: Cow<'a, StackCounts>,
    names: FrameNames,
    /// Whether the stacks are those of the names' tables, because two frames share a name.
    are_merged: bool,
    replaced: u64,
}

impl<'a> FoldedLines<'a> {
    /// Names and adds up the stacks of `counts`.
    ///
    /// # Errors
    /// If a table is full.
    pub(crate) fn new(
        tables: &'a Tables,
        counts: &'a StackCounts,
        style: NameStyle,
    ) -> Result<Self, TableFull> {
        let mut names = FrameNames::new(tables, style);
        let mut seen = StackColumn::default();
        for stack in counts.iter().filter_map(|(stack, _)| stack) {
            seen.derive(stack, tables, |_, stack| names.add(tables, tables.leaf(stack)))?;
        }
        let are_merged = !names.are_distinct();
        let counts =
            if are_merged { Cow::Owned(names.merge(tables, counts)?) } else { Cow::Borrowed(counts) };
        let replaced = names.replaced;
        Ok(Self { tables, counts, names, are_merged, replaced })
    }

    /// Counts stacks with fewer than `least` total samples as their callers.
    pub(crate) fn gather(&mut self, least: u64) {
        let tables = if self.are_merged { &self.names.texts } else { self.tables };
        self.counts = Cow::Owned(self.counts.gathered(tables, least));
    }

    /// Passes each line to `write`: the frames of the stack, and the count.
    pub(crate) fn each<E>(&mut self, mut write: impl FnMut(&[u8], u64) -> Result<(), E>) -> Result<(), E> {
        let Self { tables, counts, names, are_merged, replaced } = self;
        let (mut path, mut line) = (Vec::new(), Vec::new());
        for (stack, count) in counts.iter() {
            line.clear();
            if *are_merged {
                let frames = names.texts.frames_leaf_first(stack);
                join(frames.map(|frame| names.texts.function(frame)), names, &mut path, &mut line);
            } else {
                let frames = tables.frames_leaf_first(stack);
                join(frames.filter_map(|frame| names.frames[frame.index()]), names, &mut path, &mut line);
            }
            *replaced += guard_ends(&mut line);
            write(&line, count)?;
        }
        Ok(())
    }

    /// The number of characters replaced so far, each distinct name counted once.
    pub(crate) const fn replaced(&self) -> u64 {
        self.replaced
    }
}

fn join(
    leaf_first: impl Iterator<Item = StringId>,
    names: &FrameNames,
    path: &mut Vec<StringId>,
    line: &mut Vec<u8>,
) {
    path.clear();
    path.extend(leaf_first);
    for (depth, &name) in path.iter().rev().enumerate() {
        if depth > 0 {
            line.push(b';');
        }
        line.extend_from_slice(names.texts.string(name));
    }
}

/// The names of frames.
struct FrameNames {
    style: NameStyle,
    /// The names and, if stacks have to be merged, frames and stacks that consist only of names.
    texts: Tables,
    frames: Vec<Option<StringId>>,
    named: usize,
    text: Vec<u8>,
    replaced: u64,
}

impl FrameNames {
    fn new(tables: &Tables, style: NameStyle) -> Self {
        let frames = vec![None; tables.frame_count()];
        Self { style, texts: Tables::default(), frames, named: 0, text: Vec::new(), replaced: 0 }
    }

    fn add(&mut self, tables: &Tables, frame: FrameId) -> Result<(), TableFull> {
        if self.frames[frame.index()].is_none() {
            self.text.clear();
            write_name(tables, &tables.frame(frame), self.style, &mut self.text);
            self.replaced += make_line(&mut self.text, 0) + replace_separators(&mut self.text);
            self.frames[frame.index()] = Some(self.texts.intern_string(&self.text)?);
            self.named += 1;
        }
        Ok(())
    }

    /// Whether all frames have different names, so that all stacks have different texts.
    const fn are_distinct(&self) -> bool {
        self.named == self.texts.string_count()
    }

    /// Adds up the stacks with equal text.
    fn merge(&mut self, tables: &Tables, counts: &StackCounts) -> Result<StackCounts, TableFull> {
        let mut merged = StackCounts::default();
        let mut stacks = StackColumn::default();
        for (stack, count) in counts.iter() {
            let mut of_names = |stack| {
                stacks.derive(stack, tables, |caller, stack| {
                    let frame = tables.leaf(stack);
                    let name = self.frames[frame.index()].expect("all frames have been named");
                    let frame = self.texts.intern_frame(&Frame::named(name))?;
                    self.texts.intern_stack(caller, frame)
                })
            };
            merged.add(stack.map(&mut of_names).transpose()?, count);
        }
        Ok(merged)
    }
}

fn write_name(tables: &Tables, frame: &Frame, style: NameStyle, text: &mut Vec<u8>) {
    text.extend_from_slice(tables.string(frame.function));
    let module = frame.native.map(|native| native.module);
    let file = frame.file.or(module);
    if style == NameStyle::Function || (file.is_none() && frame.line.is_none()) {
        return;
    }
    text.push(b' ');
    text.extend_from_slice(file.map_or(b"", |file| tables.string(file)));
    let unknown = if frame.file.is_none() && module.is_some() { 0 } else { -1 };
    text.push(b':');
    text.extend_from_slice(frame.line.unwrap_or(unknown).to_string().as_bytes());
}

/// Replaces semicolons, which separate frames.
fn replace_separators(text: &mut [u8]) -> u64 {
    let separators = text.iter_mut().filter(|byte| **byte == b';');
    separators.map(|byte| *byte = b':').count() as u64
}

/// Protects the two ends of a line, to which a space and the count are added, from being misread.
pub(crate) fn guard_ends(line: &mut [u8]) -> u64 {
    let mut replaced = 0;
    let before_number = line.iter().rposition(|byte| !byte.is_ascii_digit() && *byte != b'.');
    if let Some(at) = before_number
        && line[at].is_ascii_whitespace()
    {
        line[at] = b'_';
        replaced += 1;
    }
    if line.starts_with(b"# ") || line == b"#" {
        line[0] = b'_';
        replaced += 1;
    }
    replaced
}

#[cfg(test)]
mod tests {
    use borehole_model::NativeFrame;

    use super::*;

    fn named(style: NameStyle, make: impl Fn(&mut Tables) -> Frame) -> String {
        let mut tables = Tables::default();
        let frame = make(&mut tables);
        let mut text = Vec::new();
        write_name(&tables, &frame, style, &mut text);
        String::from_utf8(text).unwrap()
    }

    fn frame(tables: &mut Tables, file: Option<&str>, line: Option<i64>) -> Frame {
        let function = tables.intern_string(b"f").unwrap();
        let file = file.map(|file| tables.intern_string(file.as_bytes()).unwrap());
        Frame { file, line, ..Frame::named(function) }
    }

    #[test]
    fn a_frame_is_function_file_and_line() {
        let name = |file, line| named(NameStyle::FunctionFileLine, |tables| frame(tables, file, line));
        assert_eq!(name(Some("/a.php"), Some(3)), "f /a.php:3");
        assert_eq!(name(Some("<internal>"), None), "f <internal>:-1");
        assert_eq!(name(Some(""), Some(0)), "f :0");
        assert_eq!(name(None, Some(7)), "f :7");
        assert_eq!(name(None, None), "f");
    }

    #[test]
    fn a_frame_can_be_its_function_only() {
        assert_eq!(named(NameStyle::Function, |tables| frame(tables, Some("/a.php"), Some(3))), "f");
    }

    #[test]
    fn the_file_of_a_native_frame_is_its_module() {
        let name = named(NameStyle::FunctionFileLine, |tables| {
            let module = tables.intern_string(b"libphp.so").unwrap();
            Frame { native: Some(NativeFrame { module, offset: Some(66) }), ..frame(tables, None, None) }
        });
        assert_eq!(name, "f libphp.so:0");
    }

    #[test]
    fn separators_in_names_are_replaced() {
        let mut text = b"a;b;c".to_vec();
        assert_eq!(replace_separators(&mut text), 2);
        assert_eq!(text, b"a:b:c");
    }

    #[test]
    fn the_ends_of_a_line_are_guarded() {
        for (line, guarded) in [
            ("a;b 12", "a;b_12"),
            ("a;b 1.5", "a;b_1.5"),
            ("a;b ", "a;b_"),
            ("a;b\t", "a;b_"),
            ("# a", "_ a"),
            ("#", "_"),
            ("#a", "#a"),
            ("f /a.php:3", "f /a.php:3"),
            ("12", "12"),
            ("", ""),
        ] {
            let mut bytes = line.as_bytes().to_vec();
            let replaced = guard_ends(&mut bytes);
            assert_eq!((bytes.as_slice(), replaced), (guarded.as_bytes(), u64::from(line != guarded)));
        }
    }
}
