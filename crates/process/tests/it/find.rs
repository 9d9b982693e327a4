//! Finding processes, starting them.

use std::process::{Command, Stdio};
use std::time::Duration;

use borehole_process::{ErrorKind, Launched, descendants, processes};

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
    assert_eq!(command.end(Duration::ZERO).unwrap().code(), Some(7));
}

#[test]
fn a_command_that_runs_on_is_asked_to_end() {
    let mut command = Launched::start(&"sleep".into(), &["60".into()], Stdio::inherit()).unwrap();
    assert_eq!(command.exit_status(), None);
    let status = command.end(Duration::from_secs(10)).unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let error = Launched::start(&"no-such-program".into(), &[], Stdio::inherit()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Gone);
    assert!(error.to_string().starts_with("cannot start no-such-program: "), "{error}");
}
