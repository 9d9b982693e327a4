//! Writes samples as events of dial9, and frames as symbols of addresses.

use std::borrow::Cow;
use std::io::{self, Write};

use borehole_model::dial9::{OFF_CPU, UNKNOWN_WORKER, event, field};
use borehole_model::{
    Column, Context, Frame, FrameId, LabelValue, LabelsId, OneClock, Sample, Segment, StackId, StringId,
    Tables,
};
use hashbrown::HashSet;

use super::super::keys;
use super::super::layout::{FieldKind, FieldType};
use super::super::schema::Schema;
use super::super::value::{Stack, StackFrames};
use super::super::write::{ValueDef, Writer};
use crate::Losses;

/// The first address of frames: above those of programs, and exact in the floating-point numbers of viewers.
const FIRST_ADDRESS: u64 = 1 << 48;

/// The number of addresses of stacks that are held, so that they need not be looked up again: eight bytes each.
const HELD_ADDRESSES: usize = 2 << 20;

/// Writes samples through the exporter's writer.
pub(crate) struct SampleEvents {
    schemas: SampleSchemas,
    source: SourceState,
    losses: TraceLosses,
}

/// The schemas of the events.
struct SampleSchemas {
    timed: Schema,
    untimed: Schema,
    symbol: Schema,
    metadata: Schema,
    clock_sync: Schema,
}

/// The state that holds for one source: each has its own symbols and clock.
#[derive(Default)]
struct SourceState {
    /// By frame: set if it has a symbol.
    named: Column<()>,
    /// The addresses of each stack whose frames have symbols, leaf first; `None` again once there was no more room.
    stacks: Vec<Option<Box<[[u8; 8]]>>>,
    /// The number of addresses of all of them.
    addresses: usize,
    clock: OneClock,
    /// Whether the clock is that of the first samples, which were before all events.
    has_own_clock: bool,
    /// The last facts written about the samples; `None` if there were none.
    said: Option<StatedFacts>,
    /// Whether a segment with samples has no facts.
    has_silent: bool,
    is_off_cpu: bool,
}

/// The facts of samples that do not state them themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StatedFacts {
    period_ns: Option<u64>,
    process: Option<i64>,
    has_metadata: bool,
}

/// The data that a trace does not hold: in samples, with runs in full, and then in frames.
#[derive(Default)]
struct TraceLosses {
    times: u64,
    clocks: u64,
    threads: u64,
    interpreters: u64,
    statuses: u64,
    values: u64,
    units: u64,
    opcodes: u64,
    columns: u64,
    ends: u64,
    offsets: u64,
    /// Texts that are not UTF-8.
    broken_texts: HashSet<StringId>,
}

impl TraceLosses {
    fn sample(&mut self, tables: &Tables, sample: &Sample<'_>) {
        let add = |sum: &mut u64, is_lost: bool| {
            *sum = sum.saturating_add(if is_lost { sample.count } else { 0 });
        };
        add(&mut self.threads, sample.thread.is_some() && thread_number(sample).is_none());
        add(&mut self.interpreters, sample.interpreter.is_some());
        add(&mut self.statuses, sample.status.is_some());
        add(&mut self.values, !sample.values.is_empty());
        add(&mut self.units, sample.labels.is_some_and(|labels| has_units(tables, labels)));
    }

    fn frame(&mut self, frame: &Frame) {
        self.opcodes += u64::from(frame.opcode.is_some());
        self.columns += u64::from(frame.column.is_some());
        self.ends += u64::from(frame.end_line.is_some() || frame.end_column.is_some());
        let offset = frame.native.and_then(|native| native.offset);
        self.offsets += u64::from(offset.is_some_and(|offset| offset != 0));
    }

    /// The written form of a text.
    fn text<'t>(&mut self, tables: &'t Tables, id: StringId) -> Cow<'t, str> {
        let text = String::from_utf8_lossy(tables.string(id));
        if matches!(text, Cow::Owned(_)) {
            self.broken_texts.insert(id);
        }
        text
    }

    fn label_texts<'t>(&mut self, tables: &'t Tables, labels: LabelsId) -> Vec<(Cow<'t, str>, Cow<'t, str>)> {
        let mut texts = Vec::new();
        for label in tables.labels(labels) {
            let value = match label.value {
                LabelValue::Text(id) => self.text(tables, id),
                LabelValue::Number { value, .. } => value.to_string().into(),
            };
            texts.push((self.text(tables, label.key), value));
        }
        texts
    }
}

