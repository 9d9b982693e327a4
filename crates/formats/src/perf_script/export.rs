//! Exports the model to text.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Context, Frame, FrameId, LabelValue, Measure, ProfileSink, Sample, Sampled, Segment, StackId, StringId,
    Tables, Thread, ThreadNames, Weigher,
};
use borehole_text::make_line;

use super::NAME;
use super::header::header;
use super::read::{self, UNKNOWN};
use crate::frames::texts::{FrameTexts, Writing};
use crate::lines::runs::{self, LONGEST_HELD};
use crate::sums::losses::SampleLosses;
use crate::{Export, Losses};

/// Writes samples as they come, as `perf script -F comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso,srcline` does.
///
/// The event is the value type, and the period its value. Samples that only count have the event of their mode
/// (`cpu-clock`), and are written as often as they count. Of several values of a sample one is written: see [`Weigher`]. Times
/// count from the beginning of the clock of the input. Addresses are 0, except those that stand for unknown functions. A known
/// process whose thread is unknown is written as its main thread, since other readers expect one.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, folded, perf_script};
/// use borehole_model::{ProfileSink as _, Tables};
///
/// let (mut tables, mut text) = (Tables::default(), Vec::new());
/// let mut exporter = perf_script::Exporter::new(&mut text, None);
/// folded::import(&b"main;query 1\n"[..], &ReadOptions::default(), &mut tables, &mut exporter)?;
/// exporter.finish(&tables)?;
/// drop(exporter);
/// assert!(String::from_utf8(text)?.starts_with("[unknown] 0          1 samples: \n\t               0 query ([unknown])\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Exporter<W: Write> {
    output: BufWriter<W>,
    weigher: Weigher,
    /// The event of the samples of the segment.
    event: String,
    names: ThreadNames,
    frames: FrameTexts,
    frame_losses: FrameLosses,
    /// The frames of the last stack that is short enough.
    chain: Vec<u8>,
    rendered: Option<StackId>,
    header: Vec<u8>,
    losses: SampleLosses,
    other_values: u64,
    negative: u64,
    replaced: u64,
    labels: u64,
}

/// The number of frames whose text lacks something.
#[derive(Default)]
struct FrameLosses {
    replaced: u64,
    opcodes: u64,
    /// Columns, or last lines.
    columns: u64,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter of the value type `asked` for, or else of the default of the first profile.
    pub fn new(output: W, asked: Option<&str>) -> Self {
        Self {
            output: BufWriter::with_capacity(1 << 16, output),
            weigher: Weigher::new(asked, Sampled::Time),
            event: String::new(),
            names: ThreadNames::default(),
            frames: FrameTexts::default(),
            frame_losses: FrameLosses::default(),
            chain: Vec::new(),
            rendered: None,
            header: Vec::new(),
            losses: SampleLosses::default(),
            other_values: 0,
            negative: 0,
            replaced: 0,
            labels: 0,
        }
    }

    /// Writes a sample as often as it counts.
    fn write_run(&mut self, at: Context<'_>, sample: &Sample<'_>, period: u64) -> io::Result<()> {
        runs::check(sample.count, NAME)?;
        self.write(at, sample, period, sample.count)
    }

    /// Writes a sample with its value, or, if that is 0, with its first other value: a sample of another event.
    fn write_value(&mut self, at: Context<'_>, sample: &Sample<'_>, weight: i64) -> io::Result<()> {
        let others = sample.values.iter().filter(|&&value| value != 0).count() - usize::from(weight != 0);
        if weight < 0 {
            self.negative = self.negative.saturating_add(1);
            return Ok(());
        }
        let is_other = weight == 0 && others > 0;
        let written = usize::from(is_other && self.weigher.asked().is_none());
        self.other_values = self.other_values.saturating_add(u64::from(others > written));
        if !is_other {
            return self.write(at, sample, weight.unsigned_abs(), 1);
        }
        let first = sample.values.iter().position(|&value| value > 0).filter(|_| written > 0);
        let Some(column) = first else { return Ok(()) };
        let measure = Measure::Value(column);
        let (_, factor) = at.segment.value_type(measure).shown();
        let period = measure.of(at.segment, sample).saturating_mul(factor).unsigned_abs();
        let event = std::mem::replace(&mut self.event, event_of(at.segment, measure));
        self.write(at, sample, period, 1)?;
        self.event = event;
        Ok(())
    }

