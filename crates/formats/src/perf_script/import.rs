//! Imports samples into the model.

use std::io::{self, BufRead};
use std::mem;
use std::ops::ControlFlow;

use borehole_model::{
    Frame, FrameId, Label, LabelValue, LabelsId, Mode, NativeFrame, NativeModule, ProfileSink, Recovery,
    Sample, Segment, StringId, TableFull, Tables, Thread, ValueType,
};
use hashbrown::HashSet;

use super::NAME;
use super::header::{self, SampleHeader};
use super::read::{self, ChainFrame, INLINED, MappedCode, Source, UNKNOWN};
use crate::frames::memo::FrameMemo;
use crate::lines::import::{LineFault, LineOutput, LineParser};
use crate::lines::text::{excerpt, head_of};
use crate::{Error, Position, ReadError, ReadOptions};

/// The maximum number of events that have a value type each. Samples of further events only count, with a label `event`.
pub const MOST_EVENTS: usize = 64;

/// The bytes from the start of an input whose headers show its events and whether they have times.
const HEAD_BYTES: usize = 64 << 10;

/// The most modules that are stated. Others stay names.
const MOST_MODULES: usize = 1 << 16;

/// The key of the CPU's label.
const CPU: &[u8] = b"cpu";

/// The key of the event's label, of samples that only count.
const EVENT: &[u8] = b"event";

/// Reads samples: one for each header. Each event is a value type, and the period of a sample is its value, in nanoseconds for
/// the clocks; without a period, it is 1. The name of the thread is that of the header, the CPU is a label `cpu`.
///
/// A frame has the function, the module and the offset in the function. A function without a symbol is named by its address.
/// Functions that the compiler put into others (`(inlined)`) have no module. Comments, records that are not samples, and what
/// tracepoints say are skipped; a note counts the latter. Records of mapped code (`--show-mmap-events`) become entries
/// [`NativeModule::KEY`] of the metadata.
///
/// The last sample counts with or without a blank line after it.
///
/// # Errors
/// If a line is none of that and damage is not skipped, a limit is reached, the input cannot be read, or the sink fails.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, perf_script};
/// use borehole_model::{Count, Tables};
///
/// let text = b"php 4711 [001] 12.5: 250000 cpu-clock: \n\t 55d0c0a0 zif_usleep+0x2a (/usr/bin/php8.2)\n\n";
/// let mut tables = Tables::default();
/// let mut count = Count::default();
/// let recovery = perf_script::import(&text[..], &ReadOptions::default(), &mut tables, &mut count)?;
/// assert_eq!(recovery.samples, 1);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let (head, rest) = head_of(input, HEAD_BYTES).map_err(|error| Error::io(NAME, Position::Whole, error))?;
    let (events, has_times) = Events::of_head(&head);
    let segment = Segment {
        format: NAME,
        is_ordered: true,
        has_times,
        mode: Mode::Cpu,
        value_types: events.value_types.clone(),
        ..Segment::default()
    };
    let output = LineOutput::begin(segment, options, tables, sink)?;
    let mut importer = Importer {
        chain: Chain { tables, memo: FrameMemo::default(), frames_leaf_first: Vec::new() },
        open: None,
        events,
        values: Vec::new(),
        names: NameMemo::default(),
        modules: HashSet::new(),
        skipped_texts: 0,
        is_noted: false,
    };
    output.import(io::Read::chain(io::Cursor::new(head), rest), &mut importer)
}

struct Importer<'a> {
    chain: Chain<'a>,
    /// The header of the sample being read.
    open: Option<OpenSample>,
    events: Events,
    /// The values of the sample being delivered.
    values: Vec<i64>,
    names: NameMemo,
    modules: HashSet<StringId>,
    /// The samples of tracepoints whose text was skipped.
    skipped_texts: u64,
    is_noted: bool,
}

/// The header of a sample, in ids of the tables.
#[derive(Clone, Copy, Debug)]
struct OpenSample {
    process: Option<i64>,
    thread: Option<u64>,
    labels: Option<LabelsId>,
    time_ns: Option<i64>,
    /// The index of its event among the value types; `None` if it only counts.
    event: Option<usize>,
    value: i64,
}

