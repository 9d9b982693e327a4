//! Programs that claims are compared with, run by this one in a process of their own.

use std::io;

use anyhow::Result;

/// A program to compare with.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Program {
    /// Inferno's flame graph of folded stacks.
    Flamegraph,
}

/// The version of inferno, as the manifest of the workspace asks for it.
pub(crate) const INFERNO: &str = "inferno 0.12";

/// Runs `program` on standard input; its output is thrown away.
///
/// # Errors
/// When it fails.
pub(crate) fn run(program: Program) -> Result<()> {
    match program {
        Program::Flamegraph => {
            let mut options = inferno::flamegraph::Options::default();
            Ok(inferno::flamegraph::from_reader(&mut options, io::stdin().lock(), io::sink())?)
        }
    }
}
