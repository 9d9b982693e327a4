//! Reli's command lines for heaps.
//!
//! Source: reli 0.12, its commands `inspector:memory`, `inspector:memory:dump`, `inspector:memory:analyze`,
//! `inspector:memory:export-sqlite`, `inspector:coredump` and `inspector:optimize-memory-db`.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use borehole::heap::sql::{Server, ServerKind};
use borehole::heap::{HeapFormat, PASSWORD_VARIABLE};
use clap::{Args, ValueEnum};

use super::inspect::{TargetArgs, parse_switch};
use super::report::{self, PrettyArgs, ReportFormat};
use crate::exit::Exit;
use crate::heap::{
    self, AnalyzeArgs, CaptureArgs, DumpArgs, ExportArgs, FailureArgs, GraphFormat, GraphOutput, Memory,
    PhpHeapArgs, ReportArgs, ReportOutput, Taking, WalkArgs,
};

/// Where a heap goes.
#[derive(Args, Clone, Debug)]
struct OutputArgs {
    /// json, rmem, sqlite3, mysql, postgresql, report or report-json; otherwise as the name of the output tells
    #[arg(short = 'f', long, value_enum)]
    output_format: Option<OutputFormat>,

    /// The file to write instead of standard output
    #[arg(short, long)]
    output: Option<PathBuf>,

    #[command(flatten)]
    pretty: PrettyArgs,

    #[command(flatten)]
    server: ServerArgs,
}

/// Where a server is, and who writes to it.
#[derive(Args, Clone, Debug)]
struct ServerArgs {
    /// The host of the server, for mysql and postgresql
    #[arg(long, default_value = "127.0.0.1")]
    db_host: String,

    /// Its port, if it is not the usual one
    #[arg(long)]
    db_port: Option<u16>,

    /// The database
    #[arg(long)]
    db_name: Option<String>,

    /// The user
    #[arg(long)]
    db_user: Option<String>,

    /// The user's password; better in BOREHOLE_DB_PASSWORD, where other users do not see it
    #[arg(long)]
    db_password: Option<String>,
}

impl ServerArgs {
    fn server(&self, kind: ServerKind) -> anyhow::Result<Server> {
        let name = self.db_name.as_deref().context("missing database: expected --db-name")?;
        let user = self.db_user.as_deref().context("missing user: expected --db-user")?;
        let server = Server::new(kind, &self.db_host, self.db_port, name, user);
        let password = self.db_password.clone().or_else(|| env::var(PASSWORD_VARIABLE).ok());
        Ok(match password {
            Some(password) => server.with_password(password),
            None => server,
        })
    }
}

/// What reli writes a heap as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    Json,
    Rmem,
    Sqlite3,
    Mysql,
    Postgresql,
    Report,
    ReportJson,
}

impl OutputArgs {
    /// Where the report goes that is asked for instead of the heap.
    fn report(&self) -> Option<ReportOutput> {
        let format = match self.output_format {
            Some(OutputFormat::Report) => ReportFormat::Report,
            Some(OutputFormat::ReportJson) => ReportFormat::ReportJson,
            _ => return None,
        };
        let pretty = self.pretty.is_on(true);
        Some(report::output(self.output.clone(), format, pretty))
    }

    /// As our own command takes it. Files are replaced, as reli replaces them; databases get a further run.
    fn graph(&self) -> anyhow::Result<GraphOutput> {
        let by_name = self.output.as_deref().map(by_name);
        let format = match self.output_format {
            None => by_name.unwrap_or(GraphFormat::Json),
            Some(OutputFormat::Json) => GraphFormat::Json,
            Some(OutputFormat::Rmem) => GraphFormat::Rmem,
            Some(OutputFormat::Sqlite3) => GraphFormat::Sqlite,
            Some(OutputFormat::Mysql) => return self.to_server(ServerKind::Mysql),
            Some(OutputFormat::Postgresql) => return self.to_server(ServerKind::Postgresql),
            Some(other) => {
                let name = other.to_possible_value().map(|value| value.get_name().to_owned());
                bail!(
                    "unsupported output format: expected one that holds a graph, found {}",
                    name.unwrap_or_default()
                )
            }
        };
        let is_file = matches!(format, GraphFormat::Rmem | GraphFormat::Sqlite);
        ensure!(
            !is_file || self.output.is_some(),
            "missing output: this format needs a file; name one with -o"
        );
        let force = format != GraphFormat::Sqlite;
        // Reli indents what can be, and says nothing of the rest.
        let pretty = format == GraphFormat::Json && self.pretty.is_on(false);
        Ok(GraphOutput { output: self.output.clone(), format: Some(format), force, pretty, server: None })
    }

    fn to_server(&self, kind: ServerKind) -> anyhow::Result<GraphOutput> {
        Ok(GraphOutput { server: Some(self.server.server(kind)?), ..GraphOutput::default() })
    }
}

/// Reli's rule for the format of an output: what it does not know is JSON.
fn by_name(path: &Path) -> GraphFormat {
    match HeapFormat::from_path(path) {
        Some(HeapFormat::Rmem) => GraphFormat::Rmem,
        Some(HeapFormat::Sqlite) => GraphFormat::Sqlite,
        _ => GraphFormat::Json,
    }
}

