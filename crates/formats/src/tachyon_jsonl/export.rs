//! Exports the model to sums of frames.
//!
//! Source: CPython 3.15.2, `JsonlCollector`, schema 0; `tachyon/corpus/expected/*.jsonl`.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use borehole_model::{Context, Frame, FrameId, Mode, ProfileSink, Sample, StringId, TableFull, Tables};
use borehole_text::put_ascii_json;

use crate::frames::profiler;
use crate::sums::losses::SampleLosses;
use crate::sums::rows::{FrameRows, RowSum, RowSums};
use crate::sums::stacks::StackCounts;
use crate::times::one_period::OnePeriod;
use crate::{Export, Losses};

/// The default period of CPython's profiler, in microseconds.
const DEFAULT_PERIOD_US: u64 = 1000;

/// The number of entries per line.
const CHUNK: usize = 256;

/// Adds up samples by frame. Like CPython, it merges interpreters and threads, and omits samples without frames and the
/// profiler's own frames.
///
/// CPython gives every run a random number; here it is derived from the content, so that equal profiles give equal files.
pub struct Exporter<W: Write> {
    output: BufWriter<W>,
    counts: StackCounts,
    sums: RowSums<SummedFrames>,
    period_us: OnePeriod,
    mode: Option<String>,
    losses: SampleLosses,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter that writes to `output`.
    pub fn new(output: W) -> Self {
        Self {
            output: BufWriter::with_capacity(64 << 10, output),
            counts: StackCounts::default(),
            sums: RowSums::default(),
            period_us: OnePeriod::default(),
            mode: None,
            losses: SampleLosses::default(),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let run = run_id(&self.sums);
        let head = |kind: &str| format!("{{\"type\":\"{kind}\",\"v\":0,\"run_id\":\"{run}\"");
        let period_us = self.period_us.known().unwrap_or(DEFAULT_PERIOD_US);
        write!(self.output, "{},\"sample_interval_usec\":{period_us}", head("meta"))?;
        if let Some(mode) = &self.mode {
            write!(self.output, ",\"mode\":\"{mode}\"")?;
        }
        self.output.write_all(b"}\n")?;
        let RowSums { rows, sums, .. } = &self.sums;
        let total = sums.iter().fold(0, |total: u64, sum| total.saturating_add(sum.self_samples));
        let of_frames = format!("{},\"kind\":\"frame\",\"scope\":\"final\"", head("agg"));
        let of_frames = format!("{of_frames},\"samples_total\":{total}");
        let output = &mut self.output;
        put_chunks(output, &format!("{},\"strings\":[", head("string_table")), rows.string_entries())?;
        put_chunks(output, &format!("{},\"frames\":[", head("frame_table")), rows.frame_entries())?;
        put_chunks(output, &format!("{of_frames},\"entries\":["), sum_entries(sums))?;
        writeln!(output, "{},\"samples_total\":{total}}}", head("end"))
    }
}

/// Writes the entries in lines of [`CHUNK`] each.
fn put_chunks(
    output: &mut impl Write,
    head: &str,
    mut entries: impl Iterator<Item = String>,
) -> io::Result<()> {
    while let Some(first) = entries.next() {
        write!(output, "{head}{first}")?;
        entries.by_ref().take(CHUNK - 1).try_for_each(|entry| write!(output, ",{entry}"))?;
        output.write_all(b"]}\n")?;
    }
    Ok(())
}

fn sum_entries(sums: &[RowSum]) -> impl Iterator<Item = String> {
    sums.iter().enumerate().map(|(frame, RowSum { self_samples, total_samples })| {
        format!("{{\"frame_id\":{frame},\"self\":{self_samples},\"cumulative\":{total_samples}}}")
    })
}

/// A number for a profile, in as many digits as CPython's: FNV-1a, which does not depend on the machine.
fn run_id(counted: &RowSums<SummedFrames>) -> String {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let RowSums { rows, sums, .. } = counted;
    let with = |sum: u128, byte: u8| (sum ^ u128::from(byte)).wrapping_mul(PRIME);
    let texts = rows.string_entries().chain(rows.frame_entries());
    let digest = texts.fold(BASIS, |sum, entry| entry.bytes().fold(sum, with));
    let counts = sums.iter().flat_map(|sum| [sum.self_samples, sum.total_samples]).flat_map(u64::to_le_bytes);
    format!("{:032x}", counts.fold(digest, with))
}

/// The distinct frames, in order of first appearance.
#[derive(Default)]
struct SummedFrames {
    /// Names as text, with invalid UTF-8 replaced like in Python's reader. An unknown location has line 0 and no other
    /// parts.
    tables: Tables,
}

impl FrameRows for SummedFrames {
    fn row(&mut self, frame: FrameId, tables: &Tables) -> Result<Option<u32>, TableFull> {
        let frame = tables.frame(frame);
        if profiler::is_profiler(&frame, tables) {
            return Ok(None);
        }
        let mut text = |name: &[u8]| self.tables.intern_string(String::from_utf8_lossy(name).as_bytes());
        let function = text(tables.string(frame.function))?;
        let file = text(profiler::file(&frame, tables))?;
        let place = Frame {
            file: Some(file),
            line: Some(frame.line.unwrap_or(0)),
            end_line: frame.end_line.filter(|&line| line > 0),
            column: frame.column,
            end_column: frame.end_column,
            ..Frame::named(function)
        };
        Ok(Some(self.tables.intern_frame(&place)?.get() - 1))
    }
}

impl SummedFrames {
    fn string_entries(&self) -> impl Iterator<Item = String> {
        self.tables.string_ids().enumerate().map(|(index, name)| {
            let text = json(std::str::from_utf8(self.tables.string(name)).unwrap_or_default());
            format!("{{\"str_id\":{index},\"value\":{text}}}")
        })
    }

