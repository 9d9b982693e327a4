//! Folded stacks: one line per stack, with the frames from the root to the leaf separated by semicolons, and a count.
//! The folded format consists of them, and flame graphs are drawn from them.
//!
//! Characters that would break a line are replaced: a semicolon in a name by a colon (like `stackcollapse-perf.pl`), a
//! tab or a line break by a space; other control characters are escaped. At the ends of a line, where readers trim and guess, an underscore replaces what they would
//! misread: white space at the end, the space before a last word that is a number (it would be a second count), `#`
//! before a space at the beginning (a comment).

use std::borrow::Cow;
use std::io::{self, Write};

use borehole_model::{Frame, FrameId, StackColumn, StringId, TableFull, Tables};
use borehole_text::{make_line, put_decimal};

use crate::frames::composed::ComposedBytes;
use crate::sums::stacks::StackCounts;

/// The form of frames in a folded stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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
    /// Names and adds up the stacks of `counts`. Names are cut after `longest` bytes.
    ///
    /// # Errors
    /// If a table is full, or memory does not suffice for the names.
    pub(crate) fn new(
        tables: &'a Tables,
        counts: &'a StackCounts,
        style: NameStyle,
        longest: usize,
    ) -> io::Result<Self> {
        let mut names = FrameNames::new(tables, style, longest);
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

    /// Counts stacks with fewer than `least` total samples, or with more than `depth` frames, as their callers.
    pub(crate) fn gather(&mut self, least: u64, depth: u32) {
        let gathered = self.counts.gathered(self.stacks(), least, depth);
        self.counts = Cow::Owned(gathered);
    }

    /// The tables of the stacks.
    fn stacks(&self) -> &Tables {
        if self.are_merged { &self.names.texts } else { self.tables }
    }

    /// The number of frames of the deepest stack.
    pub(crate) fn depth(&self) -> u32 {
        let stacks = self.counts.iter().filter_map(|(stack, _)| stack);
        stacks.map(|stack| self.stacks().depth(stack)).max().unwrap_or(0)
    }

    /// The total length of all lines, in bytes.
    pub(crate) fn text_bytes(&self) -> u64 {
        let stacks = self.stacks();
        let mut lengths: Vec<u64> = Vec::with_capacity(stacks.stack_count());
        for stack in stacks.stack_ids() {
            let callers = stacks.parent(stack).map_or(0, |caller| lengths[caller.index()]);
            let name = self.names.text(stacks.leaf(stack), self.are_merged);
            lengths.push(callers.saturating_add(name.len() as u64 + 1));
        }
        let lines = self.counts.iter().filter_map(|(stack, _)| stack);
        lines.fold(0, |sum: u64, stack| sum.saturating_add(lengths[stack.index()]))
    }

    /// Passes each stack to `write`, with its count.
    pub(crate) fn each<E>(
        &mut self,
        mut write: impl FnMut(&FoldedStack<'_>, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { tables, counts, names, are_merged, .. } = self;
        let stacks = if *are_merged { &names.texts } else { *tables };
        let mut stack = FoldedStack { names, leaf_first: Vec::new(), are_merged: *are_merged };
        for (id, count) in counts.iter() {
            stack.leaf_first.clear();
            stack.leaf_first.extend(stacks.frames_leaf_first(id));
            write(&stack, count)?;
        }
        Ok(())
    }

    /// Writes each line: the frames of the stack, a space and the count.
    ///
    /// # Errors
    /// If `output` cannot be written.
    pub(crate) fn write(&mut self, output: &mut impl Write) -> io::Result<()> {
        let (mut lines, mut replaced) = (Vec::new(), 0);
        self.each(|stack, count| {
            replaced += stack.put(&mut lines, |lines| hand_over(lines, output))?;
            lines.push(b' ');
            put_decimal(&mut lines, count);
            lines.push(b'\n');
            hand_over(&mut lines, output)
        })?;
        self.replaced += replaced;
        output.write_all(&lines)
    }

    /// The number of characters replaced so far, each distinct name counted once.
    pub(crate) const fn replaced(&self) -> u64 {
        self.replaced
    }
}

/// The number of bytes written at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Writes what has gathered, if it is enough. A line may be far longer than memory, so it is not gathered whole.
fn hand_over(lines: &mut Vec<u8>, output: &mut impl Write) -> io::Result<()> {
    if lines.len() >= CHUNK_BYTES {
        output.write_all(lines)?;
        lines.clear();
    }
    Ok(())
}

/// A stack of named frames.
pub(crate) struct FoldedStack<'a> {
    names: &'a FrameNames,
    /// Whether the frames are those of the names' tables.
    are_merged: bool,
    leaf_first: Vec<FrameId>,
}

