//! The options of `borehole record`.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{anyhow, bail};
use borehole::Compression;
use borehole::Format;
use borehole::capture::{
    Grouping, Idle, NativeFrames, PhpOptions, ProgramOptions, PythonOptions, PythonVersion, RbtOptions,
    RequestLabels, Runtimes, SampleOptions, SampledTasks, SampledThreads, StopMode, SubjectOptions,
};
use borehole::formats::tachyon::Opcodes;
use borehole_analysis::Pattern;
use borehole_php::PhpRelease;
use clap::{Args, ValueEnum};

use super::lake::LakeArgs;
use super::output::{
    Earlier, Encoding, Files, JournalKind, RecordingOutput, RecordingPlace, Single, Workers,
};
use super::targets::Targets;
use crate::convert::TimestampMode;
use crate::outputs::{file, format_of_name, is_gzip};
use crate::stdout::STDOUT;
use crate::values::duration;

/// The default number of sampling threads for a folder.
const THREADS: u16 = 8;

/// The arguments of `borehole record`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecordArgs {
    /// Sample this process
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    /// Sample all processes that run PHP or Python (with --native, any program) and whose command line matches, including those
    /// that start later
    #[arg(short = 'P', long, value_name = "REGEX", conflicts_with = "pid")]
    pattern: Option<String>,

    /// Sample the processes that the process starts too
    #[arg(long, requires = "pid")]
    children: bool,

    /// Start this command and sample it and its children until it ends, and end with its exit code; if the recording ends
    /// first, so do the command and its children (SIGTERM, then SIGKILL)
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["pid", "pattern"])]
    command: Vec<OsString>,

    /// File to write, or a folder with a slash at its end for one file per thread; `-`, or none, is standard output
    #[arg(short, long, value_name = "OUTPUT")]
    output: Option<PathBuf>,

    /// Format to write, instead of the one of the output's name [default: rbt; of Python: tachyon]
    #[arg(short, long, visible_alias = "to", value_name = "FORMAT")]
    format: Option<Format>,

    /// Replace the output if it exists; in a folder, each file that is written
    #[arg(long, requires = "output")]
    force: bool,

    /// Samples per second of each process; `max` for as many as possible
    #[arg(short, long, value_name = "HZ|max", default_value = "100", value_parser = parse_rate)]
    rate: Rate,

    /// How long to sample, such as 30s, 5m or 1h
    #[arg(short, long, value_name = "DURATION", value_parser = duration)]
    duration: Option<Duration>,

    /// Stop after this many samples of all processes together
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    samples: Option<u64>,

    /// Maximum number of frames per stack, counted from the leaf
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,

    /// rbt: whether samples have timestamps [default: delta]
    #[arg(long, value_name = "MODE", value_enum)]
    timestamps: Option<TimestampMode>,

    /// Compress the output with gzip; rbt compresses each segment by itself
    #[arg(long)]
    compress: bool,

    /// rbt: samples between checkpoints [default: 1000]
    #[arg(long, value_name = "SAMPLES", value_parser = clap::value_parser!(u64).range(1..))]
    checkpoint: Option<u64>,

    /// rbt: start a new segment after this time. A file trace.rbt becomes trace.0.rbt, trace.1.rbt ...; in a folder and on
    /// standard output, segments follow each other
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    rotate: Option<Duration>,

    /// Python, and native programs: the threads to sample
    #[arg(long, value_name = "MODE", value_enum, default_value = "wall")]
    mode: ModeArg,

    #[command(flatten)]
    tasks: TasksArgs,

    /// Python, except 3.11 and 3.12: record the instruction of each frame, for formats that have it
    #[arg(long)]
    opcodes: bool,

    /// Python: share of the samples for which their thread is stopped. The report says how far the others are from these;
    /// 0 stops none
    #[arg(long, value_name = "SHARE", default_value = "0.01", value_parser = parse_share)]
    oracle: OracleShare,

    /// Treatment of idle processes, such as workers that wait for a request
    #[arg(long, value_name = "MODE", value_enum, default_value = "skip")]
    idle: IdleArg,

    /// Label samples with facts about the current request: request (method and start), uri, script
    #[arg(long, value_name = "FACT", value_enum, value_delimiter = ',')]
    label: Vec<LabelArg>,

    /// Label samples with this variable of the environment with which their process was started
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    label_env: Vec<String>,

    /// When to stop a process for a sample [default: when-torn; always if given without a value]
    #[arg(long, value_name = "WHEN", value_enum, num_args = 0..=1, require_equals = true, default_value = "when-torn",
          default_missing_value = "always", hide_default_value = true)]
    stop_process: StopArg,

    /// Maximum number of new attempts to read a stack that changed meanwhile
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    retries: u32,

    /// Number of sampling threads if the output is a folder [default: 8]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,

    #[command(flatten)]
    php: PhpArgs,

    #[command(flatten)]
    native: NativeArgs,

    #[command(flatten)]
    pub(super) lake: LakeArgs,
}

