//! The `borehole-lake` command.

mod add;
mod ask;
#[cfg(feature = "lake-cluster")]
mod cluster;
mod keep;
mod times;

use borehole_query::Lake;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::deferred::Deferred;
use crate::exit::Exit;
use crate::pages::{self, CompletionsArgs, ManArgs};

/// Keeps the profiles of a fleet in Parquet files, and answers questions about them in SQL
#[derive(Parser, Debug)]
#[command(name = "borehole-lake", bin_name = "borehole lake", version, arg_required_else_help = true, after_help = NOTES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: LakeCommand,
}

const NOTES: &str = "\
A LAKE is a folder, or an address such as s3://bucket/lake, gs://bucket/lake or az://container/lake where \
this build knows that storage. Credentials come from the environment, under the names that the clouds' own \
tools use.

Exit codes: 0 done, 2 an error (of inputs, the others were added), 3 what was damaged (of inputs, what could be saved was added), 130 interrupted.";

/// What to do.
#[derive(Subcommand, Debug)]
enum LakeCommand {
    /// Add profiles, traces and heaps; each appears whole or not at all, and once however often it is added
    #[command(after_help = ADD_EXAMPLES)]
    Add(Deferred<add::AddArgs>),
    /// Ask in SQL
    #[command(after_help = QUERY_EXAMPLES)]
    Query(Deferred<ask::QueryArgs>),
    /// Show the functions that cost most, or draw where the time goes
    #[command(after_help = TOP_EXAMPLES)]
    Top(Deferred<ask::TopArgs>),
    /// Show how the shares of functions changed from one stretch of time to another
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(Deferred<ask::DiffArgs>),
    /// Show what a function costs over time
    #[command(after_help = TREND_EXAMPLES)]
    Trend(Deferred<ask::TrendArgs>),
    /// Say what is in a lake
    #[command(after_help = INFO_EXAMPLES)]
    Info(Deferred<keep::InfoArgs>),
    /// Read all files of a lake and say which are not what was written
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Deferred<keep::CheckArgs>),
    /// Put small files together, and clear away what no reader needs any more
    #[command(after_help = COMPACT_EXAMPLES)]
    Compact(Deferred<keep::CompactArgs>),
    /// Let go of what is older than so many days
    #[command(after_help = RETAIN_EXAMPLES)]
    Retain(Deferred<keep::RetainArgs>),
    /// Run what splits questions among executors
    #[cfg(feature = "lake-cluster")]
    #[command(after_help = cluster::EXAMPLES)]
    Scheduler(Deferred<cluster::SchedulerArgs>),
    /// Run what works on parts of questions
    #[cfg(feature = "lake-cluster")]
    #[command(after_help = cluster::EXAMPLES)]
    Executor(Deferred<cluster::ExecutorArgs>),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(Deferred<CompletionsArgs>),
    /// Print the manual page
    #[command(after_help = MAN_EXAMPLES)]
    Man(Deferred<ManArgs>),
}

const ADD_EXAMPLES: &str = "\
Examples:
  borehole lake add lake/ trace.rbt --service shop
  borehole lake add s3://profiles/lake /var/spool/profiles/*.rbt.gz --host \"$(hostname)\"";

const QUERY_EXAMPLES: &str = "\
Examples:
  borehole lake query lake/ 'SELECT service, sum(value) FROM samples GROUP BY service'
  borehole lake query lake/ 'SELECT * FROM sources WHERE lost_bytes > 0' --json
  borehole lake query lake/ 'SELECT stack_id, sum(value) FROM samples GROUP BY 1' --to flamegraph -o flame.svg
  borehole lake query lake/ --schema                  what can be asked";

const TOP_EXAMPLES: &str = "\
Examples:
  borehole lake top lake/ --service shop --since 7d
  borehole lake top lake/ --since 2026-11-20 --until 2026-11-21 --label uri=/cart
  borehole lake top lake/ --service shop --since 1h --to flamegraph -o flame.svg
  borehole lake top lake/ --value inuse_space -o heap.svg";

const DIFF_EXAMPLES: &str = "\
Examples:
  borehole lake diff lake/ --before 2d..1d --after 1d.. --service shop";

const TREND_EXAMPLES: &str = "\
Examples:
  borehole lake trend lake/ 'App\\Db::query' --service shop --since 7d --step 1d";

const INFO_EXAMPLES: &str = "\
Examples:
  borehole lake info lake/
  borehole lake info lake/ --files samples           for other engines";

const CHECK_EXAMPLES: &str = "\
Examples:
  borehole lake check s3://profiles/lake";

const COMPACT_EXAMPLES: &str = "\
Examples:
  borehole lake compact lake/";

const RETAIN_EXAMPLES: &str = "\
Examples:
  borehole lake retain lake/ --days 90";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  borehole lake completions bash > /etc/bash_completion.d/borehole-lake";

const MAN_EXAMPLES: &str = "\
Examples:
  borehole lake man | man -l -
  borehole lake man -o /usr/local/share/man/man1     a page for each command";

pub(crate) fn run(cli: &Cli) -> anyhow::Result<Exit> {
    match &cli.command {
        LakeCommand::Add(args) => add::run(args),
        LakeCommand::Query(args) => ask::query(args),
        LakeCommand::Top(args) => ask::top(args),
        LakeCommand::Diff(args) => ask::diff(args),
        LakeCommand::Trend(args) => ask::trend(args),
        LakeCommand::Info(args) => keep::info(args),
        LakeCommand::Check(args) => keep::check(args),
        LakeCommand::Compact(args) => keep::compact(args),
        LakeCommand::Retain(args) => keep::retain(args),
        #[cfg(feature = "lake-cluster")]
        LakeCommand::Scheduler(args) => cluster::scheduler(args),
        #[cfg(feature = "lake-cluster")]
        LakeCommand::Executor(args) => cluster::executor(args),
        LakeCommand::Completions(args) => pages::completions(args, Cli::command()),
        LakeCommand::Man(args) => pages::man(args, Cli::command()),
    }
}

fn open(name: &str) -> anyhow::Result<Lake> {
    Ok(Lake::open(name)?)
}
