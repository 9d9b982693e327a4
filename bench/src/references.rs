//! Programs that claims are compared with, run by this one in a process of their own.

use std::io;

use anyhow::Result;
use inferno::collapse::{Collapse as _, perf, recursive};
use inferno::flamegraph;

/// A program to compare with.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum ReferenceProgram {
    /// Inferno's flame graph of folded stacks.
    Flamegraph,
    /// Inferno's reader of what `perf script` prints.
    CollapsePerf,
    /// Inferno's reader of folded stacks that writes folded stacks.
    CollapseRecursive,
}

/// The version of inferno, as the manifest of the workspace asks for it.
pub(crate) const INFERNO: &str = "inferno 0.12";

impl ReferenceProgram {
    /// The name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Flamegraph => "flamegraph",
            Self::CollapsePerf => "collapse-perf",
            Self::CollapseRecursive => "collapse-recursive",
        }
    }
}

/// Runs `program` on standard input, on one thread; its output is thrown away.
///
/// # Errors
/// When it fails.
pub(crate) fn run(program: ReferenceProgram) -> Result<()> {
    let input = io::stdin().lock();
    match program {
        ReferenceProgram::Flamegraph => {
            flamegraph::from_reader(&mut flamegraph::Options::default(), input, io::sink())?;
        }
        ReferenceProgram::CollapsePerf => {
            let mut options = perf::Options::default();
            options.nthreads = 1;
            perf::Folder::from(options).collapse(input, io::sink())?;
        }
        ReferenceProgram::CollapseRecursive => {
            let mut options = recursive::Options::default();
            options.nthreads = 1;
            recursive::Folder::from(options).collapse(input, io::sink())?;
        }
    }
    Ok(())
}
