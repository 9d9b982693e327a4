//! Threads and stacks as sorted lines of text.
//!
//! Two stacks are equal if their frames agree in file, function and line. Two lines may still have equal text, because it
//! contains only the last component of a file's path.

use std::cmp::Reverse;
use std::io::{self, Write};

use borehole_model::{Frame, FrameId, StackId, StringId, TableFull, Tables};
use borehole_text::{make_line, make_lines, put_decimal};
use hashbrown::HashMap;

use super::order::places;
use super::parts::LineParts;
use crate::frames::composed::ComposedBytes;
use crate::frames::profiler;
use crate::lines::folded::guard_ends;
use crate::sums::stacks::StackCounts;

/// The separator of frames.
pub(super) const SEPARATOR: u8 = b';';

/// The file of frames that are not Python functions.
const NO_FILE: &[u8] = b"~";

/// The number of bytes written at once.
const CHUNK_BYTES: usize = 64 << 10;

/// The longest line that is held whole, in bytes.
const LONGEST_HELD: usize = 1 << 20;

/// The lines of a profile.
pub(super) struct CollapsedLines<'a> {
    /// Stacks reduced to file, function and line, without the profiler's own frames.
    shapes: Renamed<'a>,
    names: LineNames,
    rows: Vec<CollapsedRow>,
    /// The number of samples without a frame to print.
    pub(super) empty: u64,
}

#[derive(Clone, Copy)]
struct CollapsedRow {
    count: u64,
    thread: Option<u64>,
    /// The stack, one of the shapes.
    stack: StackId,
}

impl<'a> CollapsedLines<'a> {
    /// Builds the lines of `counts`.
    ///
    /// # Errors
    /// If a table is full, or memory does not suffice.
    pub(super) fn of(counts: &Counts, tables: &'a Tables) -> io::Result<Self> {
        let frames = distinct(tables)?;
        let (shapes, names) = (Renamed::new(tables, &frames)?, LineNames::of(&frames, tables)?);
        let mut lines = Self { shapes, names, rows: Vec::new(), empty: 0 };
        lines.add(counts);
        lines.sort()?;
        Ok(lines)
    }

    fn add(&mut self, counts: &Counts) {
        let mut known = HashMap::new();
        for ((thread, stack), count) in counts.iter() {
            let Some(stack) = stack.and_then(|stack| self.shapes.stack(stack)) else {
                self.empty = self.empty.saturating_add(count);
                continue;
            };
            let next = self.rows.len();
            // Stacks that did not change have one count each.
            let row =
                if self.shapes.is_same() { next } else { *known.entry((thread, stack)).or_insert(next) };
            match self.rows.get_mut(row) {
                Some(row) => row.count = row.count.saturating_add(count),
                None => self.rows.push(CollapsedRow { count, thread, stack }),
            }
        }
    }

    /// Sorts the lines, the most frequent first and equally frequent ones by text.
    fn sort(&mut self) -> io::Result<()> {
        let threads = self.rows.iter().filter(|row| row.thread.is_some()).count();
        if !self.names.are_plain() || (threads > 0 && threads < self.rows.len()) {
            return self.sort_by_parts();
        }
        let Self { shapes, names, rows, .. } = self;
        let tree = Renamed::new(shapes.tree(), &names.frames)?;
        let at = |row: &CollapsedRow| tree.stack(row.stack).map_or(0, StackId::index);
        let mut is_line = vec![false; tree.tree().stack_count()];
        rows.iter().for_each(|row| is_line[at(row)] = true);
        let places = places(tree.tree(), names, &is_line);
        let threads = thread_ranks(rows);
        rows.sort_by_cached_key(|row| (Reverse(row.count), threads.get(&row.thread), places[at(row)]));
        Ok(())
    }