impl FoldedStack<'_> {
    /// Appends the names from the root on, separated by semicolons and guarded at both ends, and returns the number of guarded
    /// ends. Calls `each` after each frame, which may take what is there.
    pub(crate) fn put<E>(
        &self,
        line: &mut Vec<u8>,
        mut each: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut replaced = 0;
        for (place, &frame) in self.leaf_first.iter().enumerate().rev() {
            let (is_root, is_leaf) = (place + 1 == self.leaf_first.len(), place == 0);
            if !is_root {
                line.push(b';');
            }
            let start = line.len();
            line.extend_from_slice(self.names.text(frame, self.are_merged));
            if is_leaf {
                replaced += guard_end(&mut line[start..]);
            }
            if is_root {
                replaced += guard_start(&mut line[start..], is_leaf);
            }
            each(line)?;
        }
        Ok(replaced)
    }
}

/// The names of frames.
pub(crate) struct FrameNames {
    style: NameStyle,
    /// The longest name, in bytes.
    longest: usize,
    /// The names and, if stacks have to be merged, frames and stacks that consist only of names.
    texts: Tables,
    frames: Vec<Option<StringId>>,
    named: usize,
    text: Vec<u8>,
    text_bytes: ComposedBytes,
    replaced: u64,
}

impl FrameNames {
    fn new(tables: &Tables, style: NameStyle, longest: usize) -> Self {
        let frames = vec![None; tables.frame_count()];
        let mut texts = Tables::default();
        if let Some(bytes) = tables.room_bytes() {
            texts.set_budget(bytes);
        }
        Self {
            style,
            longest,
            texts,
            frames,
            named: 0,
            text: Vec::new(),
            text_bytes: ComposedBytes::default(),
            replaced: 0,
        }
    }

    fn add(&mut self, tables: &Tables, frame: FrameId) -> io::Result<()> {
        if self.frames[frame.index()].is_none() {
            borehole_memory::check()?;
            self.text.clear();
            write_name(tables, &tables.frame(frame), self.style, &mut self.text);
            cut(&mut self.text, self.longest);
            self.replaced += make_line(&mut self.text, 0) + replace_separators(&mut self.text);
            self.text_bytes.add_text(&self.text, tables)?;
            self.frames[frame.index()] = Some(self.texts.intern_string(&self.text)?);
            self.named += 1;
        }
        Ok(())
    }

    /// The name of a frame, which is one of these tables or of those that were named.
    #[inline]
    fn text(&self, frame: FrameId, is_own: bool) -> &[u8] {
        let name = if is_own { Some(self.texts.function(frame)) } else { self.frames[frame.index()] };
        name.map_or(b"", |name| self.texts.string(name))
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

/// Cuts a name that is too long, and says so.
fn cut(name: &mut Vec<u8>, longest: usize) {
    if name.len() > longest {
        let is_boundary = |&end: &usize| name[end] & 0xc0 != 0x80;
        let end = (0..=longest).rev().find(is_boundary).unwrap_or(0);
        name.truncate(end);
        name.extend_from_slice("…".as_bytes());
    }
}

/// Replaces semicolons, which separate frames.
fn replace_separators(text: &mut [u8]) -> u64 {
    let separators = text.iter_mut().filter(|byte| **byte == b';');
    separators.map(|byte| *byte = b':').count() as u64
}

/// Protects the two ends of a line, to which a space and the count are added, from being misread.
pub(crate) fn guard_ends(line: &mut [u8]) -> u64 {
    guard_end(line) + guard_start(line, true)
}

/// Protects the end of a line, given its last name.
fn guard_end(leaf: &mut [u8]) -> u64 {
    let before_number = leaf.iter().rposition(|byte| !byte.is_ascii_digit() && *byte != b'.');
    match before_number {
        Some(at) if leaf[at].is_ascii_whitespace() => {
            leaf[at] = b'_';
            1
        }
        _ => 0,
    }
}

/// Protects the start of a line, given its first name, which may be the only one.
fn guard_start(root: &mut [u8], is_only: bool) -> u64 {
    let is_comment = root.starts_with(b"# ") || (is_only && root == b"#");
    if is_comment {
        root[0] = b'_';
    }
    is_comment.into()
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
            Frame {
                native: Some(NativeFrame { module, offset: Some(66), file_offset: None }),
                ..frame(tables, None, None)
            }
        });
        assert_eq!(name, "f libphp.so:0");
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        for (longest, expected) in [(4, "aäöü"[..3].to_owned() + "…"), (7, "aäöü".to_owned())] {
            let mut name = "aäöü".as_bytes().to_vec();
            cut(&mut name, longest);
            assert_eq!(name, expected.as_bytes());
        }
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
