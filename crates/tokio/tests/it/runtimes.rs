//! Several runtimes in one recording.

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use borehole_recorder::Recorder;
use borehole_tokio::{RecordedRuntime, TokioRecorder};
use tokio::runtime::Builder;

use super::scratch::Scratch;
use super::trace::Seen;

fn start(folder: &Scratch) -> (Recorder, TokioRecorder) {
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let tokio = TokioRecorder::new(recorder.handle());
    (recorder, tokio)
}

#[test]
fn runtimes_of_one_recording_have_their_own_names_and_workers() {
    let folder = Scratch::new();
    let (recorder, tokio) = start(&folder);
    // A second recorder of the same recording, as in a library.
    let other = TokioRecorder::new(recorder.handle());
    let mut multi = Builder::new_multi_thread();
    let first = tokio.build("web", multi.worker_threads(3).enable_time()).unwrap();
    let second = other.build("jobs", Builder::new_multi_thread().worker_threads(2).enable_time()).unwrap();
    let third = tokio.build("web", Builder::new_current_thread().enable_time()).unwrap();
    assert_eq!([&first, &second, &third].map(RecordedRuntime::name), ["web", "jobs", "web-2"]);
    for runtime in [&first, &second, &third] {
        runtime.block_on(async {
            let naps = (0..8).map(|_| {
                runtime.spawn(async {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                })
            });
            for nap in naps.collect::<Vec<_>>() {
                nap.await.unwrap();
            }
        });
    }
    drop((first, second, third));
    recorder.finish().unwrap();
    let seen = Seen::in_folder(folder.folder());
    let of = |key: &str| -> BTreeSet<u64> {
        seen.metadata[key].split(',').map(|worker| worker.parse().unwrap()).collect()
    };
    let [web, jobs, third] = ["runtime.web", "runtime.jobs", "runtime.web-2"].map(of);
    assert_eq!((web.len(), jobs.len(), third.len()), (3, 2, 1));
    let all: BTreeSet<_> = web.iter().chain(&jobs).chain(&third).copied().collect();
    assert_eq!(all.len(), 6, "{:?}", seen.metadata);
    // Tasks run on the workers of their runtime: 8 each, in this order.
    let tasks = seen.tasks();
    assert_eq!(tasks.len(), 24);
    for (tasks, workers) in tasks.chunks(8).zip([&web, &jobs, &third]) {
        assert!(
            tasks.iter().all(|task| seen.pollers[task].is_subset(workers)),
            "{tasks:?} {workers:?} {seen:?}"
        );
    }
    assert!(seen.parks.is_subset(&all) && seen.parks.len() > 2, "{seen:?}");
    assert_eq!(seen.most_alive.len(), 3, "{:?}", seen.most_alive);
    assert!(seen.waits > 0 || !cfg!(target_os = "linux"), "{seen:?}");
}

#[test]
fn threads_that_block_at_once_do_not_mix_their_polls() {
    let folder = Scratch::new();
    let (recorder, tokio) = start(&folder);
    let runtime = tokio.build("web", Builder::new_multi_thread().worker_threads(2)).unwrap();
    let (runtime, barrier) = (Arc::new(runtime), Arc::new(Barrier::new(3)));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (runtime, barrier) = (Arc::clone(&runtime), Arc::clone(&barrier));
            std::thread::spawn(move || {
                runtime.block_on(async {
                    // All three are in their poll at once.
                    barrier.wait();
                    tokio::task::yield_now().await;
                });
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    drop(runtime);
    recorder.finish().unwrap();
    let seen = Seen::in_folder(folder.folder());
    let pollers: Vec<_> = seen.blocked_on().iter().flat_map(|task| seen.pollers[task].clone()).collect();
    assert_eq!(pollers.iter().collect::<BTreeSet<_>>(), [2, 3, 255].iter().collect(), "{seen:?}");
    assert_eq!(seen.polls.values().sum::<u64>(), 6, "{seen:?}");
    assert_eq!(seen.metadata["runtime.web"], "0,1,2,3");
}

#[test]
fn a_runtime_with_installed_hooks_is_numbered_too() {
    let folder = Scratch::new();
    let (recorder, tokio) = start(&folder);
    let _numbers = recorder.handle().reserve_workers(7);
    let mut builder = Builder::new_current_thread();
    tokio.install(&mut builder);
    builder.build().unwrap().block_on(async { tokio.spawn(async {}).await.unwrap() });
    recorder.finish().unwrap();
    let seen = Seen::in_folder(folder.folder());
    assert_eq!(seen.pollers[&seen.tasks()[0]], BTreeSet::from([7]), "{seen:?}");
}
