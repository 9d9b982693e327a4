//! Export of the model to a callgrind profile.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use borehole_model::{Context, Mode, ProfileSink, Sample, Tables, ValueType};

use super::costs::Costs;
use super::write::{CostEvents, Writer};
use crate::sums::losses::SampleLosses;
use crate::sums::stacks::StackCounts;
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
        let costs = Costs::of(tables, &self.counts, &self.times_ns)?;
        self.replaced = costs.replaced();
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