/// Options for native frames.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct NativeArgs {
    /// Add the frames of C code between those of PHP and Python; with -P, --children or a command, sample programs in any other
    /// language too. Stops each thread for a moment per sample; with --mode cpu, not that of other programs, where perf events
    /// are allowed
    #[arg(long, visible_alias = "with-native-trace")]
    pub(crate) native: bool,

    /// Like --native, also while PHP or Python executes no code
    #[arg(long)]
    pub(crate) native_trace_anytime: bool,
}

impl NativeArgs {
    pub(crate) const fn frames(self) -> NativeFrames {
        match (self.native, self.native_trace_anytime) {
            (_, true) => NativeFrames::Anytime,
            (true, false) => NativeFrames::WithScript,
            (false, false) => NativeFrames::None,
        }
    }

    /// Sets these options for processes of all kinds, from whose stacks `depth` frames are kept. One process that was named may run
    /// any program.
    pub(crate) fn apply(self, depth: Option<u32>, is_named: bool, subjects: &mut SubjectOptions) {
        let frames = self.frames();
        let is_any = frames.is_any() || (is_named && subjects.runtimes == Runtimes::Any);
        subjects.php.native = frames;
        subjects.python.native = frames;
        let program = ProgramOptions { depth, threads: subjects.python.threads, ..ProgramOptions::default() };
        subjects.program = is_any.then_some(program);
    }
}

/// Options for finding PHP in a process.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PhpArgs {
    /// Release of PHP, such as 8.2, if it cannot be detected
    #[arg(long, value_name = "VERSION", value_parser = parse_release)]
    pub(crate) php_version: Option<Detected>,

    /// Path of the program or library that is PHP, as seen by the process, instead of detecting it
    #[arg(long, value_name = "PATH")]
    pub(crate) php_path: Option<String>,

    /// reli's pattern for the file that is PHP.
    #[arg(skip)]
    pub(crate) php_regex: Option<Pattern>,
}

impl PhpArgs {
    /// The options for attaching to PHP or Python.
    pub(crate) fn subjects(&self, depth: Option<u32>) -> SubjectOptions {
        let python = PythonOptions { depth, ..PythonOptions::default() };
        // These options name a PHP.
        let is_php = self.php_path.is_some() || self.php_regex.is_some() || self.php_version.is_some();
        let runtimes = if is_php { Runtimes::Php } else { Runtimes::Any };
        SubjectOptions { php: self.options(depth), python, runtimes, program: None }
    }

    /// The options in the form of the capture.
    pub(crate) fn options(&self, depth: Option<u32>) -> PhpOptions {
        let (path, regex) = (self.php_path.clone(), self.php_regex.clone());
        let is_php = (path.is_some() || regex.is_some()).then(|| {
            Box::new(move |mapped: &[u8]| {
                path.as_ref().is_none_or(|path| path.as_bytes() == mapped)
                    && regex.as_ref().is_none_or(|regex| regex.is_match(mapped))
            }) as _
        });
        let release = self.php_version.and_then(|Detected(release)| release);
        PhpOptions { depth, opcodes: true, release, is_php, ..PhpOptions::default() }
    }
}

