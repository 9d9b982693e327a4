//! Ctrl-C, and being asked to terminate: what was read is written.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};

use borehole_testkit::{Scratch, read_corpus};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::program::{Ended, code, listing, named_pipe, program, samples_in, text, wait_for};

/// The program, with a pipe to read that stays open.
fn start(arguments: &[&str]) -> (Child, ChildStdin) {
    let mut command = program(arguments);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    (child, stdin)
}

/// How it ended. One that does not end fails the test, and ends when that closes its pipe.
fn ended(mut child: Child) -> Ended {
    wait_for(|| child.try_wait().unwrap());
    child.wait_with_output().unwrap().into()
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

/// Waits until the program works on its output, which it begins after it heeds signals.
fn wait_for_work(folder: &Path) {
    wait_for(|| listing(folder).iter().any(|name| name.starts_with(".borehole-")).then_some(()));
}

/// More than a pipe holds: when it has been written, most of it has been read.
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
        assert!(ended.stderr.contains(&format!("interrupted: {samples} samples")), "{}", ended.stderr);
        drop(stdin);
    }
}

#[test]
fn a_pipe_that_gives_nothing_can_be_interrupted() {
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
fn the_second_interrupt_ends_at_once_and_leaves_nothing() {
    // A pipe that nobody writes to cannot even be opened: there is nothing to complete.
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
