//! The events of a runtime: polls alone, and polls with the wakes, parks and unparks between them.

use anyhow::Result;
use borehole_trc::{self as trc, Writer};
use dial9_trace_format::encoder::Encoder;
use dial9_trace_format::{InternedString, TraceEvent};

use super::time_ns;

#[derive(TraceEvent)]
#[traceevent(name = "PollStartEvent", wire_slot)]
struct ReferencePollStart {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
    local_queue: u8,
    task_id: u64,
    spawn_loc: InternedString,
}

#[derive(trc::TraceEvent)]
#[traceevent(wire_slot)]
pub(super) struct PollStartEvent<'a> {
    #[traceevent(timestamp)]
    pub(super) timestamp_ns: u64,
    pub(super) worker_id: u64,
    pub(super) local_queue: u8,
    pub(super) task_id: u64,
    #[traceevent(pooled)]
    pub(super) spawn_loc: &'a str,
}

#[derive(TraceEvent, trc::TraceEvent)]
#[traceevent(wire_slot)]
pub(super) struct PollEndEvent {
    #[traceevent(timestamp)]
    pub(super) timestamp_ns: u64,
    pub(super) worker_id: u64,
}

#[derive(TraceEvent, trc::TraceEvent)]
#[traceevent(wire_slot)]
pub(super) struct WorkerParkEvent {
    #[traceevent(timestamp)]
    pub(super) timestamp_ns: u64,
    pub(super) worker_id: u64,
    pub(super) local_queue: u8,
    pub(super) cpu_time_ns: u64,
    pub(super) tid: u32,
}

#[derive(TraceEvent, trc::TraceEvent)]
#[traceevent(wire_slot)]
pub(super) struct WorkerUnparkEvent {
    #[traceevent(timestamp)]
    pub(super) timestamp_ns: u64,
    pub(super) worker_id: u64,
    pub(super) local_queue: u8,
    pub(super) cpu_time_ns: u64,
    pub(super) sched_wait_ns: Option<u64>,
    pub(super) tid: u32,
}

#[derive(TraceEvent, trc::TraceEvent)]
#[traceevent(wire_slot)]
pub(super) struct WakeEventEvent {
    #[traceevent(timestamp)]
    pub(super) timestamp_ns: u64,
    pub(super) waker_task_id: u64,
    pub(super) woken_task_id: u64,
    pub(super) target_worker: u8,
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

const fn worker(number: u64) -> u64 {
    number / 2 % 8
}

fn queue(number: u64) -> u8 {
    number.to_le_bytes()[0] % 32
}

fn thread(number: u64) -> Result<u32> {
    Ok(u32::try_from(4000 + number % 8)?)
}

const fn cpu_time_ns(number: u64) -> u64 {
    500_000_000 + number * 100
}

impl PollEndEvent {
    const fn new(number: u64) -> Self {
        Self { timestamp_ns: time_ns(number), worker_id: worker(number) }
    }
}

impl WakeEventEvent {
    fn new(number: u64) -> Self {
        Self {
            timestamp_ns: time_ns(number),
            waker_task_id: task(number),
            woken_task_id: task(number + 2),
            target_worker: number.to_le_bytes()[0] % 8,
        }
    }
}

impl WorkerParkEvent {
    fn new(number: u64) -> Result<Self> {
        Ok(Self {
            timestamp_ns: time_ns(number),
            worker_id: number % 8,
            local_queue: 0,
            cpu_time_ns: cpu_time_ns(number),
            tid: thread(number)?,
        })
    }
}

impl WorkerUnparkEvent {
    fn new(number: u64) -> Result<Self> {
        Ok(Self {
            timestamp_ns: time_ns(number),
            worker_id: number % 8,
            local_queue: 0,
            cpu_time_ns: cpu_time_ns(number),
            sched_wait_ns: (number % 100 == 18).then_some(number % 5000),
            tid: thread(number)?,
        })
    }
}

fn poll(writer: &mut Writer<Vec<u8>>, number: u64) -> Result<()> {
    if number % 2 == 1 {
        return Ok(writer.write(&PollEndEvent::new(number))?);
    }
    Ok(writer.write(&PollStartEvent {
        timestamp_ns: time_ns(number),
        worker_id: worker(number),
        local_queue: queue(number),
        task_id: task(number),
        spawn_loc: location(number / 2),
    })?)
}

pub(super) fn polls(writer: &mut Writer<Vec<u8>>, events: u64) -> Result<()> {
    (0..events).try_for_each(|number| poll(writer, number))
}

pub(super) fn tokio(writer: &mut Writer<Vec<u8>>, events: u64) -> Result<()> {
    for number in 0..events {
        match number % 20 {
            8 | 19 => writer.write(&WakeEventEvent::new(number))?,
            9 => writer.write(&WorkerParkEvent::new(number)?)?,
            18 => writer.write(&WorkerUnparkEvent::new(number)?)?,
            _ => poll(writer, number)?,
        }
    }
    Ok(())
}

fn poll_reference(encoder: &mut Encoder, number: u64) -> Result<()> {
    if number % 2 == 1 {
        return Ok(encoder.write(&PollEndEvent::new(number))?);
    }
    let spawn_loc = encoder.intern_string(location(number / 2))?;
    Ok(encoder.write(&ReferencePollStart {
        timestamp_ns: time_ns(number),
        worker_id: worker(number),
        local_queue: queue(number),
        task_id: task(number),
        spawn_loc,
    })?)
}

pub(super) fn polls_reference(encoder: &mut Encoder, events: u64) -> Result<()> {
    (0..events).try_for_each(|number| poll_reference(encoder, number))
}

pub(super) fn tokio_reference(encoder: &mut Encoder, events: u64) -> Result<()> {
    for number in 0..events {
        match number % 20 {
            8 | 19 => encoder.write(&WakeEventEvent::new(number))?,
            9 => encoder.write(&WorkerParkEvent::new(number)?)?,
            18 => encoder.write(&WorkerUnparkEvent::new(number)?)?,
            _ => poll_reference(encoder, number)?,
        }
    }
    Ok(())
}
