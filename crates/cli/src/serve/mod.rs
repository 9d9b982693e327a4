//! The program `borehole-serve`, which `borehole serve`, `borehole mcp` and `borehole query` run.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail, ensure};
use borehole_serve::{LakeOptions, RecordingCommand, ServeOptions, Server, TlsFiles, ToolSet};
use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::deferred::Deferred;
use crate::exit::Exit;
use crate::external;
use crate::memory::MemoryArgs;
use crate::messages;
use crate::page::browse;
use crate::pages::{self, CompletionsArgs, ManArgs};
use crate::stdout::put;
use crate::values::size;

/// Serve profiles and heaps to people, programs and assistants
#[derive(Parser, Debug)]
#[command(name = "borehole-serve", bin_name = "borehole", version, arg_required_else_help = true)]
pub(crate) struct ServeCli {
    #[command(subcommand)]
    command: ServeCommand,

    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
}

/// The ways to ask.
#[derive(Subcommand, Debug)]
enum ServeCommand {
    /// Serve profiles and heaps in the browser, and as JSON
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Deferred<ServeArgs>),
    /// Answer an assistant on standard input and output, by the Model Context Protocol
    #[command(after_help = MCP_EXAMPLES)]
    Mcp(Deferred<McpArgs>),
    /// Ask one question about profiles and heaps, in the words of the JSON API
    #[command(after_help = QUERY_EXAMPLES)]
    Query(Deferred<QueryArgs>),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(Deferred<CompletionsArgs>),
    /// Print the manual page
    #[command(after_help = MAN_EXAMPLES)]
    Man(Deferred<ManArgs>),
}

const SERVE_EXAMPLES: &str = "\
Examples:
  borehole serve profiles/                           every file in the folder
  borehole serve before.pprof after.pprof --listen 127.0.0.1:8080
  borehole serve profiles/ --listen 0.0.0.0:8080     to others, with a token
  borehole serve profiles/ --allow-record -p 1234    with a button that records";

const MCP_EXAMPLES: &str = "\
Examples:
  borehole mcp profiles/                             as the command of a client such as Claude Code
  borehole mcp heap.rmem --reli-tools                for prompts that name reli's tools";

const QUERY_EXAMPLES: &str = "\
Examples:
  borehole query trace.rbt top limit=5 sort=total
  borehole query trace.rbt callers function=App.Db
  borehole query before.pprof after.pprof changes before=before.pprof after=after.pprof
  borehole query heap.rmem heap_findings --json
  borehole query lake/ query sql='SELECT service, sum(value) FROM samples GROUP BY 1'

The views are inputs, changes, overview, top, tree, callers, callees, paths, timeline, by, tokio_flags, source, \
heap_classes, heap_findings, heap_ask, \
and of lakes query, lake_top, lake_trend, lake_diff. /api/v1/openapi.json of borehole serve describes their words.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  borehole-serve completions bash > /etc/bash_completion.d/borehole-serve";

const MAN_EXAMPLES: &str = "\
Examples:
  borehole-serve man | man -l -
  borehole-serve man -o /usr/local/share/man/man1    a page for each command";

/// The inputs, and what is kept of them.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeskArgs {
    /// Profiles, heaps, archives, lakes, and folders of them; new files in folders appear
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Show source files below this folder; repeatable
    #[arg(long, value_name = "FOLDER")]
    source: Vec<PathBuf>,

    /// About how much is kept of inputs that were read [default: 512M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    cache: Option<u64>,
}

/// The arguments of `borehole serve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    desk: DeskArgs,

    #[command(flatten)]
    recording: RecordingArgs,

    /// Address to listen on; port 0 is any free one. Others than this machine need a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// Open the page in the browser
    #[arg(long)]
    open: bool,

    /// Require the token on this machine as well
    #[arg(long)]
    token: bool,

    /// Accept requests for this name of the machine, beside its addresses; repeatable
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,

    /// Number of connections at the same time
    #[arg(long, value_name = "NUMBER", default_value_t = ServeOptions::CONNECTIONS)]
    connections: usize,

    /// Encrypt connections, by this certificate and those of its issuers in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Let clients give files to the server; they are kept until it ends
    #[arg(long)]
    allow_upload: bool,
}

/// The processes that may be recorded.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecordingArgs {
    /// Let clients record the processes of -p or -P, as borehole record does
    #[arg(long)]
    allow_record: bool,

    /// Process that may be recorded
    #[arg(short, long, value_name = "PID", requires = "allow_record", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    /// Processes that may be recorded: all that run PHP or Python and whose command line matches
    #[arg(short = 'P', long, value_name = "REGEX", requires = "allow_record", conflicts_with = "pid")]
    pattern: Option<String>,
}

