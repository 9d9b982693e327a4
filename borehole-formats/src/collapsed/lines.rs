//! Threads and stacks as lines of text, in their order.
//!
//! Two stacks are the same if their frames agree in file, function and line; the text, which has only the last
//! part of a file's path, may then still be the same for two lines. Lines are put in order without being
//! made: names are numbers, and two lines differ where their first different number stands.

use std::cmp::{Ordering, Reverse};
use std::hash::BuildHasher as _;
use std::io::{self, Write};

use borehole_model::{Frame, FrameId, StackId, StringId, TableFull, Tables};
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::own_frames;

/// What separates frames.
const SEPARATOR: u8 = b';';

/// The file of frames that are no Python functions.
const NO_FILE: &[u8] = b"~";

/// How often each thread had each stack.
pub(super) type Counts = HashMap<(Option<u64>, Option<StackId>), u64>;

/// The lines of a profile.
#[derive(Default)]
pub(super) struct Lines {
    /// All names that stand in lines. A name has no row twice, so equal numbers are equal texts.
    names: Tables,
    rows: Vec<Row>,
    /// The names of all rows, the outermost first.
    paths: Vec<StringId>,
    /// How many samples had no frame to print.
    pub(super) empty: u64,
}

struct Row {
    count: u64,
    start: usize,
    end: usize,
}

/// A thread's samples of all stacks that count as one.
struct Merged {
    thread: Option<u64>,
    stack: StackId,
    count: u64,
}

impl Lines {
    /// The lines of `counts`.
    ///
    /// # Errors
    /// When a table is full.
    pub(super) fn of(counts: &Counts, tables: &Tables) -> Result<Self, TableFull> {
        let shapes = Shapes::of(tables)?;
        let mut lines = Self::default();
        let mut texts = Texts::default();
        for merged in lines.merge(counts, &shapes) {
            lines.add(&merged, &shapes, &mut texts)?;
        }
        Ok(lines)
    }

    fn merge(&mut self, counts: &Counts, shapes: &Shapes<'_>) -> Vec<Merged> {
        let hasher = DefaultHashBuilder::default();
        let (mut all, mut index) = (Vec::<Merged>::new(), HashTable::<usize>::new());
        for (&(thread, stack), &count) in counts {
            let Some(stack) = stack.filter(|stack| shapes.hashes[stack.index()] != 0) else {
                self.empty = self.empty.saturating_add(count);
                continue;
            };
            let hash_of =
                |merged: &Merged| hasher.hash_one((merged.thread, shapes.hashes[merged.stack.index()]));
            let merged = Merged { thread, stack, count };
            let is_it = |&at: &usize| all[at].thread == thread && shapes.are_alike(all[at].stack, stack);
            if let Some(&at) = index.find(hash_of(&merged), is_it) {
                all[at].count = all[at].count.saturating_add(count);
                continue;
            }
            let hash = hash_of(&merged);
            all.push(merged);
            index.insert_unique(hash, all.len() - 1, |&at| hash_of(&all[at]));
        }
        all
    }

    fn add(&mut self, merged: &Merged, shapes: &Shapes<'_>, texts: &mut Texts) -> Result<(), TableFull> {
        let start = self.paths.len();
        for frame in shapes.frames_leaf_first(merged.stack) {
            let name = texts.of(frame, &shapes.named, &mut self.names)?;
            self.paths.push(name);
        }
        if let Some(thread) = merged.thread {
            let name = self.names.intern_string(format!("tid:{thread}").as_bytes())?;
            self.paths.push(name);
        }
        self.paths[start..].reverse();
        self.rows.push(Row { count: merged.count, start, end: self.paths.len() });
        Ok(())
    }

    /// Writes all lines: the most frequent first, equally frequent ones in the order of their text.
    ///
    /// # Errors
    /// When `output` cannot be written.
    pub(super) fn write(&mut self, output: &mut impl Write) -> io::Result<()> {
        let Self { names, rows, paths, .. } = self;
        let is_plain = |name: &StringId| !names.string(*name).contains(&SEPARATOR);
        let all_plain = paths.iter().all(is_plain);
        rows.sort_by(|a, b| {
            let [left, right] = [a, b].map(|row| &paths[row.start..row.end]);
            let by_text =
                || if all_plain { by_names(left, right, names) } else { by_bytes(left, right, names) };
            Reverse(a.count).cmp(&Reverse(b.count)).then_with(by_text)
        });
        let mut line = Line::default();
        rows.iter().try_for_each(|row| line.write(&paths[row.start..row.end], row.count, names, output))
    }
}

/// The last line that was written. The next one mostly begins as it does.
#[derive(Default)]
struct Line {
    text: Vec<u8>,
    path: Vec<StringId>,
    /// Where each name ends, its separator included.
    ends: Vec<usize>,
}

impl Line {
    fn write(
        &mut self,
        path: &[StringId],
        count: u64,
        names: &Tables,
        output: &mut impl Write,
    ) -> io::Result<()> {
        let same = self.path.iter().zip(path).take_while(|(old, new)| old == new).count();
        self.text.truncate(same.checked_sub(1).map_or(0, |last| self.ends[last]));
        self.ends.truncate(same);
        self.path.clear();
        self.path.extend_from_slice(path);
        for &name in &path[same..] {
            self.text.extend_from_slice(names.string(name));
            self.text.push(SEPARATOR);
            self.ends.push(self.text.len());
        }
        output.write_all(self.text.strip_suffix(&[SEPARATOR]).unwrap_or_default())?;
        writeln!(output, " {count}")
    }
}

