//! Threads and stacks as lines of text, in their order.
//!
//! Two stacks are the same if their frames agree in file, function and line; the text, which has only the last
//! part of a file's path, may then still be the same for two lines. Lines are put in order without being
//! made: names are numbers, and two lines differ where their first different number stands.

use std::cmp::{Ordering, Reverse};
use std::io::{self, Write};

use borehole_model::{Frame, FrameId, StackId, StringId, TableFull, Tables};
use hashbrown::HashMap;

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

impl Lines {
    /// The lines of `counts`.
    ///
    /// # Errors
    /// When a table is full.
    pub(super) fn of(counts: &Counts, tables: &Tables) -> Result<Self, TableFull> {
        let mut naming = Naming::new(tables);
        let mut merged = Counts::new();
        let mut lines = Self::default();
        for (&(thread, stack), &count) in counts {
            match naming.stack(stack)? {
                None => lines.empty = lines.empty.saturating_add(count),
                named => {
                    let sum = merged.entry((thread, named)).or_default();
                    *sum = sum.saturating_add(count);
                }
            }
        }
        let mut texts = Texts::default();
        for ((thread, stack), count) in merged {
            lines.add(thread, stack, count, &naming.named, &mut texts)?;
        }
        Ok(lines)
    }

    fn add(
        &mut self,
        thread: Option<u64>,
        stack: Option<StackId>,
        count: u64,
        named: &Tables,
        texts: &mut Texts,
    ) -> Result<(), TableFull> {
        let start = self.paths.len();
        for frame in named.frames_leaf_first(stack) {
            let name = texts.of(frame, named, &mut self.names)?;
            self.paths.push(name);
        }
        if let Some(thread) = thread {
            let name = self.names.intern_string(format!("tid:{thread}").as_bytes())?;
            self.paths.push(name);
        }
        self.paths[start..].reverse();
        self.rows.push(Row { count, start, end: self.paths.len() });
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
        let mut line = Vec::new();
        for row in rows {
            line.clear();
            for &name in &paths[row.start..row.end] {
                line.extend_from_slice(names.string(name));
                line.push(SEPARATOR);
            }
            line.pop();
            writeln!(line, " {}", row.count)?;
            output.write_all(&line)?;
        }
        Ok(())
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

/// Maps stacks to stacks of what counts of a frame, without those of the profiler itself.
struct Naming<'a> {
    tables: &'a Tables,
    named: Tables,
    /// By frame; the inner `None` is one to leave out.
    frames: Vec<Option<Option<FrameId>>>,
    /// By stack; the inner `None` is the empty one.
    stacks: Vec<Option<Option<StackId>>>,
    pending: Vec<StackId>,
}

impl<'a> Naming<'a> {
    fn new(tables: &'a Tables) -> Self {
        Self {
            tables,
            named: Tables::default(),
            frames: vec![None; tables.frame_count()],
            stacks: vec![None; tables.stack_count()],
            pending: Vec::new(),
        }
    }

    fn stack(&mut self, stack: Option<StackId>) -> Result<Option<StackId>, TableFull> {
        self.pending.clear();
        let (mut named, mut next) = (None, stack);
        while let Some(id) = next {
            if let Some(known) = self.stacks[id.index()] {
                named = known;
                break;
            }
            self.pending.push(id);
            next = self.tables.parent(id);
        }
        while let Some(id) = self.pending.pop() {
            if let Some(frame) = self.frame(self.tables.leaf(id))? {
                named = Some(self.named.intern_stack(named, frame)?);
            }
            self.stacks[id.index()] = Some(named);
        }
        Ok(named)
    }

    fn frame(&mut self, id: FrameId) -> Result<Option<FrameId>, TableFull> {
        if let Some(known) = self.frames[id.index()] {
            return Ok(known);
        }
        let frame = self.tables.frame(id);
        let Frame { function, file, line, native, .. } = *frame;
        let named = if own_frames::is_own(frame, self.tables) {
            None
        } else {
            let file = file.or(native.map(|native| native.module)).map(|file| self.tables.string(file));
            let function = self.named.intern_string(self.tables.string(function))?;
            let file = file.map(|file| self.named.intern_string(file)).transpose()?;
            Some(self.named.intern_frame(&Frame { file, line, ..Frame::named(function) })?)
        };
        self.frames[id.index()] = Some(named);
        Ok(named)
    }
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