    fn frame_entries(&self) -> impl Iterator<Item = String> {
        self.tables.frame_ids().enumerate().map(|(index, frame)| entry(index, &self.tables.frame(frame)))
    }
}

fn entry(index: usize, place: &Frame) -> String {
    let Frame { file, function, line, end_line, column, end_column, .. } = *place;
    let (file, function) = (file.map_or(0, StringId::index), function.index());
    let mut entry = format!("{{\"frame_id\":{index},\"path_str_id\":{file},\"func_str_id\":{function}");
    let places = [
        ("line", line),
        ("end_line", end_line),
        ("col", column.map(i64::from)),
        ("end_col", end_column.map(i64::from)),
    ];
    for (key, value) in places.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        write!(entry, ",\"{key}\":{value}").expect("a String takes every write");
    }
    entry.push('}');
    entry
}

/// Text as JSON in ASCII, as Python writes it.
fn json(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    put_ascii_json(&mut out, text.as_bytes(), |byte| {
        matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')
    })
    .expect("a Vec takes every write");
    String::from_utf8(out).expect("it is ASCII")
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.counts.add(sample.stack, sample.count);
        self.losses.all_but_stack(at, sample);
        self.period_us.sample(sample.count);
        Ok(ControlFlow::Continue(()))
    }

    /// Takes the mode of the first segment that has one for all.
    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.period_us.segment(at.segment.period_ns.map(|ns| ns / 1000));
        let mode = at.segment.metadata.iter().find(|(key, _)| at.tables.string(*key) == b"mode");
        if let Some(&(_, mode)) = mode.filter(|_| self.mode.is_none()) {
            let text = String::from_utf8_lossy(at.tables.string(mode)).into_owned();
            self.mode = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        }
        // Wall time is also measured by profilers that have no such mode.
        if self.mode.is_none() && at.segment.mode != Mode::Wall {
            self.mode = Some(at.segment.mode.name().to_owned());
        }
        self.losses.segment(at)
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.losses)
    }

    fn settle(&mut self, tables: &Tables) -> io::Result<bool> {
        self.sums.take(&mut self.counts, tables)?;
        Ok(true)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.settle(tables)?;
        self.write()?;
        self.output.flush()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        let mut losses = self.losses.report();
        losses.add("samples without frames", self.sums.empty);
        self.period_us.report(&mut losses);
        losses
    }
}
