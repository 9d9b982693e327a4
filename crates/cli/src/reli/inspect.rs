//! Reli's command lines for running processes.
//!
//! Source: reli 0.12, its commands `inspector:trace`, `inspector:daemon`, `inspector:top` and `inspector:eg`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{bail, ensure};
use borehole::Compression;
use borehole::Format;
use borehole::capture::{
    Grouping, PhpOptions, RbtOptions, Runtimes, SampleOptions, StopMode, SubjectOptions,
};
use borehole_analysis::Pattern;
use clap::{Args, ValueEnum};

use crate::eg;
use crate::exit::Exit;
use crate::messages::say;
use crate::outputs::file;
use crate::record::targets::Targets;
use crate::record::{
    self, Detected, Earlier, Encoding, Files, JournalKind, NativeArgs, PhpArgs, RecordingOutput,
    RecordingPlace, RecordingPlan, Sampling, Single, Workers, parse_release,
};
use crate::top::{self, TopArgs};
use crate::utc;
use crate::values::{MemoryLimit, size};

/// Reli samples PHP only.
fn php_only(php: PhpOptions) -> SubjectOptions {
    SubjectOptions { php, runtimes: Runtimes::Php, ..SubjectOptions::default() }
}

/// `inspector:trace`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TraceArgs {
    /// The id of the process
    #[arg(short, long, value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    #[command(flatten)]
    common: CommonArgs,

    /// A command to start and trace
    #[arg(last = true, conflicts_with = "pid")]
    command: Vec<OsString>,
}

/// `inspector:daemon`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DaemonArgs {
    /// Sample processes whose command line matches this regular expression
    #[arg(short = 'P', long)]
    target_regex: String,

    /// The number of sampling threads
    #[arg(short = 'T', long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,

    #[command(flatten)]
    common: CommonArgs,
}

/// `inspector:top`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReliTopArgs {
    /// Sample processes whose command line matches this regular expression
    #[arg(short = 'P', long)]
    target_regex: String,

    /// Keep at most this many frames of a stack, from the leaf
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,

    /// Nanoseconds between two samples
    #[arg(short, long, default_value_t = 10_000_000)]
    sleep_ns: u64,

    // Accepted, but without effect: one thread samples all processes.
    #[arg(short = 'T', long, hide = true)]
    threads: Option<u16>,

    #[command(flatten)]
    target: TargetArgs,
}

/// `inspector:eg`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReliEgArgs {
    /// The id of the process
    #[arg(short, long, value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,

    #[command(flatten)]
    target: TargetArgs,
}

/// Options for finding PHP in a process.
#[derive(Args, Clone, Debug)]
pub(super) struct TargetArgs {
    /// A regular expression for the mapped file that is PHP
    #[arg(long)]
    php_regex: Option<String>,

    /// The release of PHP: auto, v70 ... v85
    #[arg(long, value_parser = parse_release)]
    php_version: Option<Detected>,

    /// The program file of PHP
    #[arg(long)]
    php_path: Option<String>,

    #[command(flatten)]
    native: NativeArgs,

    // The following options are accepted, but without effect: reli needs them to find what is found here without them.
    #[arg(long, hide = true)]
    libpthread_regex: Option<String>,
    #[arg(long, hide = true)]
    libpthread_path: Option<String>,
    #[arg(long, hide = true)]
    zts_globals_regex: Option<String>,
    #[arg(long, hide = true)]
    target_thread_regex: Option<String>,
    #[arg(long, hide = true)]
    no_cache: bool,
    #[arg(long, hide = true, allow_hyphen_values = true)]
    memory_limit: Option<MemoryLimit>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, value_parser = size)]
    bulk_stack_copy: Option<Option<u64>>,
}

/// Options for sampling and for the output.
#[derive(Args, Clone, Debug)]
struct CommonArgs {
    /// Keep at most this many frames of a stack, from the leaf
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,

    /// Nanoseconds between two samples
    #[arg(short, long, default_value_t = 10_000_000)]
    sleep_ns: u64,

    /// How often to retry a stack that changed while it was read
    #[arg(short = 'r', long, default_value_t = 10)]
    max_retries: u32,

