//! Imports folded stacks into the model.

use std::io::{self, BufRead};
use std::ops::ControlFlow;

use borehole_model::{
    Frame, FrameId, Label, LabelValue, LabelsId, Mode, NativeFrame, ProfileSink, Recovery, Sample, Segment,
    StackId, StringId, TableFull, Tables, Thread, ValueType,
};

use super::NAME;
use super::convention::{CodeOf, Convention, HEAD_BYTES, Measured, StackOrigin, split_annotation};
use super::read::{self, CountOddity, CountedStack};
use crate::frames::location::FrameLocation;
use crate::frames::memo::FrameMemo;
use crate::lines::import::{LineFault, LineOutput, LineParser};
use crate::lines::text::{common_prefix, head_of};
use crate::{Error, Position, ReadError, ReadOptions};

/// The module of annotated frames of the kernel.
const KERNEL: &[u8] = b"[kernel]";

/// Reads folded stacks: one sample, a run, for each line.
///
/// A frame of the form `FUNCTION FILE:LINE` keeps its parts, with a line of -1 as unknown; any other frame is a name.
/// Counts with a fraction are rounded, and of two counts (a differential profile) the second is taken, with one warning
/// per file. Comments begin with `# `.
///
/// Frames with the annotations of async-profiler (`_[j]`, `_[k]`) go by their names, and those of the kernel have a module.
///
/// If all of the first lines follow the convention of CPython's profiler, py-spy or Austin, samples get their processes
/// and threads, and frames get files and lines. The command line of a process becomes a label, `command`. Austin's
/// numbers become values, because its lines have no counts, and its first comments metadata.
///
/// A last line without a line feed that cannot be read is a cut-off end: a warning.
///
/// # Errors
/// If a line has no count and damage is not skipped, a limit is exceeded, the input cannot be read, or the sink fails.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, folded};
/// use borehole_model::{Count, Tables};
///
/// let text = b"main /index.php:5;query /db.php:7 12\nmain /index.php:6 3\n";
/// let mut tables = Tables::default();
/// let mut count = Count::default();
/// let recovery = folded::import(&text[..], &ReadOptions::default(), &mut tables, &mut count)?;
/// assert_eq!(recovery.samples, 15);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let (head, rest) = head_of(input, HEAD_BYTES).map_err(|error| Error::io(NAME, Position::Whole, error))?;
    let convention = Convention::of(&head);
    let metadata = metadata_of(&head, convention, tables)?;
    let segment = Segment { metadata, ..segment_of(convention) };
    let output = LineOutput::begin(segment, options, tables, sink)?;
    let path = FoldedPath { convention, ..FoldedPath::default() };
    let mut importer = Importer { tables, path, values: Vec::new(), oddity: None, reported: [false; 2] };
    output.import(io::Read::chain(io::Cursor::new(head), rest), &mut importer)
}

/// The comments `# KEY: VALUE` before the first stack, of Austin.
fn metadata_of(
    head: &[u8],
    convention: Convention,
    tables: &mut Tables,
) -> Result<Vec<(StringId, StringId)>, TableFull> {
    let is_austin = matches!(convention, Convention::Austin(_));
    let comments = head.split(|&byte| byte == b'\n').map_while(|line| line.strip_prefix(b"# "));
    let entries = comments.take_while(|_| is_austin).filter_map(|comment| {
        let comment = comment.trim_ascii();
        memchr::memmem::find(comment, b": ").map(|at| (&comment[..at], &comment[at + 2..]))
    });
    entries.map(|(key, value)| Ok((tables.intern_string(key)?, tables.intern_string(value)?))).collect()
}

fn segment_of(convention: Convention) -> Segment {
    let plain = Segment { format: NAME, ..Segment::default() };
    let Convention::Austin(measured) = convention else { return plain };
    let wall = || ValueType::new("wall", "microseconds");
    let cpu = || ValueType::new("cpu", "microseconds");
    let memory = || ValueType::new("memory", "bytes");
    let (mode, value_types) = match measured {
        Measured::Wall => (Mode::Wall, vec![wall()]),
        Measured::Cpu => (Mode::Cpu, vec![cpu()]),
        Measured::Memory => (Mode::Wall, vec![memory()]),
        Measured::Full => (Mode::Wall, vec![wall(), cpu(), memory()]),
    };
    Segment { mode, value_types, is_uncounted: true, is_ordered: true, ..plain }
}

struct Importer<'a> {
    tables: &'a mut Tables,
    path: FoldedPath,
    /// The values of the last line.
    values: Vec<i64>,
    /// The oddity of the last line.
    oddity: Option<CountOddity>,
    /// Whether fractions and second counts have been reported.
    reported: [bool; 2],
}