    /// Writes a sample `times` times.
    fn write(&mut self, at: Context<'_>, sample: &Sample<'_>, period: u64, times: u64) -> io::Result<()> {
        self.put_header(at, sample, period);
        let is_long = self.render(at.tables, sample.stack);
        for _ in 0..times {
            self.output.write_all(&self.header)?;
            if is_long {
                self.write_chain(at.tables, sample.stack)?;
            } else {
                self.output.write_all(&self.chain)?;
            }
            self.output.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Puts the header of a sample. A name that readers would take for more than a name gets underscores for its spaces.
    fn put_header(&mut self, at: Context<'_>, sample: &Sample<'_>, period: u64) {
        let thread = at.thread(sample);
        let name = thread.and_then(|thread| self.names.of(thread)).map(|&name| at.tables.string(name));
        let cpu = self.cpu(at.tables, sample);
        let to = &mut self.header;
        to.clear();
        to.extend_from_slice(name.map(<[u8]>::trim_ascii).filter(|name| !name.is_empty()).unwrap_or(UNKNOWN));
        let replaced = make_line(to, 0);
        let name_bytes = to.len();
        let fields = match (at.process(sample), sample.thread) {
            (None, thread) => format!(" {} ", thread.unwrap_or(0)),
            (Some(process), None) => format!(" {process}/{process} "),
            (Some(process), Some(thread)) => format!(" {process}/{thread} "),
        };
        to.extend_from_slice(fields.as_bytes());
        if let Some(cpu) = cpu {
            to.extend_from_slice(format!("[{cpu:03}] ").as_bytes());
        }
        if let Some(time_ns) = sample.time_ns.and_then(|time_ns| u64::try_from(time_ns).ok()) {
            let (seconds, rest) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
            to.extend_from_slice(format!("{seconds:>5}.{rest:09}: ").as_bytes());
        }
        to.extend_from_slice(format!("{period:>10} {}: \n", self.event).as_bytes());
        let is_read = header(to).is_some_and(|header| header.name == &to[..name_bytes]);
        if !is_read {
            to[..name_bytes].iter_mut().filter(|byte| **byte == b' ').for_each(|byte| *byte = b'_');
        }
        self.replaced = self.replaced.saturating_add(replaced + u64::from(!is_read));
    }

    /// The CPU in the labels of a sample. Other labels are counted as lost.
    fn cpu(&mut self, tables: &Tables, sample: &Sample<'_>) -> Option<u32> {
        let labels = tables.labels(sample.labels?);
        let cpu_of = |label: &borehole_model::Label| match label.value {
            LabelValue::Number { value, .. } if tables.string(label.key) == b"cpu" => {
                u32::try_from(value).ok()
            }
            _ => None,
        };
        let cpu = labels.iter().find_map(cpu_of);
        if labels.len() > usize::from(cpu.is_some()) {
            self.labels = self.labels.saturating_add(sample.count);
        }
        cpu
    }

    /// Renders the frames of a stack, unless they are there. Returns whether they are too long for that.
    fn render(&mut self, tables: &Tables, stack: Option<StackId>) -> bool {
        if self.rendered == stack && stack.is_some() {
            return false;
        }
        self.chain.clear();
        for frame in tables.frames_leaf_first(stack) {
            let text = text_of(&mut self.frames, &mut self.frame_losses, tables, frame);
            self.chain.extend_from_slice(text);
            if self.chain.len() > LONGEST_HELD {
                self.rendered = None;
                return true;
            }
        }
        self.rendered = stack;
        false
    }

    /// Writes the frames of a stack, frame by frame.
    #[cold]
    fn write_chain(&mut self, tables: &Tables, stack: Option<StackId>) -> io::Result<()> {
        for frame in tables.frames_leaf_first(stack) {
            let text = text_of(&mut self.frames, &mut self.frame_losses, tables, frame);
            self.output.write_all(text)?;
        }
        Ok(())
    }
}

/// The event of samples with this measure, as one word. Times are clocks, which count nanoseconds.
fn event_of(segment: &Segment, measure: Measure) -> String {
    let value_type = segment.value_type(measure);
    let is_clock = value_type.kind.split(':').next().is_some_and(|name| name.ends_with("-clock"));
    let clock = if value_type.nanoseconds_per_unit().is_some() && !is_clock { "-clock" } else { "" };
    let kind = if value_type.kind.is_empty() { "samples" } else { &value_type.kind };
    let word = kind.replace(|c: char| c.is_whitespace() || c.is_control(), "_");
    format!("{word}{clock}")
}

fn text_of<'t>(
    texts: &'t mut FrameTexts,
    losses: &mut FrameLosses,
    tables: &Tables,
    id: FrameId,
) -> &'t [u8] {
    texts.text(id, |to, writing| put_frame(tables, &tables.frame(id), losses, to, writing))
}

