//! Imports samples into the model.

use std::io::BufRead;
use std::mem;
use std::ops::ControlFlow;

use borehole_model::{
    Context, FrameId, Label, LabelValue, LabelsId, Mode, ProfileSink, Recovery, Sample, Segment, StackId,
    StringId, TableFull, Tables, ValueType,
};
use hashbrown::HashMap;

use super::NAME;
use super::definitions::{Definitions, Undefined, frame_without_file};
use super::read::{EventStream, MojoEvent, StreamFault};
use crate::documents::whole::DocumentDamage;
use crate::{Error, Position, ReadError, ReadOptions, Warning};

/// Reads samples with their processes, threads and interpreters, and frames with files, lines and columns.
///
/// What Austin measured are values: microseconds elapsed (`wall`) or on a CPU (`cpu`), or bytes (`memory`, negative when they
/// were freed); in the mode `full` all three. Frames of the kernel have the module `[kernel]`. While the garbage collector ran,
/// the leaf is a frame `GC`, as in Austin's text. A sample of a running task of asyncio has the label `task`; the positions of
/// suspended tasks are not read, with a note.
///
/// Samples before a cut-off end are kept, with a warning.
///
/// # Errors
/// If an event is unknown or refers to what is not defined and damage is not skipped, a limit is reached, the input cannot be
/// read, or the sink fails.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, mojo};
/// use borehole_model::{Count, Tables};
///
/// let stream = b"MOJ\x03\x01mode\0wall\0\x02\x07\0\x32b\0\x0b\x02a.py\0\x0b\x03main\0\x03\x01\x02\x03\x05\0\0\0\x05\x01\x09\x0a";
/// let mut tables = Tables::default();
/// let mut count = Count::default();
/// let recovery = mojo::import(&stream[..], &ReadOptions::default(), &mut tables, &mut count)?;
/// assert_eq!(recovery.samples, 1);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut stream = EventStream::begin(input, options.limits.payload_bytes)?;
    let importer = Importer {
        definitions: Definitions::default(),
        segment: Segment { format: NAME, is_ordered: true, ..Segment::default() },
        measured: Measured::Wall,
        has_begun: false,
        open: None,
        frames: Vec::new(),
        repeated: None,
        has_other_frames: false,
        latest: HashMap::new(),
        tasks: Tasks::default(),
        damage: DocumentDamage::new(options),
        tables,
        sink,
    };
    importer.import(&mut stream)
}

/// The threads between checks of the memory held.
const CHECKED_THREADS: usize = 1024;

/// The frames of a sample between checks of the memory held.
const CHECKED_FRAMES: usize = 1 << 16;

/// The meaning of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measured {
    Wall,
    Cpu,
    Memory,
    Full,
}

impl Measured {
    fn value_types(self) -> Vec<ValueType> {
        let [wall, cpu] = ["wall", "cpu"].map(|kind| ValueType::new(kind, "microseconds"));
        let memory = ValueType::new("memory", "bytes");
        match self {
            Self::Wall => vec![wall],
            Self::Cpu => vec![cpu],
            Self::Memory => vec![memory],
            Self::Full => vec![wall, cpu, memory],
        }
    }
}

/// A thread of a process: by its number, or by the text in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ThreadKey {
    Number(u64),
    Named(StringId),
}

/// The sample being read.
#[derive(Clone, Copy, Debug)]
struct OpenSample {
    process: i64,
    interpreter: Option<u64>,
    thread: ThreadKey,
    time_us: Option<i64>,
    memory_bytes: Option<i64>,
    is_idle: bool,
    is_collecting: bool,
    task: Option<i64>,
}

struct Importer<'a> {
    definitions: Definitions,
    segment: Segment,
    measured: Measured,
    has_begun: bool,
    open: Option<OpenSample>,
    /// The frames of the open sample so far, from the root, above the part of the last stack that it repeats.
    frames: Vec<FrameId>,
    repeated: Option<StackId>,
    /// Whether there are frames among them that are not of code in a file.
    has_other_frames: bool,
    /// The last stack of each thread, for samples that repeat a part of it.
    latest: HashMap<(i64, ThreadKey), Option<StackId>>,
    tasks: Tasks,
    damage: DocumentDamage,
    tables: &'a mut Tables,
    sink: &'a mut dyn ProfileSink,
}

