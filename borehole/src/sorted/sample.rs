//! Samples as bytes, for as long as they wait.

use std::io;

use borehole_model::{LabelsId, Sample, StackId, Status, Tables};

use super::event::{Bytes, put};

/// The ids that numbers stand for.
pub(super) struct Ids {
    stacks: Vec<StackId>,
    labels: Vec<LabelsId>,
}

impl Ids {
    pub(super) fn of(tables: &Tables) -> Self {
        Self { stacks: tables.stack_ids().collect(), labels: tables.labels_ids().collect() }
    }
}

/// A time as a number that sorts as it does.
pub(super) const fn time_key(time_ns: i64) -> u64 {
    time_ns.cast_unsigned() ^ 1 << 63
}

/// Appends a sample of the segment with that place in a list, but for its time.
pub(super) fn encode(out: &mut Vec<u8>, segment: usize, sample: &Sample<'_>) {
    put(out, segment as u64);
    put(out, sample.stack.map_or(u64::MAX, |stack| stack.index() as u64));
    put(out, sample.labels.map_or(u64::MAX, |labels| labels.index() as u64));
    put(out, sample.count);
    let optional = [
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

/// A sample as [`encode`] left it, and the place of its segment. What it says of the time since the sample before is
/// left out where that is another one now.
pub(super) fn decode<'a>(
    bytes: &[u8],
    time_key: Option<u64>,
    ids: &Ids,
    values: &'a mut Vec<i64>,
) -> io::Result<(usize, Sample<'a>)> {
    let mut bytes = Bytes(bytes);
    let segment = bytes.length()?;
    let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let stack = ids.stacks.get(place(bytes.number()?)).copied();
    let labels = ids.labels.get(place(bytes.number()?)).copied();
    let count = bytes.number()?;
    let mut optional = || -> io::Result<Option<u64>> {
        let is_known = bytes.number()? > 0;
        Ok(Some(bytes.number()?).filter(|_| is_known))
    };
    let (delta_us, process) = (optional()?, optional()?);
    let (thread, interpreter, status) = (optional()?, optional()?, optional()?);
    values.clear();
    while !bytes.0.is_empty() {
        values.push(bytes.number()?.cast_signed());
    }
    let sample = Sample {
        stack,
        count,
        time_ns: time_key.map(|key| (key ^ 1 << 63).cast_signed()),
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
