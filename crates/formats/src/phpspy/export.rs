//! Export of the model to traces.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use borehole_model::{Context, Frame, FrameId, Label, LabelValue, ProfileSink, Sample, StackId, Tables};
use borehole_text::make_line;
use memchr::memmem;

use super::read::is_opcode;
use super::{NAME, NATIVE, VM};
use crate::frames::texts::{FrameTexts, Writing};
use crate::lines::runs::{self, LONGEST_HELD};
use crate::sums::losses::SampleLosses;
use crate::{Export, Losses};

/// The options of traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// Whether opcodes are written.
    pub opcodes: OpcodeOutput,
}

/// Whether opcodes are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpcodeOutput {
    /// Leave them out, for all readers of the format.
    #[default]
    Omit,
    /// Write them after the line (`f /f.php:3:ZEND_DO_FCALL`), and the leaf's also before it as a frame of the virtual machine,
    /// like `reli`'s template `phpspy_with_opcode`.
    Write,
}

/// Writes samples as they come, one trace each.
///
/// Labels become lines `# key = value` after the frames, and a known process becomes a line `# pid = N` after them. Native
/// frames are `module::symbol+0x1f [native]:0`. A sample without a stack is a bare blank line, which readers ignore, so it
/// is counted as lost.
///
/// Tabs and line breaks in names and values become spaces, other control characters are escaped, and what a reader would take for
/// structure is replaced; each is counted.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, folded, phpspy};
/// use borehole_model::{ProfileSink as _, Tables};
///
/// let (mut tables, mut text) = (Tables::default(), Vec::new());
/// let mut exporter = phpspy::Exporter::new(&mut text, phpspy::ExportOptions::default());
/// let input = b"main /index.php:5;query /db.php:7 1\n";
/// folded::import(&input[..], &ReadOptions::default(), &mut tables, &mut exporter)?;
/// exporter.finish(&tables)?;
/// drop(exporter);
/// assert_eq!(text, b"0 query /db.php:7\n1 main /index.php:5\n\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Exporter<W: Write> {
    output: BufWriter<W>,
    frames: TraceFrames,
    /// The frames and labels of a trace. It lacks the frames if they are long.
    trace: Vec<u8>,
    /// The stack whose frames `trace` begins with, and their length.
    rendered: Option<(StackId, usize)>,
    losses: SampleLosses,
    empty_stacks: u64,
    replaced: u64,
    number_units: u64,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter that writes to `output`.
    pub fn new(output: W, options: ExportOptions) -> Self {
        Self {
            output: BufWriter::with_capacity(1 << 16, output),
            frames: TraceFrames { options, ..TraceFrames::default() },
            trace: Vec::new(),
            rendered: None,
            losses: SampleLosses::default(),
            empty_stacks: 0,
            replaced: 0,
            number_units: 0,
        }
    }

    /// Begins a trace with its frames. Returns whether they are too long for that.
    fn render_frames(&mut self, tables: &Tables, stack: Option<StackId>) -> bool {
        let Some(stack) = stack else {
            self.trace.clear();
            self.rendered = None;
            return false;
        };
        if let Some((_, length)) = self.rendered.filter(|&(rendered, _)| rendered == stack) {
            self.trace.truncate(length);
            return false;
        }
        self.trace.clear();
        let is_long = self.frames.put_stack(tables, stack, &mut self.trace, fits).is_err();
        if is_long {
            self.trace.clear();
        }
        self.rendered = (!is_long).then_some((stack, self.trace.len()));
        is_long
    }

    /// Writes the frames of a stack, frame by frame.
    #[cold]
    fn write_frames(&mut self, tables: &Tables, stack: Option<StackId>) -> io::Result<()> {
        let Self { output, frames, .. } = self;
        let Some(stack) = stack else { return Ok(()) };
        let mut text = Vec::new();
        frames.put_stack(tables, stack, &mut text, |text| {
            output.write_all(text)?;
            text.clear();
            Ok(())
        })
    }

    fn write_label(&mut self, tables: &Tables, label: &Label) {
        self.trace.extend_from_slice(b"# ");
        let start = self.trace.len();
        self.trace.extend_from_slice(tables.string(label.key));
        self.replaced += make_line(&mut self.trace, start) + replace_equals(&mut self.trace[start..]);
        self.trace.extend_from_slice(b" = ");
        let start = self.trace.len();
        match label.value {
            LabelValue::Text(text) => self.trace.extend_from_slice(tables.string(text)),
            LabelValue::Number { value, unit } => {
                push_decimal(&mut self.trace, value);
                self.number_units += u64::from(unit.is_some());
            }
        }
        self.replaced += make_line(&mut self.trace, start);
        self.trace.push(b'\n');
    }

    fn write_process(&mut self, process: i64) {
        self.trace.extend_from_slice(b"# pid = ");
        push_decimal(&mut self.trace, process);
        self.trace.push(b'\n');
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        runs::check(sample.count, NAME)?;
        self.losses.all_but_labels(at, sample);
        self.empty_stacks += if sample.stack.is_none() { sample.count } else { 0 };
        let is_long = self.render_frames(at.tables, sample.stack);
        for label in sample.labels.map_or(&[][..], |labels| at.tables.labels(labels)) {
            self.write_label(at.tables, label);
        }
        if let Some(process) = at.process(sample) {
            self.write_process(process);
        }
        self.trace.push(b'\n');
        for _ in 0..sample.count {
            if is_long {
                self.write_frames(at.tables, sample.stack)?;
            }
            self.output.write_all(&self.trace)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.losses)
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        self.output.flush()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        let mut losses = self.losses.report();
        losses.add("empty stacks", self.empty_stacks);
        losses.add("opcodes", self.frames.losses.opcodes_omitted);
        losses.add("columns", self.frames.losses.columns);
        losses.add("units of numbers", self.number_units);
        losses.add("special characters in names", self.replaced + self.frames.losses.replaced);
        losses
    }
}

