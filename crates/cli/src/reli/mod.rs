//! Reli's command lines, translated into ours: for running processes in `inspect`, for heaps in `memory`.
//!
//! Commands for files read standard input and write standard output, as in reli; they accept paths as well. The name of a command
//! may be shortened as long as it is unambiguous (`c:fold`, `rbt:a`), as in reli.
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

use crate::cli;
use crate::convert::{self, ConvertArgs, FormatOptions, TimestampMode, Utf8ErrorMode};
use crate::deferred::signed;
use crate::exit::Exit;
use crate::explore::{self, ExploreArgs};
use crate::filter::{FilterArgs, SampleArgs, StackShapeArgs, ValueArgs};
use crate::inputs::{Inputs, ReadArgs};
use crate::outputs::OutputArgs;
use crate::page::PageArgs;
use crate::recover::{self, RecoverArgs};
use crate::report::{ReportArgs, ReportDialect};
use crate::report_command::ReportCommand;
use crate::values::MemoryLimit;
use compare::MemoryCompareArgs;
use contents::InspectArgs;
use inspect::{DaemonArgs, ReliEgArgs, ReliTopArgs, TraceArgs};
use memory::{ExportSqliteArgs, MemoryAnalyzeArgs, MemoryArgs, MemoryDumpArgs, OptimizeArgs};
use report::MemoryReportArgs;
use rmem::{RmemExploreArgs, RmemMcpArgs, RmemQueryArgs, RmemServeArgs, RmemVizArgs};

/// Commands of reli
#[derive(Parser, Debug)]
#[command(name = "reli", arg_required_else_help = true)]
struct Reli {
    #[command(subcommand)]
    command: ReliCommand,
}

