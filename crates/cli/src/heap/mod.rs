//! `borehole heap`: what a PHP process holds in memory.

mod analysis;
mod ask;
mod compare;
mod database;
mod explore;
mod file;
mod info;
mod live;
mod output;
mod password;
mod report;
mod table;
mod viz;

use ask::AskArgs;
use clap::Subcommand;
pub(crate) use compare::CompareArgs;

use crate::deferred::Deferred;
use crate::exit::Exit;
pub(crate) use analysis::{FailureArgs, PhpHeapArgs, WalkArgs};
pub(crate) use database::{HeapQueryArgs, PathForm, PathsArgs, RunsArgs, paths};
pub(crate) use explore::HeapExploreArgs;
pub(crate) use file::{AnalyzeArgs, ExportArgs, HeapInputArgs};
use info::HeapInfoArgs;
pub(crate) use live::{CaptureArgs, CopyArgs, HeapDumpArgs};
pub(crate) use output::{GraphOutput, TextOutput};
pub(crate) use password::WaitArgs;
pub(crate) use report::{HeapReportArgs, ReportOptions, ReportOutput};
pub(crate) use viz::VizArgs;

/// The commands on heaps.
#[derive(Subcommand, Debug)]
pub(crate) enum HeapCommand {
    /// Stop a PHP process briefly and copy its memory, to analyse it later or elsewhere
    ///
    /// The command takes about a third of the memory that the process has. With --max-memory of more than twice that memory, the copy
    /// is not packed, which is faster.
    #[command(after_help = DUMP_EXAMPLES)]
    Dump(Deferred<HeapDumpArgs>),
    /// Copy the memory of a PHP process and write its heap as a graph
    ///
    /// To write .rmem, the command takes about half to three quarters of the memory that the process has, or more if most of it is
    /// text. Other formats and reports take about as much as the process has. With --max-memory of more than twice that memory,
    /// the copy is not packed, which is faster.
    #[command(after_help = CAPTURE_EXAMPLES)]
    Capture(Deferred<CaptureArgs>),
    /// Analyse a dump or a core file and write its heap as a graph
    #[command(after_help = ANALYZE_EXAMPLES)]
    Analyze(Deferred<AnalyzeArgs>),
    /// Show memory by region, type and class, and how much is accounted for
    #[command(after_help = INFO_EXAMPLES)]
    Info(Deferred<HeapInfoArgs>),
    /// Report findings with likely causes and next steps, then what takes most memory
    #[command(after_help = REPORT_EXAMPLES)]
    Report(Deferred<HeapReportArgs>),
    /// Convert a graph to another format
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(Deferred<ExportArgs>),
    /// List the runs of a database, or delete some
    #[command(after_help = RUNS_EXAMPLES)]
    Runs(Deferred<RunsArgs>),
    /// Query a database with SQL or a named query
    #[command(after_help = QUERY_EXAMPLES)]
    Query(Deferred<HeapQueryArgs>),
    /// Show what holds memory: by class, by node, by cycle
    #[command(after_help = ASK_EXAMPLES)]
    Ask(Deferred<AskArgs>),
    /// Explore a heap in the terminal: classes, retained sizes, references, fields, paths
    #[command(after_help = EXPLORE_EXAMPLES)]
    Explore(Deferred<HeapExploreArgs>),
    /// Write an interactive page (.html): blocks of retained memory to zoom into, and classes
    #[command(after_help = VIZ_EXAMPLES)]
    Viz(Deferred<VizArgs>),
    /// Show what grew and shrank between heaps, and what holds it
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Deferred<CompareArgs>),
    /// Write the path to each node of a run into a database
    #[command(after_help = PATHS_EXAMPLES)]
    Paths(Deferred<PathsArgs>),
}

const DUMP_EXAMPLES: &str = "\
Examples:
  borehole heap dump -p 4711 -o worker.rdump
  borehole heap analyze worker.rdump -o worker.rmem";

