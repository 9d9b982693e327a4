//! The model into sums of frames.
//!
//! Source: CPython 3.15.2, `JsonlCollector`, schema 0; `tachyon/corpus/expected/*.jsonl`.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use borehole_model::{Context, Frame, FrameId, ProfileSink, Sample, StackId, StringId, TableFull, Tables};
use hashbrown::HashMap;

use crate::own_frames;
use crate::sample_losses::SampleLosses;
use crate::stack_counts::StackCounts;
use crate::{Export, Losses};

/// The period that CPython's profiler takes when none is asked for, in microseconds.
const DEFAULT_PERIOD_US: u64 = 1000;

/// How many entries a line has.
const CHUNK: usize = 256;

/// Adds samples up by frame. Interpreters and threads are not told apart, samples without frames and the
/// frames of the profiler itself are left out, all as CPython does it.
///
/// CPython gives every run a random number; here it is made from the content, so that equal profiles give
/// equal files.
pub struct Exporter<W: Write> {
    output: BufWriter<W>,
    counts: StackCounts,
    period_us: Option<u64>,
    mode: Option<String>,
    losses: SampleLosses,
    empty: u64,
}

impl<W: Write> Exporter<W> {
    /// Writes to `output`.
    pub fn new(output: W) -> Self {
        Self {
            output: BufWriter::with_capacity(64 << 10, output),
            counts: StackCounts::default(),
            period_us: None,
            mode: None,
            losses: SampleLosses::default(),
            empty: 0,
        }
    }

    fn write(&mut self, sums: &Sums) -> io::Result<()> {
        let run = run_id(sums);
        let head = |kind: &str| format!("{{\"type\":\"{kind}\",\"v\":0,\"run_id\":\"{run}\"");
        let period_us = self.period_us.unwrap_or(DEFAULT_PERIOD_US);
        write!(self.output, "{},\"sample_interval_usec\":{period_us}", head("meta"))?;
        if let Some(mode) = &self.mode {
            write!(self.output, ",\"mode\":\"{mode}\"")?;
        }
        self.output.write_all(b"}\n")?;
        let total = sums.samples;
        let of_frames = format!("{},\"kind\":\"frame\",\"scope\":\"final\"", head("agg"));
        let of_frames = format!("{of_frames},\"samples_total\":{total}");
        self.chunks(&format!("{},\"strings\":[", head("string_table")), &sums.string_entries)?;
        self.chunks(&format!("{},\"frames\":[", head("frame_table")), &sums.frame_entries)?;
        self.chunks(&format!("{of_frames},\"entries\":["), &sums.sum_entries())?;
        writeln!(self.output, "{},\"samples_total\":{total}}}", head("end"))
    }

    fn chunks(&mut self, head: &str, entries: &[String]) -> io::Result<()> {
        entries.chunks(CHUNK).try_for_each(|chunk| writeln!(self.output, "{head}{}]}}", chunk.join(",")))
    }
}

/// A number for a profile, in as many digits as CPython's: FNV-1a, which is the same everywhere.
fn run_id(sums: &Sums) -> String {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let texts = sums.string_entries.iter().chain(&sums.frame_entries).flat_map(|entry| entry.bytes());
    let counts = sums.counts.iter().flat_map(|&(own, all)| [own, all]).flat_map(u64::to_le_bytes);
    let digest = texts.chain(counts).fold(BASIS, |sum, byte| (sum ^ u128::from(byte)).wrapping_mul(PRIME));
    format!("{digest:032x}")
}

/// What is counted, and its entries as JSON.
#[derive(Default)]
struct Sums {
    names: Tables,
    string_entries: Vec<String>,
    frames: HashMap<Place, usize>,
    frame_entries: Vec<String>,
    /// By frame: how often it was executing and how often on the stack.
    counts: Vec<(u64, u64)>,
    /// By frame of the model; the inner `None` is one to leave out.
    known: Vec<Option<Option<usize>>>,
    /// By frame: the last stack that it was counted for.
    seen: Vec<u64>,
    stacks: u64,
    samples: u64,
    empty: u64,
}

/// What makes a frame. Of a place that is not known the line is 0, and the rest is absent.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    file: usize,
    function: usize,
    line: i64,
    end_line: Option<i64>,
    column: Option<u32>,
    end_column: Option<u32>,
}