/// A release; `None` for `auto`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detected(pub(crate) Option<PhpRelease>);

/// The options for sampling, from any command line.
pub(crate) struct Sampling {
    pub(crate) options: SampleOptions,
    pub(crate) subjects: SubjectOptions,
}

/// The share of samples for which their thread is stopped, as one in this many; `None`: none.
#[derive(Clone, Copy, Debug)]
struct OracleShare(Option<u32>);

/// The threads of Python that are sampled.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModeArg {
    /// All threads, whether they run or wait
    Wall,
    /// Threads that run on a CPU, or wait for one only
    Cpu,
    /// Time that threads of programs spend off the CPU (with perf events)
    OffCpu,
    /// Threads that hold the GIL
    Gil,
    /// Threads that raise or handle an exception
    Exception,
}

impl ModeArg {
    const fn threads(self) -> SampledThreads {
        match self {
            Self::Wall => SampledThreads::All,
            Self::Cpu => SampledThreads::OnCpu,
            Self::OffCpu => SampledThreads::OffCpu,
            Self::Gil => SampledThreads::HoldingGil,
            Self::Exception => SampledThreads::InException,
        }
    }
}

/// The name of an instruction of Python.
fn opcode_name(version: PythonVersion, number: u8) -> Cow<'static, str> {
    Opcodes::of(version.major, version.minor).name(number)
}

/// The option for the tasks of asyncio.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TasksArgs {
    /// Python: show the tasks of asyncio. Stacks of running tasks are joined to those of the tasks that await them
    #[arg(long = "async", value_name = "TASKS", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "running")]
    tasks: Option<TasksArg>,
}

impl TasksArgs {
    /// The tasks to show.
    pub(crate) fn sampled(self) -> SampledTasks {
        self.tasks.map_or(SampledTasks::None, TasksArg::sampled)
    }
}

/// The tasks of asyncio that are shown.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TasksArg {
    /// Those that run
    Running,
    /// Those that wait too, each with its own stack
    All,
}

impl TasksArg {
    const fn sampled(self) -> SampledTasks {
        match self {
            Self::Running => SampledTasks::Running,
            Self::All => SampledTasks::All,
        }
    }
}

/// The time between samples; `None` for `max`.
#[derive(Clone, Copy, Debug)]
struct Rate(Option<Duration>);

/// The treatment of idle processes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum IdleArg {
    /// Only count them
    Skip,
    /// Write a sample with the frame <idle>
    Sample,
}

/// A fact about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LabelArg {
    /// http.method and request.start
    Request,
    /// http.url
    Uri,
    /// script
    Script,
}

/// When a process is stopped.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum StopArg {
    /// Never
    Never,
    /// If its stack changed at every attempt to read it
    WhenTorn,
    /// For every sample
    Always,
}

impl RecordArgs {
    pub(crate) fn targets(&self) -> anyhow::Result<Targets> {
        match (self.pid, &self.pattern, self.command.as_slice()) {
            (Some(process), None, []) if self.children => Ok(Targets::Family(process)),
            (Some(process), None, []) => Ok(Targets::Process(process)),
            (None, Some(pattern), []) => Ok(Targets::Matching(Pattern::new(pattern)?)),
            (None, None, [_, ..]) => Ok(Targets::Command(self.command.clone())),
            _ => bail!("missing target: expected -p PID, -P REGEX or -- COMMAND"),
        }
    }