/// Fails if a trace is too long to be held.
#[expect(clippy::ptr_arg, reason = "the signature that the writer of stacks asks for")]
fn fits(trace: &mut Vec<u8>) -> Result<(), ()> {
    if trace.len() <= LONGEST_HELD { Ok(()) } else { Err(()) }
}

/// The text after the depth on a frame's line, line feed included.
#[derive(Default)]
struct TraceFrames {
    options: ExportOptions,
    texts: FrameTexts,
    losses: FrameLosses,
}

/// The number of frames whose text lacks something.
#[derive(Default)]
struct FrameLosses {
    replaced: u64,
    opcodes_omitted: u64,
    /// Columns, or last lines.
    columns: u64,
}

impl TraceFrames {
    /// Appends the frames of a stack from the leaf on. Calls `each` after each frame, which may take what is there.
    fn put_stack<E>(
        &mut self,
        tables: &Tables,
        stack: StackId,
        to: &mut Vec<u8>,
        mut each: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut depth = 0;
        if let Some(opcode) = self.opcode(tables, &tables.frame(tables.leaf(stack))) {
            to.extend_from_slice(b"0 ");
            write_vm_frame(opcode, to);
            depth = 1;
        }
        for frame in tables.frames_leaf_first(Some(stack)) {
            push_decimal(to, depth);
            to.push(b' ');
            to.extend_from_slice(self.text(tables, frame));
            depth += 1;
            each(to)?;
        }
        Ok(())
    }

    fn text(&mut self, tables: &Tables, id: FrameId) -> &[u8] {
        let Self { options, texts, losses } = self;
        texts.text(id, |to, writing| write_frame(tables, &tables.frame(id), *options, losses, to, writing))
    }

    fn opcode<'t>(&self, tables: &'t Tables, frame: &Frame) -> Option<&'t [u8]> {
        opcode(self.options, tables, frame)
    }
}

/// The opcode of a frame, if it is to be written and readers would recognise it.
fn opcode<'t>(options: ExportOptions, tables: &'t Tables, frame: &Frame) -> Option<&'t [u8]> {
    let opcode = frame.opcode.filter(|_| options.opcodes == OpcodeOutput::Write)?;
    Some(tables.string(opcode)).filter(|opcode| is_opcode(opcode))
}

fn write_frame(
    tables: &Tables,
    frame: &Frame,
    options: ExportOptions,
    losses: &mut FrameLosses,
    to: &mut Vec<u8>,
    writing: Writing,
) {
    let start = to.len();
    write_location(tables, frame, to);
    losses.replaced += writing.counted(make_line(to, start));
    let opcode = opcode(options, tables, frame);
    losses.opcodes_omitted += writing.counted(u64::from(frame.opcode.is_some() && opcode.is_none()));
    let has_columns = frame.column.or(frame.end_column).is_some() || frame.end_line.is_some();
    losses.columns += writing.counted(u64::from(has_columns));
    if let Some(opcode) = opcode {
        to.push(b':');
        to.extend_from_slice(opcode);
    }
    to.push(b'\n');
}

/// Writes `FUNCTION FILE:LINE`. The line of a native frame is always 0.
fn write_location(tables: &Tables, frame: &Frame, to: &mut Vec<u8>) {
    let function = tables.string(frame.function);
    if let (Some(native), None) = (frame.native, frame.file) {
        to.extend_from_slice(tables.string(native.module));
        to.extend_from_slice(b"::");
        to.extend_from_slice(function);
        // Negative offsets in two's complement, like PHP's sprintf.
        if let Some(offset) = native.offset {
            to.extend_from_slice(format!("+{offset:#x}").as_bytes());
        }
        to.push(b' ');
        to.extend_from_slice(NATIVE);
        return to.extend_from_slice(b":0");
    }
    to.extend_from_slice(function);
    to.push(b' ');
    to.extend_from_slice(frame.file.map_or(b"", |file| tables.string(file)));
    to.push(b':');
    push_decimal(to, frame.line.unwrap_or(-1));
}

fn write_vm_frame(opcode: &[u8], to: &mut Vec<u8>) {
    for part in [VM, b"::", opcode, b" ", VM, b":-1\n"] {
        to.extend_from_slice(part);
    }
}

fn push_decimal(to: &mut Vec<u8>, number: i64) {
    write!(to, "{number}").expect("a vector takes all bytes");
}

/// Replaces equals signs that would end a label's key early: between spaces, or at its end before the separator.
fn replace_equals(key: &mut [u8]) -> u64 {
    let mut replaced = 0;
    while let Some(at) = memmem::find(key, b" = ") {
        key[at + 1] = b':';
        replaced += 1;
    }
    if let Some(before) = key.len().checked_sub(2)
        && key.ends_with(b" =")
    {
        key[before + 1] = b':';
        replaced += 1;
    }
    replaced
}
