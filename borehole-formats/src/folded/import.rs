//! Folded stacks into the model.

use std::io::BufRead;
use std::ops::ControlFlow;

use borehole_model::{
    Context, Frame, FrameId, ProfileSink, Recovery, Sample, Segment, StackId, TableFull, Tables, Warning,
};

use super::NAME;
use super::read::{Oddity, parse};
use crate::frame_memo::FrameMemo;
use crate::location;
use crate::text::Lines;
use crate::{Error, Position, ReadError, ReadOptions};

/// Reads folded stacks: one sample, a run, for each line.
///
/// A frame of the shape `FUNCTION FILE:LINE` keeps its parts, with a line of -1 as unknown; any other frame
/// is a name. Counts with a fraction are rounded, of two counts (a differential profile) the second is
/// taken, and a warning says so once for each file. Comments begin with `# `.
///
/// A last line without a line feed that cannot be read is a cut-off end: a warning.
///
/// # Errors
/// When a line has no count and damage is not read over, when a limit is met, when the input cannot be
/// read, or when the sink fails.
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
    let segment = Segment { format: NAME, ..Segment::default() };
    sink.segment(Context { tables, segment: &segment })?;
    let recovery = Recovery { segments: 1, ..Recovery::default() };
    let mut importer =
        Importer { options, tables, sink, segment, recovery, path: Path::default(), reported: [false; 2] };
    importer.run(Lines::new(input, NAME, &options.limits))?;
    Ok(importer.recovery)
}

struct Importer<'a> {
    options: &'a ReadOptions,
    tables: &'a mut Tables,
    sink: &'a mut dyn ProfileSink,
    segment: Segment,
    recovery: Recovery,
    path: Path,
    /// Whether fractions and second counts have been warned of.
    reported: [bool; 2],
}

impl Importer<'_> {
    fn run(&mut self, mut lines: Lines<impl BufRead>) -> Result<(), ReadError> {
        while let Some(line) = lines.next_line()? {
            let length = line.len() as u64;
            match parse(line) {
                Ok(None) => {}
                Ok(Some(line)) => {
                    let oddity = line.oddity;
                    let stack = self.path.stack(self.tables, line.stack)?;
                    if self.deliver(stack, line.count)?.is_break() {
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

    fn deliver(&mut self, stack: Option<StackId>, count: u64) -> Result<ControlFlow<()>, ReadError> {
        if count == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        self.recovery.samples = self.recovery.samples.saturating_add(count);
        let at = Context { tables: self.tables, segment: &self.segment };
        Ok(self.sink.sample(at, &Sample { stack, count, ..Sample::default() })?)
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

    /// Notes an oddity, the first time.
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

/// The stack of the line before, so that a line which begins alike need not be looked up from its root:
/// folded files are mostly sorted.
#[derive(Default)]
struct Path {
    text: Vec<u8>,
    /// For each frame where it ends in the text, and the stack up to it.
    stacks: Vec<(usize, StackId)>,
    memo: FrameMemo,
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
            let frame = self.memo.frame(name, || intern_frame(tables, name))?;
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

fn intern_frame(tables: &mut Tables, text: &[u8]) -> Result<FrameId, TableFull> {
    let Some(place) = location::parse(text) else {
        let function = tables.intern_string(text)?;
        return tables.intern_frame(&Frame::named(function));
    };
    let function = tables.intern_string(place.function)?;
    let file = Some(tables.intern_string(place.file)?);
    let line = (place.line != -1).then_some(place.line);
    tables.intern_frame(&Frame { file, line, ..Frame::named(function) })
}

/// How many bytes two texts have in common at their beginning.
fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    const CHUNK: usize = 16;
    let chunks = a.chunks_exact(CHUNK).zip(b.chunks_exact(CHUNK)).take_while(|(a, b)| a == b).count();
    let start = chunks * CHUNK;
    start + a[start..].iter().zip(&b[start..]).take_while(|(a, b)| a == b).count()
}
