//! Export of the model to statistics.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use borehole_model::{Context, ProfileSink, Sample, StackId, Tables};
use hashbrown::HashMap;

use super::stats::{FunctionLines, Stats, Times};
use super::text::{self, TextOptions};
use super::write;
use crate::sums::losses::SampleLosses;
use crate::sums::rows::RowSums;
use crate::sums::stacks::StackCounts;
use crate::{Export, Losses};

/// The default period of CPython's profiler.
///
/// Source: CPython 3.15.2, `--sampling-rate`, default 1 kHz.
const DEFAULT_PERIOD_NS: u64 = 1_000_000;

/// Adds samples up, with one count per stack and period.
///
/// It keeps all stacks until the end: looking up the calls for every sample would take longer, and there are nearly as many
/// distinct calls as stacks.
#[derive(Default)]
struct SampleSum {
    /// The counts of the first period, which is usually the only one.
    counts: StackCounts,
    /// The periods in order of appearance; `None` for an unknown one.
    periods: Vec<Option<u64>>,
    /// The indexes of `periods`.
    places: HashMap<Option<u64>, usize>,
    /// The counts of the other periods, by index and stack.
    others: HashMap<(usize, Option<StackId>), u64>,
    /// The index of the segment's period.
    current: usize,
    mode: Vec<u8>,
    losses: SampleLosses,
    empty: u64,
}

impl ProfileSink for SampleSum {
    #[inline]
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if self.current == 0 {
            self.counts.add(sample.stack, sample.count);
        } else {
            let count = self.others.entry((self.current, sample.stack)).or_default();
            *count = count.saturating_add(sample.count);
        }
        self.losses.all_but_stack(at, sample);
        Ok(ControlFlow::Continue(()))
    }

    /// Takes the mode of the first segment that has one for all.
    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        let period_ns = at.segment.period_ns;
        self.current = *self.places.entry(period_ns).or_insert_with(|| {
            self.periods.push(period_ns);
            self.periods.len() - 1
        });
        let mode = at.segment.metadata.iter().find(|(key, _)| at.tables.string(*key) == b"mode");
        if let Some(&(_, mode)) = mode.filter(|_| self.mode.is_empty()) {
            self.mode = at.tables.string(mode).to_vec();
        }
        self.losses.segment(at)
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.losses)
    }
}

impl SampleSum {
    fn stats(&mut self, tables: &Tables) -> io::Result<Stats> {
        if self.periods.is_empty() {
            // No segment was announced.
            self.periods.push(None);
        }
        let mut functions = RowSums::<FunctionLines>::default();
        let mut times = Times::default();
        let mut counts = std::mem::take(&mut self.counts);
        let mut others: Vec<_> = std::mem::take(&mut self.others).into_iter().collect();
        others.sort_unstable();
        let mut others = others.into_iter().peekable();
        for (place, period_ns) in self.periods.iter().enumerate() {
            while let Some(((_, stack), count)) = others.next_if(|((of, _), _)| *of == place) {
                counts.add(stack, count);
            }
            // Frees the memory of the added counts before the next ones need room.
            functions.take(&mut counts, tables)?;
            times.add(&functions.sums, period_ns.unwrap_or(DEFAULT_PERIOD_NS));
        }
        self.empty = functions.empty;
        Ok(Stats::of(functions, times))
    }

    fn losses(&self) -> Losses {
        let mut losses = self.losses.report();
        losses.add("samples without frames", self.empty);
        losses
    }
}

/// Writes statistics of functions. Like CPython, it merges interpreters and threads, and leaves out samples without frames
/// and the profiler's own frames.
pub struct Exporter<W: Write> {
    output: BufWriter<W>,
    /// The options of the table; `None` for a file.
    table: Option<TextOptions>,
    sum: SampleSum,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter of a file that Python's `pstats` loads.
    pub fn new(output: W) -> Self {
        Self { output: BufWriter::with_capacity(64 << 10, output), table: None, sum: SampleSum::default() }
    }

    /// Creates an exporter of the table that `replay` prints, byte for byte.
    pub fn text(output: W, options: TextOptions) -> Self {
        Self { table: Some(options), ..Self::new(output) }
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.sum.sample(at, sample)
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.sum)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        let stats = self.sum.stats(tables)?;
        match &self.table {
            None => write::write(&stats, &mut self.output)?,
            Some(options) => text::write(&stats, options, self.sum.mode == b"cpu", &mut self.output)?,
        }
        self.output.flush()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        self.sum.losses()
    }
}
