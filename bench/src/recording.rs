//! The time that a program takes to record: events of its own, spans of `tracing`, and tasks of Tokio.

use std::hint::black_box;

use anyhow::{Result, ensure};
use borehole_recorder::trc::TraceEvent;
use borehole_recorder::{Compression, Recorder};
use borehole_tokio::{SpanLayer, TokioRecorder};
use tokio::runtime::Builder;
use tracing_subscriber::layer::SubscriberExt as _;

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

const SPANS: u64 = 1_000_000;

/// Records spans with two fields. Answers how much longer the thread takes for one, from its creation to its close, than with
/// the registry of `tracing-subscriber` alone.
///
/// # Errors
/// When they cannot be recorded, or some are lost.
pub(crate) fn record_spans() -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let options = Recorder::builder(folder.path()).buffer_bytes(512 << 20).compression(Compression::None);
    let recorder = options.start()?;
    let layer = SpanLayer::new(recorder.handle());
    let with = tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), time_spans)?;
    let without = tracing::subscriber::with_default(tracing_subscriber::registry(), time_spans)?;
    let summary = recorder.finish()?;
    ensure!(summary.lost_events == 0, "{} events were lost", summary.lost_events);
    ensure!(summary.events == 3 * SPANS, "{} events of {SPANS} spans", summary.events);
    Ok((with - without) / SPANS as f64)
}

fn time_spans() -> Result<f64> {
    let begin = thread_seconds()?;
    for number in 0..SPANS {
        let _span = tracing::info_span!("request", route = "/carts/{id}", items = number % 8).entered();
    }
    Ok(thread_seconds()? - begin)
}

const YIELDS: u64 = 1_000_000;

/// Runs a task that yields. Answers how much longer the thread takes for a yield of a recorded task: a wake, and the start and
/// the end of a poll.
///
/// # Errors
/// When it cannot be recorded, or events are lost.
pub(crate) fn record_yields() -> Result<f64> {
    let yields = || async {
        for _ in 0..YIELDS {
            tokio::task::yield_now().await;
        }
    };
    let plain = Builder::new_current_thread().build()?;
    let without = time_task(|| plain.block_on(async { tokio::spawn(yields()).await }))?;
    let folder = tempfile::tempdir()?;
    let options = Recorder::builder(folder.path()).buffer_bytes(512 << 20).compression(Compression::None);
    let recorder = options.start()?;
    let runtime = TokioRecorder::new(recorder.handle()).build("main", &mut Builder::new_current_thread())?;
    let with = time_task(|| runtime.block_on(async { borehole_tokio::spawn(yields()).await }))?;
    drop(runtime);
    let summary = recorder.finish()?;
    ensure!(summary.lost_events == 0, "{} events were lost", summary.lost_events);
    ensure!(summary.events >= 3 * YIELDS, "{} events of {YIELDS} yields", summary.events);
    Ok((with - without) / YIELDS as f64)
}

fn time_task<E>(run: impl FnOnce() -> Result<(), E>) -> Result<f64> {
    let begin = thread_seconds()?;
    ensure!(run().is_ok(), "the task failed");
    Ok(thread_seconds()? - begin)
}
