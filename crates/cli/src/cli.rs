//! The command line of `borehole`.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};

use borehole::ProfileSink;
use clap::{Parser, Subcommand};

use crate::cell::WidthArgs;
use crate::check::CheckArgs;
use crate::convert::ConvertArgs;
use crate::deferred::Deferred;
use crate::diff::DiffArgs;
use crate::doctor::DoctorArgs;
use crate::dump::DumpArgs;
use crate::eg::EgArgs;
use crate::exit::Exit;
use crate::explore::ExploreArgs;
use crate::formats::FormatsArgs;
use crate::heap::HeapCommand;
use crate::info::InfoArgs;
use crate::interrupt;
use crate::memory::MemoryArgs;
use crate::messages;
use crate::page::{self, OpenArgs};
use crate::pages::{CompletionsArgs, ManArgs};
use crate::record::RecordArgs;
use crate::recover::RecoverArgs;
use crate::report;
use crate::report_command::ReportCommand;
use crate::stack::StackArgs;
use crate::stdout::{STDOUT, data};
use crate::symbolize::SymbolizeArgs;
use crate::times;
use crate::top::TopArgs;

/// Sample running PHP, Python and native programs; convert, recover and explore profiles of many formats
#[derive(Parser, Debug)]
#[command(name = "borehole", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: BoreholeCommand,

    #[command(flatten)]
    pub(crate) memory: MemoryArgs,

    #[command(flatten)]
    pub(crate) width: WidthArgs,
}

const EXIT_CODES: &str = "\
Formats are detected by content, raw or compressed with gzip or zstd. `-` is standard input or output.

Exit codes:
    0  success
    1  success, but a threshold was crossed (--fail-over)
    2  error; nothing was written
    3  damaged input; the readable rest was written
  130  interrupted; what was written is valid
`record -- COMMAND` ends with the code of the command if the recording succeeds.

reli's command lines work as well: for files (converter:*, rbt:analyze,
rbt:explore, rbt:recover), for processes (inspector:trace, daemon, top, eg)
and for heaps (inspector:memory*, inspector:coredump, rmem:explore, rmem:viz).";

/// The commands.
#[derive(Subcommand, Debug)]
pub(crate) enum BoreholeCommand {
    /// Sample running programs of PHP, Python or native code into a file; if that is not permitted, run `borehole doctor`
    #[command(after_help = RECORD_EXAMPLES)]
    Record(Deferred<RecordArgs>),
    /// Print the current stacks of a process
    #[command(after_help = STACK_EXAMPLES)]
    Stack(Deferred<StackArgs>),
    /// Show live where running programs spend their time
    #[command(after_help = TOP_EXAMPLES)]
    Top(Deferred<TopArgs>),
    /// Print the address of the executor globals of each PHP thread
    #[command(after_help = EG_EXAMPLES)]
    Eg(Deferred<EgArgs>),
    /// Check whether processes can be sampled here, and if not, say why and what helps
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(Deferred<DoctorArgs>),
    /// Convert profiles to another format
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(Deferred<ConvertArgs>),
    /// Recover the readable parts of a damaged file
    #[command(after_help = RECOVER_EXAMPLES)]
    Recover(Deferred<RecoverArgs>),
    /// Give functions, files and lines to addresses, from the programs and libraries on this machine
    #[command(after_help = SYMBOLIZE_EXAMPLES)]
    Symbolize(Deferred<SymbolizeArgs>),
    /// Show the format and contents of files
    #[command(after_help = INFO_EXAMPLES)]
    Info(Deferred<InfoArgs>),
    /// Check whether files are sound, and report what is wrong and where
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Deferred<CheckArgs>),
    /// Print every sample and event as a line of JSON
    #[command(after_help = DUMP_EXAMPLES)]
    Dump(Deferred<DumpArgs>),
    /// Report where the time goes: hot frames, callers, callees, last stacks, Tokio tasks
    #[command(after_help = REPORT_EXAMPLES)]
    Report(Deferred<ReportCommand>),
    /// Compare two profiles or sets of profiles, and tell changes from noise
    #[command(after_help = DIFF_EXAMPLES, override_usage = DIFF_USAGE)]
    Diff(Deferred<DiffArgs>),
    /// Explore a profile in the terminal: flame graph, callers, callees, timeline, source lines
    #[command(after_help = EXPLORE_EXAMPLES)]
    Explore(Deferred<ExploreArgs>),
    /// Show a profile in the browser: flame graph, top table, timeline and heat map on one page
    #[command(after_help = OPEN_EXAMPLES)]
    Open(Deferred<OpenArgs>),
    /// Analyze the memory of PHP processes
    Heap {
        #[command(subcommand)]
        command: HeapCommand,
    },
    /// Store the profiles of a fleet and query them in SQL, with the program borehole-lake
    #[command(disable_help_flag = true)]
    Lake {
        /// Arguments of borehole-lake; --help lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<OsString>,
    },
    /// Serve profiles and heaps in the browser, and as JSON, with the program borehole-serve
    #[command(disable_help_flag = true)]
    Serve {
        /// Arguments of borehole-serve; --help lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<OsString>,
    },
    /// Answer questions of an assistant (MCP), with the program borehole-serve
    #[command(disable_help_flag = true)]
    Mcp {
        /// Arguments of borehole-serve; --help lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<OsString>,
    },
    /// Ask one question about profiles and heaps, with the program borehole-serve
    #[command(disable_help_flag = true)]
    Query {
        /// Arguments of borehole-serve; --help lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<OsString>,
    },
    /// List the supported formats
    #[command(after_help = FORMATS_EXAMPLES)]
    Formats(Deferred<FormatsArgs>),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(Deferred<CompletionsArgs>),
    /// Print the manual page
    #[command(after_help = MAN_EXAMPLES)]
    Man(Deferred<ManArgs>),
}