impl Sums {
    fn add(&mut self, stack: Option<StackId>, count: u64, tables: &Tables) -> Result<(), TableFull> {
        self.stacks += 1;
        let mut is_leaf = true;
        for id in tables.frames_leaf_first(stack) {
            let Some(frame) = self.frame(id, tables)? else { continue };
            let (own, all) = &mut self.counts[frame];
            if is_leaf {
                *own = own.saturating_add(count);
            }
            if std::mem::replace(&mut self.seen[frame], self.stacks) != self.stacks {
                *all = all.saturating_add(count);
            }
            is_leaf = false;
        }
        let sum = if is_leaf { &mut self.empty } else { &mut self.samples };
        *sum = sum.saturating_add(count);
        Ok(())
    }

    fn frame(&mut self, id: FrameId, tables: &Tables) -> Result<Option<usize>, TableFull> {
        if self.known.len() <= id.index() {
            self.known.resize(id.index() + 1, None);
        }
        if let Some(known) = self.known[id.index()] {
            return Ok(known);
        }
        let frame = tables.frame(id);
        let found =
            if own_frames::is_own(frame, tables) { None } else { Some(self.new_frame(frame, tables)?) };
        self.known[id.index()] = Some(found);
        Ok(found)
    }

    fn new_frame(&mut self, frame: &Frame, tables: &Tables) -> Result<usize, TableFull> {
        let function = self.string(tables.string(frame.function))?;
        let file = self.string(own_frames::file(frame, tables))?;
        let place = Place {
            file,
            function,
            line: frame.line.unwrap_or(0),
            end_line: frame.end_line.filter(|&line| line > 0),
            column: frame.column,
            end_column: frame.end_column,
        };
        let index = self.counts.len();
        let found = *self.frames.entry(place).or_insert(index);
        if found == index {
            self.frame_entries.push(place.entry(index));
            self.counts.push((0, 0));
            self.seen.push(0);
        }
        Ok(found)
    }

    fn string(&mut self, string: &[u8]) -> Result<usize, TableFull> {
        let text = String::from_utf8_lossy(string);
        let index = self.names.intern_string(text.as_bytes())?.index();
        if index == self.string_entries.len() {
            self.string_entries.push(format!("{{\"str_id\":{index},\"value\":{}}}", json(&text)));
        }
        Ok(index)
    }

    fn sum_entries(&self) -> Vec<String> {
        let entry = |(frame, (own, all)): (usize, &(u64, u64))| {
            format!("{{\"frame_id\":{frame},\"self\":{own},\"cumulative\":{all}}}")
        };
        self.counts.iter().enumerate().map(entry).collect()
    }
}

impl Place {
    fn entry(&self, index: usize) -> String {
        let Self { file, function, line, end_line, column, end_column } = *self;
        let mut entry = format!("{{\"frame_id\":{index},\"path_str_id\":{file},\"func_str_id\":{function}");
        let optional =
            [("end_line", end_line), ("col", column.map(i64::from)), ("end_col", end_column.map(i64::from))];
        let known = optional.into_iter().filter_map(|(key, value)| Some((key, value?)));
        for (key, value) in [("line", line)].into_iter().chain(known) {
            write!(entry, ",\"{key}\":{value}").expect("a String takes every write");
        }
        entry.push('}');
        entry
    }
}

/// Text as JSON in ASCII, as Python writes it.
fn json(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(letter),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").expect("a String takes every write");
                }
            }
        }
    }
    out.push('"');
    out
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.counts.add(sample.stack, sample.count);
        self.losses.all_but_stack(at, sample);
        Ok(ControlFlow::Continue(()))
    }

    /// The period and the mode of the first segment that has them are those of all.
    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.period_us = self.period_us.or(at.segment.period_ns.map(|ns| ns / 1000));
        let mode = at.segment.metadata.iter().find(|(key, _)| at.tables.string(*key) == b"mode");
        if let Some(&(_, mode)) = mode.filter(|_| self.mode.is_none()) {
            let text = String::from_utf8_lossy(at.tables.string(mode)).into_owned();
            self.mode = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        }
        self.losses.segment(at.segment);
        Ok(())
    }

    fn metadata(&mut self, _at: Context<'_>, _key: StringId, _value: StringId) -> io::Result<()> {
        self.losses.metadata();
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        let mut sums = Sums::default();
        for (stack, count) in self.counts.iter() {
            sums.add(stack, count, tables)?;
        }
        self.empty = sums.empty;
        self.write(&sums)?;
        self.output.flush()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        let mut losses = self.losses.report();
        losses.add("samples without a frame", self.empty);
        losses
    }
}
