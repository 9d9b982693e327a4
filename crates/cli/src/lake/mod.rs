//! The `borehole-lake` command.

mod add;
mod amend;
mod ask;
mod clock;
#[cfg(feature = "lake-cluster")]
mod cluster;
mod diff;
mod keep;
mod origin;
mod symbolize;
mod times;

use borehole_query::Lake;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::cell::WidthArgs;
use crate::deferred::Deferred;
use crate::exit::Exit;
use crate::memory::MemoryArgs;
use crate::pages::{self, CompletionsArgs, ManArgs};

/// Store the profiles of a fleet in Parquet files, and query them with SQL
#[derive(Parser, Debug)]
#[command(name = "borehole-lake", bin_name = "borehole lake", version, arg_required_else_help = true, after_help = NOTES)]
pub(crate) struct LakeCli {
    #[command(subcommand)]
    command: LakeCommand,

    #[command(flatten)]
    pub(crate) memory: MemoryArgs,

    #[command(flatten)]
    pub(crate) width: WidthArgs,
}

const NOTES: &str = "\
A LAKE is a folder, or an address such as s3://bucket/lake, gs://bucket/lake or az://container/lake, if \
this build supports that storage. Credentials come from the environment variables that the providers' own \
tools use.

Exit codes: 0 done, 2 error (other inputs were added), 3 damage (what could be read of an input was added), 130 interrupted.";

/// The commands on lakes.
#[derive(Subcommand, Debug)]
enum LakeCommand {
    /// Add profiles, traces and heaps, each completely or not at all, and only once
    #[command(after_help = ADD_EXAMPLES)]
    Add(Deferred<add::AddArgs>),
    /// Query with SQL
    #[command(after_help = QUERY_EXAMPLES)]
    Query(Deferred<ask::LakeQueryArgs>),
    /// Show the top functions, or write their stacks as a profile or flame graph
    #[command(after_help = TOP_EXAMPLES)]
    Top(Deferred<ask::LakeTopArgs>),
    /// Compare two selections of samples, and mark what changed beyond noise
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(Deferred<diff::LakeDiffArgs>),
    /// Show self and total of a function over time
    #[command(after_help = TREND_EXAMPLES)]
    Trend(Deferred<ask::TrendArgs>),
    /// Show what is in a lake
    #[command(after_help = INFO_EXAMPLES)]
    Info(Deferred<keep::LakeInfoArgs>),
    /// Read all files of a lake and report those that differ from what was written
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Deferred<keep::LakeCheckArgs>),
    /// Merge small files, and delete files that no reader needs
    #[command(after_help = COMPACT_EXAMPLES)]
    Compact(Deferred<keep::CompactArgs>),
    /// Delete data that is older than a number of days
    #[command(after_help = RETAIN_EXAMPLES)]
    Retain(Deferred<keep::RetainArgs>),
    /// Remove rows of files, services or times, as if they had never been added
    #[command(after_help = REMOVE_EXAMPLES)]
    Remove(Deferred<amend::RemoveArgs>),
    /// Change the labels, the service or the host of rows
    #[command(after_help = RELABEL_EXAMPLES)]
    Relabel(Deferred<amend::RelabelArgs>),
    /// Name native code that had no names where it was recorded
    #[command(after_help = SYMBOLIZE_EXAMPLES)]
    Symbolize(Deferred<symbolize::LakeSymbolizeArgs>),
    /// Rewrite the tables of a lake that an earlier build wrote
    #[command(after_help = UPGRADE_EXAMPLES)]
    Upgrade(Deferred<symbolize::UpgradeArgs>),
    /// Run a scheduler, which splits queries among executors
    #[cfg(feature = "lake-cluster")]
    #[command(after_help = cluster::EXAMPLES)]
    Scheduler(Deferred<cluster::SchedulerArgs>),
    /// Run an executor, which works on parts of queries
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
  borehole lake add lake/ trace.rbt --service shop --label version=1.5
  borehole lake add s3://profiles/lake /var/spool/profiles/*.rbt.gz --host \"$(hostname)\"";

const QUERY_EXAMPLES: &str = "\
Examples:
  borehole lake query lake/ 'SELECT service, sum(value) FROM samples GROUP BY service'
  borehole lake query lake/ 'SELECT * FROM sources WHERE lost_bytes > 0' --json
  borehole lake query lake/ 'SELECT stack_id, sum(value) FROM samples GROUP BY 1' --to flamegraph -o flame.svg
  borehole lake query lake/ --schema                  tables, views, functions";

