//! Exports the model to lines.

use std::io::{self, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Context, Event, Frame, FrameId, LabelValue, LabelsId, LaneId, Measure, Mode, ProfileSink, Recovery,
    Sample, Segment, StackId, Status, StringId, Tables, Thread, Warning,
};
use borehole_text::LineWriter;

use super::event::write_event;
use super::{SCHEMA_VERSION, assumed_parts};
use crate::{Export, Losses};

/// The options of an export to lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// Whether each sample carries its own frames, without lines for stacks. The output is far larger, but each line
    /// can be understood alone.
    pub flat: bool,
}

/// Writes a profile as JSON Lines. Nothing is lost.
///
/// Memory: a number for each stack, and a buffer of some 64 KiB.
#[derive(Debug)]
pub struct Exporter<W> {
    output: W,
    options: ExportOptions,
    lines: LineWriter,
    /// The printed id of each stack, 0 if it is not printed yet. Row 0 is the empty stack, row n the stack with the
    /// index n − 1.
    printed: Vec<u32>,
    stacks: u32,
    began: bool,
    /// The process in the segment's line.
    process: Option<i64>,
    /// The source of the next segment, not printed yet.
    next_source: Option<String>,
    outcome: Recovery,
}

/// The number of bytes to collect before writing: few calls, little memory.
const BUFFER_BYTES: usize = 64 << 10;

impl<W: Write> Exporter<W> {
    /// Creates an exporter to `output`.
    pub fn new(output: W, options: ExportOptions) -> Self {
        Self {
            output,
            options,
            lines: LineWriter::default(),
            printed: Vec::new(),
            stacks: 0,
            began: false,
            process: None,
            next_source: None,
            outcome: Recovery::default(),
        }
    }

    /// Returns the output. It is incomplete before [`finish`](ProfileSink::finish).
    pub fn into_inner(self) -> W {
        self.output
    }

    fn begin(&mut self, tables: &Tables, segment: Option<&Segment>) {
        if !self.began {
            self.begin_file(tables, segment);
        }
        if let Some(name) = self.next_source.take() {
            let line = &mut self.lines;
            begin(line, "input");
            line.key("name");
            line.text(&name);
            end(line);
        }
    }

    #[cold]
    fn begin_file(&mut self, tables: &Tables, segment: Option<&Segment>) {
        self.began = true;
        let line = &mut self.lines;
        begin(line, "file");
        line.key("schema_version");
        line.unsigned(SCHEMA_VERSION);
        if let Some(segment) = segment {
            write_header(line, segment);
            write_metadata(line, tables, segment);
        }
        end(line);
    }

    fn end_line(&mut self) -> io::Result<()> {
        end(&mut self.lines);
        if self.lines.bytes().len() < BUFFER_BYTES { Ok(()) } else { self.drain() }
    }

    fn drain(&mut self) -> io::Result<()> {
        self.output.write_all(self.lines.bytes())?;
        self.lines.clear();
        Ok(())
    }

    /// The printed id of a stack; on first use its line is written before.
    #[inline]
    fn stack_id(&mut self, at: Context<'_>, stack: Option<StackId>) -> io::Result<u32> {
        let row = stack.map_or(0, |stack| stack.index() + 1);
        match self.printed.get(row) {
            Some(&id) if id != 0 => Ok(id),
            _ => self.print_stack(at, stack, row),
        }
    }

    #[cold]
    fn print_stack(&mut self, at: Context<'_>, stack: Option<StackId>, row: usize) -> io::Result<u32> {
        if row >= self.printed.len() {
            self.printed.resize(at.tables.stack_count() + 1, 0);
        }
        let full = || io::Error::other(format!("too many distinct stacks: expected at most {}", u32::MAX));
        self.stacks = self.stacks.checked_add(1).ok_or_else(full)?;
        self.printed[row] = self.stacks;
        begin(&mut self.lines, "stack");
        self.lines.key("id");
        self.lines.unsigned(self.stacks.into());
        self.write_frames(at, stack)?;
        self.end_line()?;
        Ok(self.stacks)
    }