const RECORD_EXAMPLES: &str = "\
Examples:
  borehole record -p 4711 -o trace.rbt               until Ctrl-C
  borehole record -p 4711 -d 30s -o flame.svg        half a minute, as a graph
  borehole record -P 'php-fpm: pool www' -o traces/  a pool, one file per thread
  borehole record -o trace.rbt -- php import.php     a command, until it ends";

const STACK_EXAMPLES: &str = "\
Examples:
  borehole stack -p 4711
  borehole stack -p 4711 --json | jq '.stacks[0].frames[0]'";

const TOP_EXAMPLES: &str = "\
Examples:
  borehole top -P php-fpm                            a pool, until Ctrl-C
  borehole top -p 4711 -d 10s --json | jq .functions";

const EG_EXAMPLES: &str = "\
Examples:
  borehole eg -p 4711";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  borehole doctor           the system and all PHP and Python processes
  borehole doctor -p 4711";

const FORMATS_EXAMPLES: &str = "\
Examples:
  borehole formats
  borehole formats --json | jq .formats";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  borehole completions bash > /etc/bash_completion.d/borehole";

const MAN_EXAMPLES: &str = "\
Examples:
  borehole man | man -l -
  borehole man -o /usr/local/share/man/man1          one page per command";

const CONVERT_EXAMPLES: &str = "\
Examples:
  borehole convert trace.rbt -o flame.svg            draw a flame graph
  borehole convert trace.rbt -o profile.pb.gz        for go tool pprof
  borehole convert worker_*.rbt.gz -o all.rbt        merge
  borehole convert trace.rbt --to folded | grep Db   to a pipe";

const RECOVER_EXAMPLES: &str = "\
Examples:
  borehole recover crashed.rbt -o saved.rbt
  borehole recover crashed.rbt --to phpspy | less";

const SYMBOLIZE_EXAMPLES: &str = "\
Examples:
  borehole symbolize raw.pb.gz -o profile.pb.gz
  borehole symbolize raw.pb.gz --binaries build/ -o profile.pb.gz
  borehole symbolize raw.pb.gz | borehole report";

const INFO_EXAMPLES: &str = "\
Examples:
  borehole info trace.rbt
  borehole info --json *.rbt.gz";

const CHECK_EXAMPLES: &str = "\
Examples:
  borehole check *.bin && echo all are sound
  borehole check --json trace.rbt | jq .findings";

const DUMP_EXAMPLES: &str = "\
Examples:
  borehole dump trace.rbt | jq 'select(.type == \"sample\" and .pid == 42)'
  borehole dump --raw trace.rbt            every record, with its offset
  borehole dump trace.bin | jq 'select(.name == \"PollStartEvent\")'";

const REPORT_EXAMPLES: &str = "\
Examples:
  borehole report trace.rbt
  borehole report trace.rbt --callers 'Doctrine\\\\ORM' --hide '^Symfony'
  borehole report trace.rbt --by query --top 10      by the values of a label
  borehole report --last=5 < trace.rbt               the most recent stacks
  borehole report trace.rbt -o report.html           a page to share
  borehole report trace.bin --sections flags         red flags (Tokio)";

const EXPLORE_EXAMPLES: &str = "\
Examples:
  borehole explore trace.rbt                         ? shows the keys
  borehole explore --follow trace.rbt                while it is written
  borehole explore profile.pb.gz --path-map /app=.   with source lines";
const OPEN_EXAMPLES: &str = "\
Examples:
  borehole open trace.rbt
  borehole open --no-browser trace.bin             print the address of the page";

const DIFF_USAGE: &str = "\
borehole diff [OPTIONS] <BEFORE> <AFTER>
       borehole diff [OPTIONS] --baseline <FILE>... --candidate <FILE>...";

const DIFF_EXAMPLES: &str = "\
Examples:
  borehole diff before.rbt after.rbt
  borehole diff before.pb.gz after.bin -o diff.html
  borehole diff --baseline old*.rbt --candidate new*.rbt --per input
  borehole diff a.bin b.bin --per request --focus '^pay' --fail-over 5%";

pub(crate) fn report(args: &ReportCommand) -> anyhow::Result<Exit> {
    interrupt::heed();
    if let Some(path) = &args.page.output {
        return page::write(
            &args.page,
            &args.inputs,
            (&args.samples, &args.report.shape, &args.report.value),
            path,
        );
    }
    if args.page.timeline || args.page.heatmap {
        return times::run(args);
    }
    let read = |sink: &mut dyn ProfileSink| args.inputs.read_into(&args.samples.alone(), sink, STDOUT);
    let report = args.report.clone().fitting(io::stdout().is_terminal());
    let mut out = data();
    let recovery = report::run(&report, read, &mut out, &mut io::stderr())?;
    messages::interrupted(recovery.samples);
    Ok(Exit::after(&recovery))
}