impl LineParser for Importer<'_> {
    fn line(&mut self, line: &[u8], output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, LineFault> {
        let parsed = match self.path.convention {
            Convention::Austin(measured) => read::parse_measured(line, measured, &mut self.values),
            _ => read::parse(line),
        };
        match parsed.map_err(LineFault::Invalid)? {
            None => Ok(ControlFlow::Continue(())),
            Some(line) => {
                self.oddity = line.oddity;
                Ok(self.deliver(&line, output)?)
            }
        }
    }

    /// Notes each oddity once.
    #[inline]
    fn note(&mut self, number: u64) -> Option<String> {
        let (reported, message) = match self.oddity.take()? {
            CountOddity::Fraction => (&mut self.reported[0], "fractional counts are rounded"),
            CountOddity::Differential => (&mut self.reported[1], "the second of two counts is used"),
        };
        (!std::mem::replace(reported, true)).then(|| format!("{message} (first at line {number})"))
    }
}

impl Importer<'_> {
    fn deliver(
        &mut self,
        line: &CountedStack<'_>,
        output: &mut LineOutput<'_>,
    ) -> Result<ControlFlow<()>, ReadError> {
        let (origin, frames) = self.path.convention.split(line.stack);
        let stack = self.path.stack(self.tables, frames)?;
        let count = line.count;
        if count == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        self.name_thread(&origin, output)?;
        let labels = origin.command.map(|command| self.command(command)).transpose()?;
        let StackOrigin { process, thread, interpreter, .. } = origin;
        let values = &self.values;
        let sample =
            Sample { stack, count, process, thread, interpreter, labels, values, ..Sample::default() };
        output.sample(self.tables, &sample)
    }

    /// Passes the name of a thread to the sink, the first time.
    fn name_thread(
        &mut self,
        origin: &StackOrigin<'_>,
        output: &mut LineOutput<'_>,
    ) -> Result<(), ReadError> {
        let (Some(number), Some(name)) = (origin.thread, origin.thread_name) else { return Ok(()) };
        let thread = Thread { process: origin.process, number };
        let name = self.tables.intern_string(name)?;
        output.name_thread(self.tables, thread, name)?;
        Ok(())
    }

    fn command(&mut self, command: &[u8]) -> Result<LabelsId, TableFull> {
        let key = self.tables.intern_string(b"command")?;
        let value = LabelValue::Text(self.tables.intern_string(command)?);
        self.tables.intern_labels(&[Label { key, value }])
    }
}

/// The stack of the line before, so that a line with the same beginning need not be looked up from its root: folded
/// files are usually sorted.
#[derive(Default)]
struct FoldedPath {
    text: Vec<u8>,
    /// For each frame its end in the text, and the stack up to it.
    stacks: Vec<(usize, StackId)>,
    memo: FrameMemo,
    convention: Convention,
}

impl FoldedPath {
    fn stack(&mut self, tables: &mut Tables, text: &[u8]) -> Result<Option<StackId>, TableFull> {
        if text.is_empty() {
            return Ok(None);
        }
        let shared = common_prefix(&self.text, text);
        let kept = self.stacks.partition_point(|&(end, _)| end < shared);
        self.stacks.truncate(kept);
        let (mut start, mut stack) = self.stacks.last().map_or((0, None), |&(end, id)| (end + 1, Some(id)));
        while start <= text.len() {
            let end = memchr::memchr(b';', &text[start..]).map_or(text.len(), |at| start + at);
            let name = &text[start..end];
            let frame = self.memo.frame(name, || intern_frame(tables, name, self.convention))?;
            let id = tables.intern_stack(stack, frame)?;
            self.stacks.push((end, id));
            stack = Some(id);
            start = end + 1;
        }
        self.text.clear();
        self.text.extend_from_slice(text);
        Ok(stack)
    }
}

fn intern_frame(tables: &mut Tables, text: &[u8], convention: Convention) -> Result<FrameId, TableFull> {
    let annotated = split_annotation(text).filter(|_| convention == Convention::Annotated);
    let (text, code) = annotated.unwrap_or((text, CodeOf::Program));
    let whole = FrameLocation { function: text, file: None, line: None };
    let FrameLocation { function, file, line } = convention.location(text).unwrap_or(whole);
    let function = tables.intern_string(function)?;
    let file = file.map(|file| tables.intern_string(file)).transpose()?;
    let native = match code {
        CodeOf::Kernel => {
            Some(NativeFrame { module: tables.intern_string(KERNEL)?, offset: None, file_offset: None })
        }
        CodeOf::Program => None,
    };
    tables.intern_frame(&Frame { file, line, native, ..Frame::named(function) })
}