/// The order of two lines whose names have no separators in them: the first names that differ decide.
fn by_names(left: &[StringId], right: &[StringId], names: &Tables) -> Ordering {
    let same = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    let rest = |path: &[StringId]| path.get(same).map(|&name| (name, path.len() > same + 1));
    let text = |(name, goes_on): (StringId, bool)| {
        names.string(name).iter().copied().chain(goes_on.then_some(SEPARATOR))
    };
    match (rest(left), rest(right)) {
        (Some(left), Some(right)) => text(left).cmp(text(right)),
        (left, right) => left.is_some().cmp(&right.is_some()),
    }
}

/// The order of two lines, whatever stands in their names.
fn by_bytes(left: &[StringId], right: &[StringId], names: &Tables) -> Ordering {
    let text =
        |path: &[StringId]| path.iter().map(|&name| names.string(name)).collect::<Vec<_>>().join(&SEPARATOR);
    text(left).cmp(&text(right))
}

/// The text of each frame, made once.
#[derive(Default)]
struct Texts {
    known: Vec<Option<StringId>>,
    text: Vec<u8>,
}

impl Texts {
    fn of(&mut self, frame: FrameId, named: &Tables, names: &mut Tables) -> Result<StringId, TableFull> {
        if self.known.len() <= frame.index() {
            self.known.resize(frame.index() + 1, None);
        }
        if let Some(known) = self.known[frame.index()] {
            return Ok(known);
        }
        self.text.clear();
        write_name(named, named.frame(frame), &mut self.text);
        let name = names.intern_string(String::from_utf8_lossy(&self.text).as_bytes())?;
        self.known[frame.index()] = Some(name);
        Ok(name)
    }
}

/// The last part of the file's path, the function, the line; of a frame that is no function the name only.
fn write_name(tables: &Tables, frame: &Frame, text: &mut Vec<u8>) {
    let file = frame.file.map_or(b"".as_slice(), |file| tables.string(file));
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

/// What counts of each stack: file, function and line of its frames, without those of the profiler itself.
struct Shapes<'a> {
    tables: &'a Tables,
    /// Frames of nothing else.
    named: Tables,
    /// By frame: which of those it is, `None` of one to leave out.
    frames: Vec<Option<FrameId>>,
    /// By stack: a hash of what counts of it, 0 if nothing does.
    hashes: Vec<u64>,
}

impl<'a> Shapes<'a> {
    fn of(tables: &'a Tables) -> Result<Self, TableFull> {
        let mut named = Tables::default();
        let frames = tables.frame_ids().map(|frame| name(tables.frame(frame), tables, &mut named));
        let frames = frames.collect::<Result<Vec<_>, _>>()?;
        let hasher = DefaultHashBuilder::default();
        let mut hashes: Vec<u64> = Vec::with_capacity(tables.stack_count());
        for stack in tables.stack_ids() {
            let below = tables.parent(stack).map_or(0, |parent| hashes[parent.index()]);
            let frame = frames[tables.leaf(stack).index()];
            hashes.push(frame.map_or(below, |frame| hasher.hash_one((below, frame)) | 1));
        }
        Ok(Self { tables, named, frames, hashes })
    }

    fn frames_leaf_first(&self, stack: StackId) -> impl Iterator<Item = FrameId> {
        self.tables.frames_leaf_first(Some(stack)).filter_map(|frame| self.frames[frame.index()])
    }

    fn are_alike(&self, left: StackId, right: StackId) -> bool {
        left == right || self.frames_leaf_first(left).eq(self.frames_leaf_first(right))
    }
}

fn name(frame: &Frame, tables: &Tables, named: &mut Tables) -> Result<Option<FrameId>, TableFull> {
    if own_frames::is_own(frame, tables) {
        return Ok(None);
    }
    let Frame { function, file, line, native, .. } = *frame;
    let file = file.or(native.map(|native| native.module)).map(|file| tables.string(file));
    let function = named.intern_string(tables.string(function))?;
    let file = file.map(|file| named.intern_string(file)).transpose()?;
    named.intern_frame(&Frame { file, line, ..Frame::named(function) }).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(stacks: &[(&[&str], u64)]) -> String {
        let mut tables = Tables::default();
        let mut counts = Counts::new();
        for (names, count) in stacks {
            let mut stack = None;
            for name in *names {
                let function = tables.intern_string(name.as_bytes()).unwrap();
                let frame = tables.intern_frame(&Frame::named(function)).unwrap();
                stack = Some(tables.intern_stack(stack, frame).unwrap());
            }
            *counts.entry((Some(1), stack)).or_default() += count;
        }
        let mut out = Vec::new();
        Lines::of(&counts, &tables).unwrap().write(&mut out).unwrap();
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
    fn the_most_frequent_come_first_and_the_empty_stack_does_not_come() {
        assert_eq!(lines(&[(&["f"], 1), (&["g"], 2), (&[], 9)]), "tid:1;:g:0 2\ntid:1;:f:0 1\n");
    }
}