    /// Sorts the lines if names look like several frames, or may look like a thread, which is rare.
    fn sort_by_parts(&mut self) -> io::Result<()> {
        let Self { shapes, names, rows, .. } = self;
        let mut parts = LineParts::default();
        let mut paths = Vec::with_capacity(rows.len());
        for row in &*rows {
            let thread = (row.thread, &*row.thread.map(put_thread).unwrap_or_default());
            let path = parts.path(thread, row.stack, shapes.tree(), names)?;
            paths.push(path.map_or(0, StackId::index));
        }
        let parts = parts.into_names();
        let mut is_line = vec![false; parts.texts.stack_count()];
        paths.iter().for_each(|&path| is_line[path] = true);
        let places = places(&parts.texts, &parts, &is_line);
        let mut sorted: Vec<_> = std::mem::take(rows).into_iter().zip(paths).collect();
        sorted.sort_by_key(|(row, path)| (Reverse(row.count), places[*path]));
        rows.extend(sorted.into_iter().map(|(row, _)| row));
        Ok(())
    }

    /// The number of control characters replaced in names.
    pub(super) const fn replaced(&self) -> u64 {
        self.names.replaced
    }

    /// Writes all lines.
    ///
    /// # Errors
    /// If `output` cannot be written.
    pub(super) fn write(&self, output: &mut impl Write) -> io::Result<()> {
        let mut text = LineText::default();
        for row in &self.rows {
            text.put(row, self.shapes.tree(), &self.names, output)?;
            text.end(row.count);
            if text.bytes.len() >= CHUNK_BYTES {
                text.hand_over(output)?;
            }
        }
        text.hand_over(output)
    }
}

/// The order of threads by their printed form.
fn thread_ranks(rows: &[CollapsedRow]) -> HashMap<Option<u64>, usize> {
    let threads: HashMap<_, _> = rows.iter().map(|row| (row.thread, row.thread.map(put_thread))).collect();
    let mut threads: Vec<_> = threads.into_iter().collect();
    threads.sort_unstable_by(|left, right| left.1.cmp(&right.1));
    threads.into_iter().enumerate().map(|(rank, (thread, _))| (thread, rank)).collect()
}

fn put_thread(thread: u64) -> String {
    format!("tid:{thread};")
}

/// Consecutive lines, which mostly share their beginnings with the previous line.
#[derive(Default)]
struct LineText {
    bytes: Vec<u8>,
    /// The number of bytes written out.
    written: usize,
    /// The start of the last line, and its thread and stack.
    line: usize,
    thread: Option<u64>,
    path: Vec<StackId>,
    /// The length of the line up to the end of each frame, including its separator.
    lengths: Vec<usize>,
    new: Vec<StackId>,
}

impl LineText {
    /// Appends a line up to the separator after the last frame. The beginning of a very long line is written out before its end is
    /// there, and the next line begins anew.
    fn put(
        &mut self,
        row: &CollapsedRow,
        tree: &Tables,
        names: &LineNames,
        output: &mut impl Write,
    ) -> io::Result<()> {
        if row.thread != self.thread {
            self.path.clear();
        }
        let mut next = Some(row.stack);
        while let Some(stack) = next.filter(|&stack| !self.is_on_path(stack, tree)) {
            self.new.push(stack);
            next = tree.parent(stack);
        }
        self.path.truncate(next.map_or(0, |stack| tree.depth(stack) as usize));
        self.lengths.truncate(self.path.len());
        let before = std::mem::replace(&mut self.line, self.bytes.len());
        match self.lengths.last() {
            Some(&length) => {
                self.bytes.extend_from_within(before..before + length);
                // The shared part may be all of the last line, which ends in a count.
                self.bytes[self.line + length - 1] = SEPARATOR;
            }
            None => {
                self.thread = row.thread;
                self.bytes.extend(row.thread.map(put_thread).unwrap_or_default().bytes());
            }
        }
        while let Some(stack) = self.new.pop() {
            self.bytes.extend_from_slice(names.text(tree.leaf(stack)));
            self.path.push(stack);
            self.lengths.push(self.bytes.len() - self.line);
            if self.bytes.len() - self.line > LONGEST_HELD {
                return self.put_rest(tree, names, output);
            }
        }
        Ok(())
    }

    /// Appends the rest of a line that is too long to be held.
    #[cold]
    fn put_rest(&mut self, tree: &Tables, names: &LineNames, output: &mut impl Write) -> io::Result<()> {
        self.path.clear();
        self.lengths.clear();
        loop {
            // The last byte is the separator that the count replaces.
            let last = self.bytes.len() - 1;
            output.write_all(&self.bytes[self.written..last])?;
            self.bytes.drain(..last);
            (self.written, self.line) = (0, 0);
            while self.bytes.len() < CHUNK_BYTES {
                let Some(stack) = self.new.pop() else { return Ok(()) };
                self.bytes.extend_from_slice(names.text(tree.leaf(stack)));
            }
        }
    }