impl RecordingArgs {
    fn command(&self) -> anyhow::Result<Option<RecordingCommand>> {
        let subjects: Vec<OsString> = match (self.pid, &self.pattern) {
            (Some(pid), _) => vec!["-p".into(), pid.to_string().into()],
            (None, Some(pattern)) => vec!["-P".into(), pattern.into()],
            (None, None) if self.allow_record => bail!("--allow-record: missing -p PID or -P REGEX"),
            (None, None) => return Ok(None),
        };
        Ok(Some(RecordingCommand { program: external::path(&external::BOREHOLE)?, subjects }))
    }
}

/// The arguments of `borehole mcp`.
#[derive(Args, Clone, Debug)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    desk: DeskArgs,

    #[command(flatten)]
    recording: RecordingArgs,

    /// Offer the tools of reli's rmem:mcp, for heaps, instead of those of Borehole
    #[arg(long)]
    reli_tools: bool,
}

/// The arguments of `borehole query`.
#[derive(Args, Clone, Debug)]
pub(crate) struct QueryArgs {
    /// Inputs, then the view, then words of the question as WORD=VALUE
    #[arg(value_name = "PATH... VIEW [WORD=VALUE]", required = true, num_args = 2..)]
    said: Vec<OsString>,

    /// Show source files below this folder; repeatable
    #[arg(long, value_name = "FOLDER")]
    source: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Whether a path is a lake: an address, or a folder with the history of one.
fn is_lake(path: &Path) -> bool {
    path.to_string_lossy().contains("://") || path.join("_lake").is_dir()
}

impl DeskArgs {
    /// The options for these inputs. There may be none if `gets_inputs` while it runs.
    fn options(&self, gets_inputs: bool) -> anyhow::Result<ServeOptions> {
        ensure!(
            gets_inputs || !self.paths.is_empty(),
            "missing PATH: expected profiles, heaps or folders of them"
        );
        let (lakes, paths): (Vec<_>, Vec<_>) = self.paths.iter().cloned().partition(|path| is_lake(path));
        for path in &paths {
            std::fs::metadata(path).with_context(|| path.display().to_string())?;
        }
        let mut options = ServeOptions::new(paths);
        if !lakes.is_empty() {
            let lakes = lakes.iter().map(|lake| lake.to_string_lossy().into_owned()).collect();
            options.lakes = Some(LakeOptions { lakes, program: external::path(&external::LAKE)? });
        }
        options.sources.clone_from(&self.source);
        if let Some(bytes) = self.cache {
            options.cache_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        Ok(options)
    }
}

pub(crate) fn run(cli: &ServeCli) -> anyhow::Result<Exit> {
    match &cli.command {
        ServeCommand::Serve(args) => serve(args),
        ServeCommand::Mcp(args) => assist(args),
        ServeCommand::Query(args) => query(args),
        ServeCommand::Completions(args) => pages::completions(args, ServeCli::command()),
        ServeCommand::Man(args) => pages::man(args, ServeCli::command()),
    }
}

fn serve(args: &ServeArgs) -> anyhow::Result<Exit> {
    let mut options = args.desk.options(args.allow_upload || args.recording.allow_record)?;
    options.listen = args.listen;
    options.wants_token = args.token;
    options.hosts.clone_from(&args.allow_host);
    options.connections = args.connections;
    options.is_upload_allowed = args.allow_upload;
    options.recording = args.recording.command()?;
    let files = args.tls_cert.clone().zip(args.tls_key.clone());
    options.tls = files.map(|(certificate, key)| TlsFiles { certificate, key });
    let server = Server::listen(&options)?;
    messages::out(server.address())?;
    if args.open {
        browse(server.address())?;
    }
    server.run();
    Ok(Exit::Done)
}

fn assist(args: &McpArgs) -> anyhow::Result<Exit> {
    let mut options = args.desk.options(args.recording.allow_record)?;
    options.recording = args.recording.command()?;
    if args.reli_tools {
        options.tools = ToolSet::Reli;
    }
    borehole_serve::assist(&options).context("the client does not speak the protocol")?;
    Ok(Exit::Done)
}

fn query(args: &QueryArgs) -> anyhow::Result<Exit> {
    let text = |said: &OsString| said.to_string_lossy().into_owned();
    // Words come last, so that a path may contain an equals sign.
    let begins = args.said.iter().rposition(|said| !said.as_encoded_bytes().contains(&b'=')).unwrap_or(0);
    let (before, words) = args.said.split_at(begins + 1);
    let Some((view, paths)) = before.split_last().filter(|(_, paths)| !paths.is_empty()) else {
        bail!("missing view: expected paths, then a view, such as borehole query trace.rbt top");
    };
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    let desk = DeskArgs { paths, source: args.source.clone(), cache: None };
    let words = words.iter().filter_map(|word| {
        let word = text(word);
        word.split_once('=').map(|(word, value)| (word.to_owned(), value.to_owned()))
    });
    let answer = borehole_serve::query(&desk.options(false)?, &text(view), words.collect());
    let answer = answer.map_err(|refusal| match &refusal.help {
        Some(help) => anyhow!("{refusal}; {help}"),
        None => anyhow!(refusal),
    })?;
    put(if args.json { &answer.json } else { &answer.text }, args.json)?;
    Ok(Exit::Done)
}