impl LineParser for Importer<'_> {
    fn line(&mut self, line: &[u8], output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, LineFault> {
        let text = line.trim_ascii();
        if text.is_empty() {
            return Ok(self.end(output)?);
        }
        if self.open.is_some() && self.chain.take(line)? {
            return Ok(ControlFlow::Continue(()));
        }
        if text.starts_with(b"#") {
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(header) = header::header(line) {
            let flow = self.end(output)?;
            self.begin(&header, output)?;
            return Ok(flow);
        }
        if memchr::memmem::find(line, b"PERF_RECORD_").is_some() {
            self.module(line, output)?;
            return Ok(ControlFlow::Continue(()));
        }
        Err(LineFault::Invalid(bad_line(line, self.open.is_some())))
    }

    fn note(&mut self, number: u64) -> Option<String> {
        let is_new = self.skipped_texts > 0 && !mem::replace(&mut self.is_noted, self.skipped_texts > 0);
        is_new.then(|| format!("the text of tracepoints is not read (first at line {number})"))
    }

    /// Delivers the sample.
    fn end(&mut self, output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, ReadError> {
        let Some(open) = self.open.take() else { return Ok(ControlFlow::Continue(())) };
        let stack = self.chain.end()?;
        self.values.clear();
        self.values.resize(self.events.value_types.len(), 0);
        if let Some(value) = open.event.and_then(|event| self.values.get_mut(event)) {
            *value = open.value;
        }
        let OpenSample { process, thread, labels, time_ns, .. } = open;
        let values = &self.values;
        let sample =
            Sample { stack, count: 1, process, thread, labels, time_ns, values, ..Sample::default() };
        output.sample(self.chain.tables, &sample)
    }
}

impl Importer<'_> {
    /// Passes on the module of a record of a mapping, unless that was done.
    fn module(&mut self, line: &[u8], output: &mut LineOutput<'_>) -> Result<(), LineFault> {
        let Some(MappedCode { build_id, start, end, path }) = read::mapped_code(line) else { return Ok(()) };
        let module = NativeModule { build_id: build_id.to_owned(), start, end, path: path.to_owned() };
        let tables = &mut *self.chain.tables;
        let (key, value) = (NativeModule::KEY.as_bytes(), module.to_string());
        let (key, value) = (tables.intern_string(key)?, tables.intern_string(value.as_bytes())?);
        if self.modules.len() < MOST_MODULES && self.modules.insert(value) {
            output.state(tables, key, value)?;
        }
        Ok(())
    }

    fn begin(&mut self, header: &SampleHeader<'_>, output: &mut LineOutput<'_>) -> Result<(), LineFault> {
        let tables = &mut *self.chain.tables;
        let known = self.events.value_types.len();
        let event = self.events.index(header);
        if self.events.value_types.len() > known {
            output.begin_segment(tables, self.events.value_types.clone())?;
        }
        let labels = self.events.labels(header, event, tables)?;
        let SampleHeader { process, time_ns, .. } = *header;
        let thread = header.known_thread();
        if let Some(number) = thread.filter(|_| !header.is_unnamed()) {
            let name = self.names.name(header.name, tables)?;
            output.name_thread(tables, Thread { process, number }, name)?;
        }
        let value = header.period.map_or(1, |period| i64::try_from(period).unwrap_or(i64::MAX));
        self.open = Some(OpenSample { process, thread, labels, time_ns, event, value });
        if !header.rest.is_empty() && !self.chain.take_alone(header.rest)? {
            self.skipped_texts += 1;
        }
        Ok(())
    }
}

/// The last name of a thread: samples of one thread come in runs.
#[derive(Debug, Default)]
struct NameMemo {
    text: Vec<u8>,
    id: Option<StringId>,
}

impl NameMemo {
    fn name(&mut self, text: &[u8], tables: &mut Tables) -> Result<StringId, TableFull> {
        if let Some(id) = self.id.filter(|_| self.text == text) {
            return Ok(id);
        }
        let id = tables.intern_string(text)?;
        self.text.clear();
        self.text.extend_from_slice(text);
        self.id = Some(id);
        Ok(id)
    }
}

/// The events of an input as value types.
#[derive(Debug, Default)]
struct Events {
    value_types: Vec<ValueType>,
    latest: usize,
    /// The label sets of the CPUs, of samples without an event's label.
    cpus: Vec<Option<LabelsId>>,
}

/// The CPUs whose label sets are remembered.
const REMEMBERED_CPUS: u32 = 4096;

impl Events {
    /// The events of the first headers, and whether one of them has a time.
    fn of_head(head: &[u8]) -> (Self, bool) {
        let mut events = Self::default();
        let mut has_times = false;
        for header in head.split(|&byte| byte == b'\n').filter_map(header::header) {
            events.index(&header);
            has_times |= header.time_ns.is_some();
        }
        (events, has_times)
    }

    /// The index of the event of a header; `None` if there are too many.
    fn index(&mut self, header: &SampleHeader<'_>) -> Option<usize> {
        let is_it = |value_type: &ValueType| value_type.kind.as_bytes() == header.event;
        if !self.value_types.get(self.latest).is_some_and(is_it) {
            self.latest = match self.value_types.iter().position(is_it) {
                Some(index) => index,
                None if self.value_types.len() < MOST_EVENTS => self.add(header)?,
                None => return None,
            };
        }
        Some(self.latest)
    }

    #[cold]
    fn add(&mut self, header: &SampleHeader<'_>) -> Option<usize> {
        let kind = std::str::from_utf8(header.event).ok()?;
        let is_clock = kind.split(':').next().is_some_and(|name| name.ends_with("-clock"));
        let unit = if is_clock && header.period.is_some() { "nanoseconds" } else { "count" };
        self.value_types.push(ValueType::new(kind, unit));
        Some(self.value_types.len() - 1)
    }

    /// The labels of a sample: its CPU, and its event if that is no value type.
    fn labels(
        &mut self,
        header: &SampleHeader<'_>,
        event: Option<usize>,
        tables: &mut Tables,
    ) -> Result<Option<LabelsId>, TableFull> {
        if event.is_some()
            && let Some(cpu) = header.cpu
            && let Some(&Some(known)) = self.cpus.get(cpu as usize)
        {
            return Ok(Some(known));
        }
        let mut labels = Vec::new();
        if let Some(cpu) = header.cpu {
            let value = LabelValue::Number { value: cpu.into(), unit: None };
            labels.push(Label { key: tables.intern_string(CPU)?, value });
        }
        if event.is_none() {
            let value = LabelValue::Text(tables.intern_string(header.event)?);
            labels.push(Label { key: tables.intern_string(EVENT)?, value });
        }
        if labels.is_empty() {
            return Ok(None);
        }
        let labels = tables.intern_labels(&labels)?;
        if let Some(cpu) = header.cpu.filter(|&cpu| event.is_some() && cpu < REMEMBERED_CPUS) {
            self.cpus.resize(self.cpus.len().max(cpu as usize + 1), None);
            self.cpus[cpu as usize] = Some(labels);
        }
        Ok(Some(labels))
    }
}

/// The call chain being read.
struct Chain<'a> {
    tables: &'a mut Tables,
    memo: FrameMemo,
    frames_leaf_first: Vec<FrameId>,
}