    fn is_on_path(&self, stack: StackId, tree: &Tables) -> bool {
        self.path.get(tree.depth(stack) as usize - 1) == Some(&stack)
    }

    /// Ends the line with a count, which replaces the last separator.
    fn end(&mut self, count: u64) {
        if let Some(separator) = self.bytes.last_mut() {
            *separator = b' ';
        }
        put_decimal(&mut self.bytes, count);
        self.bytes.push(b'\n');
    }

    /// Writes all lines but keeps the last one to continue from.
    fn hand_over(&mut self, output: &mut impl Write) -> io::Result<()> {
        output.write_all(&self.bytes[self.written..])?;
        self.bytes.drain(..std::mem::take(&mut self.line));
        self.written = self.bytes.len();
        Ok(())
    }
}

/// Maps each frame to the first one with the same file, function and line; an unknown line is 0. The profiler's own frames
/// map to `None`.
fn distinct(tables: &Tables) -> Result<Vec<Option<FrameId>>, TableFull> {
    let text = same_texts(tables)?;
    let mut first = HashMap::new();
    let same = |id| {
        let frame = tables.frame(id);
        let file = frame.file.or(frame.native.map(|native| native.module));
        let place = (file.map(&text), text(frame.function), frame.line.unwrap_or(0));
        (!profiler::is_profiler(&frame, tables)).then(|| *first.entry(place).or_insert(id))
    };
    Ok(tables.frame_ids().map(same).collect())
}

/// Maps strings of equal text to one, as CPython compares text. Invalid UTF-8 is replaced in it.
fn same_texts(tables: &Tables) -> Result<impl Fn(StringId) -> StringId, TableFull> {
    let strings = || tables.string_ids().map(|id| tables.string(id));
    let mut ids = Vec::new();
    if strings().any(|string| std::str::from_utf8(string).is_err()) {
        let mut texts = Tables::default();
        for string in strings() {
            ids.push(texts.intern_string(String::from_utf8_lossy(string).as_bytes())?);
        }
    }
    Ok(move |id: StringId| ids.get(id.index()).copied().unwrap_or(id))
}

/// The names of frames.
#[derive(Default)]
pub(super) struct LineNames {
    /// All texts, each followed by a separator.
    pub(super) texts: Tables,
    /// The text of each frame.
    strings: Vec<Option<StringId>>,
    /// For each frame the first with the same text.
    frames: Vec<Option<FrameId>>,
    /// The number of control characters replaced.
    replaced: u64,
}

impl LineNames {
    fn of(frames: &[Option<FrameId>], tables: &Tables) -> io::Result<Self> {
        let mut names = Self::default();
        let (mut text, mut first) = (Vec::new(), Vec::new());
        let mut text_bytes = ComposedBytes::default();
        let callers = callers(tables);
        for (frame, kept) in tables.frame_ids().zip(frames) {
            let string = if *kept == Some(frame) {
                borehole_memory::check()?;
                text.clear();
                write_name(tables, &tables.frame(frame), &mut text);
                // CPython writes tabs and line breaks as they are.
                let is_broken = callers[frame.index()] || passes_for_lines(&text);
                names.replaced += if is_broken { make_line(&mut text, 0) } else { make_lines(&mut text, 0) };
                names.replaced += guard_ends(&mut text);
                text.push(SEPARATOR);
                text_bytes.add_text(&text, tables)?;
                Some(names.texts.intern_string(String::from_utf8_lossy(&text).as_bytes())?)
            } else {
                None
            };
            first.extend(string.filter(|string| string.index() == first.len()).map(|_| frame));
            names.strings.push(string);
            // A frame that is left out is in no stack, so it can stay unchanged.
            names.frames.push(Some(string.map_or(frame, |string| first[string.index()])));
        }
        Ok(names)
    }