const CAPTURE_EXAMPLES: &str = "\
Examples:
  borehole heap capture -p 4711 -o worker.rmem
  borehole heap capture -p 4711 -o heaps.sqlite3      adds a run to a database
  borehole heap capture -p 4711 -o postgresql://me@db.example/heaps
  borehole heap capture -p 4711 -o 1.heapsnapshot     for Chrome's tools
  borehole heap capture --delay 5s -o import.rmem -- php import.php";

const ANALYZE_EXAMPLES: &str = "\
Examples:
  borehole heap analyze worker.rdump -o worker.rmem
  borehole heap analyze core.4711 -o crash.sqlite3";

const EXPORT_EXAMPLES: &str = "\
Examples:
  borehole heap export worker.rmem -o worker.hprof    for VisualVM, Eclipse MAT
  borehole heap export worker.rmem -f json | jq '.summary'
  borehole heap export worker.rmem -o mysql://me@db.example/heaps";

const RUNS_EXAMPLES: &str = "\
Examples:
  borehole heap runs heaps.sqlite3
  borehole heap runs heaps.sqlite3 --keep-last 20
  borehole heap runs mysql://me@db.example/heaps --older-than 30d";

const INFO_EXAMPLES: &str = "\
Examples:
  borehole heap info worker.rmem
  borehole heap info core.4711 --json | jq .summary";

const REPORT_EXAMPLES: &str = "\
Examples:
  borehole heap report worker.rmem
  borehole heap report heaps.sqlite3 --run-id 2
  borehole heap report --json worker.rmem | jq '.findings[0]'";

const QUERY_EXAMPLES: &str = "\
Examples:
  borehole heap query postgresql://me@db/heaps --run-id 3 --named classes
  borehole heap query heaps.sqlite3 --list
  borehole heap query heaps.sqlite3 --named duplicate-strings
  borehole heap query heaps.sqlite3 'SELECT COUNT(*) FROM context_nodes'";

const EXPLORE_EXAMPLES: &str = "\
Examples:
  borehole heap explore worker.rmem                   ? shows the keys
  borehole heap explore heaps.sqlite3 --run-id 2
  borehole heap explore worker.rmem --node '#4711'    starts at a node";

const VIZ_EXAMPLES: &str = "\
Examples:
  borehole heap viz worker.rmem -o heap.html
  borehole heap viz worker.rdump > heap.html";

const COMPARE_EXAMPLES: &str = "\
Examples:
  borehole heap compare monday.rmem tuesday.rmem
  borehole heap compare 1.rmem 2.rmem 3.rmem 4.rmem    steady growth first
  borehole heap compare heaps.sqlite3 --run-id-baseline 1 --run-id-target 2
  borehole heap compare base.rmem now.rmem --fail-over 10%";

const ASK_EXAMPLES: &str = "\
Examples:
  borehole heap ask worker.rmem top-classes
  borehole heap ask worker.rmem find --class 'App\\Cart'
  borehole heap ask worker.rmem path-to-root '#4711'
  borehole heap ask worker.rmem retained '#17' '#18' --json";

const PATHS_EXAMPLES: &str = "\
Examples:
  borehole heap paths heaps.sqlite3
  borehole heap paths heaps.sqlite3 --run-id 3 --compact";

pub(crate) fn run(command: &HeapCommand) -> anyhow::Result<Exit> {
    match command {
        HeapCommand::Dump(args) => args.run(),
        HeapCommand::Capture(args) => args.run(),
        HeapCommand::Analyze(args) => args.run(),
        HeapCommand::Info(args) => args.run(),
        HeapCommand::Report(args) => args.run(),
        HeapCommand::Export(args) => args.run(),
        HeapCommand::Runs(args) => args.run(),
        HeapCommand::Query(args) => args.run(),
        HeapCommand::Ask(args) => args.run(),
        HeapCommand::Explore(args) => args.run(),
        HeapCommand::Viz(args) => args.run(),
        HeapCommand::Compare(args) => args.run(),
        HeapCommand::Paths(args) => args.run(),
    }
}
