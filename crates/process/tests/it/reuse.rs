//! Process numbers that are used again: in a PID namespace of its own, a test chooses the number of the next process.

use std::fs;
use std::process::{Child, Command};

use borehole_process::{
    Error, ErrorKind, ForeignMemory as _, ForeignProcess as _, Process, Resident, resident_bytes,
};

use crate::child::until;

const INSIDE: &str = "BOREHOLE_TEST_REUSE";

/// A program whose memory is at the same addresses whenever it is started.
fn start() -> Child {
    let child = Command::new("setarch").args(["-R", "sleep", "60"]).spawn().unwrap();
    let name = format!("/proc/{}/comm", child.id());
    until("it runs its program", || fs::read_to_string(&name).is_ok_and(|name| name == "sleep\n"));
    child
}

/// A later process of the same number.
fn start_as(id: u32) -> Child {
    loop {
        // Source: Linux, `Documentation/admin-guide/sysctl/kernel.rst`, `ns_last_pid`.
        fs::write("/proc/sys/kernel/ns_last_pid", (id - 1).to_string()).unwrap();
        let mut child = start();
        if child.id() == id {
            return child;
        }
        // A thread of this test has got the number.
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_later_process_of_the_same_number_is_neither_read_nor_stopped() {
    let mut inside = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        inside.args(["--user", "--map-root-user"]);
    }
    inside.args(["--pid", "--fork", "--mount-proc"]).arg(std::env::current_exe().unwrap());
    inside.args(["--exact", "reuse::inside_the_namespace", "--nocapture"]).env(INSIDE, "yes");
    let output = inside.output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("all were refused"), "{said}");
}

/// Runs only in the namespace, where the variable is set.
#[test]
fn inside_the_namespace() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let mut first = start();
    let mut process = Process::open(first.id().try_into().unwrap()).unwrap();
    let mut stopper = process.stopper();
    drop(stopper.stop().unwrap());
    let mapping = process.mappings().iter().find(|mapping| mapping.shows_file()).unwrap().clone();
    let read = |process: &Process| process.read(mapping.start, &mut [0; 8192]);
    read(&process).unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    let mut second = start_as(first.id());
    read(&Process::open(process.id()).unwrap()).expect("the same addresses");
    assert!(!process.is_running() && !process.runs_same_program());
    gone(read(&process));
    gone(process.refresh());
    gone(process.threads());
    gone(process.symbols(&mapping));
    gone(process.thread_pointer(process.id()));
    gone(Resident::open(&process));
    gone(resident_bytes(&process));
    gone(stopper.stop());
    gone(process.stopper().stop());
    second.kill().unwrap();
    second.wait().unwrap();
    println!("all were refused");
}

#[track_caller]
fn gone<T>(result: Result<T, Error>) {
    assert_eq!(result.err().map(|error| error.kind()), Some(ErrorKind::Gone));
}