impl SampleSchemas {
    fn new() -> io::Result<Self> {
        use FieldKind::{I64, PooledStack, PooledString, StringMap, U8, U32, Varint};
        let (must, may) = (FieldType::required, FieldType::optional);
        let sample = [
            (field::WORKER, must(Varint)),
            (field::THREAD, must(U32)),
            (field::SAMPLE_SOURCE, must(U8)),
            (field::THREAD_NAME, may(PooledString)),
            (field::STACK, must(PooledStack)),
            ("cpu", may(Varint)),
            (field::COUNT, must(Varint)),
            (field::PROCESS, may(I64)),
            (field::LABELS, may(StringMap)),
        ];
        let symbol = [
            (field::ADDRESS, must(Varint)),
            (field::SIZE, must(Varint)),
            (field::SYMBOL, must(PooledString)),
            (field::INLINE_DEPTH, must(Varint)),
            (field::FILE, must(PooledString)),
            (field::LINE, must(Varint)),
        ];
        Ok(Self {
            timed: Schema::with_fields(event::CPU_SAMPLE, true, sample)?,
            untimed: Schema::with_fields(event::CPU_SAMPLE, false, sample)?,
            symbol: Schema::with_fields(event::SYMBOL, false, symbol)?,
            metadata: Schema::with_fields(event::METADATA, false, [(field::ENTRIES, must(StringMap))])?,
            clock_sync: Schema::with_fields(event::CLOCK_SYNC, true, [(field::UNIX_TIME, must(Varint))])?,
        })
    }
}

impl SampleEvents {
    pub(crate) fn new() -> io::Result<Self> {
        let schemas = SampleSchemas::new()?;
        Ok(Self { schemas, source: SourceState::default(), losses: TraceLosses::default() })
    }

    /// Begins another source.
    pub(crate) fn begin_source(&mut self) {
        self.source = SourceState::default();
    }