    /// The frames of `texts`, whose functions are their texts, each its own.
    pub(super) fn of_frames(texts: Tables) -> Self {
        let strings = texts.frame_ids().map(|frame| Some(texts.function(frame))).collect();
        let frames = texts.frame_ids().map(Some).collect();
        Self { texts, strings, frames, replaced: 0 }
    }

    /// The number of a frame's text; arbitrary for a frame that is left out.
    #[inline]
    pub(super) fn number(&self, frame: FrameId) -> usize {
        self.strings[frame.index()].map_or(0, StringId::index)
    }

    /// The text of a frame, with a separator at its end; empty for a frame that is left out.
    #[inline]
    pub(super) fn text(&self, frame: FrameId) -> &[u8] {
        self.strings[frame.index()].map_or(b"", |string| self.texts.string(string))
    }

    /// Whether no name contains a separator.
    fn are_plain(&self) -> bool {
        let is_plain = |text: &[u8]| memchr::memchr(SEPARATOR, text) == Some(text.len() - 1);
        self.texts.string_ids().all(|id| is_plain(self.texts.string(id)))
    }
}

/// Whether each frame calls another one somewhere and its name has a line break: the rest of the line would begin in the middle
/// of the stack.
fn callers(tables: &Tables) -> Vec<bool> {
    let mut callers = vec![false; tables.frame_ids().count()];
    for caller in tables.stack_ids().filter_map(|stack| tables.parent(stack)) {
        let frame = tables.leaf(caller);
        callers[frame.index()] = true;
    }
    for (frame, is_caller) in tables.frame_ids().zip(&mut callers) {
        *is_caller &= has_line_break(tables, &tables.frame(frame));
    }
    callers
}

fn has_line_break(tables: &Tables, frame: &Frame) -> bool {
    [Some(frame.function), frame.file].into_iter().flatten().any(|id| tables.string(id).contains(&b'\n'))
}

/// Whether a name with line breaks could pass for several lines: with a count before a break, or with a thread or several frames
/// behind one. Other names break their line as in CPython, and a reader that meets a line without a count notices it.
fn passes_for_lines(name: &[u8]) -> bool {
    let mut parts = name.split(|&byte| byte == b'\n');
    let mut before = parts.next().unwrap_or_default();
    parts.any(|behind| {
        let last = before.rsplit(|&byte| byte == b' ' || byte == b'\t').next().unwrap_or_default();
        let has_count = last.len() < before.len() && !last.is_empty() && last.iter().all(u8::is_ascii_digit);
        before = behind;
        has_count || behind.starts_with(b"tid:") || behind.contains(&SEPARATOR)
    })
}

/// Writes the last component of the file's path, the function and the line; only the name for a frame that is not a function.
fn write_name(tables: &Tables, frame: &Frame, text: &mut Vec<u8>) {
    let file = profiler::file(frame, tables);
    let function = tables.string(frame.function);
    let line = frame.line.unwrap_or(0);
    if file == NO_FILE && line == 0 {
        return text.extend_from_slice(function);
    }
    text.extend_from_slice(file.rsplit(|&byte| byte == b'/').next().unwrap_or_default());
    text.push(b':');
    text.extend_from_slice(function);
    text.extend_from_slice(format!(":{line}").as_bytes());
}

/// A sum for each pair of thread and stack.
///
/// Usually only one thread is sampled, so the sums of the first thread are a column, which needs no hashing.
#[derive(Default)]
pub(super) struct Counts {
    first_thread: Option<Option<u64>>,
    first: StackCounts,
    others: HashMap<(Option<u64>, Option<StackId>), u64>,
}

impl Counts {
    /// Adds `count` samples. Sums saturate.
    #[inline]
    pub(super) fn add(&mut self, thread: Option<u64>, stack: Option<StackId>, count: u64) {
        if *self.first_thread.get_or_insert(thread) == thread {
            return self.first.add(stack, count);
        }
        let sum = self.others.entry((thread, stack)).or_default();
        *sum = sum.saturating_add(count);
    }

    /// All pairs that have samples, with their sums.
    pub(super) fn iter(&self) -> impl Iterator<Item = ((Option<u64>, Option<StackId>), u64)> {
        let thread = self.first_thread.flatten();
        let first = self.first.iter().map(move |(stack, count)| ((thread, stack), count));
        first.chain(self.others.iter().map(|(&key, &count)| (key, count)))
    }
}