    /// Stop the process for each sample
    #[arg(short = 'S', long, num_args = 0..=1, default_missing_value = "on", value_parser = parse_switch)]
    stop_process: Option<bool>,

    /// template:phpspy, template:phpspy_with_opcode, template:json_lines, rbt or rbt-bundled
    #[arg(short = 'F', short_alias = 'f', long, value_parser = parse_format)]
    output_format: Option<TraceFormat>,

    /// A template: phpspy, phpspy_with_opcode or json_lines
    #[arg(short, long, value_parser = parse_template, conflicts_with = "output_format")]
    template: Option<TraceFormat>,

    /// The file to write instead of standard output; for rbt of a daemon, the folder
    #[arg(short, long)]
    output: Option<PathBuf>,

    /// Whether samples carry timestamps
    #[arg(long, default_value = "none")]
    rbt_timestamps: String,

    /// Compress rbt with gzip
    #[arg(long)]
    rbt_compress: bool,

    #[command(flatten)]
    target: TargetArgs,
}

/// The formats that reli's captures write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TraceFormat {
    Phpspy,
    PhpspyWithOpcode,
    JsonLines,
    Rbt,
    RbtBundled,
}

fn parse_format(text: &str) -> anyhow::Result<TraceFormat> {
    match text.strip_prefix("template:") {
        Some(template) => parse_template(template),
        None if text == "rbt" => Ok(TraceFormat::Rbt),
        None if text == "rbt-bundled" => Ok(TraceFormat::RbtBundled),
        None => bail!("expected template:NAME, rbt or rbt-bundled, found {text}"),
    }
}

fn parse_template(text: &str) -> anyhow::Result<TraceFormat> {
    match text {
        "phpspy" => Ok(TraceFormat::Phpspy),
        "phpspy_with_opcode" => Ok(TraceFormat::PhpspyWithOpcode),
        "json_lines" => Ok(TraceFormat::JsonLines),
        _ => bail!("expected phpspy, phpspy_with_opcode or json_lines, found {text}"),
    }
}

pub(super) fn parse_switch(text: &str) -> anyhow::Result<bool> {
    match text {
        "on" | "yes" | "true" | "1" => Ok(true),
        "off" | "no" | "false" | "0" => Ok(false),
        _ => bail!("expected on or off, found {text}"),
    }
}

impl TargetArgs {
    pub(super) fn php(&self) -> anyhow::Result<PhpArgs> {
        let php_regex = self.php_regex.as_deref().map(Pattern::new).transpose()?;
        Ok(PhpArgs { php_version: self.php_version, php_path: self.php_path.clone(), php_regex })
    }
}

/// The shortest sleep. Less than this means no sleep.
const SHORTEST_SLEEP_NS: u64 = 1000;

impl CommonArgs {
    fn sampling(&self, grouping: Grouping) -> anyhow::Result<Sampling> {
        let period = (self.sleep_ns >= SHORTEST_SLEEP_NS).then(|| Duration::from_nanos(self.sleep_ns));
        let stop = match self.stop_process {
            Some(true) => StopMode::Always,
            Some(false) => StopMode::Never,
            None => StopMode::WhenTorn,
        };
        let options = SampleOptions {
            period,
            max_retries: self.max_retries,
            stop,
            grouping,
            ..SampleOptions::default()
        };
        let mut php = self.target.php()?.options(self.depth);
        php.native = self.target.native.frames();
        Ok(Sampling { options, subjects: php_only(php) })
    }

    fn rbt(&self) -> RbtOptions {
        let timestamps = self.rbt_timestamps == "delta";
        let compression = if self.rbt_compress { Compression::Gzip } else { Compression::None };
        RbtOptions { timestamps, compression, ..RbtOptions::default() }
    }

    /// The format, which the extension `.rbt` of the output selects too.
    fn format(&self) -> TraceFormat {
        let name = self.output.as_deref().map(Path::to_string_lossy).unwrap_or_default();
        let is_rbt = name.ends_with(".rbt") || name.ends_with(".rbt.gz");
        let by_name = is_rbt.then_some(TraceFormat::Rbt);
        self.output_format.or(self.template).or(by_name).unwrap_or(TraceFormat::Phpspy)
    }

