//! Reli's command lines for heaps.
//!
//! Source: reli 0.12, its commands `inspector:memory`, `inspector:memory:dump`, `inspector:memory:analyze`,
//! `inspector:memory:export-sqlite`, `inspector:coredump` and `inspector:optimize-memory-db`.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use borehole::heap::sql::{Server, ServerSoftware};
use borehole::heap::{HeapFormat, PASSWORD_VARIABLE};
use clap::{Args, ValueEnum};

use super::inspect::{TargetArgs, parse_switch};
use super::report::{self, PrettyArgs, ReportFormat};
use crate::exit::Exit;
use crate::heap::{
    self, AnalyzeArgs, CaptureArgs, CopyArgs, ExportArgs, FailureArgs, GraphOutput, HeapDumpArgs,
    HeapInputArgs, HeapReportArgs, PhpHeapArgs, ReportOutput, WaitArgs, WalkArgs,
};
use crate::values::{MemoryLimit, size};

/// The output of a heap.
#[derive(Args, Clone, Debug)]
struct ReliOutputArgs {
    /// json, rmem, sqlite3, mysql, postgresql, report or report-json [default: by the extension of the output]
    #[arg(short = 'f', long, value_enum)]
    output_format: Option<HeapOutputFormat>,

    /// The file to write instead of standard output
    #[arg(short, long)]
    output: Option<PathBuf>,

    #[command(flatten)]
    pretty: PrettyArgs,

    #[command(flatten)]
    server: ServerArgs,
}

/// The address of a server, and the user.
#[derive(Args, Clone, Debug)]
struct ServerArgs {
    /// The host of the server, for mysql and postgresql
    #[arg(long, default_value = "127.0.0.1")]
    db_host: String,

    /// The port of the server [default: the usual one]
    #[arg(long)]
    db_port: Option<u16>,

    /// The database
    #[arg(long)]
    db_name: Option<String>,

    /// The user
    #[arg(long)]
    db_user: Option<String>,

    /// The user's password; in BOREHOLE_DB_PASSWORD, other users cannot see it
    #[arg(long)]
    db_password: Option<String>,
}

impl ServerArgs {
    fn server(&self, kind: ServerSoftware) -> anyhow::Result<Server> {
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

/// The formats that reli writes heaps in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum HeapOutputFormat {
    Json,
    Rmem,
    Sqlite3,
    Mysql,
    Postgresql,
    Report,
    ReportJson,
}

impl ReliOutputArgs {
    /// The output of a report, if it is wanted instead of the heap.
    fn report(&self) -> Option<ReportOutput> {
        let format = match self.output_format {
            Some(HeapOutputFormat::Report) => ReportFormat::Report,
            Some(HeapOutputFormat::ReportJson) => ReportFormat::ReportJson,
            _ => return None,
        };
        let pretty = self.pretty.is_on(true);
        Some(report::output(self.output.clone(), format, pretty))
    }

    /// The output of a graph for our own command. Files are replaced, as in reli; databases get another run.
    fn graph(&self) -> anyhow::Result<GraphOutput> {
        let by_name = self.output.as_deref().map(by_name);
        let format = match self.output_format {
            None => by_name.unwrap_or(HeapFormat::Json),
            Some(HeapOutputFormat::Json) => HeapFormat::Json,
            Some(HeapOutputFormat::Rmem) => HeapFormat::Rmem,
            Some(HeapOutputFormat::Sqlite3) => HeapFormat::Sqlite,
            Some(HeapOutputFormat::Mysql) => return self.to_server(ServerSoftware::Mysql),
            Some(HeapOutputFormat::Postgresql) => return self.to_server(ServerSoftware::Postgresql),
            Some(other) => {
                let name = other.to_possible_value().map(|value| value.get_name().to_owned());
                bail!(
                    "unsupported output format: expected one that holds a graph, found {}",
                    name.unwrap_or_default()
                )
            }
        };
        let is_file = matches!(format, HeapFormat::Rmem | HeapFormat::Sqlite);
        ensure!(
            !is_file || self.output.is_some(),
            "missing output: this format needs a file; name one with -o"
        );
        let force = format != HeapFormat::Sqlite;
        // Reli ignores the option for formats that cannot be indented.
        let pretty = format == HeapFormat::Json && self.pretty.is_on(false);
        Ok(GraphOutput { output: self.output.clone(), format: Some(format), force, pretty, server: None })
    }

