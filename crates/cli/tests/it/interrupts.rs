//! Ctrl-C and SIGTERM, after which the data read so far is written; and SIGKILL.

use std::collections::HashSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use borehole_testkit::{Scratch, read_corpus};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::program::{Ended, code, corpus, listing, named_pipe, program, run, samples_in, text, wait_for};

/// The program, with an input pipe that stays open.
fn start(arguments: &[&str]) -> (Child, ChildStdin) {
    let mut command = program(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    (child, stdin)
}

/// Its exit code. A program that does not end fails the test, and ends when that closes its pipe.
fn ended(mut child: Child) -> Ended {
    wait_for(|| child.try_wait().unwrap());
    child.wait_with_output().unwrap().into()
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

/// Waits until the program writes its output, which it begins after it has set up signal handling.
fn wait_for_work(folder: &Path) {
    wait_for(|| listing(folder).iter().any(|name| name.contains(".borehole-")).then_some(()));
}

/// More than a pipe holds: once it is written, most of it has been read.
fn most_of_a_trace() -> Vec<u8> {
    let mut trace = read_corpus("rbt/realistic_54k_ts.rbt");
    trace.truncate(350_000);
    trace
}

#[test]
fn an_interrupted_conversion_of_an_open_pipe_leaves_a_valid_file() {
    for (signal, name) in
        [(Signal::SIGINT, "a.rbt"), (Signal::SIGTERM, "a.jsonl"), (Signal::SIGINT, "a.pb.gz")]
    {
        let scratch = Scratch::new();
        let output = scratch.path(name);
        let (child, mut stdin) = start(&["convert", "-o", text(&output)]);
        stdin.write_all(&most_of_a_trace()).unwrap();
        wait_for_work(scratch.folder());
        send(&child, signal);
        let ended = ended(child);
        assert_eq!(ended.code, 130, "{}", ended.stderr);
        assert_eq!(listing(scratch.folder()), [name]);
        let samples = samples_in(&fs::read(&output).unwrap());
        assert!(samples > 10_000, "{samples}");
        let said = ended.stderr.replace(',', "");
        assert!(said.contains(&format!("interrupted: {samples} samples read")), "{said}");
        drop(stdin);
    }
}

#[test]
fn a_command_under_nohup_outlives_its_terminal() {
    let scratch = Scratch::new();
    let output = scratch.path("a.rbt");
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"trap '' HUP; exec "$0" "$@""#, env!("CARGO_BIN_EXE_borehole")]);
    shell.args(["convert", "-o", text(&output)]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let trace = read_corpus("rbt/realistic_54k_ts.rbt");
    let (first, rest) = trace.split_at(350_000);
    stdin.write_all(first).unwrap();
    wait_for_work(scratch.folder());
    send(&child, Signal::SIGHUP);
    stdin.write_all(rest).unwrap();
    drop(stdin);
    let ended = ended(child);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(samples_in(&fs::read(&output).unwrap()), samples_in(&trace));
}

#[test]
fn reading_a_silent_pipe_can_be_interrupted() {
    let scratch = Scratch::new();
    let output = scratch.path("a.rbt");
    let (child, stdin) = start(&["convert", "-o", text(&output)]);
    wait_for_work(scratch.folder());
    send(&child, Signal::SIGINT);
    let ended = ended(child);
    assert_eq!((ended.code, samples_in(&fs::read(&output).unwrap())), (130, 0));
    drop(stdin);
}

#[test]
fn an_interrupted_recovery_and_dump_are_valid_as_well() {
    for command in ["recover", "dump"] {
        let scratch = Scratch::new();
        let output = scratch.path("out");
        let (child, mut stdin) = start(&[command, "-o", text(&output)]);
        stdin.write_all(&most_of_a_trace()).unwrap();
        wait_for_work(scratch.folder());
        send(&child, Signal::SIGINT);
        let ended = ended(child);
        assert_eq!((ended.code, listing(scratch.folder())), (130, vec!["out".to_owned()]));
        assert!(samples_in(&fs::read(&output).unwrap()) > 10_000);
        drop(stdin);
    }
}

#[test]
fn an_interrupted_comparison_compares_nothing() {
    let scratch = Scratch::new();
    let page = scratch.path("page.html");
    let (child, mut stdin) = start(&["diff", "-", &corpus("rbt/native.rbt"), "-o", text(&page)]);
    stdin.write_all(&most_of_a_trace()).unwrap();
    send(&child, Signal::SIGINT);
    let ended = ended(child);
    assert_eq!((ended.code, ended.stdout.as_slice(), page.exists()), (130, &b""[..], false));
    assert!(ended.stderr.contains("interrupted: nothing was compared"), "{}", ended.stderr);
    drop(stdin);
}

#[test]
fn an_interrupt_leaves_no_incomplete_heap() {
    let dump = corpus("php/heap/8.2.36.rdump");
    let mut interrupted = 0;
    for name in ["heap.json", "heap.rmem", "heap.sqlite3"] {
        for delay_ms in (0..240).step_by(20) {
            let scratch = Scratch::new();
            let (child, _) = start(&["heap", "analyze", &dump, "-o", text(&scratch.path(name))]);
            thread::sleep(Duration::from_millis(delay_ms));
            send(&child, Signal::SIGINT);
            let ended = child.wait_with_output().unwrap();
            let (said, left) = (String::from_utf8(ended.stderr).unwrap(), listing(scratch.folder()));
            assert!(left.is_empty() || left == [name], "{left:?} after {delay_ms} ms");
            // Before it handles signals, a signal ends it silently.
            if left.is_empty() && ended.status.signal().is_none() {
                interrupted += 1;
                assert!(said.ends_with("interrupted: nothing was written\n"), "{said}");
                assert_eq!(ended.status.code(), Some(130));
            }
        }
    }
    assert!(interrupted > 0);
}

#[test]
fn simultaneous_signals_count_once() {
    let scratch = Scratch::new();
    let output = scratch.path("a.rbt");
    let (child, mut stdin) = start(&["convert", "-o", text(&output)]);
    stdin.write_all(&most_of_a_trace()).unwrap();
    wait_for_work(scratch.folder());
    // Two equal signals may be merged.
    send(&child, Signal::SIGTERM);
    send(&child, Signal::SIGINT);
    let ended = ended(child);
    assert_eq!((ended.code, listing(scratch.folder())), (130, vec!["a.rbt".to_owned()]), "{}", ended.stderr);
    assert!(samples_in(&fs::read(&output).unwrap()) > 10_000);
    drop(stdin);
}

#[test]
fn the_second_interrupt_ends_at_once_and_leaves_nothing() {
    // A pipe without writers cannot even be opened, so there is nothing to complete.
    let scratch = Scratch::new();
    let pipe = named_pipe(scratch.path("pipe"));
    let (mut child, stdin) = start(&["convert", text(&pipe), "-o", text(&scratch.path("a.rbt"))]);
    wait_for_work(scratch.folder());
    let status = wait_for(|| {
        let status = child.try_wait().unwrap();
        if status.is_none() {
            send(&child, Signal::SIGINT);
        }
        status
    });
    assert_eq!((code(status), listing(scratch.folder())), (130, vec!["pipe".to_owned()]));
    drop(stdin);
}

/// Starts to write a tachyon file in `folder` from an endless pipe, and kills the program when a part of the file exists.
fn killed_conversion(folder: &Path, options: &[&str]) {
    let output = folder.join("a.bin");
    let (mut child, mut stdin) =
        start(&[&["convert", "--to", "tachyon", "-o", text(&output)], options].concat());
    stdin.write_all(&most_of_a_trace()).unwrap();
    let part = folder.join("a.bin.part");
    wait_for(|| fs::metadata(&part).is_ok_and(|part| part.len() > 64).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    let unnamed: Vec<_> = listing(folder).into_iter().filter(|name| !name.contains(".borehole-")).collect();
    assert_eq!(unnamed, ["a.bin.part", "a.bin.part.tables"]);
}

/// The distinct stacks of a file, without threads and counts.
fn stacks_of(path: &Path) -> HashSet<String> {
    let dumped = String::from_utf8(run(&["convert", text(path), "--to", "collapsed"]).done()).unwrap();
    let stack = |line: &str| line.split_once(';').unwrap().1.rsplit_once(' ').unwrap().0.to_owned();
    dumped.lines().map(stack).collect()
}

#[test]
fn recover_saves_a_killed_conversion_with_names() {
    for options in [&["--tachyon-compression", "none"][..], &[]] {
        let scratch = Scratch::new();
        killed_conversion(scratch.folder(), options);
        let saved = scratch.path("saved.bin");
        // The name of the intended file stands for its remains.
        let recovered = run(&["recover", text(&scratch.path("a.bin")), "-o", text(&saved)]);
        assert_eq!(recovered.code, 3, "{}", recovered.stderr);
        assert!(recovered.stderr.contains(" frames from its journal"), "{}", recovered.stderr);
        let samples = samples_in(&fs::read(&saved).unwrap());
        assert!(samples > 1000, "{samples}");
        let whole = scratch.path("whole.bin");
        run(&["convert", &corpus("rbt/realistic_54k_ts.rbt"), "--to", "tachyon", "-o", text(&whole)]).done();
        let (found, known) = (stacks_of(&saved), stacks_of(&whole));
        assert!(found.len() > 10 && found.is_subset(&known), "{:?}", found.difference(&known).next());
        // Without the journal, frames are numbers.
        fs::remove_file(scratch.path("a.bin.part.tables")).unwrap();
        let numbered = run(&["recover", text(&scratch.path("a.bin.part")), "--to", "folded"]);
        assert!(numbered.stdout.starts_with(b"frame#"), "{}", numbered.stderr);
    }
}

#[test]
fn remains_of_a_killed_program_are_not_overwritten_without_force() {
    let scratch = Scratch::new();
    killed_conversion(scratch.folder(), &[]);
    let trace = corpus("rbt/daemon_worker.rbt");
    let convert =
        ["convert", &trace, "--to", "tachyon", "-o", text(&scratch.path("a.bin"))].map(str::to_owned);
    let refused = run(&convert).failed();
    assert!(refused.contains("a.bin.part: file exists"), "{refused}");
    assert!(scratch.path("a.bin.part.tables").exists());
    run(&[&convert[..], &["--force".to_owned()]].concat()).done();
    let left = listing(scratch.folder());
    assert_eq!(left.iter().filter(|name| !name.contains(".borehole-")).collect::<Vec<_>>(), ["a.bin"]);
}