    /// One output. Existing files are replaced, as in reli.
    fn single(&self) -> RecordingOutput {
        let format = self.format();
        let (encoding, opcodes) = match format {
            TraceFormat::Phpspy => (Encoding::Format(Format::Phpspy), false),
            TraceFormat::PhpspyWithOpcode => (Encoding::Format(Format::Phpspy), true),
            TraceFormat::JsonLines => (Encoding::ReliJsonLines, false),
            TraceFormat::Rbt | TraceFormat::RbtBundled => (Encoding::Format(Format::Rbt), false),
        };
        let place = match file(self.output.as_deref()) {
            None => RecordingPlace::Stdout,
            Some(path) => {
                RecordingPlace::File { path: path.into(), earlier: Earlier::Replace, files: Files::One }
            }
        };
        RecordingOutput::Single(Single {
            encoding,
            place,
            rbt: self.rbt(),
            opcodes,
            journal: JournalKind::Rbt,
        })
    }
}

pub(super) fn trace(args: TraceArgs) -> anyhow::Result<Exit> {
    let targets = match (args.pid, args.command.is_empty()) {
        (Some(process), true) => Targets::Process(process),
        (None, false) => Targets::Command(args.command),
        _ => bail!("missing target: expected -p PID or -- COMMAND"),
    };
    let sampling = args.common.sampling(Grouping::Segments)?;
    record::record(RecordingPlan { targets, sampling, destination: args.common.single() })
}

pub(super) fn daemon(args: DaemonArgs) -> anyhow::Result<Exit> {
    let targets = Targets::Matching(Pattern::new(&args.target_regex)?);
    if args.common.format() != TraceFormat::Rbt {
        let sampling = args.common.sampling(Grouping::Bundled)?;
        return record::record(RecordingPlan { targets, sampling, destination: args.common.single() });
    }
    let folder = match &args.common.output {
        Some(folder) => folder.clone(),
        None => session_folder()?,
    };
    ensure!(!folder.is_file(), "{}: expected a folder, found a file", folder.display());
    say(&format!("writing to {}", folder.display()));
    // Existing files are appended to, as in reli.
    let (rbt, earlier) = (args.common.rbt(), Earlier::Continue);
    let workers = Workers { folder, threads: args.threads, rbt, earlier };
    let sampling = args.common.sampling(Grouping::Segments)?;
    record::record(RecordingPlan { targets, sampling, destination: RecordingOutput::Workers(workers) })
}

/// A new folder for this run.
fn session_folder() -> anyhow::Result<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let Some(state) = state.or_else(home) else {
        bail!("missing folder: expected -o, XDG_STATE_HOME or HOME")
    };
    let session = format!("{}_{}", utc::iso_name(utc::now_s()), std::process::id());
    Ok(state.join("reli/daemon-traces").join(session))
}

pub(super) fn top(args: &ReliTopArgs) -> anyhow::Result<Exit> {
    let native = TopArgs {
        pid: None,
        pattern: Some(args.target_regex.clone()),
        rate: 100,
        interval: Duration::from_secs(1),
        duration: None,
        plain: false,
        json: false,
        depth: args.depth,
        php: args.target.php()?,
        native: args.target.native,
    };
    top::watch(&native, Duration::from_nanos(args.sleep_ns.max(SHORTEST_SLEEP_NS)))
}

pub(super) fn eg(args: &ReliEgArgs) -> anyhow::Result<Exit> {
    eg::print(args.pid, &args.target.php()?.options(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_reli_s_names() {
        assert_eq!(parse_format("template:phpspy").unwrap(), TraceFormat::Phpspy);
        assert_eq!(parse_format("template:phpspy_with_opcode").unwrap(), TraceFormat::PhpspyWithOpcode);
        assert_eq!(parse_format("rbt-bundled").unwrap(), TraceFormat::RbtBundled);
        for text in ["phpspy", "template:rbt", "template:", "RBT"] {
            assert!(parse_format(text).is_err(), "{text}");
        }
    }
}
