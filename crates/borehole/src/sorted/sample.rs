//! Samples as bytes, while they wait.

use std::io;

use borehole_model::{LabelsId, Sample, Segment, StackId, Status, Tables};

use super::event::{EventBytes, put};

/// The ids that numbers stand for.
pub(super) struct SampleIds {
    stacks: Vec<StackId>,
    labels: Vec<LabelsId>,
}

impl SampleIds {
    pub(super) fn of(tables: &Tables) -> Self {
        Self { stacks: tables.stack_ids().collect(), labels: tables.labels_ids().collect() }
    }
}

/// A number that sorts like the time, also across clocks with different origins.
pub(super) fn time_key(segment: &Segment, sample: &Sample<'_>) -> Option<u64> {
    let origin_ns = segment.start_unix_ns.unwrap_or(0);
    let time_ns = sample.time_ns?.saturating_add(origin_ns);
    Some(time_ns.cast_unsigned() ^ 1 << 63)
}

/// Appends a sample of the segment with that index.
pub(super) fn encode(out: &mut Vec<u8>, segment: usize, sample: &Sample<'_>) {
    put(out, segment as u64);
    put(out, sample.stack.map_or(u64::MAX, |stack| stack.index() as u64));
    put(out, sample.labels.map_or(u64::MAX, |labels| labels.index() as u64));
    put(out, sample.count);
    let optional = [
        sample.time_ns.map(i64::cast_unsigned),
        sample.time_ns.map_or(sample.delta_us, |_| None).map(i64::cast_unsigned),
        sample.process.map(i64::cast_unsigned),
        sample.thread,
        sample.interpreter,
        sample.status.map(|status| status.0.into()),
    ];
    for number in optional {
        put(out, number.is_some().into());
        put(out, number.unwrap_or_default());
    }
    sample.values.iter().for_each(|value| put(out, value.cast_unsigned()));
}

/// Decodes a sample that [`encode`] wrote, and the index of its segment. The time since the previous sample is dropped if the
/// previous sample is now another one.
pub(super) fn decode<'a>(
    bytes: &[u8],
    ids: &SampleIds,
    values: &'a mut Vec<i64>,
) -> io::Result<(usize, Sample<'a>)> {
    let mut bytes = EventBytes(bytes);
    let segment = bytes.length()?;
    let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let stack = ids.stacks.get(place(bytes.number()?)).copied();
    let labels = ids.labels.get(place(bytes.number()?)).copied();
    let count = bytes.number()?;
    let mut optional = || -> io::Result<Option<u64>> {
        let is_known = bytes.number()? > 0;
        Ok(Some(bytes.number()?).filter(|_| is_known))
    };
    let (time_ns, delta_us, process) = (optional()?, optional()?, optional()?);
    let (thread, interpreter, status) = (optional()?, optional()?, optional()?);
    values.clear();
    while !bytes.0.is_empty() {
        values.push(bytes.number()?.cast_signed());
    }
    let sample = Sample {
        stack,
        count,
        time_ns: time_ns.map(u64::cast_signed),
        delta_us: delta_us.map(u64::cast_signed),
        process: process.map(u64::cast_signed),
        thread,
        interpreter,
        status: status.map(|status| Status(status.to_le_bytes()[0])),
        labels,
        values,
    };
    Ok((segment, sample))
}
