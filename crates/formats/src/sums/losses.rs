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
    /// A sample with one part each, by the name of its loss.
    fn parts() -> [(&'static str, Sample<'static>); 8] {
        let mut tables = Tables::default();
        let labels = Some(tables.intern_labels(&[]).unwrap());
        let one = Sample { count: 1, ..Sample::default() };
        [
            ("timestamps", Sample { time_ns: Some(0), ..one }),
            ("timestamps", Sample { delta_us: Some(0), ..one }),
            ("annotations", Sample { labels, ..one }),
            ("process ids", Sample { process: Some(0), ..one }),
            ("thread ids", Sample { thread: Some(0), ..one }),
            ("interpreter ids", Sample { interpreter: Some(0), ..one }),
            ("thread states", Sample { status: Some(Status(0)), ..one }),
            ("measured values", Sample { values: &[0], ..one }),
        ]
    }

    #[test]
    fn each_part_is_counted_by_its_own_name() {
        let tables = Tables::default();
        let (counted, uncounted) = (Segment::default(), Segment { is_uncounted: true, ..Segment::default() });
        for (name, sample) in parts() {
            for count in 0..3 {
                let mut losses = SampleLosses::default();
                let at = Context { tables: &tables, segment: &counted };
                assert!(losses.sample(at, &Sample { count, ..sample }).unwrap().is_continue());
                let told: Vec<_> = losses.report().iter().collect();
                assert_eq!(told, Vec::from_iter((count > 0).then_some((name, count))));
            }
            let mut losses = SampleLosses::default();
            losses.all_but_stack(
                Context { tables: &tables, segment: &uncounted },
                &Sample { count: 9, ..sample },
            );
            assert_eq!(Vec::from_iter(losses.report().iter()), [(name, 1)]);
        }
    }

    #[test]
    fn parts_that_a_caller_holds_are_left_out() {
        let tables = Tables::default();
        let segment = Segment::default();
        let at = Context { tables: &tables, segment: &segment };
        let (mut without_labels, mut extras) = (SampleLosses::default(), SampleLosses::default());
        for (_, sample) in parts() {
            without_labels.all_but_labels(at, &sample);
            extras.extras(&sample);
        }
        let expected = [
            ("timestamps", 2),
            ("thread ids", 1),
            ("interpreter ids", 1),
            ("thread states", 1),
            ("measured values", 1),
        ];
        assert_eq!(Vec::from_iter(without_labels.report().iter()), expected);
        let expected = [("annotations", 1), ("thread states", 1), ("measured values", 1)];
        assert_eq!(Vec::from_iter(extras.report().iter()), expected);
    }

    #[test]
    fn metadata_are_counted_wherever_they_stand() {
        let mut tables = Tables::default();
        let text = tables.intern_string(b"a").unwrap();
        for count in 0..3 {
            let segment = Segment { metadata: vec![(text, text); count], ..Segment::default() };
            let at = Context { tables: &tables, segment: &segment };
            let mut losses = SampleLosses::default();
            losses.segment(at).unwrap();
            losses.metadata(at, text, text).unwrap();
            losses.add_metadata(count);
            let expected = 2 * count as u64 + 1;
            assert_eq!(Vec::from_iter(losses.report().iter()), [("metadata entries", expected)]);
        }
    }

    #[test]
    fn only_sums_at_the_ends_are_cut() {
        let sums = [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX - 1, i64::MAX];
        assert_eq!(cut_sums(sums.into_iter()), 2);
        assert_eq!(cut_sums(sums[1..5].iter().copied()), 0);
    }
}