/// A command of reli's.
#[derive(Subcommand, Debug)]
pub(crate) enum ReliCommand {
    /// Convert rbt or phpspy text to speedscope
    #[command(name = "converter:speedscope")]
    Speedscope {
        #[command(flatten)]
        input: ReliInput,
        /// How to treat names that are not UTF-8
        #[arg(long, value_enum, default_value = "ignore")]
        utf8_errors: Utf8ErrorMode,
        /// Write one profile of all processes, as reli does, instead of one of each
        #[arg(long)]
        combine: bool,
    },
    /// Convert rbt or phpspy text to pprof, compressed with gzip
    #[command(name = "converter:pprof")]
    Pprof(ReliInput),
    /// Convert rbt or phpspy text to folded stacks
    #[command(name = "converter:folded")]
    Folded(ReliInput),
    /// Convert rbt or phpspy text to callgrind
    #[command(name = "converter:callgrind")]
    Callgrind(ReliInput),
    /// Convert rbt to phpspy text
    #[command(name = "converter:phpspy")]
    Phpspy(ReliInput),
    /// Convert phpspy text to rbt
    #[command(name = "converter:rbt")]
    Rbt {
        #[command(flatten)]
        input: ReliInput,
        /// The sampling period in microseconds
        #[arg(long, value_name = "US", default_value_t = 10_000)]
        sampling_period: u32,
        /// Whether samples carry timestamps
        #[arg(long, value_enum, default_value = "none")]
        rbt_timestamps: TimestampMode,
        /// Compress the output with gzip
        #[arg(long)]
        compress: bool,
    },
    /// Convert rbt or phpspy text to a flame graph
    #[command(name = "converter:flamegraph")]
    Flamegraph(ReliInput),
    /// Recover the readable parts of a damaged rbt file
    #[command(name = "rbt:recover")]
    Recover {
        #[command(flatten)]
        input: ReliInput,
        /// Format to write
        #[arg(short, long, value_enum, default_value = "rbt")]
        format: RecoverFormat,
    },
    /// Report where the time of an rbt file goes
    #[command(name = "rbt:analyze")]
    Analyze {
        #[command(flatten)]
        input: ReliInput,
        #[command(flatten)]
        report: Box<ReportArgs>,
    },
    /// Explore an rbt file in the terminal
    #[command(name = "rbt:explore")]
    Explore(Box<ExploreArgs>),
    /// Explore a heap in the terminal
    #[command(name = "rmem:explore")]
    HeapExplore(Box<RmemExploreArgs>),
    /// Write an interactive page of a heap
    #[command(name = "rmem:viz")]
    HeapViz(Box<RmemVizArgs>),
    /// Serve a heap in the browser
    #[command(name = "rmem:serve")]
    HeapServe(RmemServeArgs),
    /// Answer an assistant about a heap
    #[command(name = "rmem:mcp")]
    HeapMcp(RmemMcpArgs),
    /// Show a node of a heap
    #[command(name = "rmem:query")]
    HeapQuery(RmemQueryArgs),
    /// Sample a PHP process
    #[command(name = "inspector:trace")]
    Trace(Box<TraceArgs>),
    /// Sample all matching processes
    #[command(name = "inspector:daemon")]
    Daemon(Box<DaemonArgs>),
    /// Show live where the time goes
    #[command(name = "inspector:top")]
    Top(Box<ReliTopArgs>),
    /// Print the address of PHP's executor globals
    #[command(name = "inspector:eg")]
    Eg(Box<ReliEgArgs>),
    /// Write the heap of a PHP process
    #[command(name = "inspector:memory")]
    Memory(Box<MemoryArgs>),
    /// Copy the memory of a PHP process
    #[command(name = "inspector:memory:dump")]
    MemoryDump(Box<MemoryDumpArgs>),
    /// Print the contents of a dump
    #[command(name = "inspector:memory:dump:inspect")]
    MemoryDumpInspect(InspectArgs),
    /// Write the heap in a dump
    #[command(name = "inspector:memory:analyze")]
    MemoryAnalyze(Box<MemoryAnalyzeArgs>),
    /// Report findings about a heap
    #[command(name = "inspector:memory:report")]
    MemoryReport(Box<MemoryReportArgs>),
    /// Show what changed between two heaps
    #[command(name = "inspector:memory:compare")]
    MemoryCompare(Box<MemoryCompareArgs>),
    /// Write a graph as an SQLite database
    #[command(name = "inspector:memory:export-sqlite")]
    ExportSqlite(ExportSqliteArgs),
    /// Write the heap in a core file
    #[command(name = "inspector:coredump")]
    Coredump(Box<MemoryAnalyzeArgs>),
    /// Write the paths to all nodes into a database
    #[command(name = "inspector:optimize-memory-db")]
    Optimize(OptimizeArgs),
}

/// Inputs, and an option that only reli needs.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReliInput {
    /// Files to read instead of standard input
    #[arg(value_name = "INPUT")]
    paths: Vec<PathBuf>,

    /// Accepted, but without effect: memory grows with distinct data only
    #[arg(long, value_name = "SIZE", hide = true, allow_hyphen_values = true)]
    memory_limit: Option<MemoryLimit>,
}

/// The formats that `rbt:recover` writes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RecoverFormat {
    /// An rbt file
    Rbt,
    /// phpspy text
    Phpspy,
}

