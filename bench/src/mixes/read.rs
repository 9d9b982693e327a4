//! Events read as values of types, by our derived reading and by the reference's through serde.

use anyhow::{Context, Result, anyhow};
use borehole_trc::{ReadEvent, Reader, TypedEvents};
use dial9_trace_format::decoder::Decoder;
use serde::Deserialize;

use super::runtime::{PollEndEvent, PollStartEvent, WakeEventEvent, WorkerParkEvent, WorkerUnparkEvent};
use super::sampled::CpuSampleEvent;

#[derive(ReadEvent)]
enum Ours<'a> {
    PollStart(PollStartEvent<'a>),
    PollEnd(PollEndEvent),
    Park(WorkerParkEvent),
    Unpark(WorkerUnparkEvent),
    Wake(WakeEventEvent),
    Sample(CpuSampleEvent<'a>),
}

#[expect(clippy::enum_variant_names, reason = "they are called so in the stream")]
#[derive(Deserialize)]
#[serde(tag = "event")]
enum ReferenceReader {
    PollStartEvent {
        timestamp_ns: u64,
        worker_id: u64,
        local_queue: u8,
        task_id: u64,
        spawn_loc: String,
    },
    PollEndEvent {
        timestamp_ns: u64,
        worker_id: u64,
    },
    WorkerParkEvent {
        timestamp_ns: u64,
        worker_id: u64,
        local_queue: u8,
        cpu_time_ns: u64,
        tid: u32,
    },
    WorkerUnparkEvent {
        timestamp_ns: u64,
        worker_id: u64,
        local_queue: u8,
        cpu_time_ns: u64,
        sched_wait_ns: Option<u64>,
        tid: u32,
    },
    WakeEventEvent {
        timestamp_ns: u64,
        waker_task_id: u64,
        woken_task_id: u64,
        target_worker: u8,
    },
    CpuSampleEvent {
        timestamp_ns: u64,
        worker_id: u64,
        tid: u32,
        source: u8,
        thread_name: Option<String>,
        callchain: Vec<u64>,
        cpu: Option<u64>,
    },
}

/// Reads all events of a stream. Answers a sum over their values.
///
/// # Errors
/// When one cannot be read.
pub(crate) fn ours(stream: &[u8]) -> Result<u64> {
    let mut typed = TypedEvents::default();
    let (mut sum, mut problem) = (0_u64, None);
    Reader::new(stream).for_each_event(|event| match typed.read::<Ours<'_>>(event) {
        Ok(Some(event)) => sum = sum.wrapping_add(event.sum()),
        Ok(None) => problem = Some(anyhow!("an event of another type")),
        Err(error) => problem = Some(error.into()),
    })?;
    problem.map_or(Ok(sum), Err)
}

impl Ours<'_> {
    fn sum(&self) -> u64 {
        match self {
            Self::PollStart(poll) => {
                let sum = poll.timestamp_ns + poll.worker_id + poll.task_id + u64::from(poll.local_queue);
                sum + poll.spawn_loc.len() as u64
            }
            Self::PollEnd(poll) => poll.timestamp_ns + poll.worker_id,
            Self::Park(park) => {
                moved(park.timestamp_ns, park.worker_id, park.cpu_time_ns, park.tid, park.local_queue)
            }
            Self::Unpark(park) => {
                let sum =
                    moved(park.timestamp_ns, park.worker_id, park.cpu_time_ns, park.tid, park.local_queue);
                sum + park.sched_wait_ns.unwrap_or(0)
            }
            Self::Wake(wake) => {
                wake.timestamp_ns + wake.waker_task_id + wake.woken_task_id + u64::from(wake.target_worker)
            }
            Self::Sample(sample) => sampled(sample),
        }
    }
}

fn moved(timestamp_ns: u64, worker_id: u64, cpu_time_ns: u64, tid: u32, queue: u8) -> u64 {
    timestamp_ns + worker_id + cpu_time_ns + u64::from(tid) + u64::from(queue)
}

fn sampled(sample: &CpuSampleEvent<'_>) -> u64 {
    let CpuSampleEvent { timestamp_ns, worker_id, tid, source, thread_name, callchain, cpu } = *sample;
    let frames: u64 = callchain.addresses().sum();
    let name = thread_name.map_or(0, str::len) as u64;
    timestamp_ns + worker_id + u64::from(tid) + u64::from(source) + name + frames + cpu.unwrap_or(0)
}

/// Reads the events through the reference.
///
/// # Errors
/// When an event cannot be read.
pub(crate) fn reference(stream: &[u8]) -> Result<u64> {
    let mut decoder = Decoder::new(stream).context("no header")?;
    let (mut sum, mut problem) = (0_u64, None);
    let read = decoder.for_each_event(|event| match event.deserialize::<ReferenceReader>() {
        Ok(event) => sum = sum.wrapping_add(event.sum()),
        Err(error) => problem = Some(anyhow!("{error}")),
    });
    read.map_err(|error| anyhow!("{error:?}"))?;
    problem.map_or(Ok(sum), Err)
}

impl ReferenceReader {
    fn sum(self) -> u64 {
        match self {
            Self::PollStartEvent { timestamp_ns, worker_id, local_queue, task_id, spawn_loc } => {
                timestamp_ns + worker_id + task_id + u64::from(local_queue) + spawn_loc.len() as u64
            }
            Self::PollEndEvent { timestamp_ns, worker_id } => timestamp_ns + worker_id,
            Self::WorkerParkEvent { timestamp_ns, worker_id, local_queue, cpu_time_ns, tid } => {
                moved(timestamp_ns, worker_id, cpu_time_ns, tid, local_queue)
            }
            Self::WorkerUnparkEvent {
                timestamp_ns,
                worker_id,
                local_queue,
                cpu_time_ns,
                sched_wait_ns,
                tid,
            } => moved(timestamp_ns, worker_id, cpu_time_ns, tid, local_queue) + sched_wait_ns.unwrap_or(0),
            Self::WakeEventEvent { timestamp_ns, waker_task_id, woken_task_id, target_worker } => {
                timestamp_ns + waker_task_id + woken_task_id + u64::from(target_worker)
            }
            Self::CpuSampleEvent { timestamp_ns, worker_id, tid, source, thread_name, callchain, cpu } => {
                let name = thread_name.map_or(0, |name| name.len()) as u64;
                let frames: u64 = callchain.iter().sum();
                let numbers = worker_id + u64::from(tid) + u64::from(source) + cpu.unwrap_or(0);
                timestamp_ns + numbers + name + frames
            }
        }
    }
}