impl Importer<'_> {
    fn import(mut self, stream: &mut EventStream<impl BufRead>) -> Result<Recovery, ReadError> {
        loop {
            let taken = match stream.next_event() {
                Ok(Some(MojoEvent::FrameReference(key))) if self.open.is_some() => {
                    self.references(key, stream).map(ControlFlow::Continue)
                }
                Ok(Some(event)) => self.take(&event, stream),
                Ok(None) => break,
                Err(StreamFault::Cut { at }) => {
                    self.damage
                        .recovery
                        .warn(Warning::truncated("truncated: the last event is incomplete").at(Some(at)));
                    break;
                }
                Err(StreamFault::Invalid(error)) => Err(error.into()),
            };
            match taken {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => {
                    self.damage.recovery.stopped = true;
                    return self.damage.finish(self.sink);
                }
                Err(ReadError::Input(error)) => {
                    // Where the next event begins is unknown.
                    let lost = if error.is_io() { 0 } else { stream.skip_rest()? };
                    self.damage.meet(error, lost)?;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        self.end()
    }

    /// Ends the last sample, if it is whole.
    fn end(mut self) -> Result<Recovery, ReadError> {
        self.begin()?;
        if self.open.is_some_and(|open| self.is_whole(&open)) {
            self.damage.recovery.stopped = self.deliver()?.is_break();
        } else if self.open.is_some() && self.damage.recovery.is_clean() {
            self.damage.recovery.warn(Warning::truncated("truncated: the last sample is incomplete"));
        }
        if self.tasks.suspended > 0 {
            let message = format!("{} positions of suspended tasks are not read", self.tasks.suspended);
            self.damage.recovery.note(Warning::new(message));
        }
        self.damage.finish(self.sink)
    }

    const fn is_whole(&self, open: &OpenSample) -> bool {
        match self.measured {
            Measured::Wall | Measured::Cpu => open.time_us.is_some(),
            Measured::Memory => open.memory_bytes.is_some(),
            Measured::Full => open.time_us.is_some() && open.memory_bytes.is_some(),
        }
    }

    fn take(
        &mut self,
        event: &MojoEvent,
        stream: &EventStream<impl BufRead>,
    ) -> Result<ControlFlow<()>, ReadError> {
        if let MojoEvent::Metadata { key, value } = event {
            self.metadata(stream.text(key), stream.text(value))?;
            return Ok(ControlFlow::Continue(()));
        }
        if let MojoEvent::Stack { process, interpreter, thread } = event {
            let flow = self.deliver()?;
            if self.latest.len().is_multiple_of(CHECKED_THREADS) {
                self.check(stream.offset())?;
            }
            self.begin()?;
            self.begin_sample(*process, *interpreter, stream.text(thread))?;
            return Ok(flow);
        }
        let Some(open) = &mut self.open else {
            let message = "expected a stack before other events";
            return Err(Error::malformed(NAME, Position::Byte(stream.offset()), message).into());
        };
        match *event {
            MojoEvent::Time(time_us) => open.time_us = Some(time_us),
            MojoEvent::Memory(memory_bytes) => open.memory_bytes = Some(memory_bytes),
            MojoEvent::Idle => open.is_idle = true,
            MojoEvent::Gc => open.is_collecting = true,
            MojoEvent::RunningTask(task) => open.task = Some(task),
            MojoEvent::RepeatedStack => self.repeat(),
            MojoEvent::InvalidFrame => self.other_frame(b"INVALID", None)?,
            MojoEvent::KernelFrame(ref name) => self.other_frame(stream.text(name), Some(b"[kernel]"))?,
            _ => self.define(event, stream)?,
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Takes a reference to a frame, and those that follow.
    fn references(&mut self, first: i64, stream: &mut EventStream<impl BufRead>) -> Result<(), ReadError> {
        self.frame(first, stream.offset())?;
        while let Some(key) = stream.next_reference() {
            self.frame(key, stream.offset())?;
        }
        Ok(())
    }

    /// Takes a definition or an event about tasks.
    fn define(&mut self, event: &MojoEvent, stream: &EventStream<impl BufRead>) -> Result<(), ReadError> {
        let process = self.open.map_or(0, |open| open.process);
        match *event {
            MojoEvent::String { key, ref text } => {
                self.definitions.define_string(process, key, stream.text(text), self.tables)?;
            }
            MojoEvent::Frame { key, ref place } => {
                let defined = self.definitions.define_frame(process, key, place, self.tables)?;
                defined.or_else(|undefined| self.undefined(undefined, stream.offset()))?;
            }
            MojoEvent::TaskStack { task, name, frames } => {
                let name = self.definitions.string(process, name);
                self.tasks.report(task, name, frames);
            }
            _ => {}
        }
        self.check(stream.offset())
    }

    fn check(&self, offset: u64) -> Result<(), ReadError> {
        let held = self.definitions.held_bytes()
            + size_of_val(&*self.frames)
            + self.latest.allocation_size()
            + self.tasks.known.allocation_size();
        let position = Position::Byte(offset);
        Ok(self.damage.limits.check(held).map_err(|over| Error::memory(NAME, position, over))?)
    }

    fn frame(&mut self, key: i64, offset: u64) -> Result<(), ReadError> {
        let process = self.open.map_or(0, |open| open.process);
        // The frames of a suspended task are not those of the sample.
        if self.tasks.frames_left > 0 {
            self.tasks.frames_left -= 1;
            return Ok(());
        }
        if let Some(frame) = self.definitions.frame(process, key) {
            self.frames.push(frame);
            if self.frames.len().is_multiple_of(CHECKED_FRAMES) {
                self.check(offset)?;
            }
            return Ok(());
        }
        self.undefined(Undefined { what: "frame", key }, offset)?;
        Ok(self.other_frame(b"<lost frame>", None)?)
    }

    /// Adds a frame that is not of code in a file.
    fn other_frame(&mut self, name: &[u8], module: Option<&[u8]>) -> Result<(), TableFull> {
        self.has_other_frames = true;
        self.frames.push(frame_without_file(name, module, self.tables)?);
        Ok(())
    }

    /// Meets a reference to something undefined; the event itself is read.
    #[cold]
    fn undefined(&mut self, undefined: Undefined, offset: u64) -> Result<(), ReadError> {
        let message = format!("undefined {}: {}", undefined.what, undefined.key);
        Ok(self.damage.meet(Error::malformed(NAME, Position::Byte(offset), message), 0)?)
    }

    /// Puts the frames of the thread's last sample below those of the open one, without native ones at its end.
    ///
    /// Source: austin-python 2.4.0, `austin/format/mojo.py`, `get_stack_repeat`.
    fn repeat(&mut self) {
        let Some(open) = self.open else { return };
        let mut latest = self.latest.get(&(open.process, open.thread)).copied().flatten();
        while let Some(stack) = latest.filter(|&stack| !self.is_python(self.tables.leaf(stack))) {
            latest = self.tables.parent(stack);
        }
        self.repeated = latest;
    }

    /// Whether a frame is of Python: its file is a module or a name in angle brackets.
    fn is_python(&self, frame: FrameId) -> bool {
        let file = self.tables.frame(frame).file.map(|file| self.tables.string(file));
        file.is_some_and(|file| file.ends_with(b".py") || (file.starts_with(b"<") && file.ends_with(b">")))
    }

    fn metadata(&mut self, key: &[u8], value: &[u8]) -> Result<(), ReadError> {
        if key == b"mode" && !self.has_begun {
            (self.measured, self.segment.mode) = match value {
                b"cpu" => (Measured::Cpu, Mode::Cpu),
                b"memory" => (Measured::Memory, Mode::Wall),
                b"full" => (Measured::Full, Mode::Wall),
                _ => (Measured::Wall, Mode::Wall),
            };
        }
        let (key, value) = (self.tables.intern_string(key)?, self.tables.intern_string(value)?);
        if self.has_begun {
            let at = Context { tables: self.tables, segment: &self.segment };
            return Ok(self.sink.metadata(at, key, value)?);
        }
        self.segment.metadata.push((key, value));
        let held = size_of_val(&*self.segment.metadata);
        Ok(self.damage.limits.check(held).map_err(|over| Error::memory(NAME, Position::Whole, over))?)
    }

    /// Begins the segment, once: the metadata before the first sample say what it has.
    fn begin(&mut self) -> Result<(), ReadError> {
        if mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        self.segment.value_types = self.measured.value_types();
        self.segment.is_uncounted = true;
        self.damage.recovery.segments = 1;
        Ok(self.sink.segment(Context { tables: self.tables, segment: &self.segment })?)
    }

    fn begin_sample(
        &mut self,
        process: i64,
        interpreter: Option<i64>,
        thread: &[u8],
    ) -> Result<(), TableFull> {
        let number = std::str::from_utf8(thread).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
        let thread = match number {
            Some(number) => ThreadKey::Number(number),
            None => ThreadKey::Named(self.tables.intern_string(thread)?),
        };
        self.frames.clear();
        self.repeated = None;
        self.has_other_frames = false;
        self.tasks.frames_left = 0;
        self.open = Some(OpenSample {
            process,
            interpreter: interpreter.and_then(|interpreter| u64::try_from(interpreter).ok()),
            thread,
            time_us: None,
            memory_bytes: None,
            is_idle: false,
            is_collecting: false,
            task: None,
        });
        Ok(())
    }

    /// Delivers the open sample.
    fn deliver(&mut self) -> Result<ControlFlow<()>, ReadError> {
        let Some(open) = self.open.take() else { return Ok(ControlFlow::Continue(())) };
        let stack = self.stack(&open)?;
        let labels = self.labels(&open)?;
        let (time_us, memory_bytes) = (open.time_us.unwrap_or(0), open.memory_bytes.unwrap_or(0));
        let busy_us = if open.is_idle { 0 } else { time_us };
        let values = match self.measured {
            Measured::Wall | Measured::Cpu => &[time_us][..],
            Measured::Memory => &[memory_bytes],
            Measured::Full => &[time_us, busy_us, memory_bytes],
        };
        let sample = Sample {
            stack,
            count: 1,
            process: Some(open.process),
            thread: match open.thread {
                ThreadKey::Number(number) => Some(number),
                ThreadKey::Named(_) => None,
            },
            interpreter: open.interpreter,
            labels,
            values,
            ..Sample::default()
        };
        self.damage.recovery.samples += 1;
        Ok(self.sink.sample(Context { tables: self.tables, segment: &self.segment }, &sample)?)
    }

    /// The stack of a sample, which becomes the last one of its thread without the frames that Austin put into it.
    fn stack(&mut self, open: &OpenSample) -> Result<Option<StackId>, TableFull> {
        let (mut stack, mut own) = (self.repeated, self.repeated);
        for &frame in &self.frames {
            stack = Some(self.tables.intern_stack(stack, frame)?);
            if self.has_other_frames && self.tables.frame(frame).file.is_some() {
                own = Some(self.tables.intern_stack(own, frame)?);
            }
        }
        if !self.has_other_frames {
            own = stack;
        }
        self.latest.insert((open.process, open.thread), own);
        if open.is_collecting {
            let frame = frame_without_file(b"GC", None, self.tables)?;
            stack = Some(self.tables.intern_stack(stack, frame)?);
        }
        Ok(stack)
    }

    fn labels(&mut self, open: &OpenSample) -> Result<Option<LabelsId>, TableFull> {
        let mut labels = Vec::new();
        if let ThreadKey::Named(name) = open.thread {
            labels.push(Label { key: self.tables.intern_string(b"thread")?, value: LabelValue::Text(name) });
        }
        if let Some(task) = open.task {
            let name = self.tasks.known.get(&task).copied().flatten();
            let value = match name {
                Some(name) => LabelValue::Text(name),
                None => LabelValue::Number { value: task, unit: None },
            };
            labels.push(Label { key: self.tables.intern_string(b"task")?, value });
        }
        if labels.is_empty() { Ok(None) } else { self.tables.intern_labels(&labels).map(Some) }
    }
}

/// The tasks of asyncio.
#[derive(Debug, Default)]
struct Tasks {
    /// Their names.
    known: HashMap<i64, Option<StringId>>,
    /// The references to frames that follow a report.
    frames_left: i64,
    /// The reports of positions.
    suspended: u64,
}

impl Tasks {
    /// Takes the report of a task's position; one without frames says that the task is gone.
    fn report(&mut self, task: i64, name: Option<StringId>, frames: i64) {
        self.frames_left = frames;
        if frames <= 0 {
            self.known.remove(&task);
        } else {
            self.suspended += 1;
            let known = self.known.entry(task).or_default();
            *known = name.or(*known);
        }
    }
}
