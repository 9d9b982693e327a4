//! Reli's own command lines, translated into ours; those for running processes in `inspect`, for heaps in `memory`.
//!
//! Those for files read standard input and write standard output, as reli's do; paths are taken as well. A command's
//! name may be cut short as long as it is the only one that begins so (`c:fold`, `rbt:a`), as reli's may.
//!
//! Source: reli 0.12, its commands `converter:*`, `rbt:recover` and `rbt:analyze`.

mod compare;
mod contents;
mod inspect;
mod memory;
mod report;
mod rmem;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use borehole::Format;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::cli::{self, ReportCommand};
use crate::convert::{self, ConvertArgs, Details, Timestamps, Utf8Errors};
use crate::deferred::signed;
use crate::exit::Exit;
use crate::explore::{self, ExploreArgs};
use crate::filter::{FilterArgs, SampleArgs, StackShapeArgs, ValueArgs};
use crate::inputs::{Inputs, Reading};
use crate::outputs::OutputArgs;
use crate::page::PageArgs;
use crate::recover::{self, RecoverArgs};
use crate::report::{Dialect, ReportArgs};
use compare::MemoryCompareArgs;
use contents::InspectArgs;
use inspect::{DaemonArgs, EgArgs, ReliTopArgs, TraceArgs};
use memory::{ExportSqliteArgs, MemoryAnalyzeArgs, MemoryArgs, MemoryDumpArgs, OptimizeArgs};
use report::MemoryReportArgs;
use rmem::{RmemExploreArgs, RmemVizArgs};

/// The commands of reli
#[derive(Parser, Debug)]
#[command(name = "reli", arg_required_else_help = true)]
struct Reli {
    #[command(subcommand)]
    command: Command,
}

/// A command of reli's.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// rbt or phpspy text to speedscope
    #[command(name = "converter:speedscope")]
    Speedscope {
        #[command(flatten)]
        input: Input,
        /// What to do with bytes of names that are not UTF-8
        #[arg(long, value_enum, default_value = "ignore")]
        utf8_errors: Utf8Errors,
    },
    /// rbt or phpspy text to pprof, gzip-compressed
    #[command(name = "converter:pprof")]
    Pprof(Input),
    /// rbt or phpspy text to folded stacks
    #[command(name = "converter:folded")]
    Folded(Input),
    /// rbt or phpspy text to callgrind
    #[command(name = "converter:callgrind")]
    Callgrind(Input),
    /// rbt to phpspy text
    #[command(name = "converter:phpspy")]
    Phpspy(Input),
    /// phpspy text to rbt
    #[command(name = "converter:rbt")]
    Rbt {
        #[command(flatten)]
        input: Input,
        /// The sampling period in microseconds
        #[arg(long, value_name = "US", default_value_t = 10_000)]
        sampling_period: u32,
        /// Whether samples carry timestamps
        #[arg(long, value_enum, default_value = "none")]
        rbt_timestamps: Timestamps,
        /// Compress the output with gzip
        #[arg(long)]
        compress: bool,
    },
    /// rbt or phpspy text to a flame graph
    #[command(name = "converter:flamegraph")]
    Flamegraph(Input),
    /// Save what a damaged rbt file still holds
    #[command(name = "rbt:recover")]
    Recover {
        #[command(flatten)]
        input: Input,
        /// What to write
        #[arg(short, long, value_enum, default_value = "rbt")]
        format: RecoverFormat,
    },
    /// Show where the time of an rbt file goes
    #[command(name = "rbt:analyze")]
    Analyze {
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        report: Box<ReportArgs>,
    },
    /// Explore an rbt file in the terminal
    #[command(name = "rbt:explore")]
    Explore(Box<ExploreArgs>),
    /// Explore a heap in the terminal
    #[command(name = "rmem:explore")]
    HeapExplore(Box<RmemExploreArgs>),
    /// Write a page of what holds what in a heap
    #[command(name = "rmem:viz")]
    HeapViz(Box<RmemVizArgs>),
    /// Sample a process that runs PHP
    #[command(name = "inspector:trace")]
    Trace(Box<TraceArgs>),
    /// Sample all processes that match
    #[command(name = "inspector:daemon")]
    Daemon(Box<DaemonArgs>),
    /// Show live where the time goes
    #[command(name = "inspector:top")]
    Top(Box<ReliTopArgs>),
    /// Print the address of PHP's executor globals
    #[command(name = "inspector:eg")]
    Eg(Box<EgArgs>),
    /// Write the heap of a process that runs PHP
    #[command(name = "inspector:memory")]
    Memory(Box<MemoryArgs>),
    /// Copy the memory of a process that runs PHP
    #[command(name = "inspector:memory:dump")]
    MemoryDump(Box<MemoryDumpArgs>),
    /// Say what a dump holds
    #[command(name = "inspector:memory:dump:inspect")]
    MemoryDumpInspect(InspectArgs),
    /// Write the heap in a dump
    #[command(name = "inspector:memory:analyze")]
    MemoryAnalyze(Box<MemoryAnalyzeArgs>),
    /// Say what is wrong with a heap
    #[command(name = "inspector:memory:report")]
    MemoryReport(Box<MemoryReportArgs>),
    /// Say what changed between two heaps
    #[command(name = "inspector:memory:compare")]
    MemoryCompare(Box<MemoryCompareArgs>),
    /// Write a graph as a database of SQLite
    #[command(name = "inspector:memory:export-sqlite")]
    ExportSqlite(ExportSqliteArgs),
    /// Write the heap in a core file
    #[command(name = "inspector:coredump")]
    Coredump(Box<MemoryAnalyzeArgs>),
    /// Write the paths to all nodes into a database
    #[command(name = "inspector:optimize-memory-db")]
    Optimize(OptimizeArgs),
}

