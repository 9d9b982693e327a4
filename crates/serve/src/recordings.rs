//! Recordings that are started while the server runs, of the processes that were named when it was started.
//!
//! The command `borehole record` makes them: it needs rights that the server does not, and a file of it can be read at any time.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use borehole_text::document;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::limits::RecordingLimits;
use crate::received::ReceivedFiles;
use crate::refusal::{Refusal, RefusalKind};

/// The command that records, and what it may record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingCommand {
    /// The program that has the command `record`.
    pub program: PathBuf,
    /// The arguments that name the processes: `-p PID` or `-P REGEX`.
    pub subjects: Vec<OsString>,
}

/// The wishes for a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RecordingAsk {
    /// How long to sample, in seconds
    pub(crate) seconds: Option<u64>,
    /// Samples per second of each process
    pub(crate) rate: Option<u64>,
}

/// A recording as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct RecordingEntry {
    /// Its number.
    pub(crate) id: u64,
    /// The name of its input, which appears with the first samples.
    pub(crate) input: String,
    /// How long it was to sample, in seconds.
    pub(crate) seconds: u64,
    /// Samples per second of each process.
    pub(crate) rate: u64,
    /// Whether it still samples.
    pub(crate) running: bool,
    /// The last words of the recorder: how many samples, or why there are none.
    pub(crate) message: String,
}

/// The recordings of a server.
pub(crate) struct Recordings {
    command: RecordingCommand,
    all: Mutex<Vec<Arc<Running>>>,
}

/// A recording.
struct Running {
    entry: Mutex<RecordingEntry>,
    process: Pid,
    ended: watch::Receiver<bool>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recordings {
    pub(crate) fn new(command: RecordingCommand) -> Self {
        Self { command, all: Mutex::default() }
    }

    /// All recordings, the newest first.
    pub(crate) fn entries(&self) -> Vec<RecordingEntry> {
        locked(&self.all).iter().rev().map(|running| locked(&running.entry).clone()).collect()
    }

    /// Starts a recording.
    pub(crate) fn start(&self, ask: &RecordingAsk, files: &ReceivedFiles) -> Result<RecordingEntry, Refusal> {
        let seconds =
            asked("seconds", ask.seconds, RecordingLimits::USUAL_SECONDS, RecordingLimits::SECONDS)?;
        let rate = asked("rate", ask.rate, RecordingLimits::USUAL_RATE, RecordingLimits::RATE)?;
        let mut all = locked(&self.all);
        if all.iter().filter(|running| locked(&running.entry).running).count() >= RecordingLimits::AT_ONCE {
            return Err(Refusal::new(RefusalKind::Busy, "too many recordings at the same time")
                .with_help("stop one, or wait until it ends"));
        }
        if all.len() >= RecordingLimits::ALL {
            return Err(Refusal::new(RefusalKind::TooLarge, "too many recordings since the server started")
                .with_help("restart the server"));
        }
        let (id, path) = files.recording();
        let mut command = Command::new(&self.command.program);
        command.arg("record").args(&self.command.subjects).arg("-o").arg(&path);
        command.args(["-r", &rate.to_string(), "-d", &format!("{seconds}s")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| {
            Refusal::new(
                RefusalKind::Internal,
                format!("cannot start {}: {error}", self.command.program.display()),
            )
        })?;
        let input = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let entry = RecordingEntry { id, input, seconds, rate, running: true, message: String::new() };
        let (ends, ended) = watch::channel(false);
        let process = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
        let running = Arc::new(Running { entry: Mutex::new(entry.clone()), process, ended });
        all.push(running.clone());
        drop(all);
        let waiting = move || running.wait(child, &ends);
        let thread = thread::Builder::new().name("borehole-recording".to_owned()).spawn(waiting);
        thread.map_err(|error| Refusal::new(RefusalKind::Busy, format!("cannot start a thread: {error}")))?;
        Ok(entry)
    }

    /// Asks a recording to end. What it has sampled stays.
    pub(crate) fn stop(&self, id: u64) -> Result<RecordingEntry, Refusal> {
        let running = self.running(id)?;
        running.stop();
        Ok(locked(&running.entry).clone())
    }

    /// Waits until a recording has ended.
    pub(crate) async fn ended(&self, id: u64) -> Result<RecordingEntry, Refusal> {
        let running = self.running(id)?;
        let _ = running.ended.clone().wait_for(|ended| *ended).await;
        Ok(locked(&running.entry).clone())
    }

    /// Ends all recordings, and waits for a moment until they have.
    pub(crate) fn stop_all(&self) {
        let all = locked(&self.all).clone();
        all.iter().for_each(|running| running.stop());
        let begun = Instant::now();
        while begun.elapsed() < RecordingLimits::LAST_WAIT
            && all.iter().any(|running| locked(&running.entry).running)
        {
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn running(&self, id: u64) -> Result<Arc<Running>, Refusal> {
        let all = locked(&self.all);
        let found = all.iter().find(|running| locked(&running.entry).id == id).cloned();
        found.ok_or_else(|| {
            Refusal::missing(format!("no recording {id}")).with_help("/api/v1/recordings lists them")
        })
    }
}

impl Running {
    /// Asks the recorder to end, as Ctrl-C does. Its number is its own until `wait` has seen it end, which needs the same lock.
    fn stop(&self) {
        if locked(&self.entry).running {
            let _ = kill(self.process, Signal::SIGINT);
        }
    }

    /// Waits for the recorder, and keeps the last thing that it says.
    fn wait(&self, mut child: Child, ends: &watch::Sender<bool>) {
        let mut said = Vec::new();
        if let Some(mut stderr) = child.stderr.take() {
            let _ = stderr.by_ref().take(RecordingLimits::MESSAGE_BYTES).read_to_end(&mut said);
            let _ = io::copy(&mut stderr, &mut io::sink());
        }
        // The process has closed its output: it is about to end.
        let mut entry = locked(&self.entry);
        let _ = child.wait();
        entry.running = false;
        let text = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(RecordingLimits::MESSAGE_LINES)..];
        entry.message = document(last.join("; ").as_bytes());
        drop(entry);
        ends.send_replace(true);
    }
}

/// A number that was asked for, within its limits.
fn asked(word: &str, asked: Option<u64>, usual: u64, most: u64) -> Result<u64, Refusal> {
    let number = asked.unwrap_or(usual);
    if (1..=most).contains(&number) {
        return Ok(number);
    }
    Err(Refusal::invalid(format!("{word}: expected 1 to {most}, found {number}")))
}
