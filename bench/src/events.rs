//! Claims on `trc`: visiting, reading as types, streaming, writing, recording and reporting events, beside the
//! reference in the same run.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use borehole_trc::{Reader, Value, WriteOptions, Writer};
use dial9_trace_format::decoder::{Decoder, RawEvent};
use dial9_trace_format::encoder::Encoder;
use dial9_trace_format::types::FieldValueRef;

use super::measure::{Work, rate, rate_on};
use super::mixes::{MIXES, Mix, read, read_by_reference};
use super::recording::{record, record_spans, record_yields};
use super::{Bench, Claim, ClaimUnit, Goal, Side};

/// The version of the reference, as the manifest of the workspace asks for it.
const REFERENCE: &str = "dial9-trace-format 0.5.4";

/// The most that recording an event may take. The reference's recorder takes 62 ns. Source: `dial9-core` 0.5.7, measured
/// beside its clock on a machine like this one.
const RECORDING_SECONDS: f64 = 40e-9;

/// The most that recording a span may take. The reference says of its layer that it takes 550 ns or more. Source:
/// `dial9-utils` 0.5.7, `src/tracing_layer.rs`.
const SPAN_SECONDS: f64 = 100e-9;

/// The time that the reference's recorder takes for a yield of a task that it spawned. Source: `dial9-tokio-telemetry` 0.5.7,
/// measured on a machine like this one.
const YIELD_SECONDS: f64 = 280e-9;

/// The most that streaming may hold.
const STREAMING_BYTES: f64 = 8e6;

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    let mut streams = Vec::new();
    for mix in MIXES {
        let stream = stream(bench, mix)?;
        claims.push(visited(mix, &stream));
        streams.push(stream);
    }
    let streams = || MIXES.into_iter().zip(&streams);
    claims.extend(streams().filter(|(mix, _)| mix.is_read).map(|(mix, stream)| typed(mix, stream)));
    claims.extend(streams().map(|(mix, stream)| streamed(mix, stream)));
    claims.extend(MIXES.into_iter().map(written));
    claims.extend(recorded());
    for (mix, stream) in streams().take(1) {
        claims.push(memory(stream)?);
        claims.extend(reported(bench, mix, stream));
    }
    Ok(claims)
}

/// The events of `mix` as the reference writes them.
fn stream(bench: &Bench, mix: Mix) -> Result<PathBuf> {
    let name = format!("events2-{}-{}.trc", mix.name, mix.events);
    bench.input(&name, |output| {
        let mut encoder = Encoder::new();
        (mix.reference)(&mut encoder, mix.events)?;
        Ok(output.write_all(&encoder.finish())?)
    })
}

/// Sees to it that the work for `sum` is done.
fn keep(sum: u64) {
    std::hint::black_box(sum);
}

/// Every value of every event, out of memory.
fn visited(mix: Mix, stream: &Path) -> Claim {
    let name = format!("trc events, mix {}: visited, all values used", mix.name);
    let ours = rate_on(stream, mix.events as f64, |bytes| sum(Reader::new(bytes)).map(keep));
    let reference = rate_on(stream, mix.events as f64, |bytes| sum_by_reference(bytes).map(keep));
    Claim::new(name, ClaimUnit::PerSecond, Goal::Ratio(2.0), ours).against(REFERENCE.to_owned(), reference)
}

/// Every event as a value of its type, out of memory.
fn typed(mix: Mix, stream: &Path) -> Claim {
    let name = format!("trc events, mix {}: read as values of types", mix.name);
    let ours = rate_on(stream, mix.events as f64, |bytes| read(bytes).map(keep));
    let reference = rate_on(stream, mix.events as f64, |bytes| read_by_reference(bytes).map(keep));
    Claim::new(name, ClaimUnit::PerSecond, Goal::Ratio(8.0), ours).against(REFERENCE.to_owned(), reference)
}

/// Visited out of the file, beside out of memory.
fn streamed(mix: Mix, stream: &Path) -> Claim {
    let name = format!("trc events, mix {}: streamed from the file", mix.name);
    let path = stream.to_owned();
    let ours = rate(mix.events as f64, move || visit_file(&path));
    let reference = rate_on(stream, mix.events as f64, |bytes| sum(Reader::new(bytes)).map(keep));
    let from_memory = "from memory".to_owned();
    Claim::new(name, ClaimUnit::PerSecond, Goal::Ratio(1.0 / 1.2), ours).against(from_memory, reference)
}

fn memory(stream: &Path) -> Result<Claim> {
    let own = std::env::current_exe()?;
    let ours = Work::new(&own, ["visit".as_ref(), stream.as_os_str()]).peak_bytes();
    let name = "trc events, mix tokio: streamed from the file, peak memory".to_owned();
    Ok(Claim::new(name, ClaimUnit::Bytes, Goal::Value(STREAMING_BYTES), ours).once())
}

