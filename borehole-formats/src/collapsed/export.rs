//! The model into collapsed stacks.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use borehole_model::{Context, ProfileSink, Sample, StackId, StringId, Tables};

use super::lines::{Counts, Lines};
use crate::sample_losses::SampleLosses;
use crate::{Export, Losses};

/// Adds samples up by thread and stack and writes a line for each, byte for byte as CPython's `replay` does:
/// interpreters are not told apart, samples without frames are left out, and so are the frames of the
/// profiler itself.
///
/// Of samples without a thread the line begins with the outermost frame.
pub struct Exporter<W: Write> {
    output: BufWriter<W>,
    counts: Counts,
    /// The thread and stack of the last sample and how many of it have not been added yet: neighbours are
    /// mostly alike.
    last: ((Option<u64>, Option<StackId>), u64),
    losses: SampleLosses,
    empty: u64,
}

impl<W: Write> Exporter<W> {
    /// Writes to `output`.
    pub fn new(output: W) -> Self {
        Self {
            output: BufWriter::with_capacity(64 << 10, output),
            counts: Counts::new(),
            last: ((None, None), 0),
            losses: SampleLosses::default(),
            empty: 0,
        }
    }

    fn add_last(&mut self) {
        let (key, count) = self.last;
        if count > 0 {
            let sum = self.counts.entry(key).or_default();
            *sum = sum.saturating_add(count);
        }
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    #[inline]
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let key = (sample.thread, sample.stack);
        if self.last.0 == key {
            self.last.1 = self.last.1.saturating_add(sample.count);
        } else {
            self.add_last();
            self.last = (key, sample.count);
        }
        self.losses.all_but_stack(at, &Sample { thread: None, ..*sample });
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.losses.segment(at.segment);
        Ok(())
    }

    fn metadata(&mut self, _at: Context<'_>, _key: StringId, _value: StringId) -> io::Result<()> {
        self.losses.metadata();
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.add_last();
        let mut lines = Lines::of(&std::mem::take(&mut self.counts), tables)?;
        self.empty = lines.empty;
        lines.write(&mut self.output)?;
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