/// Parses a command line of reli's: the command's name has a colon, or the program is called `reli`. `None` for others.
pub(crate) fn parse(arguments: &[OsString]) -> Option<clap::error::Result<ReliCommand>> {
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

/// The command of that name, or else the only one that has as many parts as `name` and whose parts begin with those of `name`.
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

/// Runs a command of reli's.
pub(crate) fn run(command: ReliCommand) -> anyhow::Result<Exit> {
    let details = FormatOptions::default();
    match command {
        ReliCommand::Speedscope { input, utf8_errors, combine } => {
            let details = FormatOptions { utf8_errors: Some(utf8_errors), combine, ..details };
            convert(input, Format::Speedscope, details, false)
        }
        ReliCommand::Pprof(input) => convert(input, Format::Pprof, details, false),
        ReliCommand::Folded(input) => convert(input, Format::Folded, details, false),
        ReliCommand::Callgrind(input) => convert(input, Format::Callgrind, details, false),
        ReliCommand::Phpspy(input) => convert(input, Format::Phpspy, details, false),
        ReliCommand::Flamegraph(input) => convert(input, Format::FlameGraph, details, false),
        ReliCommand::Rbt { input, sampling_period, rbt_timestamps, compress } => {
            let sampling_period = Some(sampling_period);
            let timestamps = Some(rbt_timestamps);
            convert(input, Format::Rbt, FormatOptions { sampling_period, timestamps, ..details }, compress)
        }
        ReliCommand::Recover { input, format } => recover(&input, format),
        ReliCommand::Analyze { input, mut report } => {
            report.dialect = ReportDialect::Reli;
            let (page, samples) = (PageArgs::default(), SampleArgs::default());
            cli::report(&ReportCommand { inputs: input.into(), report: *report, page, samples })
        }
        ReliCommand::Explore(args) => explore::run(&args),
        ReliCommand::HeapExplore(args) => rmem::explore(&args),
        ReliCommand::HeapViz(args) => rmem::viz(&args),
        ReliCommand::HeapServe(args) => rmem::serve(&args),
        ReliCommand::HeapMcp(args) => rmem::mcp(&args),
        ReliCommand::HeapQuery(args) => rmem::query(&args),
        ReliCommand::Trace(args) => inspect::trace(*args),
        ReliCommand::Daemon(args) => inspect::daemon(*args),
        ReliCommand::Top(args) => inspect::top(&args),
        ReliCommand::Eg(args) => inspect::eg(&args),
        ReliCommand::Memory(args) => memory::memory(&args),
        ReliCommand::MemoryDump(args) => memory::dump(&args),
        ReliCommand::MemoryAnalyze(args) | ReliCommand::Coredump(args) => memory::analyze(&args),
        ReliCommand::MemoryReport(args) => report::report(&args),
        ReliCommand::MemoryCompare(args) => compare::compare(&args),
        ReliCommand::MemoryDumpInspect(args) => contents::inspect(&args),
        ReliCommand::ExportSqlite(args) => memory::export_sqlite(&args),
        ReliCommand::Optimize(args) => memory::optimize(&args),
    }
}

fn convert(input: ReliInput, format: Format, details: FormatOptions, compress: bool) -> anyhow::Result<Exit> {
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
        redact: false,
        redact_key: None,
    })
}

/// Succeeds whatever it finds, as in reli, so that scripts go on.
fn recover(input: &ReliInput, format: RecoverFormat) -> anyhow::Result<Exit> {
    let to = match format {
        RecoverFormat::Rbt => Format::Rbt,
        RecoverFormat::Phpspy => Format::Phpspy,
    };
    let input = input.paths.first().map_or_else(|| PathBuf::from("-"), Clone::clone);
    let reading = ReadArgs { from: Some(Format::Rbt), ..ReadArgs::default() };
    let output = OutputArgs { to: Some(to), ..OutputArgs::default() };
    match recover::run(&RecoverArgs { input, tables: None, reading, output })? {
        Exit::Damaged => Ok(Exit::Done),
        exit => Ok(exit),
    }
}

impl From<ReliInput> for Inputs {
    fn from(input: ReliInput) -> Self {
        Self { paths: input.paths, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_shortened_while_they_are_unambiguous() {
        let reli = Reli::command();
        for (cut, full) in [
            ("c:fold", Some("converter:folded")),
            ("rbt:a", Some("rbt:analyze")),
            ("i:m:d:i", Some("inspector:memory:dump:inspect")),
            // The full name of one, with which others begin.
            ("inspector:memory", Some("inspector:memory")),
            ("c:p", None),
            ("inspector", None),
            ("nothing:at:all", None),
        ] {
            assert_eq!(full_name(&reli, cut).as_deref(), full, "{cut}");
        }
    }
}
