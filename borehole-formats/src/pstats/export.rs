//! The model into statistics.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use borehole_model::{Context, ProfileSink, Sample, StringId, Tables};

use super::stats::{Functions, Stats, Times};
use super::text::{self, TextOptions};
use super::write;
use crate::row_sums::RowSums;
use crate::sample_losses::SampleLosses;
use crate::stack_counts::StackCounts;
use crate::{Export, Losses};

/// The period that CPython's profiler takes when none is asked for.
///
/// Source: CPython 3.15.2, `--sampling-rate`, default 1 kHz.
const DEFAULT_PERIOD_NS: u64 = 1_000_000;

/// Adds samples up, and holds one count a stack and period.
///
/// It does not let go of stacks before the end: nearly as many calls are told apart, and finding those again and
/// again takes longer.
#[derive(Default)]
struct Sum {
    counts: StackCounts,
    /// The period of `counts`; `None` as long as nothing said one.
    period_ns: Option<u64>,
    /// Samples of other periods.
    others: Vec<(Option<u64>, StackCounts)>,
    mode: Vec<u8>,
    losses: SampleLosses,
    empty: u64,
}

impl Sum {
    #[inline]
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        self.counts.add(sample.stack, sample.count);
        self.losses.all_but_stack(at, sample);
    }

    /// The mode of the first segment that has one is that of all.
    fn segment(&mut self, at: Context<'_>) {
        self.change_period(at.segment.period_ns);
        let mode = at.segment.metadata.iter().find(|(key, _)| at.tables.string(*key) == b"mode");
        if let Some(&(_, mode)) = mode.filter(|_| self.mode.is_empty()) {
            self.mode = at.tables.string(mode).to_vec();
        }
        self.losses.segment(at.segment);
    }

    fn change_period(&mut self, period_ns: Option<u64>) {
        if period_ns == self.period_ns {
            return;
        }
        let known = self.others.iter().position(|(other, _)| *other == period_ns);
        let next = known.map_or_else(StackCounts::default, |known| self.others.remove(known).1);
        let last = (self.period_ns, std::mem::replace(&mut self.counts, next));
        if last.1.iter().next().is_some() {
            self.others.push(last);
        }
        self.period_ns = period_ns;
    }

    fn stats(&mut self, tables: &Tables) -> io::Result<Stats> {
        let mut functions = RowSums::<Functions>::default();
        let mut times = Times::default();
        let last = (self.period_ns, std::mem::take(&mut self.counts));
        for (period_ns, mut counts) in std::mem::take(&mut self.others).into_iter().chain([last]) {
            functions.take(&mut counts, tables)?;
            times.add(&functions.sums, period_ns.unwrap_or(DEFAULT_PERIOD_NS));
        }
        self.empty = functions.empty;
        Ok(Stats::of(functions, times))
    }

    fn losses(&self) -> Losses {
        let mut losses = self.losses.report();
        losses.add("samples without a frame", self.empty);
        losses
    }
}

/// Writes a file that Python's `pstats` loads. Interpreters and threads are not told apart, samples without
/// frames and the frames of the profiler itself are left out, all as CPython does it.
pub struct Exporter<W: Write> {
    output: BufWriter<W>,
    sum: Sum,
}

impl<W: Write> Exporter<W> {
    /// Writes to `output`.
    pub fn new(output: W) -> Self {
        Self { output: BufWriter::with_capacity(64 << 10, output), sum: Sum::default() }
    }
}

/// Writes the table that `replay` prints, byte for byte, and counts as [`Exporter`] does.
pub struct TextExporter<W: Write> {
    output: BufWriter<W>,
    options: TextOptions,
    sum: Sum,
}

impl<W: Write> TextExporter<W> {
    /// Writes to `output`.
    pub fn new(output: W, options: TextOptions) -> Self {
        Self { output: BufWriter::with_capacity(64 << 10, output), options, sum: Sum::default() }
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.sum.sample(at, sample);
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.sum.segment(at);
        Ok(())
    }

    fn metadata(&mut self, _at: Context<'_>, _key: StringId, _value: StringId) -> io::Result<()> {
        self.sum.losses.metadata();
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        let stats = self.sum.stats(tables)?;
        write::write(&stats, &mut self.output)?;
        self.output.flush()
    }
}

impl<W: Write> ProfileSink for TextExporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.sum.sample(at, sample);
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.sum.segment(at);
        Ok(())
    }

    fn metadata(&mut self, _at: Context<'_>, _key: StringId, _value: StringId) -> io::Result<()> {
        self.sum.losses.metadata();
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        let stats = self.sum.stats(tables)?;
        text::write(&stats, &self.options, self.sum.mode == b"cpu", &mut self.output)?;
        self.output.flush()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        self.sum.losses()
    }
}

impl<W: Write> Export for TextExporter<W> {
    fn losses(&self) -> Losses {
        self.sum.losses()
    }
}