    /// Writes the frames of a stack. A line may be far longer than memory, so its beginning is written out before its end is there.
    fn write_frames(&mut self, at: Context<'_>, stack: Option<StackId>) -> io::Result<()> {
        self.lines.key("frames");
        self.lines.begin_array();
        for frame in at.tables.frames_leaf_first(stack) {
            write_frame(&mut self.lines, at, frame);
            if self.lines.bytes().len() >= BUFFER_BYTES {
                self.output.write_all(self.lines.take_all_but_last().as_ref())?;
            }
        }
        self.lines.end_array();
        Ok(())
    }

    fn write_end(&mut self) {
        let Self { lines: line, outcome, .. } = self;
        begin(line, "end");
        let numbers =
            [("samples", outcome.samples), ("events", outcome.events), ("lost_bytes", outcome.lost_bytes)];
        for (key, number) in numbers {
            line.key(key);
            line.unsigned(number);
        }
        line.key("warnings");
        line.begin_array();
        for warning in &outcome.warnings {
            write_warning(line, warning);
        }
        line.end_array();
        if outcome.more_warnings > 0 {
            line.key("more_warnings");
            line.unsigned(outcome.more_warnings);
        }
        end(line);
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.begin(at.tables, Some(at.segment));
        self.outcome.samples = self.outcome.samples.saturating_add(sample.count);
        if self.options.flat {
            begin(&mut self.lines, "sample");
            self.write_frames(at, sample.stack)?;
        } else {
            let id = self.stack_id(at, sample.stack)?;
            self.lines.raw(r#"{"type":"sample","stack":"#);
            self.lines.unsigned(id.into());
        }
        write_observation(&mut self.lines, at, sample, self.process);
        self.end_line()?;
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.begin(at.tables, Some(at.segment));
        self.outcome.events += 1;
        write_event(&mut self.lines, at.tables, event);
        self.end_line()?;
        Ok(ControlFlow::Continue(()))
    }

    fn keeps_events(&mut self) -> bool {
        true
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.next_source = Some(name.to_owned());
        Ok(())
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.begin(at.tables, Some(at.segment));
        write_segment(&mut self.lines, at);
        self.process = at.segment.process;
        self.end_line()
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.begin(at.tables, Some(at.segment));
        let line = &mut self.lines;
        begin(line, "metadata");
        line.key("key");
        line.string(at.tables.string(key));
        line.key("value");
        line.string(at.tables.string(value));
        self.end_line()
    }

    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.begin(at.tables, Some(at.segment));
        let line = &mut self.lines;
        begin(line, "thread");
        if let Some(process) = thread.process {
            write_process_id(line, process);
        }
        write_thread_id(line, thread.number);
        line.key("name");
        line.string(at.tables.string(name));
        self.end_line()
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.outcome.warn(warning.clone());
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        // The input ends without another segment.
        self.next_source = None;
        self.begin(tables, None);
        self.write_end();
        self.drain()?;
        self.output.flush()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        Losses::default()
    }
}

#[inline]
fn begin(line: &mut LineWriter, name: &str) {
    line.begin_object();
    line.key("type");
    line.text(name);
}

#[inline]
fn end(line: &mut LineWriter) {
    line.end_object();
    line.end_line();
}

#[inline]
fn integer_if_known(line: &mut LineWriter, key: &str, value: Option<i64>) {
    if let Some(value) = value {
        line.key(key);
        line.integer(value);
    }
}

#[inline]
fn unsigned_if_known(line: &mut LineWriter, key: &str, value: Option<u64>) {
    if let Some(value) = value {
        line.key(key);
        line.unsigned(value);
    }
}

fn string_if_known(line: &mut LineWriter, tables: &Tables, key: &str, value: Option<StringId>) {
    if let Some(value) = value {
        line.key(key);
        line.string(tables.string(value));
    }
}

