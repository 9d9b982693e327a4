//! Programs with a fault, recorded and analysed: each fault is found, and none in a healthy program.

use std::fs::{self, File};
use std::future::{Future, poll_fn};
use std::io::Cursor;
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use borehole_analysis::tokio::{Severity, TokioFinding, TokioSink, TokioView};
use borehole_model::{ProfileSink as _, Tables};
use borehole_recorder::Recorder;
use borehole_tokio::TokioRecorder;
use borehole_trc::{ReadOptions, import};
use tokio::runtime::Builder;
use tokio::time::sleep;

use super::scratch::Scratch;

const MS: Duration = Duration::from_millis(1);
/// Longer than any test waits.
const FOREVER: Duration = Duration::from_secs(600);
/// The checks for what never ends.
const FAULTS: [&str; 6] =
    ["stuck-poll", "starved-task", "unwoken-task", "busy-task", "blocking-in-place", "lock-over-await"];

/// Runs a program for some time, and reads what was recorded up to then. What still blocks a thread is left behind.
fn recorded<P: Future<Output = ()>>(
    workers: usize,
    time: Duration,
    program: impl FnOnce(TokioRecorder) -> P,
) -> TokioView {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let tokio = TokioRecorder::new(recorder.handle());
    let runtime =
        tokio.build("test", Builder::new_multi_thread().worker_threads(workers).enable_time()).unwrap();
    runtime.block_on(program(tokio.clone()));
    thread::sleep(time);
    recorder.finish().unwrap();
    std::mem::forget(runtime);
    view_of(folder.folder())
}

/// The analysis of all files in a folder.
pub(crate) fn view_of(folder: &Path) -> TokioView {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let (mut tables, mut sink) = (Tables::default(), TokioSink::new(None));
    for path in paths {
        let file = File::open(path).unwrap();
        import(file, &ReadOptions::default(), Cursor::new(Vec::new()), &mut tables, &mut sink).unwrap();
    }
    sink.finish(&tables).unwrap();
    sink.into_views().remove(0)
}

fn found<'v>(view: &'v TokioView, check: &str) -> Vec<&'v TokioFinding> {
    let found: Vec<_> = view.findings.iter().filter(|finding| finding.check == check).collect();
    assert!(found.iter().all(|finding| finding.evidence.contains("faults.rs:")), "{found:?}");
    found
}

/// A task that does a little every 5 ms.
fn heartbeat(tokio: &TokioRecorder) {
    tokio.spawn(async {
        loop {
            sleep(5 * MS).await;
        }
    });
}

#[test]
fn two_tasks_that_wait_for_each_other_s_mutex_are_stuck() {
    let view = recorded(3, 400 * MS, |tokio| async move {
        let [one, two] = [(); 2].map(|()| Arc::new(Mutex::new(())));
        let both = Arc::new(Barrier::new(2));
        for (first, second) in [(one.clone(), two.clone()), (two, one)] {
            let both = both.clone();
            tokio.spawn(async move {
                let _first = first.lock();
                both.wait();
                let _second = second.lock();
            });
        }
        heartbeat(&tokio);
    });
    let stuck = found(&view, "stuck-poll");
    assert_eq!(stuck.len(), 2, "{:?}", view.findings);
    assert!(stuck.iter().all(|flag| flag.severity == Severity::Critical && flag.task.is_some()));
    assert_ne!(stuck[0].worker, stuck[1].worker);
    let busy =
        view.workers.iter().filter(|row| row.busy_ns > 300_000_000 && row.longest_poll_ns > 300_000_000);
    assert_eq!(busy.count(), 2, "{:?}", view.workers);
}

#[test]
fn a_task_that_is_woken_on_a_blocked_worker_starves_and_one_that_is_spawned_there_is_not_polled() {
    let view = recorded(1, 1500 * MS, |tokio| async move {
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        tokio.spawn(async { drop(receiver.await) });
        sleep(20 * MS).await;
        let other = tokio.clone();
        tokio.spawn(async move {
            sender.send(()).unwrap();
            other.spawn(async {});
            thread::sleep(FOREVER);
        });
    });
    assert_eq!(found(&view, "starved-task").len(), 1, "{:?}", view.findings);
    assert_eq!(found(&view, "unpolled-task").len(), 1, "{:?}", view.findings);
    let stuck = found(&view, "stuck-poll");
    assert!(stuck[0].evidence.contains("1 tasks were woken"), "{stuck:?}");
}

