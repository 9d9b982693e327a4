//! `borehole heap dump` and `borehole heap capture`: the heap of a running process.

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{bail, ensure};
use borehole::heap::{self, CapturedHeap, GraphStorage, HeapGraph, HeapOptions};
use borehole::{Compression, Error, Existing, Output};
use borehole_process::Launched;
use borehole_text::bytes;
use clap::Args;

use super::analysis::{PhpHeapArgs, WalkArgs};
use super::output::{GraphOutput, begin};
use super::password::WaitArgs;
use super::report::ReportOutput;
use crate::exit::Exit;
use crate::messages::say;
use crate::outputs::file;
use crate::refusal;
use crate::stdout::{STDOUT, stdout_of_command};
use crate::suspend;
use crate::utc;
use crate::values::duration;

/// Options for copying memory.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CopyArgs {
    /// Do not stop the process; memory that changes meanwhile is torn, and counted
    #[arg(long = "no-stop")]
    pub(crate) no_stop: bool,

    /// Also copy mapped files, for an analysis on a machine without them
    #[arg(long)]
    pub(crate) include_binary: bool,

    /// Leave out memory that PHP did not allocate itself, such as the C library's heap
    #[arg(long)]
    pub(crate) exclude_heap: bool,

    /// Leave out all shared memory; by default opcache's is copied, and what no value refers to is left out
    #[arg(long)]
    pub(crate) exclude_shared: bool,

    #[command(flatten)]
    pub(crate) php: PhpHeapArgs,
}

impl CopyArgs {
    /// Copies the memory of a process, and prints how much it was and how long that took.
    pub(crate) fn take(&self, process: i32) -> anyhow::Result<CapturedHeap> {
        let php = self.php.options();
        let options = HeapOptions {
            stop: !self.no_stop,
            include_binary: self.include_binary,
            exclude_heap: self.exclude_heap,
            exclude_shared: self.exclude_shared,
            release: php.release,
            is_php: php.is_php,
            memory_limit_error: self.php.failure.error(),
            created_at: utc::iso(utc::now_s()),
            memory_goal: crate::memory::asked(),
        };
        suspend::defer();
        let taken = heap::take(process, &options).map_err(|error| refusal::of_process(process, error))?;
        say(&told(process, &taken));
        Ok(taken)
    }
}

/// A message about the size of a copy, and how long the process was stopped.
fn told(process: i32, taken: &CapturedHeap) -> String {
    let statistics = &taken.statistics;
    let copied = bytes(statistics.copied_bytes + statistics.shared_bytes);
    let mut text = format!("process {process}, {}: {copied} copied", taken.identity);
    text += &match statistics.stopped {
        Some(stopped) => format!(", stopped for {}", borehole_text::duration(stopped.as_nanos())),
        None => ", not stopped; memory that changed meanwhile is torn".to_owned(),
    };
    if statistics.left_out_bytes > 0 {
        text += &format!("; {} of shared memory left out", bytes(statistics.left_out_bytes));
    }
    if statistics.unreadable_bytes > 0 {
        text += &format!("; {} could not be read", bytes(statistics.unreadable_bytes));
    }
    text
}

/// `borehole heap dump`.
#[derive(Args, Clone, Debug)]
pub(crate) struct HeapDumpArgs {
    /// The id of the process
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: i32,

    /// The file to write; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) taking: CopyArgs,
}

impl HeapDumpArgs {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        // Opened before the process is stopped, so that a wrong output does not stop it.
        let mut output = self.output()?;
        let taken = self.taking.take(self.pid)?;
        let name = output.name().to_owned();
        let mut buffered = BufWriter::with_capacity(1 << 20, &mut output);
        let written = taken.dump.write(&mut buffered).and_then(|()| buffered.flush());
        written.map_err(|source| Error::Write { name, source })?;
        drop(buffered);
        output.complete()?;
        Ok(Exit::Done)
    }

    fn output(&self) -> anyhow::Result<Output> {
        let Some(path) = file(Some(&self.output)) else {
            ensure!(
                !io::stdout().is_terminal(),
                "unsupported output: expected a file or a pipe, found a terminal; name one with -o"
            );
            return Ok(Output::direct(STDOUT, io::stdout(), Compression::None)?);
        };
        begin(path, Existing::replacing(self.force))
    }
}

/// `borehole heap capture`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CaptureArgs {
    /// The id of the process
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: Option<i32>,

    /// How long to let the command run before its heap is copied
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1s", requires = "command")]
    pub(crate) delay: Duration,

    #[command(flatten)]
    pub(crate) output: GraphOutput,

    #[command(flatten)]
    pub(crate) waits: WaitArgs,

    #[command(flatten)]
    pub(crate) taking: CopyArgs,

    #[command(flatten)]
    pub(crate) walk: WalkArgs,

    /// A command to start and capture; it is ended afterwards
    #[arg(last = true, conflicts_with = "pid", value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// How long a command may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(2);

impl CaptureArgs {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let target = self.output.checked_target(self.waits)?;
        // The memory that was asked for makes it faster.
        let is_packed = target.is_rmem() && crate::memory::asked().is_none();
        let storage = if is_packed { GraphStorage::Packed } else { GraphStorage::Plain };
        self.output.write(&self.graph(self.output.is_stdout(), storage)?, &target)?;
        Ok(Exit::Done)
    }

    /// Like `run`, but writes a report on the heap.
    pub(crate) fn report(&self, output: &ReportOutput) -> anyhow::Result<Exit> {
        output.place.check()?;
        output.write(&self.graph(output.place.path().is_none(), GraphStorage::Plain)?, "heap")?;
        Ok(Exit::Done)
    }

    /// Copies the heap and analyses it. `to_stdout`: whether the result goes to standard output.
    fn graph(&self, to_stdout: bool, storage: GraphStorage) -> anyhow::Result<HeapGraph> {
        let taken = match self.pid {
            Some(process) => self.taking.take(process)?,
            None => self.take_of_command(stdout_of_command(to_stdout))?,
        };
        let php = self.taking.php.options();
        // The dump holds the error that ended the program.
        let (graph, analysis) = heap::analyze_as(taken.dump, &self.walk.options(&php, None), storage)?;
        self.walk.tell("heap", &analysis);
        Ok(graph)
    }

    fn take_of_command(&self, output: Stdio) -> anyhow::Result<CapturedHeap> {
        let [program, arguments @ ..] = self.command.as_slice() else {
            bail!("missing target: expected -p PID or -- COMMAND")
        };
        let mut launched = Launched::start(program, arguments, output)?;
        thread::sleep(self.delay);
        let status = launched.exit_status();
        ensure!(status.is_none(), "the command ended before its heap was copied; use a shorter --delay");
        let taken = self.taking.take(launched.id());
        launched.end(PATIENCE);
        taken
    }
}