impl Chain<'_> {
    /// Takes a line below a header; returns whether it belongs to the chain.
    fn take(&mut self, line: &[u8]) -> Result<bool, TableFull> {
        if !line.first().is_some_and(u8::is_ascii_whitespace) {
            return Ok(false);
        }
        // Below two spaces, because some addresses look like paths.
        if line.starts_with(b"  ") && self.locate(line)? {
            return Ok(true);
        }
        let frame = self.known(line)?;
        self.frames_leaf_first.extend(frame);
        Ok(frame.is_some())
    }

    /// Takes the text behind an event, if it is a frame.
    fn take_alone(&mut self, text: &[u8]) -> Result<bool, TableFull> {
        let is_frame = text.ends_with(b")") && read::frame(text).is_some();
        if is_frame && let Some(frame) = self.known(text)? {
            self.frames_leaf_first.push(frame);
        }
        Ok(is_frame)
    }

    /// The frame of a line; `None` if it is none.
    fn known(&mut self, line: &[u8]) -> Result<Option<FrameId>, TableFull> {
        let Self { tables, memo, .. } = self;
        let frame = memo.frame(line, || {
            let frame = read::frame(line).ok_or(NoFrame::Line)?;
            Ok(intern(tables, &frame)?)
        });
        match frame {
            Ok(frame) => Ok(Some(frame)),
            Err(NoFrame::Line) => Ok(None),
            Err(NoFrame::Full(full)) => Err(full),
        }
    }

    /// Gives the last frame the source line below it.
    fn locate(&mut self, line: &[u8]) -> Result<bool, TableFull> {
        let Some((source, last)) = read::source(line).zip(self.frames_leaf_first.last_mut()) else {
            return Ok(false);
        };
        if let Source::Line(file, line) = source {
            let file = Some(self.tables.intern_string(file)?);
            let line = (line > 0).then_some(line);
            *last = self.tables.intern_frame(&Frame { file, line, ..self.tables.frame(*last) })?;
        }
        Ok(true)
    }

    /// Ends the chain and returns its stack.
    fn end(&mut self) -> Result<Option<borehole_model::StackId>, TableFull> {
        let stack = self.tables.intern_stack_leaf_first(&self.frames_leaf_first)?;
        self.frames_leaf_first.clear();
        Ok(stack)
    }
}

/// The reason why a line made no frame.
enum NoFrame {
    Line,
    Full(TableFull),
}

impl From<TableFull> for NoFrame {
    fn from(full: TableFull) -> Self {
        Self::Full(full)
    }
}

fn intern(tables: &mut Tables, text: &ChainFrame<'_>) -> Result<FrameId, TableFull> {
    let function = match text.symbol {
        Some(symbol) => tables.intern_string(symbol)?,
        None => tables.intern_string(&[b"0x", text.address].concat())?,
    };
    let module = text.module.filter(|&module| module != INLINED && module != UNKNOWN);
    let native = match module {
        Some(module) => Some(NativeFrame {
            module: tables.intern_string(module)?,
            offset: text.offset,
            file_offset: None,
        }),
        None => None,
    };
    tables.intern_frame(&Frame { native, ..Frame::named(function) })
}

#[cold]
fn bad_line(line: &[u8], is_in_chain: bool) -> String {
    let expected =
        if is_in_chain { "ADDRESS SYMBOL (MODULE) or a header" } else { "a header COMM TID ... EVENT:" };
    format!("expected {expected}, found {:?}", excerpt(line.trim_ascii()))
}
