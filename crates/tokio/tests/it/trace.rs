//! The contents of a recording of a runtime.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;

use borehole_recorder::trc::{ReadEvent, Reader, TypedEvents, Value};
use borehole_tokio::{
    PollEndEvent, PollStartEvent, RuntimeMetricsEvent, TaskSpawnEvent, TaskTerminateEvent, WakeEventEvent,
    WorkerParkEvent, WorkerUnparkEvent,
};

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
pub(crate) struct Seen {
    /// The places where tasks were spawned.
    pub(crate) spawned: BTreeMap<u64, String>,
    pub(crate) terminated: BTreeSet<u64>,
    pub(crate) polls: BTreeMap<u64, u64>,
    /// The workers that polled each task.
    pub(crate) pollers: BTreeMap<u64, BTreeSet<u64>>,
    pub(crate) poll_ends: u64,
    pub(crate) longest_poll_ns: u64,
    /// The start of the poll that each worker is in.
    open: BTreeMap<u64, u64>,
    pub(crate) parks: BTreeSet<u64>,
    pub(crate) unparks: BTreeSet<u64>,
    /// The wakes: the waking task and the woken one.
    pub(crate) wakes: BTreeSet<(u64, u64)>,
    /// The most tasks alive in each runtime.
    pub(crate) most_alive: BTreeMap<String, u32>,
    pub(crate) metadata: BTreeMap<String, String>,
    /// The number of unparks with the time that the thread waited for a processor.
    pub(crate) waits: u64,
}

impl Seen {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        let mut seen = Self::default();
        for entry in fs::read_dir(folder).unwrap() {
            let mut reader = Reader::new(File::open(entry.unwrap().path()).unwrap());
            let mut typed = TypedEvents::default();
            while let Some(event) = reader.next_event().unwrap() {
                if let Some(Value::TextMap(entries)) = event.value_of("entries") {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    seen.metadata.extend(entries.map(|(key, value)| (text(key), text(value))));
                }
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
                assert!(poll.spawn_loc.contains(".rs:"), "{poll:?}");
                *self.polls.entry(poll.task_id).or_default() += 1;
                self.open.insert(poll.worker_id, poll.timestamp_ns);
                self.pollers.entry(poll.task_id).or_default().insert(poll.worker_id);
            }
            TokioEvent::PollEnd(end) => {
                if let Some(start_ns) = self.open.remove(&end.worker_id) {
                    self.longest_poll_ns = self.longest_poll_ns.max(end.timestamp_ns - start_ns);
                }
                self.poll_ends += 1;
            }
            TokioEvent::Park(park) => {
                assert!(park.tid > 0 || !cfg!(target_os = "linux"));
                self.parks.insert(park.worker_id);
            }
            TokioEvent::Unpark(unpark) => {
                self.unparks.insert(unpark.worker_id);
                self.waits += u64::from(unpark.sched_wait_ns.is_some());
            }
            TokioEvent::Metrics(metrics) => {
                let most = self.most_alive.entry(metrics.runtime_name.to_owned()).or_default();
                *most = metrics.alive_tasks.max(*most);
            }
            TokioEvent::Spawn(spawn) => drop(self.spawned.insert(spawn.task_id, spawn.spawn_loc.to_owned())),
            TokioEvent::Terminate(end) => drop(self.terminated.insert(end.task_id)),
            TokioEvent::Wake(wake) => drop(self.wakes.insert((wake.waker_task_id, wake.woken_task_id))),
        }
    }

    /// The tasks, without the futures of `block_on`, in the order in which Tokio numbered them.
    pub(crate) fn tasks(&self) -> Vec<u64> {
        self.spawned.keys().copied().filter(|task| *task < 1 << 62).collect()
    }

    /// The futures of `block_on`.
    pub(crate) fn blocked_on(&self) -> Vec<u64> {
        self.spawned.keys().copied().filter(|task| *task >= 1 << 62).collect()
    }
}