    pub(crate) fn sampling(&self) -> Sampling {
        let options = SampleOptions {
            period: self.rate.0,
            max_retries: self.retries,
            stop: match self.stop_process {
                StopArg::Never => StopMode::Never,
                StopArg::WhenTorn => StopMode::WhenTorn,
                StopArg::Always => StopMode::Always,
            },
            idle: match self.idle {
                IdleArg::Skip => Idle::Skip,
                IdleArg::Sample => Idle::Sample,
            },
            duration: self.duration,
            samples: self.samples,
            rotate: self.rotate,
            grouping: Grouping::Segments,
            oracle: self.oracle.0,
        };
        let has = |label| self.label.contains(&label);
        let labels = RequestLabels {
            request: has(LabelArg::Request),
            uri: has(LabelArg::Uri),
            script: has(LabelArg::Script),
        };
        let mut subjects = self.php.subjects(self.depth);
        subjects.php.labels = labels;
        subjects.php.environment.clone_from(&self.label_env);
        subjects.python.environment.clone_from(&self.label_env);
        subjects.python.threads = self.mode.threads();
        self.native.apply(self.depth, self.pid.is_some() && !self.children, &mut subjects);
        if let Some(program) = &mut subjects.program {
            program.events = self.rate.0;
        }
        subjects.python.tasks = self.tasks.sampled();
        subjects.python.opcodes = self.opcodes.then_some(opcode_name);
        Sampling { options, subjects }
    }

    /// These arguments with another output.
    pub(super) fn with_output(&self, path: &Path) -> Self {
        Self { output: Some(path.to_owned()), ..self.clone() }
    }

    fn rbt_options(&self, compression: Compression) -> RbtOptions {
        let otherwise = RbtOptions::default();
        RbtOptions {
            timestamps: !matches!(self.timestamps, Some(TimestampMode::None)),
            compression,
            checkpoint_interval: self.checkpoint.unwrap_or(otherwise.checkpoint_interval),
        }
    }

    /// A given option that applies only to rbt.
    fn of_rbt(&self) -> Option<&'static str> {
        let options = [
            (self.rotate.is_some(), "--rotate"),
            (self.checkpoint.is_some(), "--checkpoint"),
            (self.timestamps.is_some(), "--timestamps"),
        ];
        options.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }

    /// The format of the output `path`: rbt if its name has no extension, or only a number.
    fn format_of(&self, path: Option<&Path>) -> anyhow::Result<Format> {
        let by_name = path.and_then(format_of_name).map(|(format, _)| format);
        if let Some(format) = self.format.or(by_name) {
            return Ok(format);
        }
        let name = path.map(Path::to_string_lossy).unwrap_or_default();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let ending = Path::new(name).extension().and_then(OsStr::to_str).unwrap_or_default();
        if ending.starts_with(|first: char| first.is_ascii_alphabetic()) {
            bail!(
                "missing output format: expected --format FORMAT, or a known file extension or none, found {name}"
            );
        }
        Ok(if self.is_of_python() { Format::Tachyon } else { Format::Rbt })
    }

    /// Whether the format for Python is written if none is named. Options of rbt name it.
    fn is_of_python(&self) -> bool {
        let is_rbt = self.of_rbt().is_some() || self.compress;
        !is_rbt && self.targets().is_ok_and(|targets| targets.is_python())
    }

    pub(crate) fn destination(&self) -> anyhow::Result<RecordingOutput> {
        let path = file(self.output.as_deref());
        let compression = if is_gzip(path, self.compress)? { Compression::Gzip } else { Compression::None };
        let rbt = self.rbt_options(compression);
        let earlier = Earlier::replacing(self.force);
        if let Some(folder) = path.filter(|path| path.as_os_str().as_encoded_bytes().ends_with(b"/")) {
            if let Some(format) = self.format.filter(|&format| format != Format::Rbt) {
                bail!("{}: expected the format rbt for a folder, found {}", folder.display(), format.name());
            }
            let threads = self.threads.unwrap_or(THREADS);
            return Ok(RecordingOutput::Workers(Workers { folder: folder.into(), threads, rbt, earlier }));
        }
        if self.threads.is_some() {
            let found = path.map_or(STDOUT.into(), Path::to_string_lossy);
            bail!(
                "unsupported --threads: expected an output folder (with a slash at its end), found {found}"
            );
        }
        let format = self.format_of(path)?;
        if let Some(option) = self.of_rbt().filter(|_| format != Format::Rbt) {
            bail!("unsupported format: expected rbt for {option}, found {}", format.name());
        }
        let place = match path {
            None => RecordingPlace::Stdout,
            Some(path) => {
                let files = if self.rotate.is_some() { Files::OneASegment } else { Files::One };
                RecordingPlace::File { path: path.into(), earlier, files }
            }
        };
        let is_python = || self.targets().is_ok_and(|targets| targets.is_python());
        let has_own = format == Format::Tachyon && is_python();
        let journal = if has_own { JournalKind::OfFormat } else { JournalKind::Rbt };
        let encoding = Encoding::Format(format);
        Ok(RecordingOutput::Single(Single { encoding, place, rbt, opcodes: false, journal }))
    }
}