    fn to_server(&self, kind: ServerSoftware) -> anyhow::Result<GraphOutput> {
        Ok(GraphOutput { server: Some(self.server.server(kind)?), ..GraphOutput::default() })
    }
}

/// Reli's rule for the format of an output: an unknown extension means JSON.
fn by_name(path: &Path) -> HeapFormat {
    match HeapFormat::from_path(path) {
        Some(HeapFormat::Rmem) => HeapFormat::Rmem,
        Some(HeapFormat::Sqlite) => HeapFormat::Sqlite,
        _ => HeapFormat::Json,
    }
}

/// Whether to stop the process while it is copied.
#[derive(Args, Clone, Copy, Debug)]
struct StopArgs {
    /// Whether to stop the process while it is copied
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

/// The options about PHP for our own commands.
fn php(target: &TargetArgs, failure: FailureArgs) -> anyhow::Result<PhpHeapArgs> {
    Ok(PhpHeapArgs { failure, php: target.php()? })
}

/// `inspector:memory`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MemoryArgs {
    /// The id of the process
    #[arg(short, long, value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    #[command(flatten)]
    stop: StopArgs,

    #[command(flatten)]
    output: ReliOutputArgs,

    #[command(flatten)]
    failure: FailureArgs,

    #[command(flatten)]
    target: TargetArgs,

    /// A command to start and capture
    #[arg(last = true, conflicts_with = "pid")]
    command: Vec<OsString>,
}

/// How long a started command runs before its heap is copied.
const DELAY: Duration = Duration::from_secs(1);

pub(super) fn memory(args: &MemoryArgs) -> anyhow::Result<Exit> {
    let php = php(&args.target, args.failure.clone())?;
    let taking = CopyArgs { no_stop: args.stop.is_off(), php, ..CopyArgs::default() };
    let report = args.output.report();
    let capture = CaptureArgs {
        pid: args.pid,
        delay: DELAY,
        output: if report.is_some() { GraphOutput::default() } else { args.output.graph()? },
        taking,
        waits: WaitArgs::default(),
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
    /// The id of the process
    #[arg(short, long, value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,

    /// The file to write
    #[arg(short, long)]
    output: PathBuf,

    #[command(flatten)]
    stop: StopArgs,

    /// Also copy mapped files
    #[arg(long)]
    include_binary: bool,

    /// Leave out the heap of the C library
    #[arg(long)]
    exclude_heap: bool,

    #[command(flatten)]
    target: TargetArgs,
}

pub(super) fn dump(args: &MemoryDumpArgs) -> anyhow::Result<Exit> {
    let taking = CopyArgs {
        no_stop: args.stop.is_off(),
        include_binary: args.include_binary,
        exclude_heap: args.exclude_heap,
        exclude_shared: false,
        php: php(&args.target, FailureArgs::default())?,
    };
    HeapDumpArgs { pid: args.pid, output: args.output.clone(), force: true, taking }.run()
}

/// `inspector:memory:analyze` and `inspector:coredump`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MemoryAnalyzeArgs {
    /// A dump or a core file
    #[arg(value_name = "FILE")]
    input: PathBuf,

    #[command(flatten)]
    output: ReliOutputArgs,

    #[command(flatten)]
    failure: FailureArgs,

    /// The root folder of the files that the process had mapped
    #[arg(short = 'r', long)]
    dependency_root: Option<PathBuf>,

    // Accepted, but without effect: the file says it, or it makes no difference.
    #[arg(short, long, hide = true)]
    pid: Option<i32>,
    #[arg(long, hide = true, value_parser = size)]
    read_buffer: Option<u64>,
    #[arg(long, hide = true)]
    no_fast_path: bool,

    #[command(flatten)]
    target: TargetArgs,
}

pub(super) fn analyze(args: &MemoryAnalyzeArgs) -> anyhow::Result<Exit> {
    let php = php(&args.target, args.failure.clone())?;
    let memory = HeapInputArgs { root: args.dependency_root.clone(), php, ..HeapInputArgs::default() };
    if let Some(output) = args.output.report() {
        return HeapReportArgs { input: args.input.clone(), output, memory }.run();
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

    #[arg(long, hide = true, allow_hyphen_values = true)]
    memory_limit: Option<MemoryLimit>,
}

pub(super) fn export_sqlite(args: &ExportSqliteArgs) -> anyhow::Result<Exit> {
    ensure!(!args.output.exists(), "{}: file exists", args.output.display());
    let output = GraphOutput {
        output: Some(args.output.clone()),
        format: Some(HeapFormat::Sqlite),
        ..GraphOutput::default()
    };
    ExportArgs { input: args.input.clone(), output, memory: HeapInputArgs::default() }.run()
}

/// `inspector:optimize-memory-db`.
#[derive(Args, Clone, Debug)]
pub(crate) struct OptimizeArgs {
    /// A database
    #[arg(value_name = "DB")]
    database: PathBuf,

    /// The run [default: all]
    #[arg(long)]
    run_id: Option<i64>,
}

pub(super) fn optimize(args: &OptimizeArgs) -> anyhow::Result<Exit> {
    heap::paths(&args.database, args.run_id, heap::PathForm::WHOLE, WaitArgs::default())
}
