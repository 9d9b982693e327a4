//! Runs the program.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use nix::sys::signal::Signal;

/// The exit code and output of the program.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ended {
    /// Its stdout, if it succeeded and wrote nothing to stderr.
    #[track_caller]
    pub(crate) fn quietly(self) -> Vec<u8> {
        assert_eq!((self.code, &*self.stderr), (0, ""));
        self.stdout
    }

    /// Its stdout, if it succeeded.
    #[track_caller]
    pub(crate) fn done(self) -> Vec<u8> {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self.stdout
    }

    /// Its stderr, if it failed and wrote nothing else.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert_eq!((self.code, &*self.stdout), (2, b"".as_slice()), "{}", self.stderr);
        self.stderr
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8(output.stderr).expect("messages are UTF-8");
        assert!(!stderr.contains("panicked"), "{stderr}");
        Self { code: output.status.code().expect("it was ended by a signal"), stdout: output.stdout, stderr }
    }
}

/// The program, with an empty standard input.
pub(crate) fn program(arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_borehole"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs the program with arguments.
pub(crate) fn run(arguments: &[impl AsRef<OsStr>]) -> Ended {
    program(arguments).output().unwrap().into()
}

/// Runs the program with a file as standard input.
pub(crate) fn redirected(arguments: &[&str], stdin: &Path) -> Ended {
    program(arguments).stdin(File::open(stdin).unwrap()).output().unwrap().into()
}

/// Runs the program with a pipe as standard input.
pub(crate) fn piped(arguments: &[&str], stdin: &[u8]) -> Ended {
    let mut command = program(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    thread::scope(|scope| {
        // A program that fails early closes its end.
        scope.spawn(move || pipe.write_all(stdin).unwrap_or_default());
        child.wait_with_output().unwrap().into()
    })
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A file of the corpus as an argument.
pub(crate) fn corpus(path: &str) -> String {
    text(&borehole_testkit::corpus(path)).to_owned()
}

/// The names in a folder, including hidden files.
pub(crate) fn listing(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Creates a named pipe.
pub(crate) fn named_pipe(path: PathBuf) -> PathBuf {
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    path
}

/// Retries until there is a result; fails after a minute.
#[track_caller]
pub(crate) fn wait_for<T>(mut answer: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match answer() {
            Some(answer) => return answer,
            None => assert!(Instant::now() < deadline, "nothing happened for a minute"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a program has used a second of CPU time, which is more than its start takes.
#[cfg(feature = "lake")]
#[track_caller]
pub(crate) fn wait_until_busy(child: &Child) {
    // User and system time, in hundredths of a second. Source: `proc_pid_stat(5)`.
    let has_worked = |stat: &str| {
        let fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(2);
        let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap()).sum();
        (ticks >= 100).then_some(())
    };
    wait_for(|| has_worked(&fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap()));
}

/// Waits until a program handles a signal that would otherwise end it.
#[track_caller]
pub(crate) fn wait_until_heeded(child: &Child, signal: Signal) {
    // Source: Linux, `Documentation/filesystems/proc.rst`, table 1-2.
    let is_heeded = |status: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
        (mask >> (signal as i32 - 1) & 1 == 1).then_some(())
    };
    wait_for(|| is_heeded(&fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap()));
}

/// The exit code of a program that was not ended by a signal.
pub(crate) fn code(status: ExitStatus) -> i32 {
    status.code().expect("it was ended by a signal")
}

/// The number of samples that `info` finds in the data from a pipe.
#[track_caller]
pub(crate) fn samples_in(profile: &[u8]) -> u64 {
    let info = piped(&["info", "--json"], profile).done();
    let info: serde_json::Value = serde_json::from_slice(&info).unwrap();
    if info["format"] == "trc" {
        // Its samples are events for `info`, and samples for formats of samples.
        return samples_in(&piped(&["convert", "--to", "rbt"], profile).done());
    }
    info["samples"].as_u64().unwrap()
}
