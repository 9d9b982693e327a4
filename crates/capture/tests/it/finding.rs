//! Processes that come and go.

use std::io::ErrorKind::StorageFull;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use borehole_capture::{
    Attach, Coordinator, Ending, Finder, News, ProcessSelection, RbtOptions, RbtOutput, SampleOptions,
    SamplingSession, SegmentMetadata,
};
use borehole_process::{ErrorKind, Launched};

use crate::fake::Act::Stack;
use crate::fake::{Fake, Log};

fn sleep(seconds: &str) -> Child {
    Command::new("sleep").arg(seconds).spawn().unwrap()
}

fn id(child: &Child) -> i32 {
    child.id().try_into().unwrap()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn attach_all() -> Attach {
    Box::new(|process| Ok(Fake::boxed(process, &[Stack; 100])))
}

#[test]
fn matching_processes_are_found_once_until_forgotten() {
    // No other process sleeps for this time.
    let first = sleep("600.0625");
    let is_wanted = |command: &[u8]| command == b"sleep 600.0625";
    let mut finder = Finder::new(ProcessSelection::Matching(Box::new(is_wanted)), attach_all());
    let attached = |finder: &mut Finder| -> Vec<i32> {
        finder.look().unwrap().attached.iter().map(|subject| subject.process()).collect()
    };
    // Between fork and exec, it still has the name of its parent.
    let start = Instant::now();
    let mut found = Vec::new();
    while found.is_empty() && start.elapsed() < Duration::from_secs(10) {
        found = attached(&mut finder);
    }
    assert_eq!(found, [id(&first)]);
    assert!(attached(&mut finder).is_empty());
    finder.forget(id(&first));
    assert_eq!(attached(&mut finder), [id(&first)]);
    assert!(!finder.is_exhausted());
    end(first);
    assert!(attached(&mut finder).is_empty());
}

#[test]
fn failed_attaches_are_retried_and_reported_once() {
    let child = sleep("600");
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let attach: Attach = Box::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Err(borehole_process::Error::new(ErrorKind::Denied, "no").into())
    });
    let mut finder = Finder::new(ProcessSelection::One(id(&child)), attach);
    let (mut told, start) = (Vec::new(), Instant::now());
    while attempts.load(Ordering::Relaxed) < 8 {
        told.extend(finder.look().unwrap().refused);
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    // Each pause is twice as long as the previous one: 10 + 20 + ... + 640 ms.
    assert!(start.elapsed() > Duration::from_millis(1200));
    assert_eq!((told.len(), told[0].0), (1, id(&child)));
    assert!(!finder.is_exhausted());
    end(child);
    finder.look().unwrap();
    assert!(finder.is_exhausted());
}

#[test]
fn a_process_that_replaces_its_program_is_tried_at_once() {
    let shell =
        Command::new("sh").args(["-c", "read _; exec sleep 600"]).stdin(Stdio::piped()).spawn().unwrap();
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let attach: Attach = Box::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Err(borehole_process::Error::new(ErrorKind::Denied, "no").into())
    });
    let mut finder = Finder::new(ProcessSelection::One(id(&shell)), attach);
    let start = Instant::now();
    // The pause after the last attempt is longer than a second.
    while attempts.load(Ordering::Relaxed) < 8 {
        finder.look().unwrap();
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    let program = || borehole_process::program(id(&shell));
    let before = program();
    shell.stdin.as_ref().unwrap().write_all(b"\n").unwrap();
    while program() == before {
        assert!(start.elapsed() < Duration::from_secs(60));
    }
    let refused = finder.look().unwrap().refused;
    assert_eq!((attempts.load(Ordering::Relaxed), refused.len()), (9, 0));
    end(shell);
}

/// Its number may have become that of another process, which nobody asked for.
#[test]
fn a_process_that_no_longer_matches_once_it_is_attached_to_is_left_alone() {
    let mut command = Command::new("sh");
    let mut shell =
        command.args(["-c", "read go; exec sleep 600.125"]).stdin(Stdio::piped()).spawn().unwrap();
    let (go, comm) = (Mutex::new(shell.stdin.take()), format!("/proc/{}/comm", shell.id()));
    let attach: Attach = Box::new(move |process| {
        drop(go.lock().unwrap().take());
        while std::fs::read_to_string(&comm).unwrap() != "sleep\n" {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Fake::boxed(process, &[Stack; 100]))
    });
    let is_wanted = |command: &[u8]| command == b"sh -c read go; exec sleep 600.125";
    let mut finder = Finder::new(ProcessSelection::Matching(Box::new(is_wanted)), attach);
    while std::fs::read_to_string(format!("/proc/{}/comm", shell.id())).unwrap() != "sleep\n" {
        assert!(finder.look().unwrap().attached.is_empty());
    }
    assert!(finder.look().unwrap().attached.is_empty());
    end(shell);
}

