//! Imports folded stacks into the model.

use std::io::{self, BufRead, Read as _};
use std::ops::ControlFlow;

use borehole_model::{
    Context, Frame, FrameId, Label, LabelValue, Mode, ProfileSink, Recovery, Sample, Segment, StackId,
    StringId, TableFull, Tables, Thread, ThreadNames, ValueType, Warning,
};

use super::NAME;
use super::convention::{Convention, HEAD_BYTES, Measured, Origin, metrics};
use super::read::{self, Line, Oddity};
use crate::frame_memo::FrameMemo;
use crate::location;
use crate::text::Lines;
use crate::{Error, Position, ReadError, ReadOptions};

/// Reads folded stacks: one sample, a run, for each line.
///
/// A frame of the form `FUNCTION FILE:LINE` keeps its parts, with a line of -1 as unknown; any other frame is a name.
/// Counts with a fraction are rounded, and of two counts (a differential profile) the second is taken, with one warning
/// per file. Comments begin with `# `.
///
/// If all of the first lines follow the convention of CPython's profiler, py-spy or Austin, samples get their processes
/// and threads, and frames get files and lines. The command line of a process becomes a label, `command`. Austin's
/// numbers become values, because its lines have no counts.
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
    let (head, rest) = head_of(input).map_err(|error| Error::io(NAME, Position::Whole, error))?;
    let convention = Convention::of(&head);
    let segment = segment_of(convention);
    sink.segment(Context { tables, segment: &segment })?;
    let recovery = Recovery { segments: 1, ..Recovery::default() };
    let path = Path { convention, ..Path::default() };
    let names = ThreadNames::default();
    let mut importer =
        Importer { options, tables, sink, segment, recovery, path, names, reported: [false; 2] };
    importer.run(Lines::new(io::Cursor::new(head).chain(rest), NAME, &options.limits))?;
    Ok(importer.recovery)
}

/// The beginning of the input, for detecting the convention, and the rest.
fn head_of<R: BufRead>(mut input: R) -> io::Result<(Vec<u8>, R)> {
    let mut head = Vec::new();
    input.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    Ok((head, input))
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

/// A stack with its count and values.
struct Counted<'a> {
    stack: &'a [u8],
    count: u64,
    values: Vec<i64>,
    oddity: Option<Oddity>,
}

impl<'a> Counted<'a> {
    /// Parses a line; `None` for a blank line and for a comment.
    fn parse(line: &'a [u8], convention: Convention) -> Result<Option<Self>, String> {
        let Convention::Austin(measured) = convention else {
            let line = read::parse(line)?;
            return Ok(line.map(|Line { stack, count, oddity }| Self {
                stack,
                count,
                values: Vec::new(),
                oddity,
            }));
        };
        let text = line.trim_ascii_end();
        if text.is_empty() || text.starts_with(b"# ") {
            return Ok(None);
        }
        let parts = read::split_last_word(text);
        let parts = parts.and_then(|(stack, numbers)| Some((stack, metrics(numbers, measured)?)));
        let (stack, values) = parts.ok_or_else(|| read::missing_count(line))?;
        Ok(Some(Self { stack, count: 1, values, oddity: None }))
    }
}

struct Importer<'a> {
    options: &'a ReadOptions,
    tables: &'a mut Tables,
    sink: &'a mut dyn ProfileSink,
    segment: Segment,
    recovery: Recovery,
    path: Path,
    names: ThreadNames,
    /// Whether fractions and second counts have been reported.
    reported: [bool; 2],
}

