//! Live Python: recorded, looked at, killed and replayed.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use borehole_testkit::Scratch;
use borehole_testkit::peers::{self, Peer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::program::{corpus, program, run, samples_in, text, wait_for};

/// A Python of this machine.
pub(crate) fn interpreter() -> Option<Peer> {
    let names = ["python3.13", "python3.12", "python3.11", "python3.10", "python3.9", "python3.8"];
    names.into_iter().find_map(peers::optional)
}

/// A program that computes until its input ends.
struct Busy(Child);

impl Busy {
    fn start(python: &Peer) -> Self {
        let mut command = python.command();
        command.arg(corpus("python/truth/shares.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn python_is_recorded_as_tachyon_with_states_and_its_distance_from_the_truth() {
    let Some(python) = interpreter() else { return };
    let busy = Busy::start(&python);
    let scratch = Scratch::new();
    let path = scratch.path("trace");
    let arguments =
        ["record", "-p", &busy.id(), "--rate", "500", "-n", "1500", "--oracle", "0.1", "-o", text(&path)];
    let said = run(&arguments);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("\nThe samples differ by "), "{}", said.stderr);
    let info: Value = serde_json::from_slice(&run(&["info", "--json", text(&path)]).done()).unwrap();
    assert!(info.to_string().contains("\"tachyon\""), "{info}");
    let dump = String::from_utf8(run(&["dump", text(&path)]).done()).unwrap();
    for part in ["in_generator", "main_thread", "on_cpu", "\"column\"", python.version()] {
        assert!(dump.contains(part), "{part}");
    }
    assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), 1);
}

#[test]
fn a_killed_recording_of_python_keeps_its_states() {
    let Some(python) = interpreter() else { return };
    let busy = Busy::start(&python);
    let scratch = Scratch::new();
    let path = scratch.path("a.bin");
    let arguments = ["record", "-p", &busy.id(), "--rate", "1000", "-o", text(&path)];
    let mut recording = program(&arguments).stdin(Stdio::null()).spawn().unwrap();
    let part = scratch.path("a.bin.part");
    wait_for(|| fs::metadata(&part).is_ok_and(|part| part.len() > 2000).then_some(()));
    kill(Pid::from_raw(recording.id().try_into().unwrap()), Signal::SIGKILL).unwrap();
    recording.wait().unwrap();
    let saved = scratch.path("saved.bin");
    let recovered = run(&["recover", text(&path), "-o", text(&saved)]);
    assert_eq!(recovered.code, 3, "{}", recovered.stderr);
    assert!(samples_in(&fs::read(&saved).unwrap()) > 50);
    let dump = String::from_utf8(run(&["dump", text(&saved)]).done()).unwrap();
    assert!(dump.contains("main_thread") && dump.contains("in_generator"));
}

#[test]
fn a_command_in_python_is_recorded_and_passes_its_exit_code_on() {
    let Some(python) = interpreter() else { return };
    let python = python.command().get_program().to_str().unwrap().to_owned();
    let scratch = Scratch::new();
    let path = scratch.path("trace.folded");
    let script = "import sys, time\ndef busy():\n  end = time.process_time() + 1\n  while time.process_time() < end: pass\nbusy()\nsys.exit(7)";
    let said = run(&["record", "--rate", "500", "-o", text(&path), "--", &python, "-c", script]);
    assert_eq!(said.code, 7, "{}", said.stderr);
    let folded = fs::read_to_string(&path).unwrap();
    assert!(folded.contains("busy"), "{folded}");
}

#[test]
fn stack_shows_each_thread_with_its_state() {
    let Some(python) = interpreter() else { return };
    let busy = Busy::start(&python);
    let shown = String::from_utf8(run(&["stack", "-p", &busy.id()]).done()).unwrap();
    assert!(shown.contains(&format!("CPython {}", python.version())), "{shown}");
    assert!(shown.contains("main thread") && shown.contains("main /") && shown.contains("wait /"), "{shown}");
    let shown: Value = serde_json::from_slice(&run(&["stack", "--json", "-p", &busy.id()]).done()).unwrap();
    assert_eq!(shown["stacks"].as_array().unwrap().len(), 2, "{shown}");
    let doctor = String::from_utf8(run(&["doctor", "-p", &busy.id()]).done()).unwrap();
    assert!(doctor.contains(" runs CPython ") && doctor.contains(" with 2 threads"), "{doctor}");
}

#[test]
fn python_3_15_replays_a_recording_of_an_older_python() {
    let (Some(newest), Some(python)) = (borehole_testkit::python::Python::set_up(), interpreter()) else {
        return;
    };
    let busy = Busy::start(&python);
    let path = newest.path("recorded.bin");
    let arguments = ["record", "-p", &busy.id(), "--rate", "500", "-n", "500", "-o", text(&path)];
    drop(run(&arguments).done());
    drop(newest.replayed(&[(&["--collapsed", "-o", "{}/recorded.collapsed"], "recorded.bin")]));
    let theirs = fs::read_to_string(newest.path("recorded.collapsed")).unwrap();
    let ours = String::from_utf8(run(&["convert", text(&path), "--to", "collapsed"]).done()).unwrap();
    assert_eq!(theirs, ours);
    assert!(theirs.contains("in_generator"), "{theirs}");
}

#[test]
fn samples_are_labelled_with_the_environment_and_children_are_sampled() {
    let Some(python) = interpreter() else { return };
    let script =
        "import subprocess, sys; sys.exit(subprocess.run([sys.executable] + sys.argv[1:]).returncode)";
    let mut command = python.command();
    command.args(["-c", script]).arg(corpus("python/truth/shares.py")).env("TEAM", "checkout");
    let mut parent = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let scratch = Scratch::new();
    let path = scratch.path("trace.rbt");
    let id = parent.id().to_string();
    let options = ["--children", "--label-env", "TEAM,MISSING", "--rate", "500", "-n", "500"];
    let arguments = [&["record", "-p", &id], &options[..], &["-o", text(&path)]].concat();
    let said = run(&arguments);
    drop(parent.stdin.take());
    parent.wait().unwrap();
    assert_eq!(said.code, 0, "{}", said.stderr);
    let dump = String::from_utf8(run(&["dump", text(&path)]).done()).unwrap();
    for part in ["in_generator", "\"TEAM\"", "checkout"] {
        assert!(dump.contains(part), "{part}");
    }
    assert!(!dump.contains("MISSING"));
}

#[test]
fn stack_prints_local_variables_and_tasks() {
    let Some(python) = interpreter() else { return };
    let mut command = python.command();
    command.arg(corpus("python/locals/variables.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let id = program.id().to_string();
    let shown = String::from_utf8(run(&["stack", "--locals", "-p", &id]).done()).unwrap();
    let json: Value =
        serde_json::from_slice(&run(&["stack", "--locals", "--json", "-p", &id]).done()).unwrap();
    let native = ["stack", "--locals", "--native", "--json", "-p", &id];
    let joined: Value = serde_json::from_slice(&run(&native).done()).unwrap();
    drop(program.stdin.take());
    program.wait().unwrap();
    assert!(shown.contains("\n       keyword = 7\n"), "{shown}");
    assert_eq!(json["stacks"][0]["frames"][1]["locals"]["number"], "1.5", "{json}");
    // Native frames shift no variables to other frames.
    let frames = |of: &Value| of["stacks"][0]["frames"].as_array().unwrap().clone();
    let (natives, script): (Vec<_>, Vec<_>) =
        frames(&joined).into_iter().partition(|frame| frame.get("native").is_some());
    assert!(!natives.is_empty() && natives.iter().all(|frame| frame.get("locals").is_none()), "{joined}");
    assert_eq!(script, frames(&json));

    let mut command = python.command();
    command.arg(corpus("python/tasks/hundred.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = command.spawn().unwrap();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let id = program.id().to_string();
    let shown = String::from_utf8(run(&["stack", "--async=all", "-p", &id]).done()).unwrap();
    drop(program.kill());
    program.wait().unwrap();
    assert_eq!(shown.matches("<task waiter>").count(), 100, "{shown}");
}

#[test]
fn one_recording_holds_processes_of_php_and_of_python() {
    let (Some(python), Some(php)) = (interpreter(), peers::peer("php")) else { return };
    let script = "def of_python():\n  while True: pass\nof_python()";
    let python = Busy(python.command().args(["-c", script, "mixed-pool"]).spawn().unwrap());
    let script = "function of_php() { while (true) { crc32('x'); } } of_php();";
    let php = Busy(php.command().args(["-r", script, "mixed-pool"]).spawn().unwrap());
    let scratch = Scratch::new();
    let path = scratch.path("trace.rbt");
    let ids = [python.id(), php.id()];
    // Nobody is sampled before both run.
    for id in &ids {
        wait_for(|| (run(&["doctor", "-p", id]).code == 0).then_some(()));
    }
    let said = run(&["record", "-P", " mixed-pool$", "--rate", "200", "-d", "2s", "-o", text(&path)]);
    drop((python, php));
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("Sampled 2 processes"), "{}", said.stderr);
    let stacks = String::from_utf8(run(&["convert", text(&path), "--to", "folded"]).done()).unwrap();
    for function in ["of_python", "of_php"] {
        let of = stacks.lines().filter(|line| line.contains(function));
        let samples: u64 = of.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        assert!(samples >= 20, "{samples} of {function} in {stacks}");
    }
}