/// Stacks with replaced frames, in which equal stacks are merged.
///
/// Usually no frames are merged or removed. Then the stacks are unchanged, and nothing is copied.
pub(super) struct Renamed<'a> {
    source: &'a Tables,
    merged: Option<Merged>,
}

struct Merged {
    /// The stacks; their frames are in the tables of the source.
    tables: Tables,
    /// The new stack of each source stack; `None` if nothing is left of it.
    stacks: Vec<Option<StackId>>,
}

impl<'a> Renamed<'a> {
    /// Replaces the frames in the stacks of `source`. `frames` gives the replacement of each frame; `None` removes it.
    ///
    /// # Errors
    /// If a table is full.
    pub(super) fn new(source: &'a Tables, frames: &[Option<FrameId>]) -> Result<Self, TableFull> {
        let is_same = |(row, frame): (usize, &Option<FrameId>)| frame.is_some_and(|id| id.index() == row);
        if frames.iter().enumerate().all(is_same) {
            return Ok(Self { source, merged: None });
        }
        let mut tables = Tables::default();
        let mut stacks: Vec<Option<StackId>> = Vec::with_capacity(source.stack_count());
        for stack in source.stack_ids() {
            let caller = source.parent(stack).and_then(|caller| stacks[caller.index()]);
            stacks.push(match frames[source.leaf(stack).index()] {
                Some(frame) => Some(tables.intern_stack(caller, frame)?),
                None => caller,
            });
        }
        Ok(Self { source, merged: Some(Merged { tables, stacks }) })
    }

    /// Whether the stacks are unchanged.
    pub(super) const fn is_same(&self) -> bool {
        self.merged.is_none()
    }

    /// The tables with the stacks; frames are those of the source.
    pub(super) fn tree(&self) -> &Tables {
        self.merged.as_ref().map_or(self.source, |merged| &merged.tables)
    }

