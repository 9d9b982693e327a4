//! Recordings of runtimes, read back.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod faults;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use borehole_recorder::Recorder;
use borehole_recorder::trc::{ReadEvent, Reader, TypedEvents, Value};
use borehole_testkit::Scratch;
use borehole_tokio::{
    PollEndEvent, PollStartEvent, RuntimeMetricsEvent, TaskSpawnEvent, TaskTerminateEvent, TokioRecorder,
    WakeEventEvent, WorkerParkEvent, WorkerUnparkEvent,
};
use tokio::runtime::Builder;

/// Every event of a runtime.
#[derive(ReadEvent, Debug)]
enum TokioEvent<'a> {
    PollStart(PollStartEvent<'a>),
    PollEnd(PollEndEvent),
    Park(WorkerParkEvent),
    Unpark(WorkerUnparkEvent),
    Metrics(RuntimeMetricsEvent<'a>),
    Spawn(TaskSpawnEvent<'a>),
    Terminate(TaskTerminateEvent),
    Wake(WakeEventEvent),
}

/// The contents of a recording.
#[derive(Debug, Default)]
struct Seen {
    /// The places where tasks were spawned.
    spawned: BTreeMap<u64, String>,
    terminated: BTreeSet<u64>,
    polls: BTreeMap<u64, u64>,
    poll_ends: u64,
    parks: BTreeSet<u64>,
    unparks: BTreeSet<u64>,
    /// The wakes: the waking task and the woken one.
    wakes: BTreeSet<(u64, u64)>,
    most_alive: u32,
}

impl Seen {
    fn in_folder(folder: &Path) -> Self {
        let mut seen = Self::default();
        for entry in fs::read_dir(folder).unwrap() {
            let mut reader = Reader::new(File::open(entry.unwrap().path()).unwrap());
            let mut typed = TypedEvents::default();
            while let Some(event) = reader.next_event().unwrap() {
                if let Some(event) = typed.read(&event).unwrap() {
                    seen.add(event);
                }
            }
        }
        seen
    }

    fn add(&mut self, event: TokioEvent<'_>) {
        match event {
            TokioEvent::PollStart(poll) => {
                assert!(poll.worker_id < 2 && poll.spawn_loc.contains(".rs:"), "{poll:?}");
                *self.polls.entry(poll.task_id).or_default() += 1;
            }
            TokioEvent::PollEnd(end) => self.poll_ends += u64::from(end.worker_id < 2),
            TokioEvent::Park(park) => {
                assert!(park.tid > 0 || !cfg!(target_os = "linux"));
                self.parks.insert(park.worker_id);
            }
            TokioEvent::Unpark(unpark) => drop(self.unparks.insert(unpark.worker_id)),
            TokioEvent::Metrics(metrics) => {
                assert_eq!(metrics.runtime_name, "test");
                self.most_alive = self.most_alive.max(metrics.alive_tasks);
            }
            TokioEvent::Spawn(spawn) => drop(self.spawned.insert(spawn.task_id, spawn.spawn_loc.to_owned())),
            TokioEvent::Terminate(end) => drop(self.terminated.insert(end.task_id)),
            TokioEvent::Wake(wake) => drop(self.wakes.insert((wake.waker_task_id, wake.woken_task_id))),
        }
    }
}

#[test]
fn tasks_polls_wakes_and_parks_are_recorded() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let tokio = TokioRecorder::new(recorder.handle());
    let runtime = tokio.build("test", Builder::new_multi_thread().worker_threads(2).enable_time()).unwrap();
    runtime.block_on(async {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let waiting = tokio.spawn(async { receiver.await.unwrap() });
        let yielding = tokio.spawn(async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            sender.send(7).unwrap();
        });
        yielding.await.unwrap();
        assert_eq!(waiting.await.unwrap(), 7);
        tokio.spawn(std::future::pending::<()>()).abort();
    });
    drop(runtime);
    let summary = recorder.finish().unwrap();
    assert_eq!(summary.lost_events, 0);
    let seen = Seen::in_folder(folder.folder());
    assert_eq!(seen.spawned.len(), 3, "{seen:?}");
    assert!(seen.spawned.values().all(|place| place.contains("tests/it/main.rs:")), "{seen:?}");
    let spawned: BTreeSet<_> = seen.spawned.keys().copied().collect();
    assert!(seen.terminated.is_superset(&spawned), "{seen:?}");
    // For Tokio, workers are blocking tasks: with all hooks, they end without having begun.
    assert!(cfg!(tokio_unstable) || seen.terminated == spawned, "{seen:?}");
    let (waiting, yielding) =
        (*seen.spawned.keys().min().unwrap(), *seen.polls.iter().max_by_key(|poll| poll.1).unwrap().0);
    assert!(seen.polls[&yielding] >= 12 && seen.polls[&waiting] == 2, "{seen:?}");
    assert_eq!(seen.polls.values().sum::<u64>(), seen.poll_ends);
    assert!(seen.wakes.contains(&(yielding, waiting)) && seen.wakes.contains(&(0, yielding)), "{seen:?}");
    assert!(!seen.parks.is_empty() && seen.parks.iter().all(|worker| *worker < 2), "{seen:?}");
    assert!(!seen.unparks.is_empty() && seen.most_alive >= 2, "{seen:?}");
}

#[test]
fn a_poll_that_panics_ends() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let tokio = TokioRecorder::new(recorder.handle());
    let runtime = tokio.build("test", Builder::new_multi_thread().worker_threads(1)).unwrap();
    runtime.block_on(async {
        for number in 0..3 {
            let task = tokio.spawn(async move { assert!(number == 1, "tasks may panic") });
            assert_eq!(task.await.is_ok(), number == 1);
        }
    });
    drop(runtime);
    recorder.finish().unwrap();
    let seen = Seen::in_folder(folder.folder());
    assert_eq!((seen.polls.values().sum::<u64>(), seen.poll_ends), (3, 3), "{seen:?}");
}

#[test]
fn several_runtimes_have_different_workers() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let tokio = TokioRecorder::new(recorder.handle()).first_worker(7);
    let mut builder = Builder::new_current_thread();
    tokio.install(&mut builder);
    builder.build().unwrap().block_on(async { tokio.spawn(async {}).await.unwrap() });
    recorder.finish().unwrap();
    let mut workers = BTreeSet::new();
    for entry in fs::read_dir(folder.folder()).unwrap() {
        let mut reader = Reader::new(File::open(entry.unwrap().path()).unwrap());
        reader
            .for_each_event(|event| workers.extend(event.value_of("worker_id").and_then(Value::as_u64)))
            .unwrap();
    }
    assert_eq!(workers, BTreeSet::from([7]));
}