impl Importer<'_> {
    fn run(&mut self, mut lines: Lines<impl BufRead>) -> Result<(), ReadError> {
        while let Some(line) = lines.next_line()? {
            let length = line.len() as u64;
            match Counted::parse(line, self.path.convention) {
                Ok(None) => {}
                Ok(Some(line)) => {
                    let oddity = line.oddity;
                    if self.deliver(&line)?.is_break() {
                        self.recovery.stopped = true;
                        return Ok(());
                    }
                    if let Some(oddity) = oddity {
                        self.odd(oddity, &lines);
                    }
                }
                Err(message) => self.bad_line(message, length, &lines)?,
            }
        }
        Ok(())
    }

    fn deliver(&mut self, line: &Counted<'_>) -> Result<ControlFlow<()>, ReadError> {
        let (origin, frames) = self.path.convention.split(line.stack);
        let stack = self.path.stack(self.tables, frames)?;
        let &Counted { count, ref values, .. } = line;
        if count == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        self.name_thread(&origin)?;
        let labels = origin.command.map(|command| self.command(command)).transpose()?;
        self.recovery.samples = self.recovery.samples.saturating_add(count);
        let at = Context { tables: self.tables, segment: &self.segment };
        let Origin { process, thread, interpreter, .. } = origin;
        let sample =
            Sample { stack, count, process, thread, interpreter, labels, values, ..Sample::default() };
        Ok(self.sink.sample(at, &sample)?)
    }

    /// Passes the name of a thread to the sink, the first time.
    fn name_thread(&mut self, origin: &Origin<'_>) -> Result<(), ReadError> {
        let (Some(number), Some(name)) = (origin.thread, origin.thread_name) else { return Ok(()) };
        let thread = Thread { process: origin.process, number };
        let name: StringId = self.tables.intern_string(name)?;
        if self.names.name(thread, name) {
            let at = Context { tables: self.tables, segment: &self.segment };
            self.sink.thread(at, thread, name)?;
        }
        Ok(())
    }

    fn command(&mut self, command: &[u8]) -> Result<borehole_model::LabelsId, TableFull> {
        let key = self.tables.intern_string(b"command")?;
        let value = LabelValue::Text(self.tables.intern_string(command)?);
        self.tables.intern_labels(&[Label { key, value }])
    }

    fn bad_line(
        &mut self,
        message: String,
        lost_bytes: u64,
        lines: &Lines<impl BufRead>,
    ) -> Result<(), ReadError> {
        if lines.is_terminated() && !self.options.is_lenient() {
            return Err(Error::malformed(NAME, Position::Line(lines.number()), message).into());
        }
        let message = format!("{message} (line {})", lines.number());
        self.warn(Warning::new(message).at(lines.offset()).losing(lost_bytes))
    }

    /// Reports an oddity, the first time.
    #[cold]
    fn odd(&mut self, oddity: Oddity, lines: &Lines<impl BufRead>) {
        let (reported, message) = match oddity {
            Oddity::Fraction => (&mut self.reported[0], "counts with fractions were rounded"),
            Oddity::Differential => (&mut self.reported[1], "of two counts on a line the second was taken"),
        };
        if std::mem::replace(reported, true) {
            return;
        }
        let message = format!("{message} (first at line {})", lines.number());
        self.recovery.note(Warning::new(message).at(lines.offset()));
    }

    #[cold]
    fn warn(&mut self, warning: Warning) -> Result<(), ReadError> {
        self.sink.warning(&warning)?;
        self.recovery.warn(warning);
        Ok(())
    }
}

/// The stack of the line before, so that a line with the same beginning need not be looked up from its root: folded
/// files are usually sorted.
#[derive(Default)]
struct Path {
    text: Vec<u8>,
    /// For each frame its end in the text, and the stack up to it.
    stacks: Vec<(usize, StackId)>,
    memo: FrameMemo,
    convention: Convention,
}

impl Path {
    fn stack(&mut self, tables: &mut Tables, text: &[u8]) -> Result<Option<StackId>, TableFull> {
        if text.is_empty() {
            return Ok(None);
        }
        let shared = shared_prefix(&self.text, text);
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
    if let Some(place) = convention.place(text) {
        let function = tables.intern_string(place.function)?;
        let file = place.file.map(|file| tables.intern_string(file)).transpose()?;
        return tables.intern_frame(&Frame { file, line: place.line, ..Frame::named(function) });
    }
    let Some(place) = location::parse(text) else {
        let function = tables.intern_string(text)?;
        return tables.intern_frame(&Frame::named(function));
    };
    let function = tables.intern_string(place.function)?;
    let file = Some(tables.intern_string(place.file)?);
    let line = (place.line != -1).then_some(place.line);
    tables.intern_frame(&Frame { file, line, ..Frame::named(function) })
}

/// The length of the common prefix of two texts in bytes.
fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    const CHUNK: usize = 16;
    let chunks = a.chunks_exact(CHUNK).zip(b.chunks_exact(CHUNK)).take_while(|(a, b)| a == b).count();
    let start = chunks * CHUNK;
    start + a[start..].iter().zip(&b[start..]).take_while(|(a, b)| a == b).count()
}