    /// The new stack of a source stack; `None` if nothing is left of it.
    pub(super) fn stack(&self, stack: StackId) -> Option<StackId> {
        self.merged.as_ref().map_or(Some(stack), |merged| merged.stacks[stack.index()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(stacks: &[(&[&str], u64)]) -> String {
        let mut tables = Tables::default();
        let mut counts = Counts::default();
        for (names, count) in stacks {
            let mut stack = None;
            for name in *names {
                let function = tables.intern_string(name.as_bytes()).unwrap();
                let frame = tables.intern_frame(&Frame::named(function)).unwrap();
                stack = Some(tables.intern_stack(stack, frame).unwrap());
            }
            counts.add(Some(1), stack, *count);
        }
        let mut out = Vec::new();
        CollapsedLines::of(&counts, &tables).unwrap().write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_are_in_the_order_of_their_whole_text() {
        let stacks: [&[&str]; 6] = [&["a"], &["a", "b"], &["a1"], &["a1", "b"], &["a!"], &["a!", "c"]];
        let plain: Vec<(&[&str], u64)> = stacks.into_iter().map(|stack| (stack, 3)).collect();
        let odd: [&[&str]; 3] = [&["a;b"], &["a;", "b"], &[";"]];
        let odd: Vec<_> = plain.iter().copied().chain(odd.into_iter().map(|stack| (stack, 3))).collect();
        for stacks in [plain, odd] {
            let written = lines(&stacks);
            let mut sorted: Vec<_> = written.lines().map(|line| line.strip_suffix(" 3").unwrap()).collect();
            sorted.sort_unstable();
            assert_eq!(
                written.lines().map(|line| line.strip_suffix(" 3").unwrap()).collect::<Vec<_>>(),
                sorted
            );
        }
    }

    #[test]
    fn a_name_forges_no_stack() {
        let forged = ["a 1\ntid:1;evil", "a\ntid:1;b", "a\nb;c", "a\r\ntid:7;b"];
        for name in forged {
            let written = lines(&[(&["main", name], 3), (&[name, "leaf"], 2)]);
            assert_eq!(written.lines().count(), 2, "{written}");
            assert!(written.lines().all(|line| line.starts_with("tid:1;")), "{written}");
        }
        // As CPython writes it: the line is broken, and no stack is made of its rest.
        assert_eq!(lines(&[(&["main", "a\nb"], 3)]), "tid:1;:main:0;:a\nb:0 3\n");
        assert_eq!(lines(&[(&["a\nb", "leaf"], 3)]), "tid:1;:a b:0;:leaf:0 3\n");
    }

    /// Frames: file, function and column of each.
    type Stack<'a> = &'a [(&'a str, &'a str, u32)];

    /// The lines of a thread's samples.
    fn lines_of(samples: &[(Option<u64>, Stack<'_>)]) -> String {
        let mut tables = Tables::default();
        let mut counts = Counts::default();
        for (thread, frames) in samples {
            let mut stack = None;
            for (file, function, column) in *frames {
                let [file, function] =
                    [file, function].map(|name| tables.intern_string(name.as_bytes()).unwrap());
                let frame = Frame { file: Some(file), column: Some(*column), ..Frame::named(function) };
                let frame = tables.intern_frame(&frame).unwrap();
                stack = Some(tables.intern_stack(stack, frame).unwrap());
            }
            counts.add(*thread, stack, 1);
        }
        let mut out = Vec::new();
        CollapsedLines::of(&counts, &tables).unwrap().write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn frames_that_differ_in_columns_are_one_and_those_of_other_folders_are_not() {
        let lines = lines_of(&[
            (Some(1), &[("x/a.py", "f", 1), ("b.py", "c", 1)]),
            (Some(1), &[("x/a.py", "f", 2), ("b.py", "a", 1)]),
            (Some(1), &[("y/a.py", "f", 1), ("b.py", "b", 1)]),
            (Some(1), &[("y/a.py", "f", 1), ("b.py", "a", 1)]),
            (Some(1), &[("x/a.py", "f", 3), ("b.py", "a", 2)]),
            (Some(1), &[("_sync_coordinator.py", "own", 1), ("x/a.py", "f", 3), ("b.py", "a", 2)]),
        ]);
        let expected = "\
            tid:1;a.py:f:0;b.py:a:0 3\n\
            tid:1;a.py:f:0;b.py:a:0 1\n\
            tid:1;a.py:f:0;b.py:b:0 1\n\
            tid:1;a.py:f:0;b.py:c:0 1\n";
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_end_of_a_line_comes_before_all_that_may_follow() {
        let frames = |names: &[&'static str]| names.iter().map(|name| ("~", *name, 1)).collect::<Vec<_>>();
        let ends = ["a", "a!", "a;b"].map(|line| frames(&line.split(';').collect::<Vec<_>>()));
        for last in [frames(&["z"]), frames(&["z;"])] {
            let samples: Vec<_> =
                ends.iter().chain([&last]).rev().map(|frames| (Some(1), &frames[..])).collect();
            let expected = format!("tid:1;a 1\ntid:1;a! 1\ntid:1;a;b 1\ntid:1;{} 1\n", last[0].1);
            assert_eq!(lines_of(&samples), expected);
        }
    }

    #[test]
    fn threads_are_in_the_order_of_their_text_and_samples_without_one_have_none() {
        let frame: &[_] = &[("t", "f", 1)];
        let samples = [(Some(9), frame), (Some(10), frame), (Some(9), &[("~", "z", 1)]), (Some(10), &[])];
        let expected = "tid:10;t:f:0 1\ntid:9;t:f:0 1\ntid:9;z 1\n";
        assert_eq!(lines_of(&samples), expected);
        let mixed = [samples[0], samples[1], (None, frame), (None, &[("~", "tid:10", 1), ("a", "a", 1)])];
        let expected = "t:f:0 1\ntid:10;a:a:0 1\ntid:10;t:f:0 1\ntid:9;t:f:0 1\n";
        assert_eq!(lines_of(&mixed), expected);
    }

    #[test]
    fn the_most_frequent_lines_come_first_and_the_empty_stack_is_left_out() {
        assert_eq!(lines(&[(&["f"], 1), (&["g"], 2), (&[], 9)]), "tid:1;:g:0 2\ntid:1;:f:0 1\n");
    }
}
