//! Tasks: their spawns, polls, wakes and ends.

use std::time::Duration;

use borehole_recorder::Recorder;
use borehole_tokio::{JoinSet, RecordedRuntime, TokioRecorder};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use super::scratch::Scratch;
use super::trace::Seen;

/// Runs a program in a runtime with this number of workers, 0 for the flavor without. Returns its recording.
fn recorded(workers: usize, program: impl FnOnce(&TokioRecorder, &RecordedRuntime)) -> Seen {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let tokio = TokioRecorder::new(recorder.handle());
    let mut builder = match workers {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let runtime = tokio.build("test", builder.worker_threads(workers.max(1)).enable_time()).unwrap();
    program(&tokio, &runtime);
    drop(runtime);
    let summary = recorder.finish().unwrap();
    assert_eq!(summary.lost_events, 0);
    Seen::in_folder(folder.folder())
}

#[test]
fn tasks_polls_wakes_and_parks_are_recorded() {
    let seen = recorded(2, |tokio, runtime| {
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
    });
    let (tasks, blocked_on) = (seen.tasks(), seen.blocked_on());
    assert_eq!((tasks.len(), blocked_on.len()), (3, 1), "{seen:?}");
    assert!(seen.spawned.values().all(|place| place.contains("tests/it/tasks.rs:")), "{seen:?}");
    assert!(seen.spawned.keys().all(|task| seen.terminated.contains(task)), "{seen:?}");
    // For Tokio, workers are blocking tasks: with all hooks, they end without having begun.
    assert!(cfg!(tokio_unstable) || seen.terminated.len() == 4, "{seen:?}");
    let (waiting, yielding) = (tasks[0], tasks[1]);
    assert!(seen.polls[&yielding] >= 12 && seen.polls[&waiting] == 2, "{seen:?}");
    assert!(tasks.iter().all(|task| seen.pollers.get(task).is_none_or(|by| by.iter().all(|by| *by < 2))));
    assert_eq!(seen.polls.values().sum::<u64>(), seen.poll_ends);
    assert!(seen.wakes.contains(&(yielding, waiting)) && seen.wakes.contains(&(0, yielding)), "{seen:?}");
    assert!(!seen.parks.is_empty() && seen.parks.iter().all(|worker| *worker < 2), "{seen:?}");
    assert!(!seen.unparks.is_empty() && seen.most_alive["test"] >= 2, "{seen:?}");
    let coverage = if cfg!(tokio_unstable) { "all" } else { "dial9-spawns-only" };
    assert_eq!(seen.metadata["tokio.poll_coverage"], coverage);
    assert_eq!(seen.metadata["runtime.test"], "0,1");
}

#[test]
fn a_poll_that_panics_ends() {
    let seen = recorded(1, |tokio, runtime| {
        runtime.block_on(async {
            for number in 0..3 {
                let task = tokio.spawn(async move { assert!(number == 1, "tasks may panic") });
                assert_eq!(task.await.is_ok(), number == 1);
            }
        });
    });
    assert_eq!(seen.tasks().iter().map(|task| seen.polls[task]).sum::<u64>(), 3, "{seen:?}");
    assert_eq!(seen.polls.values().sum::<u64>(), seen.poll_ends, "{seen:?}");
}

/// Every way to spawn from within a task. Each task is polled twice.
async fn spawn_in_all_ways(handle: tokio::runtime::Handle) {
    let yields = || async { tokio::task::yield_now().await };
    borehole_tokio::spawn(yields()).await.unwrap();
    borehole_tokio::spawn_on(yields(), &handle).await.unwrap();
    let mut set = JoinSet::new();
    set.spawn(yields());
    set.spawn_on(yields(), &handle);
    assert_eq!(set.len(), 2);
    set.join_all().await;
    let local = LocalSet::new();
    borehole_tokio::spawn_local_on(yields(), &local);
    let rest = async {
        borehole_tokio::spawn_local(yields()).await.unwrap();
        let mut set = JoinSet::new();
        set.spawn_local(yields());
        set.join_next().await.unwrap().unwrap();
    };
    local.run_until(rest).await;
    local.await;
}

#[test]
fn all_ways_to_spawn_are_recorded_where_their_user_calls_them() {
    for workers in [0, 1, 2] {
        let seen = recorded(workers, |_, runtime| {
            // A task without the recorder's help, from which the functions find their runtime.
            runtime.block_on(spawn_in_all_ways(runtime.handle().clone()));
            runtime.block_on(runtime.spawn(async { tokio::task::yield_now().await })).unwrap();
        });
        let tasks = seen.tasks();
        // The hooks of Tokio do not see the three tasks of the `LocalSet`.
        let expected = if cfg!(tokio_unstable) { 5 } else { 8 };
        assert_eq!(tasks.len(), expected, "{workers}: {seen:?}");
        let lines: std::collections::BTreeSet<_> = tasks.iter().map(|task| &seen.spawned[task]).collect();
        assert_eq!(lines.len(), expected, "{lines:?}");
        assert!(lines.iter().all(|place| place.contains("tests/it/tasks.rs:")), "{lines:?}");
        assert!(tasks.iter().all(|task| seen.polls[task] == 2), "{workers}: {seen:?}");
        assert!(tasks.iter().all(|task| seen.terminated.contains(task)), "{workers}: {seen:?}");
        assert_eq!(seen.blocked_on().len(), 2);
    }
}

#[test]
fn without_a_recorded_runtime_tasks_are_those_of_tokio() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let sum = runtime.block_on(async {
        let mut set = JoinSet::new();
        set.spawn(async { 1 });
        borehole_tokio::spawn(async { 2 }).await.unwrap() + set.join_next().await.unwrap().unwrap()
    });
    assert_eq!(sum, 3);
    assert!(borehole_tokio::current_handle().is_none());
}
