//! Recordings of programs that end abnormally. A test plays two roles: started by itself with a folder in the environment,
//! it is the program that records.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::{env, thread};

use borehole_recorder::Recorder;
use borehole_testkit::Scratch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Found, Step, files};

const FOLDER: &str = "BOREHOLE_TEST_RECORD_INTO";

/// The folder, set in the program that records.
pub(crate) fn into() -> Option<PathBuf> {
    env::var_os(FOLDER).map(PathBuf::from)
}

/// The program that records into `folder`: this one, with one test.
pub(crate) fn start(test: &str, folder: &Path) -> (Child, BufReader<ChildStdout>) {
    // Background processes of shells ignore Ctrl-C.
    let mut program = Command::new("env");
    program.arg("--default-signal=INT").arg(env::current_exe().unwrap());
    started(program, test, folder)
}

/// Starts it from a shell that runs `first` before.
fn start_after(first: &str, test: &str, folder: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!(r#"{first}; exec "$0" "$@""#)]).arg(env::current_exe().unwrap());
    started(shell, test, folder)
}

fn started(mut program: Command, test: &str, folder: &Path) -> (Child, BufReader<ChildStdout>) {
    let command = program.args(["--exact", test, "--nocapture"]).env(FOLDER, folder);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

/// Waits until the program reports `least` flushed events. Returns their number.
pub(crate) fn wait_for(output: &mut BufReader<ChildStdout>, least: u64) -> u64 {
    for line in output.lines() {
        let line = line.unwrap();
        let flushed = line.rsplit_once("flushed ").and_then(|(_, count)| count.parse().ok());
        if let Some(flushed) = flushed.filter(|flushed| *flushed >= least) {
            return flushed;
        }
    }
    panic!("the program ended too early");
}

#[test]
fn a_killed_program_leaves_every_flushed_event() {
    if let Some(folder) = into() {
        let recorder = Recorder::builder(folder).start().unwrap();
        let handle = recorder.handle();
        for number in 0.. {
            handle.record_now(|at_ns| Step { at_ns, thread: "main", number });
            if number % 1_000 == 999 {
                assert!(handle.flush());
                println!("\nflushed {}", number + 1);
            }
        }
    }
    let folder = Scratch::new();
    let (mut child, mut output) = start("ends::a_killed_program_leaves_every_flushed_event", folder.folder());
    let flushed = wait_for(&mut output, 20_000);
    child.kill().unwrap();
    child.wait().unwrap();
    let paths = files(folder.folder());
    assert!(paths.len() == 1 && paths[0].extension().unwrap() == "active", "{paths:?}");
    let found = Found::in_folder(folder.folder());
    let numbers = found.numbers("main");
    assert!(numbers.len() as u64 >= flushed && numbers.iter().copied().eq(0..numbers.len() as u64));
    assert_eq!((found.lost_events, found.complete), (0, 0));
}

#[test]
fn a_hang_up_that_a_program_ignores_stays_ignored() {
    if let Some(folder) = into() {
        let recorder = Recorder::builder(folder).start().unwrap();
        recorder.finish_on_signals().unwrap();
        println!("\nflushed 0");
        loop {
            thread::park();
        }
    }
    let folder = Scratch::new();
    let test = "ends::a_hang_up_that_a_program_ignores_stays_ignored";
    // As under `nohup`.
    let (mut child, mut output) = start_after("trap '' HUP", test, folder.folder());
    wait_for(&mut output, 0);
    for signal in [Signal::SIGHUP, Signal::SIGTERM] {
        kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
    }
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(Signal::SIGTERM as i32));
    assert_eq!(Found::in_folder(folder.folder()).complete, 1);
}

#[test]
fn a_program_that_is_asked_to_end_completes_its_recording() {
    if let Some(folder) = into() {
        let recorder = Recorder::builder(folder).start().unwrap();
        recorder.finish_on_signals().unwrap();
        let handle = recorder.handle();
        (0..10).for_each(|number| handle.record_now(|at_ns| Step { at_ns, thread: "main", number }));
        println!("\nflushed 0");
        loop {
            thread::park();
        }
    }
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let folder = Scratch::new();
        let test = "ends::a_program_that_is_asked_to_end_completes_its_recording";
        let (mut child, mut output) = start(test, folder.folder());
        wait_for(&mut output, 0);
        kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(signal as i32));
        let found = Found::in_folder(folder.folder());
        assert_eq!((found.complete, found.warnings), (1, 0));
        assert!(found.numbers("main").into_iter().eq(0..10));
    }
}

#[test]
fn a_file_that_cannot_be_created_leaves_nothing() {
    if let Some(folder) = into() {
        for _ in 0..3 {
            assert!(Recorder::builder(&folder).start().is_err());
        }
        println!("\nflushed 0");
        return;
    }
    let folder = Scratch::new();
    // Files cannot grow at all, as on a full disk.
    let test = "ends::a_file_that_cannot_be_created_leaves_nothing";
    let (mut child, mut output) = start_after("ulimit -f 0; trap '' XFSZ", test, folder.folder());
    wait_for(&mut output, 0);
    child.wait().unwrap();
    assert_eq!(files(folder.folder()), Vec::<PathBuf>::new());
}

#[test]
fn a_file_that_cannot_be_ended_is_kept_like_any_other() {
    if let Some(folder) = into() {
        // The data at the end is longer than each of the events.
        let recorder = Recorder::builder(folder).metadata("what", &"x".repeat(2000)).start().unwrap();
        let handle = recorder.handle();
        let record = |number| handle.record_now(|at_ns| Step { at_ns, thread: "main", number });
        let flushed = (0..).take_while(|&number| {
            record(number);
            handle.flush()
        });
        println!("\nflushed {}", flushed.count());
        assert!(recorder.finish().is_err());
        return;
    }
    let folder = Scratch::new();
    // Files may have a few thousand bytes.
    let test = "ends::a_file_that_cannot_be_ended_is_kept_like_any_other";
    let (mut child, mut output) = start_after("ulimit -f 12; trap '' XFSZ", test, folder.folder());
    let flushed = wait_for(&mut output, 1);
    assert!(child.wait().unwrap().success());
    let paths = files(folder.folder());
    assert!(paths.len() == 1 && paths[0].extension().unwrap() == "gz", "{paths:?}");
    let found = Found::in_folder(folder.folder());
    assert!(found.numbers("main").into_iter().eq(0..flushed));
    assert_eq!(found.complete, 0);
}

#[test]
fn a_panic_flushes() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let handle = recorder.handle();
    let panicking = thread::spawn(move || {
        handle.record_now(|at_ns| Step { at_ns, thread: "doomed", number: 1 });
        panic!("this is part of the test");
    });
    assert!(panicking.join().is_err());
    assert_eq!(Found::in_folder(folder.folder()).numbers("doomed"), [1]);
    recorder.finish().unwrap();
}