/// Inputs, and an option that only PHP needs.
#[derive(Args, Clone, Debug)]
pub(crate) struct Input {
    /// Files to read instead of standard input
    #[arg(value_name = "INPUT")]
    paths: Vec<PathBuf>,

    /// Accepted and without effect: memory is bounded by what is distinct
    #[arg(long, value_name = "SIZE", hide = true)]
    memory_limit: Option<String>,
}

/// What `rbt:recover` writes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RecoverFormat {
    /// An rbt file
    Rbt,
    /// phpspy text
    Phpspy,
}

/// The command, if this is one of reli's command lines: its name has a colon, or the program is called `reli`.
pub(crate) fn parse(arguments: &[OsString]) -> Option<clap::error::Result<Command>> {
    let program = arguments.first().map(Path::new).and_then(Path::file_stem);
    let name = arguments.get(1).and_then(|name| name.to_str()).unwrap_or_default();
    if program.is_none_or(|program| program != "reli") && !name.contains(':') {
        return None;
    }
    let reli = signed(Reli::command());
    let mut arguments = arguments.to_vec();
    if let Some(full) = full_name(&reli, name) {
        arguments[1] = full.into();
    }
    let matches = reli.try_get_matches_from(arguments);
    Some(matches.and_then(|matches| Ok(Reli::from_arg_matches(&matches)?.command)))
}

/// The command whose parts begin with the parts of `name`, of which there are as many, if there is only one; or the command
/// of that name.
fn full_name(reli: &clap::Command, name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split(':').collect();
    let begins = |full: &&str| {
        let full: Vec<&str> = full.split(':').collect();
        full.len() == parts.len() && full.iter().zip(&parts).all(|(full, part)| full.starts_with(part))
    };
    let names: Vec<&str> = reli.get_subcommands().map(clap::Command::get_name).collect();
    if names.contains(&name) {
        return Some(name.to_owned());
    }
    let mut matching = names.into_iter().filter(begins);
    let found = matching.next()?;
    matching.next().is_none().then(|| found.to_owned())
}