/// Writes the facts that the lines of files and of segments share.
fn write_header(line: &mut LineWriter, segment: &Segment) {
    line.key("format");
    line.text(segment.format);
    match segment.period_ns {
        Some(period_ns) if period_ns % 1000 == 0 => {
            unsigned_if_known(line, "period_us", Some(period_ns / 1000));
        }
        period_ns => unsigned_if_known(line, "period_ns", period_ns),
    }
    line.key("has_times");
    line.boolean(segment.has_times);
}

fn write_metadata(line: &mut LineWriter, tables: &Tables, segment: &Segment) {
    if segment.metadata.is_empty() {
        return;
    }
    line.key("metadata");
    line.begin_array();
    for &(key, value) in &segment.metadata {
        write_pair(line, tables.string(key), tables.string(value));
    }
    line.end_array();
}

fn write_segment(line: &mut LineWriter, at: Context<'_>) {
    let segment = at.segment;
    begin(line, "segment");
    unsigned_if_known(line, "index", Some(segment.index));
    unsigned_if_known(line, "offset", segment.offset);
    write_header(line, segment);
    if segment.is_ordered {
        line.key("is_ordered");
        line.boolean(true);
    }
    if let Some(process) = segment.process {
        write_process_id(line, process);
    }
    integer_if_known(line, "start_unix_ns", segment.start_unix_ns);
    integer_if_known(line, "began_ns", segment.began_ns);
    unsigned_if_known(line, "depth_limit", segment.depth_limit.map(u64::from));
    write_metadata(line, at.tables, segment);
    write_value_types(line, segment);
}

/// Writes the types of the samples' numbers, except for the defaults of readers.
fn write_value_types(line: &mut LineWriter, segment: &Segment) {
    if segment.mode != Mode::default() {
        line.key("mode");
        line.string(segment.mode.name().as_bytes());
    }
    if let Some(measure) = segment.default_measure {
        line.key("default_value");
        match measure {
            Measure::Count => line.string(b"count"),
            Measure::Time => line.string(b"time"),
            Measure::Value(column) => line.unsigned(column as u64),
        }
    }
    if segment.is_uncounted {
        line.key("is_uncounted");
        line.boolean(true);
    }
    if segment.value_types.is_empty() {
        return;
    }
    line.key("value_types");
    line.begin_array();
    for value_type in &segment.value_types {
        write_pair(line, value_type.kind.as_bytes(), value_type.unit.as_bytes());
    }
    line.end_array();
}

fn write_pair(line: &mut LineWriter, key: &[u8], value: &[u8]) {
    line.begin_array();
    line.string(key);
    line.string(value);
    line.end_array();
}

fn write_frame(line: &mut LineWriter, at: Context<'_>, frame: FrameId) {
    let tables = at.tables;
    let frame = tables.frame(frame);
    line.begin_object();
    line.key("function");
    line.string(tables.string(frame.function));
    write_parts(line, at, &frame);
    string_if_known(line, tables, "file", frame.file);
    integer_if_known(line, "line", frame.line);
    integer_if_known(line, "end_line", frame.end_line);
    unsigned_if_known(line, "column", frame.column.map(u64::from));
    unsigned_if_known(line, "end_column", frame.end_column.map(u64::from));
    string_if_known(line, tables, "opcode", frame.opcode);
    if let Some(native) = frame.native {
        line.key("native");
        line.boolean(true);
        string_if_known(line, tables, "module", Some(native.module));
        integer_if_known(line, "offset", native.offset);
    }
    line.end_object();
}

/// Writes the parts of a name, if they differ from those that a reader assumes.
fn write_parts(line: &mut LineWriter, at: Context<'_>, frame: &Frame) {
    let tables = at.tables;
    let parts =
        frame.parts.map(|parts| [parts.namespace, parts.class, parts.method].map(|part| tables.string(part)));
    let function = tables.string(frame.function);
    if parts == assumed_parts(at.segment.format, frame.native.is_some(), function) {
        return;
    }
    let Some(parts) = parts else {
        line.key("parts");
        return line.boolean(false);
    };
    for (key, part) in ["namespace", "class", "method"].into_iter().zip(parts) {
        line.key(key);
        line.string(part);
    }
}

