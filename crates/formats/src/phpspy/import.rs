//! Import of traces to the model.

use std::io::BufRead;
use std::mem;
use std::ops::ControlFlow;

use borehole_model::{
    Frame, FrameId, Label, LabelValue, NativeFrame, ProfileSink, Recovery, Sample, Segment, StringId,
    TableFull, Tables,
};

use super::read::{self, Comment, Item, TraceFrame};
use super::{NAME, VM};
use crate::frames::memo::FrameMemo;
use crate::lines::import::{LineFault, LineOutput, LineParser};
use crate::{ReadError, ReadOptions};

/// Reads traces: one sample for each block of lines, or for each line of the one-line form.
///
/// A line of -1 is unknown. Comments `# key = value` become labels, in order; `# pid = N` is the process; `# mem SIZE PEAK`
/// becomes a label `mem`; other comments are skipped. A block without frames is not a sample. If a frame of the virtual
/// machine before the leaf names an opcode, it becomes the leaf's opcode. Native frames keep module and offset.
///
/// The last trace counts with or without a blank line after it. An unreadable last line without a line feed is a cut-off
/// end: a warning. Under [`OnDamage::ReadOn`](crate::OnDamage::ReadOn) any invalid line is a warning, and its trace keeps its
/// other frames.
///
/// # Errors
/// If a line is neither a frame nor a comment and damage is not read over, a limit is reached, the input cannot be read, or
/// the sink fails.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, phpspy};
/// use borehole_model::{Count, Tables};
///
/// let text = b"0 query /db.php:7\n1 <main> /index.php:5\n# pid = 4711\n\n0 <main> /index.php:6\n";
/// let mut tables = Tables::default();
/// let mut count = Count::default();
/// let recovery = phpspy::import(&text[..], &ReadOptions::default(), &mut tables, &mut count)?;
/// assert_eq!(recovery.samples, 2);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let segment = Segment { format: NAME, is_ordered: true, ..Segment::default() };
    let output = LineOutput::begin(segment, options, tables, sink)?;
    let mut importer = Importer { trace: OpenTrace::new(tables), is_ended: false };
    output.import(input, &mut importer)
}

struct Importer<'a> {
    trace: OpenTrace<'a>,
    /// Whether the trace ended with its line, and only has to be delivered.
    is_ended: bool,
}

impl LineParser for Importer<'_> {
    fn line(&mut self, line: &[u8], output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, LineFault> {
        if mem::take(&mut self.is_ended) && self.end(output)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if let Some(pieces) = read::one_line(line) {
            return self.one_line(pieces, output);
        }
        match read::item(line) {
            Some(Item::Blank) => Ok(self.end(output)?),
            item => self.trace.take(item, line).map(ControlFlow::Continue),
        }
    }

    #[inline]
    fn note(&mut self, number: u64) -> Option<String> {
        let is_rounded = mem::take(&mut self.trace.is_rounded);
        is_rounded.then(|| format!("the fraction of a line number is dropped (line {number})"))
    }

    /// Delivers the trace.
    fn end(&mut self, output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, ReadError> {
        match self.trace.end()? {
            Some(sample) => output.sample(self.trace.tables, &sample),
            None => Ok(ControlFlow::Continue(())),
        }
    }
}

impl Importer<'_> {
    fn one_line(
        &mut self,
        pieces: read::OneLine<'_>,
        output: &mut LineOutput<'_>,
    ) -> Result<ControlFlow<()>, LineFault> {
        let flow = self.end(output)?;
        if flow.is_break() {
            return Ok(flow);
        }
        self.is_ended = true;
        let mut invalid = None;
        for piece in pieces {
            match self.trace.take(read::item(piece), piece) {
                Err(LineFault::Invalid(message)) => invalid = invalid.or(Some(message)),
                taken => taken?,
            }
        }
        invalid.map_or(Ok(flow), |message| Err(LineFault::Invalid(message)))
    }
}

/// The trace being read.
struct OpenTrace<'a> {
    tables: &'a mut Tables,
    memo: FrameMemo,
    /// The file of the virtual machine's frames; `None` before the first one.
    vm: Option<StringId>,
    frames_leaf_first: Vec<FrameId>,
    labels: Vec<Label>,
    process: Option<i64>,
    /// Whether a line number with a fraction was found.
    is_rounded: bool,
}

