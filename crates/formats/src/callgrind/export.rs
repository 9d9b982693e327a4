//! Export of the model to a callgrind profile.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Column, Context, Frame, FrameId, InternedRows, Mode, ProfileSink, Sample, StackId, StringId, TableFull,
    Tables, ValueType,
};
use borehole_text::make_line;

use super::write::{Cost, CostEvents, Name, UNKNOWN, Writer};
use crate::frames::profiler;
use crate::sums::losses::SampleLosses;
use crate::sums::rows::row_number;
use crate::sums::stacks::{EMPTY_STACK, StackCounts};
use crate::{Export, Losses};

/// Adds samples up by function, line and call, and writes the profile at the end.
///
/// There are two costs: `Samples`, and `Wall_ns` if every sample's period is known. Samples without a stack become a
/// function `[empty stack]`. The file of a native frame is its module.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, callgrind, folded};
/// use borehole_model::{ProfileSink as _, Tables};
///
/// let (mut tables, mut text) = (Tables::default(), Vec::new());
/// let mut exporter = callgrind::Exporter::new(&mut text);
/// let input = b"main /index.php:5;query /db.php:7 12\n";
/// folded::import(&input[..], &ReadOptions::default(), &mut tables, &mut exporter)?;
/// exporter.finish(&tables)?;
/// drop(exporter);
/// assert!(String::from_utf8(text)?.contains("cfn=(2)\ncalls=1 0\n5 12\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Exporter<W: Write> {
    output: BufWriter<W>,
    counts: StackCounts,
    times_ns: StackCounts,
    events: Option<CostEvents>,
    losses: SampleLosses,
    replaced: u64,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter that writes to `output` at the end.
    pub fn new(output: W) -> Self {
        Self {
            output: BufWriter::with_capacity(1 << 16, output),
            counts: StackCounts::default(),
            times_ns: StackCounts::default(),
            events: None,
            losses: SampleLosses::default(),
            replaced: 0,
        }
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.losses.all_but_stack(at, sample);
        self.counts.add(sample.stack, sample.count);
        let events = self.events.get_or_insert(CostEvents::SamplesAndTime(at.segment.mode.name()));
        if let CostEvents::SamplesAndTime(_) = events {
            match at.segment.period_ns {
                Some(period_ns) => self.times_ns.add(sample.stack, sample.count.saturating_mul(period_ns)),
                None => *events = CostEvents::Samples,
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.losses)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        let mut costs = Costs::new(tables);
        for (stack, count) in self.counts.iter() {
            let cost = Cost { count, time_ns: self.times_ns.count(stack) };
            costs.add(stack, cost)?;
        }
        self.replaced = costs.functions.replaced;
        let events = self.events.take().unwrap_or(CostEvents::SamplesAndTime(Mode::Wall.name()));
        costs.write(Writer::new(&mut self.output, events))
    }
}

impl<W: Write> Export for Exporter<W> {
    fn counted(&mut self, value_type: &ValueType) {
        let ValueType { kind, unit } = value_type.clone();
        self.events = Some(CostEvents::Values { kind, unit });
    }

    fn losses(&self) -> Losses {
        let mut losses = self.losses.report();
        losses.add("special characters in names", self.replaced);
        losses
    }
}

/// The number of a function, in order of first appearance.
type FunctionNumber = usize;

struct Costs<'a> {
    tables: &'a Tables,
    functions: Functions,
    lines: BTreeMap<(FunctionNumber, u64), Cost>,
    /// The costs by caller, its line, and callee.
    calls: BTreeMap<(FunctionNumber, u64, FunctionNumber), Cost>,
    total: Cost,
    /// For each function the last stack that contained it, so that only its innermost occurrence counts.
    seen: Vec<u64>,
    stacks: u64,
}

impl<'a> Costs<'a> {
    fn new(tables: &'a Tables) -> Self {
        Self {
            tables,
            functions: Functions::default(),
            lines: BTreeMap::new(),
            calls: BTreeMap::new(),
            total: Cost::default(),
            seen: Vec::new(),
            stacks: 0,
        }
    }