/// Writes the number of a thread, or its text if it is not the operating system's.
#[inline]
fn write_thread_id(line: &mut LineWriter, thread: u64) {
    match LaneId::of(thread) {
        LaneId::System(number) => raw_unsigned(line, r#","tid":"#, Some(number)),
        other => write_lane_id(line, "thread", other),
    }
}

/// Like [`write_thread_id`], for a process.
#[inline]
fn write_process_id(line: &mut LineWriter, process: i64) {
    match LaneId::of_process(process) {
        LaneId::System(_) => raw_integer(line, r#","pid":"#, Some(process)),
        other => write_lane_id(line, "process", other),
    }
}

#[cold]
fn write_lane_id(line: &mut LineWriter, key: &str, id: LaneId) {
    line.key(key);
    line.string(id.to_string().as_bytes());
}

/// Writes the properties of a sample beside its stack, in a segment whose line names `process`.
#[inline]
fn write_observation(line: &mut LineWriter, at: Context<'_>, sample: &Sample<'_>, process: Option<i64>) {
    line.raw(r#","count":"#);
    line.unsigned(sample.count);
    raw_integer(line, r#","delta_us":"#, sample.delta_us);
    raw_integer(line, r#","time_ns":"#, sample.time_ns);
    if at.segment.process == process {
        if let Some(process) = sample.process {
            write_process_id(line, process);
        }
    } else {
        write_process(line, at.process(sample));
    }
    if let Some(thread) = sample.thread {
        write_thread_id(line, thread);
    }
    raw_unsigned(line, r#","interpreter":"#, sample.interpreter);
    if let Some(status) = sample.status {
        write_status(line, status);
    }
    if let Some(labels) = sample.labels {
        write_labels(line, at.tables, labels);
    }
    if !sample.values.is_empty() {
        write_values(line, sample.values);
    }
}

/// Writes the process of a sample that is not, or no longer, that of its segment's line.
#[cold]
fn write_process(line: &mut LineWriter, process: Option<i64>) {
    match process {
        Some(process) => write_process_id(line, process),
        None => line.raw(r#","pid":null"#),
    }
}

/// Writes a number after a comma and a key that are prepared as one piece, which is faster.
#[inline]
fn raw_integer(line: &mut LineWriter, key: &str, value: Option<i64>) {
    if let Some(value) = value {
        line.raw(key);
        line.integer(value);
    }
}

#[inline]
fn raw_unsigned(line: &mut LineWriter, key: &str, value: Option<u64>) {
    if let Some(value) = value {
        line.raw(key);
        line.unsigned(value);
    }
}

fn write_status(line: &mut LineWriter, status: Status) {
    line.key("status");
    line.begin_array();
    status.names().for_each(|name| line.text(name));
    line.end_array();
}

fn write_labels(line: &mut LineWriter, tables: &Tables, labels: LabelsId) {
    line.key("labels");
    line.begin_array();
    for label in tables.labels(labels) {
        line.begin_array();
        line.string(tables.string(label.key));
        write_label_value(line, tables, label.value);
        line.end_array();
    }
    line.end_array();
}

fn write_label_value(line: &mut LineWriter, tables: &Tables, value: LabelValue) {
    match value {
        LabelValue::Text(text) => line.string(tables.string(text)),
        LabelValue::Number { value, unit } => {
            line.begin_object();
            integer_if_known(line, "number", Some(value));
            string_if_known(line, tables, "unit", unit);
            line.end_object();
        }
    }
}

fn write_values(line: &mut LineWriter, values: &[i64]) {
    line.key("values");
    line.begin_array();
    values.iter().for_each(|&value| line.integer(value));
    line.end_array();
}

fn write_warning(line: &mut LineWriter, warning: &Warning) {
    line.begin_object();
    unsigned_if_known(line, "offset", warning.offset);
    line.key("message");
    line.text(&warning.message);
    if warning.lost_bytes > 0 {
        unsigned_if_known(line, "lost_bytes", Some(warning.lost_bytes));
    }
    unsigned_if_known(line, "saved_samples", warning.saved_samples);
    line.end_object();
}
