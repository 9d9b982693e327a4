//! Counts the parts of samples beside their stack, for formats that hold only some of them.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, ProfileSink, Sample, StringId};

use crate::Losses;

/// The name of sums outside the range of signed 64-bit numbers. Formats of such numbers store the largest or smallest one
/// instead.
pub(crate) const CUT_SUMS: &str = "sums beyond 64 bits";

/// The number of such sums.
pub(crate) fn cut_sums(sums: impl Iterator<Item = i64>) -> u64 {
    sums.filter(|sum| matches!(*sum, i64::MIN | i64::MAX)).count() as u64
}

/// The losses so far, in samples. Runs count in full; records that are not samples count once.
#[derive(Debug, Default)]
pub(crate) struct SampleLosses {
    times: u64,
    labels: u64,
    processes: u64,
    threads: u64,
    interpreters: u64,
    states: u64,
    values: u64,
    metadata: u64,
}

impl SampleLosses {
    /// Counts all parts of a sample except its stack and count.
    #[inline]
    pub(crate) fn all_but_stack(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        let count = counted(at, sample);
        add(&mut self.labels, sample.labels.is_some(), count);
        add(&mut self.processes, at.process(sample).is_some(), count);
        self.all_but_labels(at, sample);
    }

    /// Counts all parts of a sample except its stack, count, labels and process.
    #[inline]
    pub(crate) fn all_but_labels(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        let count = counted(at, sample);
        add(&mut self.times, sample.time_ns.is_some() || sample.delta_us.is_some(), count);
        add(&mut self.threads, sample.thread.is_some(), count);
        add(&mut self.interpreters, sample.interpreter.is_some(), count);
        add(&mut self.states, sample.status.is_some(), count);
        add(&mut self.values, !sample.values.is_empty(), count);
    }

    /// Counts the labels, the status and the values of a sample. The caller leaves out those that its format holds.
    #[inline]
    pub(crate) fn extras(&mut self, sample: &Sample<'_>) {
        add(&mut self.labels, sample.labels.is_some(), sample.count);
        add(&mut self.states, sample.status.is_some(), sample.count);
        add(&mut self.values, !sample.values.is_empty(), sample.count);
    }

    /// Counts metadata entries of a segment.
    pub(crate) const fn add_metadata(&mut self, entries: usize) {
        self.metadata += entries as u64;
    }

    pub(crate) fn report(&self) -> Losses {
        let mut losses = Losses::default();
        losses.add("timestamps", self.times);
        losses.add("annotations", self.labels);
        losses.add("process ids", self.processes);
        losses.add("thread ids", self.threads);
        losses.add("interpreter ids", self.interpreters);
        losses.add("thread states", self.states);
        losses.add("measured values", self.values);
        losses.add("metadata entries", self.metadata);
        losses
    }
}

/// As the sink behind an exporter, it receives what the exporter does not handle, and counts it as lost.
impl ProfileSink for SampleLosses {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.all_but_stack(at, sample);
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.metadata += at.segment.metadata.len() as u64;
        Ok(())
    }

    fn metadata(&mut self, _at: Context<'_>, _key: StringId, _value: StringId) -> io::Result<()> {
        self.metadata += 1;
        Ok(())
    }
}

/// The count of a record that is not a sample is 1, or a value that was made its count.
#[inline]
const fn counted(at: Context<'_>, sample: &Sample<'_>) -> u64 {
    if at.segment.is_uncounted { 1 } else { sample.count }
}

#[inline]
fn add(sum: &mut u64, is_lost: bool, count: u64) {
    if is_lost {
        *sum = sum.saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use borehole_model::{Segment, Status, Tables};

    use super::*;

    #[test]
    fn runs_count_in_full_and_a_process_of_the_segment_counts_too() {
        let tables = Tables::default();
        let segment = Segment { process: Some(7), ..Segment::default() };
        let at = Context { tables: &tables, segment: &segment };
        let sample = Sample { count: 3, thread: Some(1), status: Some(Status(1)), ..Sample::default() };
        let mut losses = SampleLosses::default();
        losses.all_but_stack(at, &sample);
        let report = "process ids dropped: 3, thread ids dropped: 3, thread states dropped: 3";
        assert_eq!(losses.report().to_string(), report);
    }
}
