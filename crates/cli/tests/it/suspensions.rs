//! Suspends and kills commands at any moment while they stop other processes, which must run on.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Instant;

use borehole_testkit::{Scratch, peers};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::program::{program, run, text, wait_for};

/// How often each command is suspended: some times, or as often as `BOREHOLE_SWEEP` says.
fn moments() -> u32 {
    std::env::var("BOREHOLE_SWEEP").map_or(8, |count| count.parse().unwrap())
}

/// A PHP program with a large heap, so that a copy of it takes long.
struct Large(Child);

impl Large {
    /// `None` if PHP is skipped.
    fn start() -> Option<Self> {
        let mut command = peers::peer("php")?.command();
        let program = "$text = str_repeat('x', 32 << 20); echo \"ready\\n\"; \
                       function spin() { for (;;) { usleep(50); } } spin();";
        command.args(["-d", "memory_limit=-1", "-r", program]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        Some(Self(child))
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The letter of a process's state.
fn state(process: &Child) -> char {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
    stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
}

/// The program in a process group of its own, as a shell starts it.
fn start(arguments: &[&str]) -> Child {
    let mut command = program(arguments);
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn group(command: &Child) -> Pid {
    Pid::from_raw(command.id().try_into().unwrap())
}

/// Suspends or kills the command at moments spread over its running time, and continues it as soon as its target runs.
#[track_caller]
fn sweep(target: &Large, signal: Signal, arguments: &[&str]) {
    let begin = Instant::now();
    run(arguments).done();
    let (mut takes, count) = (begin.elapsed(), moments());
    let mut met = 0;
    for moment in 0..count {
        let mut command = start(arguments);
        let begin = Instant::now();
        thread::sleep(takes * moment / count);
        let took = begin.elapsed();
        killpg(group(&command), signal).unwrap();
        let mut is_over = false;
        let mut wait = |command: &mut Child| {
            wait_for(|| {
                is_over = command.try_wait().unwrap().is_some();
                (is_over || state(command) == 'T').then_some(())
            });
        };
        wait(&mut command);
        let is_frozen = || ['T', 't'].contains(&state(&target.0));
        // Nothing can delay these, so the target may wait for a moment.
        if [Signal::SIGSTOP, Signal::SIGKILL].contains(&signal) {
            wait_for(|| (!is_frozen()).then_some(()));
            wait(&mut command);
        }
        assert!(!is_frozen(), "{signal} at {moment} of {count}, {arguments:?}");
        let _ = killpg(group(&command), Signal::SIGCONT);
        let status = wait_for(|| command.try_wait().unwrap());
        let is_killed = signal == Signal::SIGKILL && !status.success();
        assert!(status.success() || is_killed, "{signal} at {moment} of {count}, {arguments:?}: {status}");
        let is_met = !is_over || is_killed;
        met += u32::from(is_met);
        if !is_met {
            // The first run may have taken much longer than later ones.
            takes = takes.min(took);
        }
    }
    assert!(met >= count / 4, "only {met} were met before they ended");
}

/// Suspends or kills each command that stops processes.
fn sweep_all(signal: Signal) {
    let Some(large) = Large::start() else { return };
    let (id, scratch) = (large.id(), Scratch::new());
    let [dump, graph, trace] = ["x.rdump", "x.rmem", "x.rbt"].map(|name| scratch.path(name));
    let stops = ["record", "--stop-process", "-r", "500", "-d", "200ms", "-p", &id, "--force"];
    sweep(&large, signal, &["heap", "dump", "-p", &id, "--force", "-o", text(&dump)]);
    sweep(&large, signal, &["heap", "capture", "-p", &id, "--force", "-o", text(&graph)]);
    sweep(&large, signal, &[&stops[..], &["-o", text(&trace)]].concat());
    sweep(&large, signal, &["doctor", "-p", &id]);
}

#[test]
fn a_process_runs_on_while_a_command_that_stopped_it_is_suspended_by_the_user() {
    sweep_all(Signal::SIGTSTP);
}

#[test]
fn a_process_runs_on_while_a_command_that_stopped_it_waits_for_the_terminal() {
    sweep_all(Signal::SIGTTIN);
    sweep_all(Signal::SIGTTOU);
}

#[test]
fn a_process_runs_on_while_a_command_that_stopped_it_is_suspended_by_force() {
    sweep_all(Signal::SIGSTOP);
}

#[test]
fn a_process_runs_on_after_a_command_that_stopped_it_is_killed() {
    sweep_all(Signal::SIGKILL);
}