fn parse_share(text: &str) -> anyhow::Result<OracleShare> {
    let share: f64 = text.parse().map_err(|_| anyhow!("expected a share from 0 to 1, found {text}"))?;
    if share == 0.0 {
        return Ok(OracleShare(None));
    }
    // One in this many.
    let many = Some(1.0 / share).filter(|many| (1.0..=1e9).contains(many));
    let many = many.ok_or_else(|| anyhow!("expected 0, or a share from 0.000000001 to 1, found {text}"))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 1,000,000,000")]
    let many = many.round() as u32;
    Ok(OracleShare(Some(many)))
}

fn parse_rate(text: &str) -> anyhow::Result<Rate> {
    if text == "max" {
        return Ok(Rate(None));
    }
    let rate: f64 = text.parse().map_err(|_| anyhow!("expected a number or max, found {text}"))?;
    if !(rate.is_finite() && (1e-3..=1e6).contains(&rate)) {
        bail!("expected 0.001 to 1000000 samples per second, found {text}");
    }
    Ok(Rate(Some(Duration::from_secs_f64(1.0 / rate))))
}

/// Parses `8.2` or `8.2.36`, reli's spelling `v82`, or `auto`.
pub(crate) fn parse_release(text: &str) -> anyhow::Result<Detected> {
    if text == "auto" {
        return Ok(Detected(None));
    }
    let known: Vec<String> = PhpRelease::all().map(|release| release.to_string()).collect();
    let unknown = || anyhow!("expected auto or one of {}, found {text}", known.join(", "));
    release_of(text).map(|release| Detected(Some(release))).ok_or_else(unknown)
}

fn release_of(text: &str) -> Option<PhpRelease> {
    let number = |text: &str| text.parse::<u8>().ok().filter(|_| !text.starts_with('+'));
    if let Some(digits) = text.strip_prefix('v') {
        let (major, minor) = digits.split_at_checked(1).filter(|(_, minor)| minor.len() == 1)?;
        return PhpRelease::of_version(number(major)?, number(minor)?);
    }
    let numbers: Option<Vec<u8>> = text.split('.').map(number).collect();
    match numbers?[..] {
        [major, minor] | [major, minor, _] => PhpRelease::of_version(major, minor),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_periods() {
        assert_eq!(parse_rate("100").unwrap().0, Some(Duration::from_millis(10)));
        assert_eq!(parse_rate("0.5").unwrap().0, Some(Duration::from_secs(2)));
        assert_eq!(parse_rate("max").unwrap().0, None);
        for text in ["0", "-1", "inf", "nan", "fast", "1e7"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_one_in_a_number() {
        let parse = |text| parse_share(text).map(|OracleShare(many)| many).ok();
        assert_eq!(["0", "0.01", "1", "0.3"].map(parse), [None, Some(100), Some(1), Some(3)].map(Some));
        for text in ["2", "-0.1", "nan", "x", "1e-12"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn releases_are_written_as_php_or_reli_write_them() {
        let eight_two = PhpRelease::of_version(8, 2);
        for text in ["8.2", "v82", "8.2.36"] {
            assert_eq!(parse_release(text).unwrap().0, eight_two, "{text}");
        }
        assert_eq!(parse_release("auto").unwrap().0, None);
        for text in
            ["5.6", "9.9", "abc", "abc8.2", "8.20", "8", "82", "8.2.x", "8.2.36.1", "v8", "v820", "v8.2", ""]
        {
            let said = parse_release(text).unwrap_err().to_string();
            assert!(said.starts_with("expected auto or one of 7.0, ") && said.ends_with(text), "{said}");
        }
    }
}
