//! Finding processes, starting them.

use std::process::{Command, Stdio};
use std::time::Duration;

use borehole_process::{Ending, ErrorKind, Launched, Stopper, descendants, exists, processes};

use crate::child::{Role, until};

#[test]
fn processes_are_listed_with_their_command_lines() {
    let child = Role::start("wait");
    let all = processes().unwrap();
    let found = all.iter().find(|process| process.id == child.id()).unwrap();
    let command = String::from_utf8_lossy(&found.command);
    assert!(command.ends_with("--exact child::role --nocapture"), "{command}");
    assert_eq!(u32::try_from(found.parent), Ok(std::process::id()));
    assert!(all.iter().all(|process| u32::try_from(process.id) != Ok(std::process::id())));
}

#[test]
fn descendants_are_found_through_all_generations() {
    let mut command = Command::new("sh");
    let mut shell = command.args(["-c", "sh -c 'sleep 60 & sleep 61; :' & wait"]).spawn().unwrap();
    let id = shell.id().try_into().unwrap();
    until("all four run", || descendants(id).unwrap().len() == 4);
    let family = descendants(id).unwrap();
    assert!(family.contains(&id));
    for process in family {
        let _ =
            Command::new("sh").arg("-c").arg(format!("kill -KILL {process}")).stderr(Stdio::null()).status();
    }
    shell.wait().unwrap();
    assert_eq!(descendants(id).unwrap(), []);
}

#[test]
fn a_command_is_started_and_its_end_is_seen() {
    let mut command =
        Launched::start(&"sh".into(), &["-c".into(), "exit 7".into()], Stdio::inherit()).unwrap();
    let mut status = None;
    while status.is_none() {
        status = command.exit_status();
    }
    assert_eq!(status.unwrap().code(), Some(7));
    assert_eq!(command.end(Duration::ZERO), Ending::ByItself(status.unwrap()));
}

#[test]
fn a_stop_is_not_taken_for_the_end_of_a_command() {
    let arguments = ["-c", "sleep 0.3; exit 7"].map(Into::into);
    let mut command = Launched::start(&"sh".into(), &arguments, Stdio::inherit()).unwrap();
    let id = command.id();
    let stopping = std::thread::spawn(move || {
        let mut stopper = Stopper::new(id);
        let mut stops = 0_u32;
        while exists(id) {
            stops += u32::from(stopper.stop().is_ok());
        }
        stops
    });
    let status = loop {
        if let Some(status) = command.exit_status() {
            break status;
        }
    };
    assert_eq!(status.code(), Some(7), "{status}");
    assert!(stopping.join().unwrap() > 0);
}

#[test]
fn a_command_that_runs_on_is_asked_to_end() {
    let mut command = Launched::start(&"sleep".into(), &["60".into()], Stdio::inherit()).unwrap();
    assert_eq!(command.exit_status(), None);
    let ending = command.end(Duration::from_secs(10));
    let Ending::Asked(status) = ending else { panic!("{ending:?}") };
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
}

#[test]
fn nothing_is_left_of_a_command_that_is_ended() {
    let family = |script: &str, count: usize| {
        let arguments = ["-c", script].map(Into::into);
        let command = Launched::start(&"sh".into(), &arguments, Stdio::inherit()).unwrap();
        until("all run", || descendants(command.id()).unwrap().len() == count);
        (descendants(command.id()).unwrap(), command)
    };
    let (orphans, mut command) = family("sh -c 'sleep 60 & sleep 61; :' & wait", 4);
    assert!(matches!(command.end(Duration::from_secs(10)), Ending::Asked(_)));
    let (stubborn, mut command) = family("trap '' TERM; sh -c 'sleep 60; :'; :", 3);
    assert_eq!(command.end(Duration::from_millis(100)), Ending::Killed);
    for process in orphans.into_iter().chain(stubborn) {
        assert!(!exists(process), "{process}");
    }
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let error = Launched::start(&"no-such-program".into(), &[], Stdio::inherit()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Gone);
    assert!(error.to_string().starts_with("cannot start no-such-program: "), "{error}");
}
