//! Single-value formats, with a choice of the value.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, Measure, ProfileSink, Sample, Sampled, Segment, Tables, Weigher};

use crate::{Export, Losses};

/// An exporter of a format with one number per stack, behind the choice of that number.
///
/// It receives the number as the count of each sample: the value type that is asked for, or else the default of the
/// first profile, or else the count. These formats have no negative sums; they are counted as lost, and so are samples
/// of other kinds.
///
/// # Examples
///
/// ```
/// use borehole_formats::{Weighed, folded};
/// use borehole_model::{Context, Frame, ProfileSink as _, Sample, Segment, Tables, ValueType};
///
/// let (mut tables, mut output) = (Tables::default(), Vec::new());
/// let name = tables.intern_string(b"alloc")?;
/// let frame = tables.intern_frame(&Frame::named(name))?;
/// let stack = tables.intern_stack(None, frame)?;
/// let mut segment = Segment::default();
/// segment.value_types = vec![ValueType::new("objects", "count"), ValueType::new("space", "bytes")];
///
/// let mut exporter = Weighed::new(folded::Exporter::new(&mut output, folded::ExportOptions::default()), None);
/// let at = Context { tables: &tables, segment: &segment };
/// exporter.segment(at)?;
/// let _ = exporter.sample(at, &Sample { stack: Some(stack), count: 1, values: &[2, 4096], ..Sample::default() })?;
/// exporter.finish(&tables)?;
/// drop(exporter);
/// assert_eq!(output, b"alloc 4096\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Weighed<E> {
    exporter: E,
    weigher: Weigher,
    is_told: bool,
    /// The current segment without the value that became the count.
    weighed: Segment,
    negative: u64,
    other_values: u64,
}

impl<E: Export> Weighed<E> {
    /// Creates an exporter that passes the value type `asked` for to `exporter`.
    pub fn new(exporter: E, asked: Option<&str>) -> Self {
        Self {
            exporter,
            weigher: Weigher::new(asked, Sampled::Count),
            is_told: false,
            weighed: Segment::default(),
            negative: 0,
            other_values: 0,
        }
    }

    /// Passes the value type of the counts to the exporter, once.
    #[cold]
    fn tell(&mut self) {
        self.is_told = true;
        if let Some(value_type) = self.weigher.value_type().filter(|value_type| !value_type.is_samples()) {
            self.exporter.counted(value_type);
        }
    }

    /// The number of a sample as a count.
    #[inline]
    fn count(&mut self, measure: Option<Measure>, weight: i64, sample: &Sample<'_>) -> u64 {
        if measure == Some(Measure::Count) {
            return sample.count;
        }
        if weight < 0 {
            self.negative = self.negative.saturating_add(1);
        }
        u64::try_from(weight).unwrap_or(0)
    }

    /// The period of one count in formats of seconds: a nanosecond for times, a second for anything else, so that they
    /// show the number itself.
    fn period_ns(&self, segment: &Segment) -> Option<u64> {
        match self.weigher.measure()? {
            Measure::Count => segment.period_ns,
            Measure::Time => Some(1),
            measure @ Measure::Value(_) => {
                let is_time = segment.value_type(measure).nanoseconds_per_unit().is_some();
                Some(if is_time { 1 } else { 1_000_000_000 })
            }
        }
    }
}

impl<E: Export> ProfileSink for Weighed<E> {
    #[inline]
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let Some(weight) = self.weigher.weigh(at, sample) else { return Ok(ControlFlow::Continue(())) };
        if !self.is_told {
            self.tell();
        }
        let measure = self.weigher.measure();
        let count = self.count(measure, weight, sample);
        if measure == Some(Measure::Count) && sample.values.is_empty() {
            return self.exporter.sample(at, sample);
        }
        let used = usize::from(matches!(measure, Some(Measure::Value(_))));
        self.other_values = self.other_values.saturating_add(u64::from(sample.values.len() > used));
        let process = at.process(sample);
        let sample = Sample { count, values: &[], process, ..*sample };
        self.exporter.sample(Context { tables: at.tables, segment: &self.weighed }, &sample)
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.weigher.segment(at.segment);
        if self.weigher.measure() == Some(Measure::Count) && at.segment.value_types.is_empty() {
            return self.exporter.segment(at);
        }
        let period_ns = self.period_ns(at.segment);
        self.weighed = Segment {
            is_uncounted: self.weigher.measure() != Some(Measure::Count),
            value_types: Vec::new(),
            default_measure: None,
            period_ns,
            ..at.segment.clone()
        };
        self.exporter.segment(Context { tables: at.tables, segment: &self.weighed })
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.exporter)
    }

    fn settle(&mut self, tables: &Tables) -> io::Result<bool> {
        self.exporter.settle(tables)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.weigher.check()?;
        self.exporter.finish(tables)
    }
}