impl<'a> OpenTrace<'a> {
    fn new(tables: &'a mut Tables) -> Self {
        Self {
            tables,
            memo: FrameMemo::default(),
            vm: None,
            frames_leaf_first: Vec::new(),
            labels: Vec::new(),
            process: None,
            is_rounded: false,
        }
    }

    fn take(&mut self, item: Option<Item<'_>>, line: &[u8]) -> Result<(), LineFault> {
        match item {
            Some(Item::Frame(text)) => self.frame(text),
            Some(Item::Comment(text)) => Ok(self.comment(text)?),
            Some(Item::Blank) => Ok(()),
            None => Err(LineFault::Invalid(read::bad_item(line))),
        }
    }

    fn frame(&mut self, text: &[u8]) -> Result<(), LineFault> {
        let Self { tables, memo, vm, is_rounded, .. } = self;
        let frame = memo.frame(text, || {
            let frame = read::frame(text).map_err(LineFault::Invalid)?;
            *is_rounded |= frame.is_rounded;
            let id = intern(tables, &frame)?;
            if read::vm_opcode(frame.function, frame.file).is_some() {
                *vm = tables.frame(id).file;
            }
            Ok::<_, LineFault>(id)
        })?;
        self.frames_leaf_first.push(frame);
        Ok(())
    }

    fn comment(&mut self, text: &[u8]) -> Result<(), TableFull> {
        match read::comment(text) {
            Comment::Process(process) => self.process = Some(process),
            Comment::Label(key, value) => {
                let key = self.tables.intern_string(key)?;
                let value = LabelValue::Text(self.tables.intern_string(value)?);
                self.labels.push(Label { key, value });
            }
            Comment::Remark => {}
        }
        Ok(())
    }

    /// Ends the trace and returns its sample, unless it has no frames.
    fn end(&mut self) -> Result<Option<Sample<'static>>, TableFull> {
        let process = self.process.take();
        if self.frames_leaf_first.is_empty() {
            self.labels.clear();
            return Ok(None);
        }
        self.fold_opcode()?;
        let stack = self.tables.intern_stack_leaf_first(&self.frames_leaf_first)?;
        self.frames_leaf_first.clear();
        let labels = match &self.labels[..] {
            [] => None,
            labels => Some(self.tables.intern_labels(labels)?),
        };
        self.labels.clear();
        Ok(Some(Sample { stack, count: 1, process, labels, ..Sample::default() }))
    }

    /// Gives the opcode in the virtual machine's frame to the next frame, the leaf. If that has another one, the two do not
    /// belong together, and both stay.
    fn fold_opcode(&mut self) -> Result<(), TableFull> {
        let [vm, leaf, ..] = self.frames_leaf_first[..] else { return Ok(()) };
        let vm = self.tables.frame(vm);
        let leaf = self.tables.frame(leaf);
        if vm.file.is_none() || vm.file != self.vm {
            return Ok(());
        }
        let Some(name) = read::vm_opcode(self.tables.string(vm.function), VM).map(<[u8]>::to_vec) else {
            return Ok(());
        };
        let opcode = Some(self.tables.intern_string(&name)?);
        if leaf.opcode.is_none() || leaf.opcode == opcode {
            self.frames_leaf_first.remove(0);
            self.frames_leaf_first[0] = self.tables.intern_frame(&Frame { opcode, ..leaf })?;
        }
        Ok(())
    }
}

fn intern(tables: &mut Tables, text: &TraceFrame<'_>) -> Result<FrameId, TableFull> {
    if let Some(read::NativeText { module, symbol, offset }) = read::native(text.function, text.file) {
        let module = tables.intern_string(module)?;
        let function = tables.intern_string(symbol)?;
        let native = Some(NativeFrame { module, offset, file_offset: None });
        return tables.intern_frame(&Frame { native, ..Frame::named(function) });
    }
    let function = tables.intern_string(text.function)?;
    let file = match text.file {
        b"" => None,
        file => Some(tables.intern_string(file)?),
    };
    let opcode = text.opcode.map(|opcode| tables.intern_string(opcode)).transpose()?;
    let line = (text.line != -1).then_some(text.line);
    tables.intern_frame(&Frame { file, line, opcode, ..Frame::named(function) })
}
