//! The mix of the reference's own benchmark. Source: `dial9-trace-format` 0.3.2, `benches/codec.rs`.

use anyhow::Result;
use borehole_formats::trc::{FieldKind, Writer};
use dial9_trace_format::encoder::Encoder;
use dial9_trace_format::{StackFrames, TraceEvent};

use super::{schema, time_ns};

#[derive(TraceEvent)]
#[traceevent(wire_slot)]
struct PollStart {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
    local_queue_depth: u64,
    task_id: u64,
    spawn_loc_id: u64,
}

#[derive(TraceEvent)]
#[traceevent(wire_slot)]
struct PollEnd {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
}

#[derive(TraceEvent)]
#[traceevent(wire_slot)]
struct WorkerPark {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
    local_queue_depth: u64,
    cpu_time_ns: u64,
}

#[derive(TraceEvent)]
#[traceevent(wire_slot)]
struct WakeEvent {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    waker_task_id: u64,
    woken_task_id: u64,
    target_worker: u64,
}

#[derive(TraceEvent)]
#[traceevent(wire_slot)]
struct CpuSample {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
    tid: u32,
    source: u8,
    frames: StackFrames,
}

const fn frames(number: u64) -> [u64; 3] {
    [0x5555_5555_0000 + number % 100 * 0x10, 0x5555_5555_1000 + number % 50 * 0x20, 0x5555_5555_2000]
}

/// The tasks that wake and are woken.
const fn task(number: u64) -> u64 {
    1000 + number % 5000
}

pub(super) fn write(writer: &mut Writer<Vec<u8>>, events: u64) -> Result<()> {
    use FieldKind::{Stack, U8, U32, Varint};
    let start = schema(
        "PollStart",
        &[
            ("worker_id", Varint),
            ("local_queue_depth", Varint),
            ("task_id", Varint),
            ("spawn_loc_id", Varint),
        ],
    )?;
    let end = schema("PollEnd", &[("worker_id", Varint)])?;
    let park = schema(
        "WorkerPark",
        &[("worker_id", Varint), ("local_queue_depth", Varint), ("cpu_time_ns", Varint)],
    )?;
    let wake = schema(
        "WakeEvent",
        &[("waker_task_id", Varint), ("woken_task_id", Varint), ("target_worker", Varint)],
    )?;
    let sample =
        schema("CpuSample", &[("worker_id", Varint), ("tid", U32), ("source", U8), ("frames", Stack)])?;
    for number in 0..events {
        let (at, worker) = (time_ns(number), number % 8);
        match number % 5 {
            0 => {
                let event = writer.begin_event(&start, at).unsigned(worker).unsigned(number % 32);
                event.unsigned(task(number)).unsigned(number % 20).finish()?;
            }
            1 => writer.begin_event(&end, at).unsigned(worker).finish()?,
            2 => {
                let event = writer.begin_event(&park, at).unsigned(worker).unsigned(number % 16);
                event.unsigned(500_000_000 + number * 100).finish()?;
            }
            3 => {
                let event = writer.begin_event(&wake, at).unsigned(task(number)).unsigned(task(number + 1));
                event.unsigned(worker).finish()?;
            }
            _ => {
                let event =
                    writer.begin_event(&sample, at).unsigned(worker).unsigned(12345 + number % 4).unsigned(0);
                event.stack(&frames(number)).finish()?;
            }
        }
    }
    Ok(())
}

pub(super) fn reference(encoder: &mut Encoder, events: u64) -> Result<()> {
    for number in 0..events {
        let (timestamp_ns, worker_id) = (time_ns(number), number % 8);
        match number % 5 {
            0 => encoder.write(&PollStart {
                timestamp_ns,
                worker_id,
                local_queue_depth: number % 32,
                task_id: task(number),
                spawn_loc_id: number % 20,
            })?,
            1 => encoder.write(&PollEnd { timestamp_ns, worker_id })?,
            2 => encoder.write(&WorkerPark {
                timestamp_ns,
                worker_id,
                local_queue_depth: number % 16,
                cpu_time_ns: 500_000_000 + number * 100,
            })?,
            3 => encoder.write(&WakeEvent {
                timestamp_ns,
                waker_task_id: task(number),
                woken_task_id: task(number + 1),
                target_worker: worker_id,
            })?,
            _ => encoder.write(&CpuSample {
                timestamp_ns,
                worker_id,
                tid: u32::try_from(12345 + number % 4)?,
                source: 0,
                frames: StackFrames(frames(number).to_vec()),
            })?,
        }
    }
    Ok(())
}
