//! What a runtime does: polls alone, and polls with the wakes, parks and unparks between them.

use anyhow::Result;
use borehole_formats::trc::{FieldKind, Schema, Writer};
use dial9_trace_format::encoder::Encoder;
use dial9_trace_format::{InternedString, TraceEvent};

use super::{schema, time_ns};

#[derive(TraceEvent)]
#[traceevent(wire_slot)]
struct PollStartEvent {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
    local_queue: u8,
    task_id: u64,
    spawn_loc: InternedString,
}

#[derive(TraceEvent)]
#[traceevent(wire_slot)]
struct PollEndEvent {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
}

#[derive(TraceEvent)]
#[traceevent(wire_slot)]
struct WorkerParkEvent {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
    local_queue: u8,
    cpu_time_ns: u64,
    tid: u32,
}

#[derive(TraceEvent)]
#[traceevent(wire_slot)]
struct WakeEventEvent {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    waker_task_id: u64,
    woken_task_id: u64,
    target_worker: u8,
}

/// Where tasks are spawned. Both sides intern the location with each poll, as a recorder does that is handed it.
const LOCATIONS: [&str; 4] = [
    "src/server/accept.rs:118:17",
    "src/server/connection.rs:64:9",
    "src/jobs/mailer.rs:203:13",
    "src/main.rs:31:5",
];

fn location(number: u64) -> &'static str {
    LOCATIONS[usize::from(number.to_le_bytes()[0] % 4)]
}

const fn task(number: u64) -> u64 {
    200 + number / 2 % 5000
}

struct Types {
    start: Schema,
    end: Schema,
    park: Schema,
    wake: Schema,
}

impl Types {
    fn new() -> Result<Self> {
        use FieldKind::{PooledString, U8, U32, Varint};
        Ok(Self {
            start: schema(
                "PollStartEvent",
                &[
                    ("worker_id", Varint),
                    ("local_queue", U8),
                    ("task_id", Varint),
                    ("spawn_loc", PooledString),
                ],
            )?,
            end: schema("PollEndEvent", &[("worker_id", Varint)])?,
            park: schema(
                "WorkerParkEvent",
                &[("worker_id", Varint), ("local_queue", U8), ("cpu_time_ns", Varint), ("tid", U32)],
            )?,
            wake: schema(
                "WakeEventEvent",
                &[("waker_task_id", Varint), ("woken_task_id", Varint), ("target_worker", U8)],
            )?,
        })
    }

    fn poll(&self, writer: &mut Writer<Vec<u8>>, number: u64) -> Result<()> {
        let at = time_ns(number);
        if number % 2 == 1 {
            return Ok(writer.begin_event(&self.end, at).unsigned(number / 2 % 8).finish()?);
        }
        let event = writer.begin_event(&self.start, at).unsigned(number / 2 % 8).unsigned(number % 32);
        Ok(event.unsigned(task(number)).text(location(number / 2)).finish()?)
    }
}

pub(super) fn polls(writer: &mut Writer<Vec<u8>>, events: u64) -> Result<()> {
    let types = Types::new()?;
    (0..events).try_for_each(|number| types.poll(writer, number))
}

pub(super) fn tokio(writer: &mut Writer<Vec<u8>>, events: u64) -> Result<()> {
    let types = Types::new()?;
    for number in 0..events {
        let at = time_ns(number);
        match number % 10 {
            8 => {
                let event = writer.begin_event(&types.wake, at).unsigned(task(number));
                event.unsigned(task(number + 2)).unsigned(number % 8).finish()?;
            }
            9 => {
                let event = writer.begin_event(&types.park, at).unsigned(number % 8).unsigned(0);
                event.unsigned(500_000_000 + number * 100).unsigned(4000 + number % 8).finish()?;
            }
            _ => types.poll(writer, number)?,
        }
    }
    Ok(())
}

fn poll_reference(encoder: &mut Encoder, number: u64) -> Result<()> {
    let (timestamp_ns, worker_id) = (time_ns(number), number / 2 % 8);
    if number % 2 == 1 {
        return Ok(encoder.write(&PollEndEvent { timestamp_ns, worker_id })?);
    }
    let spawn_loc = encoder.intern_string(location(number / 2))?;
    let local_queue = u8::try_from(number % 32)?;
    let task_id = task(number);
    Ok(encoder.write(&PollStartEvent { timestamp_ns, worker_id, local_queue, task_id, spawn_loc })?)
}

pub(super) fn polls_reference(encoder: &mut Encoder, events: u64) -> Result<()> {
    (0..events).try_for_each(|number| poll_reference(encoder, number))
}

pub(super) fn tokio_reference(encoder: &mut Encoder, events: u64) -> Result<()> {
    for number in 0..events {
        let timestamp_ns = time_ns(number);
        match number % 10 {
            8 => encoder.write(&WakeEventEvent {
                timestamp_ns,
                waker_task_id: task(number),
                woken_task_id: task(number + 2),
                target_worker: u8::try_from(number % 8)?,
            })?,
            9 => encoder.write(&WorkerParkEvent {
                timestamp_ns,
                worker_id: number % 8,
                local_queue: 0,
                cpu_time_ns: 500_000_000 + number * 100,
                tid: u32::try_from(4000 + number % 8)?,
            })?,
            _ => poll_reference(encoder, number)?,
        }
    }
    Ok(())
}