    /// Writes the common facts of a segment's samples.
    pub(crate) fn begin<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        tables: &Tables,
        segment: &Segment,
    ) -> io::Result<()> {
        self.begin_clock(writer, segment)?;
        let (key, value) = keys::OFF_CPU_MODE;
        let is_off_cpu =
            |entry: &(StringId, StringId)| tables.string(entry.0) == key && tables.string(entry.1) == value;
        self.source.is_off_cpu = segment.metadata.iter().any(is_off_cpu);
        let Segment { period_ns, process, metadata, .. } = segment;
        let said =
            StatedFacts { period_ns: *period_ns, process: *process, has_metadata: !metadata.is_empty() };
        if said == self.source.said.unwrap_or_default() && said == StatedFacts::default() {
            self.source.has_silent = true;
            return Ok(());
        }
        if self.source.said.is_none() && self.source.has_silent {
            // The first facts hold for earlier samples as well.
            self.say(writer, tables, StatedFacts::default(), &[])?;
        }
        self.say(writer, tables, said, metadata)
    }

    /// Writes the facts of the following samples, replacing earlier ones.
    fn say<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        tables: &Tables,
        said: StatedFacts,
        metadata: &[(StringId, StringId)],
    ) -> io::Result<()> {
        let mut text = |id| self.losses.text(tables, id);
        let mut entries: Vec<(Cow<'_, str>, Cow<'_, str>)> =
            metadata.iter().map(|&(key, value)| (text(key), text(value))).collect();
        let key = |key| String::from_utf8_lossy(key);
        entries.extend(said.period_ns.map(|period| (key(keys::PERIOD_NS), period.to_string().into())));
        entries.extend(said.process.map(|process| (key(keys::PROCESS), process.to_string().into())));
        self.source.said = Some(said);
        let mut event = writer.begin_event(&self.schemas.metadata, None);
        event.put_text_map(&entries);
        event.finish()
    }

    /// Takes the clock of the source's events, which is in the trace: the times of later samples follow it.
    pub(crate) fn follow_clock(&mut self, start_unix_ns: i64) {
        let events = Segment { start_unix_ns: Some(start_unix_ns), ..Segment::default() };
        self.source.clock.take(&events);
        self.losses.clocks += u64::from(self.source.has_own_clock);
    }

    /// Writes the wall time of the origin of the source's times, if it is known and not written yet.
    fn begin_clock<W: Write>(&mut self, writer: &mut Writer<W>, segment: &Segment) -> io::Result<()> {
        let is_new = self.source.clock.take(segment);
        let start_unix_ns = self.source.clock.start_unix_ns().filter(|_| is_new);
        let Some(realtime_ns) = start_unix_ns.and_then(|start| u64::try_from(start).ok()) else {
            return Ok(());
        };
        self.source.has_own_clock = true;
        let mut event = writer.begin_event(&self.schemas.clock_sync, Some(0));
        event.put_unsigned(realtime_ns);
        event.finish()
    }

    /// The time of a sample, on the clock of its source: concatenated inputs have their own clocks, and a trace has
    /// one.
    fn time_ns(&mut self, segment: &Segment, sample: &Sample<'_>) -> Option<u64> {
        let time_ns = u64::try_from(self.source.clock.time_ns(segment, sample.time_ns?)).ok();
        if time_ns.is_none() {
            self.losses.times = self.losses.times.saturating_add(sample.count);
        }
        time_ns
    }

    /// Writes a sample of a thread with the name `thread_name`.
    pub(crate) fn write<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        at: Context<'_>,
        sample: &Sample<'_>,
        thread_name: Option<StringId>,
    ) -> io::Result<()> {
        self.losses.sample(at.tables, sample);
        let process = at.process(sample);
        if process.is_none()
            && let Some(said @ StatedFacts { process: Some(_), .. }) = self.source.said
        {
            // Its segment named a process before: a sample cannot state that it has none.
            self.say(writer, at.tables, StatedFacts { process: None, ..said }, &at.segment.metadata)?;
        }
        self.name_frames(writer, at.tables, sample.stack)?;
        let time_ns = self.time_ns(at.segment, sample);
        let schema = if time_ns.is_some() { &self.schemas.timed } else { &self.schemas.untimed };
        let stack = sample.stack.and_then(|stack| self.source.stacks[stack.index()].as_deref());
        let mut event = writer.begin_event(schema, time_ns);
        event.put_unsigned(UNKNOWN_WORKER.into());
        event.put_unsigned(thread_number(sample).unwrap_or_default().into());
        event.put_unsigned(if self.source.is_off_cpu { OFF_CPU } else { 0 });
        match thread_name {
            Some(name) => event.put_text(&self.losses.text(at.tables, name)),
            None => event.put_absent(),
        }
        event.put_stack(StackFrames::Stored(Stack(stack.unwrap_or_default())));
        event.put_absent();
        event.put_unsigned(sample.count);
        match process {
            Some(process) => event.put(&ValueDef::Signed(process)),
            None => event.put_absent(),
        }
        match sample.labels {
            Some(labels) => {
                let labels = self.losses.label_texts(at.tables, labels);
                event.put_text_map(&labels);
            }
            None => event.put_absent(),
        }
        event.finish()
    }

    pub(crate) fn add_losses(&self, losses: &mut Losses) {
        losses.add("times before the clock's origin", self.losses.times);
        losses.add("clocks of events after samples (name the trace first)", self.losses.clocks);
        losses.add("thread ids", self.losses.threads);
        losses.add("interpreter ids", self.losses.interpreters);
        losses.add("thread states", self.losses.statuses);
        losses.add("measured values", self.losses.values);
        losses.add("units of labels", self.losses.units);
        losses.add("opcodes", self.losses.opcodes);
        losses.add("columns", self.losses.columns);
        losses.add("ends of expressions", self.losses.ends);
        losses.add("offsets in native functions", self.losses.offsets);
        losses.add("bytes outside UTF-8 (in names)", self.losses.broken_texts.len() as u64);
    }

    /// Ensures that all frames of a stack have a symbol.
    fn name_frames<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        tables: &Tables,
        stack: Option<StackId>,
    ) -> io::Result<()> {
        let Some(stack) = stack else { return Ok(()) };
        if self.source.stacks.len() <= stack.index() {
            self.source.stacks.resize(stack.index() + 1, None);
        }
        if self.source.stacks[stack.index()].is_some() {
            return Ok(());
        }
        let mut addresses = Vec::with_capacity(tables.depth(stack) as usize);
        let mut next = Some(stack);
        while let Some(stack) = next {
            let frame = tables.leaf(stack);
            self.name_frame(writer, tables, frame)?;
            addresses.push(address(frame).to_le_bytes());
            next = tables.parent(stack);
        }
        if self.source.addresses > HELD_ADDRESSES {
            self.source.stacks.fill(None);
            self.source.addresses = 0;
        }
        self.source.addresses += addresses.len();
        self.source.stacks[stack.index()] = Some(addresses.into());
        Ok(())
    }

    fn name_frame<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        tables: &Tables,
        frame: FrameId,
    ) -> io::Result<()> {
        if self.source.named.get(frame.index()).is_some() {
            return Ok(());
        }
        self.source.named.set(frame.index(), ());
        let facts = tables.frame(frame);
        self.losses.frame(&facts);
        let mut text = |id| self.losses.text(tables, id);
        let mut event = writer.begin_event(&self.schemas.symbol, None);
        event.put_unsigned(address(frame));
        event.put_unsigned(1);
        event.put_text(&text(facts.function));
        event.put_unsigned(0);
        let file = facts.file.or(facts.native.map(|native| native.module));
        event.put_text(&file.map(text).unwrap_or_default());
        event.put_unsigned(facts.line.and_then(|line| u64::try_from(line).ok()).unwrap_or_default());
        event.finish()
    }
}

/// The thread of a sample, if the events can hold its number; 0 means an unknown thread.
fn thread_number(sample: &Sample<'_>) -> Option<u32> {
    u32::try_from(sample.thread?).ok().filter(|&thread| thread > 0)
}

/// Whether any number among the labels has a unit.
fn has_units(tables: &Tables, labels: LabelsId) -> bool {
    let has_unit = |value| matches!(value, LabelValue::Number { unit: Some(_), .. });
    tables.labels(labels).iter().any(|label| has_unit(label.value))
}

const fn address(frame: FrameId) -> u64 {
    FIRST_ADDRESS + frame.get() as u64
}
