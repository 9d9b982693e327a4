//! The time that a program takes to record an event of its own.

use std::hint::black_box;

use anyhow::{Result, ensure};
use borehole_recorder::trc::TraceEvent;
use borehole_recorder::{Compression, Recorder};

use super::measure::thread_seconds;

#[derive(TraceEvent)]
#[traceevent(wire_slot)]
struct PollStartEvent<'a> {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
    local_queue: u8,
    task_id: u64,
    #[traceevent(pooled)]
    spawn_loc: &'a str,
}

#[derive(TraceEvent)]
#[traceevent(wire_slot)]
struct PollEndEvent {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
}

const EVENTS: u64 = 4_000_000;
const LOCATIONS: [&str; 4] =
    ["src/main.rs:10:5", "src/server.rs:120:9", "src/pool.rs:44:13", "src/jobs.rs:7:1"];

/// Records events of polls. Answers how long the thread takes for one.
///
/// # Errors
/// When they cannot be recorded, or some are lost.
pub(crate) fn record() -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let options = Recorder::builder(folder.path()).buffer_bytes(128 << 20).compression(Compression::None);
    let recorder = options.start()?;
    let handle = recorder.handle();
    let begin = thread_seconds()?;
    for number in 0..EVENTS / 2 {
        let [low, ..] = number.to_le_bytes();
        handle.record_now(|timestamp_ns| PollStartEvent {
            timestamp_ns,
            worker_id: number % 8,
            local_queue: low % 16,
            task_id: number % 5000,
            spawn_loc: black_box(LOCATIONS[usize::from(low % 4)]),
        });
        handle.record_now(|timestamp_ns| PollEndEvent { timestamp_ns, worker_id: number % 8 });
    }
    let seconds = thread_seconds()? - begin;
    let summary = recorder.finish()?;
    ensure!(summary.lost_events == 0, "{} events were lost", summary.lost_events);
    Ok(seconds / EVENTS as f64)
}
