//! The mix of the reference's own benchmark. Source: `dial9-trace-format` 0.3.2, `benches/codec.rs`.

use anyhow::Result;
use borehole_trc::{self as trc, Writer};
use dial9_trace_format::encoder::Encoder;
use dial9_trace_format::{StackFrames, TraceEvent};

use super::time_ns;

#[derive(TraceEvent, trc::TraceEvent)]
#[traceevent(wire_slot)]
struct PollStart {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
    local_queue_depth: u64,
    task_id: u64,
    spawn_loc_id: u64,
}

#[derive(TraceEvent, trc::TraceEvent)]
#[traceevent(wire_slot)]
struct PollEnd {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
}

#[derive(TraceEvent, trc::TraceEvent)]
#[traceevent(wire_slot)]
struct WorkerPark {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
    local_queue_depth: u64,
    cpu_time_ns: u64,
}

#[derive(TraceEvent, trc::TraceEvent)]
#[traceevent(wire_slot)]
struct WakeEvent {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    waker_task_id: u64,
    woken_task_id: u64,
    target_worker: u64,
}

#[derive(TraceEvent)]
#[traceevent(name = "CpuSample", wire_slot)]
struct ReferenceSample {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
    tid: u32,
    source: u8,
    frames: StackFrames,
}

#[derive(trc::TraceEvent)]
#[traceevent(wire_slot)]
struct CpuSample<'a> {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
    tid: u32,
    source: u8,
    frames: trc::StackFrames<'a>,
}

const fn frames(number: u64) -> [u64; 3] {
    [0x5555_5555_0000 + number % 100 * 0x10, 0x5555_5555_1000 + number % 50 * 0x20, 0x5555_5555_2000]
}

/// The tasks that wake and are woken.
const fn task(number: u64) -> u64 {
    1000 + number % 5000
}

/// The thread that a sample is of.
fn thread(number: u64) -> Result<u32> {
    Ok(u32::try_from(12345 + number % 4)?)
}

impl PollStart {
    const fn new(number: u64) -> Self {
        Self {
            timestamp_ns: time_ns(number),
            worker_id: number % 8,
            local_queue_depth: number % 32,
            task_id: task(number),
            spawn_loc_id: number % 20,
        }
    }
}

impl PollEnd {
    const fn new(number: u64) -> Self {
        Self { timestamp_ns: time_ns(number), worker_id: number % 8 }
    }
}

impl WorkerPark {
    const fn new(number: u64) -> Self {
        Self {
            timestamp_ns: time_ns(number),
            worker_id: number % 8,
            local_queue_depth: number % 16,
            cpu_time_ns: 500_000_000 + number * 100,
        }
    }
}

impl WakeEvent {
    const fn new(number: u64) -> Self {
        Self {
            timestamp_ns: time_ns(number),
            waker_task_id: task(number),
            woken_task_id: task(number + 1),
            target_worker: number % 8,
        }
    }
}

pub(super) fn write(writer: &mut Writer<Vec<u8>>, events: u64) -> Result<()> {
    for number in 0..events {
        match number % 5 {
            0 => writer.write(&PollStart::new(number))?,
            1 => writer.write(&PollEnd::new(number))?,
            2 => writer.write(&WorkerPark::new(number))?,
            3 => writer.write(&WakeEvent::new(number))?,
            _ => writer.write(&CpuSample {
                timestamp_ns: time_ns(number),
                worker_id: number % 8,
                tid: thread(number)?,
                source: 0,
                frames: frames(number).as_slice().into(),
            })?,
        }
    }
    Ok(())
}

pub(super) fn reference(encoder: &mut Encoder, events: u64) -> Result<()> {
    // One for all, so that no time goes into the memory of its frames.
    let mut sample =
        ReferenceSample { timestamp_ns: 0, worker_id: 0, tid: 0, source: 0, frames: StackFrames(vec![0; 3]) };
    for number in 0..events {
        match number % 5 {
            0 => encoder.write(&PollStart::new(number))?,
            1 => encoder.write(&PollEnd::new(number))?,
            2 => encoder.write(&WorkerPark::new(number))?,
            3 => encoder.write(&WakeEvent::new(number))?,
            _ => {
                sample.frames.0.copy_from_slice(&frames(number));
                (sample.timestamp_ns, sample.worker_id) = (time_ns(number), number % 8);
                sample.tid = thread(number)?;
                encoder.write(&sample)?;
            }
        }
    }
    Ok(())
}