    fn add(&mut self, stack: Option<StackId>, cost: Cost) -> Result<(), TableFull> {
        self.total.add(cost);
        self.stacks += 1;
        if stack.is_none() {
            let function = self.functions.empty_stack()?;
            self.lines.entry((function, 0)).or_default().add(cost);
        }
        let mut callee = None;
        for frame in self.tables.frames_leaf_first(stack) {
            let function = self.functions.of_frame(self.tables, frame)?;
            let line = line_of(&self.tables.frame(frame));
            if self.is_innermost(function) {
                match callee {
                    None => self.lines.entry((function, line)).or_default().add(cost),
                    Some(callee) => self.calls.entry((function, line, callee)).or_default().add(cost),
                }
            }
            callee = Some(function);
        }
        Ok(())
    }

    fn is_innermost(&mut self, function: FunctionNumber) -> bool {
        if self.seen.len() <= function {
            self.seen.resize(function + 1, 0);
        }
        std::mem::replace(&mut self.seen[function], self.stacks) != self.stacks
    }

    fn write(&self, mut writer: Writer<impl Write>) -> io::Result<()> {
        writer.header(self.total)?;
        for function in 0..self.functions.keys.rows().len() {
            let (file, name) = self.functions.names(function);
            writer.function(file, name)?;
            for (&(_, line), &cost) in self.lines.range((function, 0)..=(function, u64::MAX)) {
                writer.line(line, cost)?;
            }
            for (&(_, line, callee), &cost) in self.calls.range((function, 0, 0)..(function + 1, 0, 0)) {
                let (file, name) = self.functions.names(callee);
                writer.call(file, name, line, cost)?;
            }
        }
        writer.end(self.total)
    }
}

/// The line as the format has it: 0 for an unknown or negative one.
fn line_of(frame: &Frame) -> u64 {
    frame.line.and_then(|line| u64::try_from(line).ok()).unwrap_or(0)
}

/// Functions, identified by name and file.
#[derive(Default)]
struct Functions {
    /// Names and files as they are written.
    strings: Tables,
    /// The file and the name of each.
    keys: InternedRows<(StringId, StringId)>,
    /// The function of each frame of the profile.
    of_frames: Column<FunctionNumber>,
    text: Vec<u8>,
    replaced: u64,
}

impl Functions {
    fn of_frame(&mut self, tables: &Tables, id: FrameId) -> Result<FunctionNumber, TableFull> {
        if let Some(function) = self.of_frames.get(id.index()) {
            return Ok(function);
        }
        let frame = tables.frame(id);
        let function = self.intern(profiler::file(&frame, tables), tables.string(frame.function))?;
        Ok(self.of_frames.set(id.index(), function))
    }

    fn empty_stack(&mut self) -> Result<FunctionNumber, TableFull> {
        self.intern(b"", EMPTY_STACK.as_bytes())
    }

    fn intern(&mut self, file: &[u8], name: &[u8]) -> Result<FunctionNumber, TableFull> {
        let key = (self.string(file)?, self.string(name)?);
        Ok(row_number(self.keys.intern(&key)) as FunctionNumber)
    }

    fn string(&mut self, text: &[u8]) -> Result<StringId, TableFull> {
        self.text.clear();
        self.text.extend_from_slice(if text.trim_ascii().is_empty() { UNKNOWN } else { text });
        self.replaced += make_line(&mut self.text, 0);
        self.strings.intern_string(&self.text)
    }

    /// The file and the name of a function.
    fn names(&self, function: FunctionNumber) -> (Name<'_>, Name<'_>) {
        let (file, name) = self.keys.rows()[function];
        (self.name(file), self.name(name))
    }

    fn name(&self, string: StringId) -> Name<'_> {
        Name { number: string.get(), text: self.strings.string(string) }
    }
}
