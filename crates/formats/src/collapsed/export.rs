//! Export of the model to collapsed stacks.

use std::io::{self, Write};
use std::ops::ControlFlow;

use borehole_model::{Context, ProfileSink, Sample, Tables};

use super::lines::{CollapsedLines, Counts};
use crate::sums::losses::SampleLosses;
use crate::{Export, Losses};

/// Adds samples up by thread and stack and writes a line for each, byte for byte as CPython's `replay` does.
///
/// Interpreters are merged. Samples without frames and the profiler's own frames are left out. Lines of samples without a
/// thread begin with the root frame.
pub struct Exporter<W: Write> {
    output: W,
    counts: Counts,
    losses: SampleLosses,
    empty: u64,
    replaced: u64,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter that writes to `output`.
    pub fn new(output: W) -> Self {
        Self { output, counts: Counts::default(), losses: SampleLosses::default(), empty: 0, replaced: 0 }
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    #[inline]
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.counts.add(sample.thread, sample.stack, sample.count);
        self.losses.all_but_stack(at, &Sample { thread: None, ..*sample });
        Ok(ControlFlow::Continue(()))
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.losses)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        let lines = CollapsedLines::of(&std::mem::take(&mut self.counts), tables)?;
        (self.empty, self.replaced) = (lines.empty, lines.replaced());
        lines.write(&mut self.output)?;
        self.output.flush()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        let mut losses = self.losses.report();
        losses.add("samples without frames", self.empty);
        losses.add("special characters in names", self.replaced);
        losses
    }
}
