//! Exports the model to folded stacks.

use std::io::{self, Write};
use std::ops::ControlFlow;

use borehole_model::{Context, ProfileSink, Sample, Tables};

use super::NameStyle;
use crate::lines::folded::FoldedLines;
use crate::sums::losses::SampleLosses;
use crate::sums::stacks::StackCounts;
use crate::{Export, Losses};

/// The options of an export to folded stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// The form of frames.
    pub names: NameStyle,
}

/// Adds samples up by stack and writes one line for each stack, in order of first appearance.
///
/// The empty stack is a line of a space and its count.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, folded};
/// use borehole_model::{ProfileSink as _, Tables};
///
/// let text = b"main /index.php:5;f /f.php:7 1\nmain /index.php:5;f /f.php:8 2\n";
/// let options = folded::ExportOptions { names: folded::NameStyle::Function };
/// let (mut tables, mut output) = (Tables::default(), Vec::new());
/// let mut exporter = folded::Exporter::new(&mut output, options);
/// folded::import(&text[..], &ReadOptions::default(), &mut tables, &mut exporter)?;
/// exporter.finish(&tables)?;
/// drop(exporter);
/// assert_eq!(output, b"main;f 3\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Exporter<W: Write> {
    output: W,
    options: ExportOptions,
    counts: StackCounts,
    losses: SampleLosses,
    replaced: u64,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter that writes to `output` when it is finished.
    pub fn new(output: W, options: ExportOptions) -> Self {
        Self { output, options, counts: StackCounts::default(), losses: SampleLosses::default(), replaced: 0 }
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.losses.all_but_stack(at, sample);
        self.counts.add(sample.stack, sample.count);
        Ok(ControlFlow::Continue(()))
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.losses)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        let mut lines = FoldedLines::new(tables, &self.counts, self.options.names, usize::MAX)?;
        lines.write(&mut self.output)?;
        self.replaced = lines.replaced();
        self.output.flush()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        let mut losses = self.losses.report();
        losses.add("special characters in names", self.replaced);
        losses
    }
}