/// Carries out a command of reli's.
pub(crate) fn run(command: Command) -> anyhow::Result<Exit> {
    let details = Details::default();
    match command {
        Command::Speedscope { input, utf8_errors } => {
            convert(input, Format::Speedscope, Details { utf8_errors: Some(utf8_errors), ..details }, false)
        }
        Command::Pprof(input) => convert(input, Format::Pprof, details, false),
        Command::Folded(input) => convert(input, Format::Folded, details, false),
        Command::Callgrind(input) => convert(input, Format::Callgrind, details, false),
        Command::Phpspy(input) => convert(input, Format::Phpspy, details, false),
        Command::Flamegraph(input) => convert(input, Format::FlameGraph, details, false),
        Command::Rbt { input, sampling_period, rbt_timestamps, compress } => {
            let sampling_period = Some(sampling_period);
            let timestamps = Some(rbt_timestamps);
            convert(input, Format::Rbt, Details { sampling_period, timestamps, ..details }, compress)
        }
        Command::Recover { input, format } => recover(&input, format),
        Command::Analyze { input, mut report } => {
            report.dialect = Dialect::Reli;
            let (page, samples) = (PageArgs::default(), SampleArgs::default());
            cli::report(&ReportCommand { inputs: input.into(), report: *report, page, samples })
        }
        Command::Explore(args) => explore::run(&args),
        Command::HeapExplore(args) => rmem::explore(&args),
        Command::HeapViz(args) => rmem::viz(&args),
        Command::Trace(args) => inspect::trace(*args),
        Command::Daemon(args) => inspect::daemon(*args),
        Command::Top(args) => inspect::top(&args),
        Command::Eg(args) => inspect::eg(&args),
        Command::Memory(args) => memory::memory(&args),
        Command::MemoryDump(args) => memory::dump(&args),
        Command::MemoryAnalyze(args) | Command::Coredump(args) => memory::analyze(&args),
        Command::MemoryReport(args) => report::report(&args),
        Command::MemoryCompare(args) => compare::compare(&args),
        Command::MemoryDumpInspect(args) => contents::inspect(&args),
        Command::ExportSqlite(args) => memory::export_sqlite(&args),
        Command::Optimize(args) => memory::optimize(&args),
    }
}

fn convert(input: Input, format: Format, details: Details, compress: bool) -> anyhow::Result<Exit> {
    let output = OutputArgs { to: Some(format), compress, ..OutputArgs::default() };
    let filter = FilterArgs::default();
    convert::run(&ConvertArgs {
        inputs: input.into(),
        output,
        details,
        value: ValueArgs::default(),
        filter,
        shape: StackShapeArgs::default(),
        sort_by_time: false,
        scrub: false,
        scrub_key: None,
    })
}

/// Reli's recovery succeeds whatever it finds: scripts go on after it.
fn recover(input: &Input, format: RecoverFormat) -> anyhow::Result<Exit> {
    let to = match format {
        RecoverFormat::Rbt => Format::Rbt,
        RecoverFormat::Phpspy => Format::Phpspy,
    };
    let input = input.paths.first().map_or_else(|| PathBuf::from("-"), Clone::clone);
    let reading = Reading { from: Some(Format::Rbt), ..Reading::default() };
    let output = OutputArgs { to: Some(to), ..OutputArgs::default() };
    match recover::run(&RecoverArgs { input, tables: None, reading, output })? {
        Exit::Damaged => Ok(Exit::Done),
        exit => Ok(exit),
    }
}

impl From<Input> for Inputs {
    fn from(input: Input) -> Self {
        Self { paths: input.paths, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_short_as_long_as_they_mean_one_command() {
        let reli = Reli::command();
        for (cut, full) in [
            ("c:fold", Some("converter:folded")),
            ("rbt:a", Some("rbt:analyze")),
            ("i:m:d:i", Some("inspector:memory:dump:inspect")),
            // The whole name of one, which begins others.
            ("inspector:memory", Some("inspector:memory")),
            ("c:p", None),
            ("inspector", None),
            ("nothing:at:all", None),
        ] {
            assert_eq!(full_name(&reli, cut).as_deref(), full, "{cut}");
        }
    }
}