#[test]
fn a_closing_finder_reports_what_is_left() {
    let child = sleep("600");
    let refuse: Attach = Box::new(|_| Err(borehole_process::Error::new(ErrorKind::Denied, "no").into()));
    let mut coordinator = Coordinator::new(Finder::new(ProcessSelection::One(id(&child)), refuse), None);
    let (shared, arrivals) = coordinator.seat();
    let options = SampleOptions { duration: Some(Duration::from_millis(100)), ..SampleOptions::default() };
    let session = std::thread::spawn(move || {
        SamplingSession::new(options, SegmentMetadata::default(), &mut Log::default(), shared)
            .run(&arrivals)
            .unwrap()
    });
    let mut refused = Vec::new();
    coordinator
        .run(
            || false,
            |news| {
                if let News::Refused(process, error) = news {
                    refused.push((process, error.to_string()));
                }
            },
        )
        .unwrap();
    assert_eq!(session.join().unwrap().attached, 0);
    assert_eq!(refused, [(id(&child), "no".to_owned())]);
    end(child);
}

#[test]
fn a_changed_title_does_not_attach_again() {
    let child = sleep("600.03125");
    let is_called = Arc::new(AtomicBool::new(true));
    let called = Arc::clone(&is_called);
    let is_wanted = move |command: &[u8]| called.load(Ordering::Relaxed) && command == b"sleep 600.03125";
    let mut finder = Finder::new(ProcessSelection::Matching(Box::new(is_wanted)), attach_all());
    let start = Instant::now();
    while finder.look().unwrap().attached.is_empty() {
        assert!(start.elapsed() < Duration::from_secs(10));
    }
    for name in [false, true] {
        is_called.store(name, Ordering::Relaxed);
        assert!(finder.look().unwrap().attached.is_empty(), "{name}");
    }
    end(child);
}

#[test]
fn sessions_of_one_coordinator_count_their_samples_together() {
    let children = [sleep("600.015625"), sleep("600.015625")];
    let is_wanted = |command: &[u8]| command == b"sleep 600.015625";
    let attach: Attach = Box::new(|process| Ok(Fake::boxed(process, &[Stack; 1_000_000])));
    let finder = Finder::new(ProcessSelection::Matching(Box::new(is_wanted)), attach);
    let mut coordinator = Coordinator::new(finder, None);
    let options = SampleOptions {
        period: Some(Duration::from_millis(5)),
        samples: Some(300),
        ..SampleOptions::default()
    };
    let sessions = [(); 2].map(|()| {
        let (shared, arrivals) = coordinator.seat();
        std::thread::spawn(move || {
            SamplingSession::new(options, SegmentMetadata::default(), &mut Log::default(), shared)
                .run(&arrivals)
                .unwrap()
        })
    });
    coordinator.run(|| false, |_| {}).unwrap();
    let taken = sessions.map(|session| session.join().unwrap().taken);
    assert!((300..=301).contains(&(taken[0] + taken[1])), "{taken:?}");
    assert!(taken[0] > 0 && taken[1] > 0, "{taken:?}");
    children.into_iter().for_each(end);
}

#[test]
fn a_command_is_sampled_until_it_ends() {
    let command =
        Launched::start(&"sh".into(), &["-c".into(), "sleep 0.3 & sleep 0.4".into()], Stdio::inherit())
            .unwrap();
    let attach: Attach = Box::new(|process| Ok(Fake::boxed(process, &[Stack; 1_000_000])));
    let mut coordinator =
        Coordinator::new(Finder::new(ProcessSelection::Family(command.id()), attach), Some(command));
    let (shared, arrivals) = coordinator.seat();
    let options = SampleOptions { period: Some(Duration::from_millis(5)), ..SampleOptions::default() };
    let session = std::thread::spawn(move || {
        SamplingSession::new(options, SegmentMetadata::default(), &mut Log::default(), shared)
            .run(&arrivals)
            .unwrap()
    });
    let ending = coordinator.run(|| false, |_| {}).unwrap();
    assert!(matches!(ending, Some(Ending::ByItself(status)) if status.success()), "{ending:?}");
    // The shell and its two children.
    assert_eq!(session.join().unwrap().attached, 3);
}

#[test]
fn a_session_that_never_begins_blocks_nothing() {
    let command = Launched::start(&"sleep".into(), &["60".into()], Stdio::inherit()).unwrap();
    let attach: Attach = Box::new(|process| Ok(Fake::boxed(process, &[Stack; 1_000_000])));
    let mut coordinator =
        Coordinator::new(Finder::new(ProcessSelection::Family(command.id()), attach), Some(command));
    // As if its output could not be opened.
    drop(coordinator.seat());
    let ending = coordinator.run(|| false, |_| {}).unwrap();
    assert!(matches!(ending, Some(Ending::Asked(_))), "{ending:?}");
}

#[test]
fn a_session_that_fails_ends_the_others() {
    let child = sleep("600");
    let attach: Attach = Box::new(|process| Ok(Fake::boxed(process, &[Stack; 1_000_000])));
    let mut coordinator = Coordinator::new(Finder::new(ProcessSelection::One(id(&child)), attach), None);
    let sessions = [(); 2].map(|()| {
        let (shared, arrivals) = coordinator.seat();
        std::thread::spawn(move || {
            let mut full = RbtOutput::new(RbtOptions::default(), Box::new(|_: u64| Err(StorageFull.into())));
            SamplingSession::new(SampleOptions::default(), SegmentMetadata::default(), &mut full, shared)
                .run(&arrivals)
        })
    });
    coordinator.run(|| false, |_| {}).unwrap();
    let [failed, idle] = sessions.map(|session| session.join().unwrap());
    assert!(failed.is_err() && idle.unwrap().attached == 0);
    end(child);
}
