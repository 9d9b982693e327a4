//! CPU samples: 200 distinct stacks, 24 deep.

use anyhow::Result;
use borehole_trc::{self as trc, Writer};
use dial9_trace_format::encoder::Encoder;
use dial9_trace_format::{InternedStackFrames, InternedString, TraceEvent};

use super::time_ns;

#[derive(TraceEvent)]
#[traceevent(name = "CpuSampleEvent", wire_slot)]
struct ReferenceSample {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
    tid: u32,
    source: u8,
    thread_name: Option<InternedString>,
    callchain: InternedStackFrames,
    cpu: Option<u64>,
}

#[derive(trc::TraceEvent)]
#[traceevent(wire_slot)]
pub(super) struct CpuSampleEvent<'a> {
    #[traceevent(timestamp)]
    pub(super) timestamp_ns: u64,
    pub(super) worker_id: u64,
    pub(super) tid: u32,
    pub(super) source: u8,
    #[traceevent(pooled)]
    pub(super) thread_name: Option<&'a str>,
    #[traceevent(pooled)]
    pub(super) callchain: trc::StackFrames<'a>,
    pub(super) cpu: Option<u64>,
}

const DEPTH: u64 = 24;

fn stacks() -> Vec<Vec<u64>> {
    let stack =
        |number: u64| (0..DEPTH).map(move |depth| 0x5555_5555_0000 + (number << (depth / 8)) + depth * 0x40);
    (0..200).map(|number| stack(number).collect()).collect()
}

/// The stack of a sample.
fn chosen(stacks: &[Vec<u64>], number: u64) -> &[u64] {
    &stacks[usize::try_from(number * 7 % 200).unwrap_or_default()]
}

const THREAD: &str = "tokio-runtime-worker";

fn thread(number: u64) -> Result<u32> {
    Ok(u32::try_from(4000 + number % 8)?)
}

pub(super) fn write(writer: &mut Writer<Vec<u8>>, events: u64) -> Result<()> {
    let stacks = stacks();
    for number in 0..events {
        writer.write(&CpuSampleEvent {
            timestamp_ns: time_ns(number),
            worker_id: 255,
            tid: thread(number)?,
            source: u8::from(number % 2 == 1),
            thread_name: Some(THREAD),
            callchain: chosen(&stacks, number).into(),
            cpu: Some(number % 8),
        })?;
    }
    Ok(())
}

pub(super) fn reference(encoder: &mut Encoder, events: u64) -> Result<()> {
    let stacks = stacks();
    for number in 0..events {
        let thread_name = encoder.intern_string(THREAD)?;
        let callchain = encoder.intern_stack_frames(chosen(&stacks, number))?;
        encoder.write(&ReferenceSample {
            timestamp_ns: time_ns(number),
            worker_id: 255,
            tid: thread(number)?,
            source: u8::from(number % 2 == 1),
            thread_name: Some(thread_name),
            callchain,
            cpu: Some(number % 8),
        })?;
    }
    Ok(())
}