/// Events put into memory that is there, which both sides hand out as it is, in one batch.
fn written(mix: Mix) -> Claim {
    let name = format!("trc events, mix {}: written", mix.name);
    let items = mix.events as f64;
    let mut memory = Vec::new();
    let ours = rate(items, move || {
        let options = WriteOptions { batch_bytes: usize::MAX, ..WriteOptions::default() };
        let mut writer = Writer::with_options(Vec::new(), options);
        writer.exchange_batch(&mut memory);
        (mix.ours)(&mut writer, mix.events)?;
        writer.exchange_batch(&mut memory);
        Ok(())
    });
    let mut memory = Vec::new();
    let reference = rate(items, move || {
        memory.clear();
        let mut encoder = Encoder::new_to(std::mem::take(&mut memory))?;
        (mix.reference)(&mut encoder, mix.events)?;
        memory = encoder.finish();
        Ok(())
    });
    Claim::new(name, ClaimUnit::PerSecond, Goal::Ratio(1.3), ours).against(REFERENCE.to_owned(), reference)
}

/// The time that a thread takes to record an event, a span and a yield, the clock included.
fn recorded() -> [Claim; 3] {
    let claim = |name: &str, goal, work: Side| {
        Claim::new(name.to_owned(), ClaimUnit::Seconds, Goal::Value(goal), work)
    };
    [
        claim("trc events: recorded from a thread, with the clock", RECORDING_SECONDS, Box::new(record)),
        claim(
            "trc events: a span of tracing with two fields, recorded",
            SPAN_SECONDS,
            Box::new(record_spans),
        ),
        claim("trc events: a yield of a Tokio task, recorded", YIELD_SECONDS, Box::new(record_yields)),
    ]
}

/// The report of a whole trace: its time, and its memory.
fn reported(bench: &Bench, mix: Mix, stream: &Path) -> [Claim; 2] {
    let work = Work::new(&bench.borehole, ["report".as_ref(), stream.as_os_str()]);
    let name = format!("report of {} M events, mix {}", mix.events / 1_000_000, mix.name);
    let memory = work.clone().peak_bytes();
    [
        Claim::new(format!("{name}, CPU"), ClaimUnit::Seconds, Goal::Value(1.0), work.cpu_seconds()),
        Claim::new(format!("{name}, peak memory"), ClaimUnit::Bytes, Goal::Value(200e6), memory).once(),
    ]
}

/// Uses all values of the events in a file, as it streams by.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn visit_file(path: &Path) -> Result<()> {
    let file = File::open(path).with_context(|| format!("{}", path.display()))?;
    sum(Reader::new(file)).map(keep)
}

/// Adds up something of each value: numbers, lengths of text, stacks of the pools as what they refer to.
fn sum(mut reader: Reader<impl std::io::Read>) -> Result<u64> {
    let mut sum = 0_u64;
    reader.for_each_event(|event| {
        sum = sum.wrapping_add(event.timestamp_ns().unwrap_or_default());
        event.values().for_each(|value| sum = sum.wrapping_add(weight(value)));
    })?;
    Ok(sum)
}

#[inline]
fn weight(value: Value<'_>) -> u64 {
    match value {
        Value::Unsigned(number) => number,
        Value::Signed(number) => number.cast_unsigned(),
        Value::Float(number) => number.to_bits(),
        Value::Bool(flag) => flag.into(),
        Value::Text(text) => text.len() as u64,
        Value::PooledText { text: Some(text), .. } => text.len() as u64,
        Value::Stack(stack) | Value::PooledStack { stack: Some(stack), .. } => stack.addresses().sum(),
        _ => 0,
    }
}

fn sum_by_reference(bytes: &[u8]) -> Result<u64> {
    let mut decoder = Decoder::new(bytes).context("no header")?;
    let mut sum = 0_u64;
    decoder
        .for_each_event(|event| {
            sum = sum.wrapping_add(event.timestamp_ns);
            event.fields.iter().for_each(|value| sum = sum.wrapping_add(reference_weight(value, &event)));
        })
        .map_err(|error| anyhow!("{error:?}"))?;
    Ok(sum)
}

#[inline]
fn reference_weight(value: &FieldValueRef<'_>, event: &RawEvent<'_, '_>) -> u64 {
    match value {
        FieldValueRef::Varint(number) => *number,
        FieldValueRef::I64(number) => number.cast_unsigned(),
        FieldValueRef::F64(number) => number.to_bits(),
        FieldValueRef::Bool(flag) => u64::from(*flag),
        FieldValueRef::String(text) => text.len() as u64,
        FieldValueRef::PooledString(id) => event.string_pool.get(*id).map_or(0, |text| text.len() as u64),
        FieldValueRef::StackFrames(stack) => stack.iter().sum(),
        FieldValueRef::PooledStackFrames(id) => {
            event.stack_pool.get(*id).map_or(0, |stack| stack.iter().sum())
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_write_and_read_the_same_events() {
        for mix in MIXES {
            let mut writer = Writer::new(Vec::new());
            (mix.ours)(&mut writer, 1000).unwrap();
            let ours = writer.finish().unwrap();
            let mut encoder = Encoder::new();
            (mix.reference)(&mut encoder, 1000).unwrap();
            let reference = encoder.finish();
            let expected = sum(Reader::new(ours.as_slice())).unwrap();
            assert_eq!(sum(Reader::new(reference.as_slice())).unwrap(), expected, "{}", mix.name);
            assert_eq!(sum_by_reference(&ours).unwrap(), expected, "{}", mix.name);
            assert_eq!(sum_by_reference(&reference).unwrap(), expected, "{}", mix.name);
            assert_eq!(ours.len(), reference.len(), "{}", mix.name);
            if mix.is_read {
                assert_eq!(read(&ours).unwrap(), read_by_reference(&reference).unwrap(), "{}", mix.name);
            }
        }
    }
}