/// Puts `ADDRESS SYMBOL+0xOFFSET (MODULE)`, and below it the source line.
fn put_frame(tables: &Tables, frame: &Frame, losses: &mut FrameLosses, to: &mut Vec<u8>, writing: Writing) {
    let function = tables.string(frame.function);
    let address = address_of(function).unwrap_or(b"0");
    to.extend_from_slice(b"\t");
    to.resize(to.len() + 16_usize.saturating_sub(address.len()), b' ');
    to.extend_from_slice(address);
    to.push(b' ');
    let start = to.len();
    let is_known = address_of(function).is_none() && !function.is_empty();
    to.extend_from_slice(if is_known { function } else { UNKNOWN });
    if let Some(offset) = frame.native.and_then(|native| native.offset).filter(|_| is_known) {
        to.extend_from_slice(format!("+{offset:#x}").as_bytes());
    }
    to.extend_from_slice(b" (");
    to.extend_from_slice(frame.native.map_or(UNKNOWN, |native| tables.string(native.module)));
    to.push(b')');
    let mut replaced = make_line(to, start);
    to.push(b'\n');
    if let Some(file) = frame.file.filter(|&file| !tables.string(file).is_empty()) {
        replaced += put_source_line(tables, file, frame.line, to);
    }
    losses.replaced += writing.counted(replaced);
    losses.opcodes += writing.counted(u64::from(frame.opcode.is_some()));
    let has_columns = frame.column.or(frame.end_column).is_some() || frame.end_line.is_some();
    losses.columns += writing.counted(u64::from(has_columns));
}

/// Puts `  FILE:LINE`, with line 0 if it is unknown; returns the number of characters replaced.
fn put_source_line(tables: &Tables, file: StringId, line: Option<i64>, to: &mut Vec<u8>) -> u64 {
    to.extend_from_slice(b"  ");
    let start = to.len();
    to.extend_from_slice(tables.string(file));
    let replaced = make_line(to, start);
    to.extend_from_slice(format!(":{}\n", line.unwrap_or(0).max(0)).as_bytes());
    replaced
}

/// The digits of the address that stands for an unknown function.
fn address_of(function: &[u8]) -> Option<&[u8]> {
    let digits = function.strip_prefix(b"0x")?;
    read::is_address(digits).then_some(digits)
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let Some(weight) = self.weigher.weigh(at, sample) else { return Ok(ControlFlow::Continue(())) };
        let is_kept = |time_ns: &i64| *time_ns >= 0;
        let lost_ns = sample.time_ns.filter(|time_ns| !is_kept(time_ns));
        let delta_us = sample.delta_us.filter(|_| sample.time_ns.is_none());
        let rest = Sample { time_ns: lost_ns, delta_us, thread: None, values: &[], ..*sample };
        self.losses.all_but_labels(at, &rest);
        match self.weigher.measure().unwrap_or(Measure::Count) {
            Measure::Value(_) => self.write_value(at, sample, weight)?,
            Measure::Count => self.write_run(at, sample, 1)?,
            Measure::Time => self.write_run(at, sample, at.segment.period_ns.unwrap_or(0))?,
        }
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.weigher.segment(at.segment);
        let measure = self.weigher.measure().unwrap_or(Measure::Count);
        self.event = event_of(at.segment, measure);
        self.losses.add_metadata(at.segment.metadata.len());
        Ok(())
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.names.name(thread, name);
        Ok(())
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.losses)
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        self.weigher.check()?;
        self.output.flush()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        let mut losses = self.losses.report();
        losses.add("annotations", self.labels);
        losses.add("samples of other value types", self.weigher.hidden_samples());
        losses.add("other values of samples", self.other_values);
        losses.add("negative values", self.negative);
        losses.add("opcodes", self.frame_losses.opcodes);
        losses.add("columns", self.frame_losses.columns);
        losses.add("special characters in names", self.replaced + self.frame_losses.replaced);
        losses
    }
}