impl<E: Export> Export for Weighed<E> {
    fn losses(&self) -> Losses {
        let mut losses = self.exporter.losses();
        losses.add("samples of other value types", self.weigher.hidden_samples());
        losses.add("other values of samples", self.other_values);
        losses.add("negative values", self.negative);
        losses
    }

    fn flush(&mut self) -> io::Result<()> {
        self.exporter.flush()
    }
}

#[cfg(test)]
mod tests {
    use borehole_model::ValueType;

    use super::*;

    /// Keeps the counts that it receives, and their value type.
    #[derive(Debug, Default)]
    struct Counts(Vec<u64>, Vec<String>);

    impl ProfileSink for Counts {
        fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            assert!(sample.values.is_empty() && at.segment.value_types.is_empty());
            self.0.push(sample.count);
            Ok(ControlFlow::Continue(()))
        }
    }

    impl Export for Counts {
        fn losses(&self) -> Losses {
            Losses::default()
        }

        fn counted(&mut self, value_type: &ValueType) {
            self.1.push(value_type.to_string());
        }
    }

    fn weighed(asked: Option<&str>, segments: &[Segment], values: &[i64]) -> io::Result<(Counts, String)> {
        let tables = Tables::default();
        let mut sink = Weighed::new(Counts::default(), asked);
        for segment in segments {
            let at = Context { tables: &tables, segment };
            sink.segment(at)?;
            let values = &values[..segment.value_types.len().min(values.len())];
            let _ = sink.sample(at, &Sample { count: 3, values, ..Sample::default() })?;
        }
        sink.finish(&tables)?;
        let losses = sink.losses().to_string();
        Ok((sink.exporter, losses))
    }

    fn valued(types: &[(&str, &str)]) -> Segment {
        let value_types = types.iter().map(|&(kind, unit)| ValueType::new(kind, unit)).collect();
        Segment { value_types, is_uncounted: true, ..Segment::default() }
    }

    #[test]
    fn the_requested_value_becomes_the_count_and_others_are_lost() {
        let segments = [valued(&[("objects", "count"), ("space", "bytes")]), Segment::default()];
        let (Counts(counts, told), losses) = weighed(None, &segments, &[2, 4096]).unwrap();
        assert_eq!((counts, told), (vec![4096], vec!["space/bytes".to_owned()]));
        assert_eq!(losses, "samples of other value types dropped: 3, other values of samples dropped: 1");
        let (Counts(counts, told), _) = weighed(Some("objects"), &segments, &[2, 4096]).unwrap();
        assert_eq!((counts, told), (vec![2], vec!["objects/count".to_owned()]));
        let error = weighed(Some("space/kb"), &segments, &[2, 4096]).unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown value type: expected one of objects/count, space/bytes, samples/count, found space/kb"
        );
    }

    #[test]
    fn negative_values_are_lost_and_samples_are_counted() {
        let (Counts(counts, _), losses) = weighed(None, &[valued(&[("delta", "bytes")])], &[-5]).unwrap();
        assert_eq!((counts, losses.as_str()), (vec![0], "negative values dropped: 1"));
        let sampled = [Segment { period_ns: Some(7), ..Segment::default() }];
        let (Counts(counts, told), losses) = weighed(None, &sampled, &[]).unwrap();
        assert_eq!((counts, told.len(), losses.as_str()), (vec![3], 0, ""));
        let (Counts(counts, told), _) = weighed(Some("wall"), &sampled, &[]).unwrap();
        assert_eq!((counts, told), (vec![21], vec!["wall/nanoseconds".to_owned()]));
    }
}
