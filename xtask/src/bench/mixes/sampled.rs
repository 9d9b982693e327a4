//! CPU samples: 200 distinct stacks, 24 deep.

use anyhow::Result;
use borehole_formats::trc::{FieldKind, FieldType, Schema, Writer};
use dial9_trace_format::encoder::Encoder;
use dial9_trace_format::{InternedStackFrames, InternedString, TraceEvent};

use super::time_ns;

#[derive(TraceEvent)]
#[traceevent(wire_slot)]
struct CpuSampleEvent {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    worker_id: u64,
    tid: u32,
    source: u8,
    thread_name: Option<InternedString>,
    callchain: InternedStackFrames,
    cpu: Option<u64>,
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

pub(super) fn write(writer: &mut Writer<Vec<u8>>, events: u64) -> Result<()> {
    use FieldKind::{PooledStack, PooledString, U8, U32, Varint};
    let sample = Schema::new(
        "CpuSampleEvent",
        [
            ("worker_id", FieldType::required(Varint)),
            ("tid", FieldType::required(U32)),
            ("source", FieldType::required(U8)),
            ("thread_name", FieldType::optional(PooledString)),
            ("callchain", FieldType::required(PooledStack)),
            ("cpu", FieldType::optional(Varint)),
        ],
    )?;
    let stacks = stacks();
    for number in 0..events {
        let event = writer.begin_event(&sample, time_ns(number)).unsigned(255).unsigned(4000 + number % 8);
        let event = event.unsigned(number % 2).text(THREAD);
        event.stack(chosen(&stacks, number)).unsigned(number % 8).finish()?;
    }
    Ok(())
}

pub(super) fn reference(encoder: &mut Encoder, events: u64) -> Result<()> {
    let stacks = stacks();
    for number in 0..events {
        let thread_name = encoder.intern_string(THREAD)?;
        let callchain = encoder.intern_stack_frames(chosen(&stacks, number))?;
        encoder.write(&CpuSampleEvent {
            timestamp_ns: time_ns(number),
            worker_id: 255,
            tid: u32::try_from(4000 + number % 8)?,
            source: u8::try_from(number % 2)?,
            thread_name: Some(thread_name),
            callchain,
            cpu: Some(number % 8),
        })?;
    }
    Ok(())
}
