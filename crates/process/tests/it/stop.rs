//! Stopping a process, which always runs on afterwards.

use std::os::unix::process::ExitStatusExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::time::Duration;

use borehole_process::{ErrorKind, ForeignMemory as _, ForeignProcess as _, Process, Stopper};

use crate::child::{Role, until};

fn counter(process: &Process, child: &Role) -> u64 {
    process.read_u64(child.counter_address).unwrap()
}

fn assert_runs(process: &Process, child: &Role) {
    let before = counter(process, child);
    until("it counts on", || counter(process, child) > before);
}

#[test]
fn all_threads_are_stopped_until_the_guard_is_dropped() {
    let child = Role::start("count");
    let process = Process::open(child.id()).unwrap();
    assert_runs(&process, &child);
    let mut stopper = Stopper::new(child.id());
    for _ in 0..100 {
        let stopped = stopper.stop().unwrap();
        let before = counter(&process, &child);
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(counter(&process, &child), before);
        drop(stopped);
    }
    assert_runs(&process, &child);
}

#[test]
fn it_runs_on_after_a_panic() {
    let child = Role::start("count");
    let process = Process::open(child.id()).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut stopper = Stopper::new(child.id());
        let _stopped = stopper.stop().unwrap();
        panic!("while it is stopped");
    }));
    assert!(panicked.is_err());
    assert_runs(&process, &child);
}

#[test]
fn a_process_runs_on_if_its_guard_is_forgotten() {
    let child = Role::start("count");
    let process = Process::open(child.id()).unwrap();
    let mut stopper = Stopper::new(child.id());
    std::mem::forget(stopper.stop().unwrap());
    drop(stopper);
    assert_runs(&process, &child);
}

/// The stopping process may be killed by any signal. (Except an interrupt, which background processes of a shell ignore.)
#[test]
fn a_process_runs_on_if_its_stopper_dies() {
    for signal in ["KILL", "TERM", "ABRT", "USR1"] {
        let child = Role::start("count");
        let process = Process::open(child.id()).unwrap();
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "stop::stops_what_it_is_told_to", "--nocapture"])
            .env("BOREHOLE_TEST_STOP", child.id().to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        until("it is stopped", || child.state() == 't');
        let kill = Command::new("sh").arg("-c").arg(format!("kill -{signal} {}", holder.id())).status();
        assert!(kill.unwrap().success());
        assert!(holder.wait().unwrap().signal().is_some(), "{signal}");
        assert_runs(&process, &child);
    }
}

/// Runs only in a child, where the variable is set.
#[test]
fn stops_what_it_is_told_to() {
    if let Ok(process) = std::env::var("BOREHOLE_TEST_STOP") {
        let mut stopper = Stopper::new(process.parse().unwrap());
        let _stopped = stopper.stop().unwrap();
        std::thread::sleep(Duration::from_secs(60));
    }
}

#[test]
fn a_process_that_a_user_has_stopped_stays_stopped() {
    let child = Role::start("wait");
    let signal = |name: &str| {
        let command = format!("kill -{name} {}", child.id());
        assert!(Command::new("sh").arg("-c").arg(command).status().unwrap().success());
    };
    signal("STOP");
    until("it is stopped", || child.state() == 'T');
    let mut stopper = Stopper::new(child.id());
    drop(stopper.stop().unwrap());
    until("it is as it was", || child.state() == 'T');
    signal("CONT");
    until("it runs on", || child.state() == 'S');
}

/// Signals that arrive while it is stopped are delivered afterwards, including those above 31.
#[test]
fn signals_reach_a_process_that_is_stopped_all_the_time() {
    let script = "n=0; trap 'n=$((n+1))' USR1; trap 'n=$((n+1))' RTMIN+1; echo ready; \
                  while [ $n -lt 20 ]; do sleep 0.01; done; echo done";
    let mut child = Command::new("bash")
        .args(["-c", script])
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let id = child.id();
    let sender = std::thread::spawn(move || {
        for index in 0..30 {
            let name = if index % 2 == 0 { "USR1" } else { "RTMIN+1" };
            // It ends after it has received all of them.
            let _ = Command::new("bash")
                .arg("-c")
                .arg(format!("kill -{name} {id}; sleep 0.02"))
                .stderr(Stdio::null())
                .status();
        }
    });
    let mut stopper = Stopper::new(id.try_into().unwrap());
    while let Ok(stopped) = stopper.stop() {
        std::thread::sleep(Duration::from_micros(200));
        drop(stopped);
        std::thread::sleep(Duration::from_micros(200));
    }
    assert_eq!(lines.next().unwrap().unwrap(), "done");
    assert!(child.wait().unwrap().success());
    sender.join().unwrap();
}

#[test]
fn the_exit_of_a_stopped_child_is_left_to_its_parent() {
    let mut child = Role::start("count");
    let mut stopper = Stopper::new(child.id());
    let stopped = stopper.stop().unwrap();
    child.child.kill().unwrap();
    drop(stopped);
    assert_eq!(child.child.wait().unwrap().signal(), Some(9));
    assert_eq!(stopper.stop().unwrap_err().kind(), ErrorKind::Gone);
}

#[test]
fn a_second_tracer_is_told_about_the_first() {
    let child = Role::start("count");
    let (mut first, mut second) = (Stopper::new(child.id()), Stopper::new(child.id()));
    let stopped = first.stop().unwrap();
    let error = second.stop().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("already traces it"), "{error}");
    drop(stopped);
    drop(second.stop().unwrap());
}

#[test]
fn a_thread_is_stopped_only_once_to_learn_its_pointer() {
    let child = Role::start("count");
    let process = Process::open(child.id()).unwrap();
    let pointers = |process: &Process| -> Result<Vec<u64>, borehole_process::Error> {
        process.threads()?.into_iter().map(|thread| process.thread_pointer(thread)).collect()
    };
    let before = pointers(&process).unwrap();
    let mut stopper = Stopper::new(child.id());
    let stopped = stopper.stop().unwrap();
    // No other process can stop a held thread.
    assert_eq!(pointers(&Process::open(child.id()).unwrap()).unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(pointers(&process).unwrap(), before);
    drop(stopped);
    assert_runs(&process, &child);
}

#[test]
fn each_thread_has_its_own_thread_pointer() {
    let child = Role::start("count");
    let process = Process::open(child.id()).unwrap();
    until("its threads run", || process.threads().unwrap().len() >= 5);
    let threads = process.threads().unwrap();
    assert_eq!(threads[0], child.id());
    let mut pointers: Vec<u64> =
        threads.iter().map(|&thread| process.thread_pointer(thread).unwrap()).collect();
    // glibc: the first word of the block points to itself.
    for &pointer in &pointers {
        assert_eq!(process.read_u64(pointer).unwrap(), pointer);
    }
    pointers.sort_unstable();
    pointers.dedup();
    assert_eq!(pointers.len(), threads.len());
    assert_eq!(process.thread_pointer(i32::MAX).unwrap_err().kind(), ErrorKind::Gone);
    assert_runs(&process, &child);
}