#[test]
fn a_future_that_loses_its_waker_is_never_woken() {
    let view = recorded(1, 10_500 * MS, |tokio| async move {
        tokio.spawn(poll_fn(|_| Poll::<()>::Pending));
        heartbeat(&tokio);
    });
    let unwoken = found(&view, "unwoken-task");
    assert!(unwoken.len() == 1 && unwoken[0].evidence.starts_with("1 tasks"), "{:?}", view.findings);
}

#[test]
fn a_task_that_yields_or_wakes_itself_until_something_happens_is_a_busy_loop() {
    for wakes_itself in [false, true] {
        let view = recorded(1, Duration::ZERO, |tokio| async move {
            // A worker that has never parked cannot be told from a task that wakes others.
            sleep(50 * MS).await;
            let until = Instant::now() + 400 * MS;
            let spinning = tokio.spawn(async move {
                while Instant::now() < until {
                    if !wakes_itself {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    let mut is_polled = false;
                    let once = poll_fn(|context| {
                        context.waker().wake_by_ref();
                        if std::mem::replace(&mut is_polled, true) { Poll::Ready(()) } else { Poll::Pending }
                    });
                    once.await;
                }
            });
            spinning.await.unwrap();
        });
        assert_eq!(found(&view, "busy-task").len(), 1, "{wakes_itself} {:?} {:?}", view.findings, view.wakes);
    }
}

#[test]
fn a_call_that_blocks_in_place_and_does_not_return_is_found_though_its_worker_goes_on() {
    let view = recorded(1, 1500 * MS, |tokio| async move {
        heartbeat(&tokio);
        tokio.spawn(async {
            sleep(50 * MS).await;
            tokio::task::block_in_place(|| thread::sleep(FOREVER));
        });
    });
    let blocking = found(&view, "blocking-in-place");
    assert_eq!(blocking.len(), 1, "{:?}", view.findings);
    assert_eq!(found(&view, "stuck-poll").len(), 0);
}

#[test]
fn a_lock_that_is_held_over_an_await_lets_tasks_run_one_after_another() {
    let view = recorded(2, Duration::ZERO, |tokio| async move {
        let lock = Arc::new(tokio::sync::Mutex::new(()));
        let tasks = (0..40).map(|_| {
            let lock = lock.clone();
            tokio.spawn(async move {
                let _held = lock.lock().await;
                sleep(5 * MS).await;
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    });
    assert_eq!(found(&view, "lock-over-await").len(), 1, "{:?}", view.findings);
}

#[test]
fn a_healthy_program_has_none_of_these() {
    let view = recorded(2, Duration::ZERO, |tokio| async move {
        let lock = Arc::new(tokio::sync::Mutex::new(0));
        let (sender, mut receiver) = tokio::sync::mpsc::channel(16);
        let tasks = (0..200).map(|number| {
            let (lock, sender) = (lock.clone(), sender.clone());
            tokio.spawn(async move {
                for _ in 0..20 {
                    sleep(MS * (number % 7)).await;
                    *lock.lock().await += 1;
                    sender.send(number).await.unwrap();
                }
                tokio::task::block_in_place(|| thread::sleep(MS));
            })
        });
        let tasks: Vec<_> = tasks.collect();
        drop(sender);
        let receiving = tokio.spawn(async move { while receiver.recv().await.is_some() {} });
        for task in tasks {
            task.await.unwrap();
        }
        receiving.await.unwrap();
    });
    let faults: Vec<_> = view.findings.iter().filter(|finding| FAULTS.contains(&finding.check)).collect();
    assert!(faults.is_empty() && view.polls.durations.count > 4000, "{faults:?}");
}