/// Whether the process is stopped meanwhile.
#[derive(Args, Clone, Copy, Debug)]
struct StopArgs {
    /// Whether the process is stopped meanwhile
    #[arg(short = 'S', long, num_args = 0..=1, default_missing_value = "on", value_parser = parse_switch)]
    stop_process: Option<bool>,

    #[arg(long, hide = true)]
    no_stop_process: bool,
}

impl StopArgs {
    fn is_off(self) -> bool {
        self.no_stop_process || self.stop_process == Some(false)
    }
}

/// Which PHP it is, as our own commands take it.
fn php(target: &TargetArgs, failure: FailureArgs) -> anyhow::Result<PhpHeapArgs> {
    Ok(PhpHeapArgs { failure, php: target.php()? })
}

/// `inspector:memory`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MemoryArgs {
    /// The process
    #[arg(short, long, value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    #[command(flatten)]
    stop: StopArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    failure: FailureArgs,

    #[command(flatten)]
    target: TargetArgs,

    /// A command to start and look at
    #[arg(last = true, conflicts_with = "pid")]
    command: Vec<OsString>,
}

/// When a command that was started is looked at.
const DELAY: Duration = Duration::from_secs(1);

pub(super) fn memory(args: &MemoryArgs) -> anyhow::Result<Exit> {
    let php = php(&args.target, args.failure.clone())?;
    let taking = Taking { no_stop: args.stop.is_off(), php, ..Taking::default() };
    let report = args.output.report();
    let capture = CaptureArgs {
        pid: args.pid,
        delay: DELAY,
        output: if report.is_some() { GraphOutput::default() } else { args.output.graph()? },
        taking,
        walk: WalkArgs::default(),
        command: args.command.clone(),
    };
    match report {
        Some(report) => capture.report(&report),
        None => capture.run(),
    }
}

/// `inspector:memory:dump`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MemoryDumpArgs {
    /// The process
    #[arg(short, long, value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,

    /// The file to write
    #[arg(short, long)]
    output: PathBuf,

    #[command(flatten)]
    stop: StopArgs,

    /// Copy what is mapped of files as well
    #[arg(long)]
    include_binary: bool,

    /// Leave out the heap of the C library
    #[arg(long)]
    exclude_heap: bool,

    #[command(flatten)]
    target: TargetArgs,
}

pub(super) fn dump(args: &MemoryDumpArgs) -> anyhow::Result<Exit> {
    let taking = Taking {
        no_stop: args.stop.is_off(),
        include_binary: args.include_binary,
        exclude_heap: args.exclude_heap,
        php: php(&args.target, FailureArgs::default())?,
    };
    DumpArgs { pid: args.pid, output: args.output.clone(), force: true, taking }.run()
}

/// `inspector:memory:analyze` and `inspector:coredump`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MemoryAnalyzeArgs {
    /// The file
    #[arg(value_name = "FILE")]
    input: PathBuf,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    failure: FailureArgs,

    /// Below which folder the files are that the process had mapped
    #[arg(short = 'r', long)]
    dependency_root: Option<PathBuf>,

    // Accepted and without effect: the file tells, or it makes no difference.
    #[arg(short, long, hide = true)]
    pid: Option<i32>,
    #[arg(long, hide = true)]
    read_buffer: Option<String>,
    #[arg(long, hide = true)]
    no_fast_path: bool,

    #[command(flatten)]
    target: TargetArgs,
}

pub(super) fn analyze(args: &MemoryAnalyzeArgs) -> anyhow::Result<Exit> {
    let php = php(&args.target, args.failure.clone())?;
    let memory = Memory { root: args.dependency_root.clone(), php, ..Memory::default() };
    if let Some(output) = args.output.report() {
        return ReportArgs { input: args.input.clone(), output, memory }.run();
    }
    AnalyzeArgs { input: args.input.clone(), output: args.output.graph()?, memory }.run()
}

/// `inspector:memory:export-sqlite`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExportSqliteArgs {
    /// A graph
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The database to write
    #[arg(value_name = "OUT")]
    output: PathBuf,

    #[arg(long, hide = true)]
    memory_limit: Option<String>,
}

pub(super) fn export_sqlite(args: &ExportSqliteArgs) -> anyhow::Result<Exit> {
    ensure!(!args.output.exists(), "{}: file exists", args.output.display());
    let output = GraphOutput {
        output: Some(args.output.clone()),
        format: Some(GraphFormat::Sqlite),
        ..GraphOutput::default()
    };
    ExportArgs { input: args.input.clone(), output, memory: Memory::default() }.run()
}

/// `inspector:optimize-memory-db`.
#[derive(Args, Clone, Debug)]
pub(crate) struct OptimizeArgs {
    /// A database
    #[arg(value_name = "DB")]
    database: PathBuf,

    /// The run; otherwise all
    #[arg(long)]
    run_id: Option<i64>,
}

pub(super) fn optimize(args: &OptimizeArgs) -> anyhow::Result<Exit> {
    heap::paths(&args.database, args.run_id, heap::PathForm::Whole)
}