const TOP_EXAMPLES: &str = "\
Examples:
  borehole lake top lake/ --service shop --since 7d
  borehole lake top lake/ --since 2026-11-20 --until 2026-11-21 --label uri=/cart
  borehole lake top lake/ --service shop --since 1h --to flamegraph -o flame.svg
  borehole lake top lake/ --value inuse_space -o heap.svg
  borehole lake top lake/ --by version --focus 'Db::query'   share of a function";

const DIFF_EXAMPLES: &str = "\
Examples:
  borehole lake diff lake/ --before 2d..1d --after 1d.. --service shop
  borehole lake diff lake/ --before version=1.4 --after version=1.5 --fail-over 5%
  borehole lake diff lake/ --before host!=web1 --after host=web1 -o canary.html";

const TREND_EXAMPLES: &str = "\
Examples:
  borehole lake trend lake/ 'App\\Db::query' --service shop --since 7d --step 1d";

const INFO_EXAMPLES: &str = "\
Examples:
  borehole lake info lake/
  borehole lake info lake/ --files samples           for other engines
  borehole lake info lake/ --duckdb > lake.sql   then: duckdb -init lake.sql";

const CHECK_EXAMPLES: &str = "\
Examples:
  borehole lake check s3://profiles/lake";

const COMPACT_EXAMPLES: &str = "\
Examples:
  borehole lake compact lake/";

const RETAIN_EXAMPLES: &str = "\
Examples:
  borehole lake retain lake/ --days 90
  borehole lake retain lake/ --days 7 --table events
  borehole lake retain lake/ --days 14 --service batch --kind alloc_space";

const REMOVE_EXAMPLES: &str = "\
Examples:
  borehole lake remove lake/ --input trace.rbt --dry-run
  borehole lake remove lake/ --service shop --label version=1.5 --since 2d";

const RELABEL_EXAMPLES: &str = "\
Examples:
  borehole lake relabel lake/ --set version=1.5 --input trace.rbt
  borehole lake relabel lake/ --set service=shop --service unnamed --host web1";

const SYMBOLIZE_EXAMPLES: &str = "\
Examples:
  borehole lake symbolize lake/
  borehole lake symbolize lake/ --binaries /srv/builds --debug-files /srv/debug";

const UPGRADE_EXAMPLES: &str = "\
Examples:
  borehole lake upgrade lake/";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  borehole lake completions bash > /etc/bash_completion.d/borehole-lake";

const MAN_EXAMPLES: &str = "\
Examples:
  borehole lake man | man -l -
  borehole lake man -o /usr/local/share/man/man1     a page for each command";

pub(crate) fn run(cli: &LakeCli) -> anyhow::Result<Exit> {
    match &cli.command {
        LakeCommand::Add(args) => add::run(args),
        LakeCommand::Query(args) => ask::query(args),
        LakeCommand::Top(args) => ask::top(args),
        LakeCommand::Diff(args) => diff::run(args),
        LakeCommand::Trend(args) => ask::trend(args),
        LakeCommand::Info(args) => keep::info(args),
        LakeCommand::Check(args) => keep::check(args),
        LakeCommand::Compact(args) => keep::compact(args),
        LakeCommand::Retain(args) => keep::retain(args),
        LakeCommand::Remove(args) => amend::remove(args),
        LakeCommand::Relabel(args) => amend::relabel(args),
        LakeCommand::Symbolize(args) => symbolize::run(args),
        LakeCommand::Upgrade(args) => symbolize::upgrade(args),
        #[cfg(feature = "lake-cluster")]
        LakeCommand::Scheduler(args) => cluster::scheduler(args),
        #[cfg(feature = "lake-cluster")]
        LakeCommand::Executor(args) => cluster::executor(args),
        LakeCommand::Completions(args) => pages::completions(args, LakeCli::command()),
        LakeCommand::Man(args) => pages::man(args, LakeCli::command()),
    }
}

fn open(name: &str) -> anyhow::Result<Lake> {
    // The rest is for what reads files and prints.
    Ok(Lake::open(name)?.within(borehole_memory::budget() / 2))
}
