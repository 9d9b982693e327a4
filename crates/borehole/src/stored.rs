//! Samples that own their values, with the segments that they belong to.

use std::ops::Range;

use borehole_model::{LabelsId, Sample, Segment, StackId, Status};

/// How many segments samples may alternate between without beginning one again.
const ALTERNATING: usize = 64;

/// Samples in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredSamples {
    segments: Vec<Segment>,
    samples: Vec<StoredSample>,
    values: Vec<i64>,
}

#[derive(Clone, Debug)]
struct StoredSample {
    segment: usize,
    stack: Option<StackId>,
    count: u64,
    time_ns: Option<i64>,
    delta_us: Option<i64>,
    process: Option<i64>,
    thread: Option<u64>,
    interpreter: Option<u64>,
    status: Option<Status>,
    labels: Option<LabelsId>,
    values: Range<usize>,
}

impl StoredSamples {
    pub(crate) fn begin(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    /// The last segment, which is begun if there is none.
    pub(crate) fn segment_mut(&mut self) -> &mut Segment {
        if self.segments.is_empty() {
            self.segments.push(Segment::default());
        }
        let last = self.segments.len() - 1;
        &mut self.segments[last]
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Adds a sample of `segment`, which is begun if it is none of the last ones.
    pub(crate) fn add_of(&mut self, segment: &Segment, sample: &Sample<'_>) {
        let recent = self.segments.len().saturating_sub(ALTERNATING);
        let found = self.segments[recent..].iter().rposition(|known| known == segment);
        let place = found.map_or(self.segments.len(), |found| recent + found);
        if found.is_none() {
            self.begin(segment.clone());
        }
        self.add_in(place, sample);
    }

    /// Adds a sample to the last segment.
    pub(crate) fn add(&mut self, sample: &Sample<'_>) {
        self.segment_mut();
        self.add_in(self.segments.len() - 1, sample);
    }

    fn add_in(&mut self, segment: usize, sample: &Sample<'_>) {
        let Sample { stack, count, time_ns, delta_us, process, thread, interpreter, status, labels, values } =
            *sample;
        let begin = self.values.len();
        self.values.extend_from_slice(values);
        self.samples.push(StoredSample {
            segment,
            stack,
            count,
            time_ns,
            delta_us,
            process,
            thread,
            interpreter,
            status,
            labels,
            values: begin..self.values.len(),
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.samples.len()
    }

    /// The index of a sample's segment, and the sample.
    pub(crate) fn get(&self, index: usize) -> Option<(usize, Sample<'_>)> {
        let stored = self.samples.get(index)?;
        let StoredSample { stack, count, time_ns, delta_us, process, thread, .. } = *stored;
        let StoredSample { interpreter, status, labels, ref values, segment, .. } = *stored;
        let values = &self.values[values.clone()];
        let sample =
            Sample { stack, count, time_ns, delta_us, process, thread, interpreter, status, labels, values };
        Some((segment, sample))
    }
}
