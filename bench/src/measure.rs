//! The cost of a piece of work: CPU time in this process, or CPU time and memory of another.

use std::cell::OnceCell;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use xtask::command;

use super::Side;

/// Runs one command and prints what it took. Meant for this program itself: the system keeps the highest
/// memory of *all* children of a process, so each command that is measured needs a parent of its own.
#[derive(clap::Args)]
pub(crate) struct SingleRun {
    /// The file that the command reads.
    #[arg(long)]
    stdin: Option<OsString>,
    /// The command.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// The cost of a command.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Usage {
    /// On all cores, the system's work for it included.
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_bytes: f64,
}

/// Runs the command of `options` as the only child of this process and prints its [`Usage`].
///
/// # Errors
/// When it cannot be run, or does not succeed.
pub(crate) fn single(options: &SingleRun) -> Result<()> {
    let (program, arguments) = options.command.split_first().context("no command")?;
    let stdin = match &options.stdin {
        Some(path) => Stdio::from(File::open(path)?),
        None => Stdio::null(),
    };
    let status = Command::new(program).args(arguments).stdin(stdin).stdout(Stdio::null()).status()?;
    ensure!(status.success(), "{}: {status}", program.display());
    let used = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu_seconds = seconds(used.user_time()) + seconds(used.system_time());
    // Linux counts it in units of 1024 bytes.
    let peak_bytes = used.max_rss() as f64 * 1024.0;
    println!("{}", serde_json::to_string(&Usage { cpu_seconds, peak_bytes })?);
    Ok(())
}

fn seconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}

/// A command to measure.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    command: Vec<OsString>,
    stdin: Option<OsString>,
}

impl Work {
    /// `program` with `arguments` and nothing to read. Its output is thrown away.
    pub(crate) fn new<A: Into<OsString>>(program: &Path, arguments: impl IntoIterator<Item = A>) -> Self {
        let arguments = arguments.into_iter().map(Into::into);
        Self { command: std::iter::once(program.into()).chain(arguments).collect(), stdin: None }
    }

    /// This work, reading `file`.
    pub(crate) fn reading(mut self, file: &Path) -> Self {
        self.stdin = Some(file.into());
        self
    }

    /// This work, told to write `file`.
    pub(crate) fn saving(mut self, file: &Path) -> Self {
        self.command.extend(["-o".into(), file.into(), "--force".into()]);
        self
    }

    /// Runs the command once.
    pub(crate) fn run(&self) -> Result<Usage> {
        let mut own = Command::new(env::current_exe()?);
        own.arg("measure");
        if let Some(stdin) = &self.stdin {
            own.arg("--stdin").arg(stdin);
        }
        let answer = command::output(own.arg("--").args(&self.command))?;
        serde_json::from_str(&answer).with_context(|| format!("measuring says {answer}"))
    }

    /// The CPU time of one run, in seconds.
    pub(crate) fn cpu_seconds(self) -> Side {
        Box::new(move || Ok(self.run()?.cpu_seconds))
    }

    /// How many of `bytes` one run gets through in a second of CPU time.
    pub(crate) fn bytes_per_second(self, bytes: f64) -> Side {
        Box::new(move || Ok(bytes / self.run()?.cpu_seconds))
    }

    /// The highest memory of one run, in bytes.
    pub(crate) fn peak_bytes(self) -> Side {
        Box::new(move || Ok(self.run()?.peak_bytes))
    }

    /// The CPU time in seconds and the highest memory in bytes of one and the same run, for a command that takes so long
    /// that it is not run again.
    pub(crate) fn remembered(self) -> (Side, Side) {
        let usage = Rc::new(OnceCell::new());
        let run = move || -> Result<Usage> {
            if let Some(&usage) = usage.get() {
                return Ok(usage);
            }
            let found = self.run()?;
            Ok(*usage.get_or_init(|| found))
        };
        let again = run.clone();
        (Box::new(move || Ok(run()?.cpu_seconds)), Box::new(move || Ok(again()?.peak_bytes)))
    }
}

/// How many of `items` a second of CPU time `work` gets through, in this process. What else runs on the
/// machine takes wall time, not CPU time.
pub(crate) fn rate(items: f64, mut work: impl FnMut() -> Result<()> + 'static) -> Side {
    Box::new(move || {
        let begin = cpu_seconds()?;
        work()?;
        Ok(items / (cpu_seconds()? - begin))
    })
}

/// How many of `items` a second `work` gets through until it is done, in this process, on as many cores as it uses.
pub(crate) fn elapsed_rate(items: f64, mut work: impl FnMut() -> Result<()> + 'static) -> Side {
    Box::new(move || {
        let begin = Instant::now();
        work()?;
        Ok(items / begin.elapsed().as_secs_f64())
    })
}

/// As [`rate`], for work on what stands in a file, which is in memory before the time counts.
pub(crate) fn rate_on(path: &Path, items: f64, mut work: impl FnMut(&[u8]) -> Result<()> + 'static) -> Side {
    let path = path.to_owned();
    Box::new(move || {
        let bytes = fs::read(&path).with_context(|| format!("{}", path.display()))?;
        let begin = cpu_seconds()?;
        work(&bytes)?;
        Ok(items / (cpu_seconds()? - begin))
    })
}

/// The CPU time that this process has taken so far.
fn cpu_seconds() -> Result<f64> {
    let used = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok(seconds(used.user_time()) + seconds(used.system_time()))
}

/// The CPU time that this thread has taken so far.
///
/// # Errors
/// When the system does not tell.
pub(super) fn thread_seconds() -> Result<f64> {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(used.tv_sec() as f64 + used.tv_nsec() as f64 / 1e9)
}
