//! The contents of a profile: counts, ranges and names, but no functions.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, Event, Mode, ProfileSink, Sample, StringId, Tables};

use serde::{Serialize, Serializer};

use crate::json;
use crate::ticks::DistinctTimes;

/// Counts the contents of a profile. Serialized, it has the keys of `borehole info --json` for the contents of a file.
///
/// # Examples
///
/// ```
/// use borehole_analysis::Inventory;
/// use borehole_model::{Context, ProfileSink as _, Sample, Segment, Tables};
///
/// let (tables, segment) = (Tables::default(), Segment { process: Some(7), ..Segment::default() });
/// let mut inventory = Inventory::default();
/// let at = Context { tables: &tables, segment: &segment };
/// inventory.segment(at)?;
/// inventory.sample(at, &Sample { count: 3, ..Sample::default() })?;
/// inventory.finish(&tables)?;
/// assert_eq!((inventory.samples, inventory.records), (3, 1));
/// assert_eq!(inventory.processes.values, [7].into());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Inventory {
    /// Samples. A run counts as all of its samples.
    pub samples: u64,
    /// Records of samples. A run is one record.
    #[serde(rename = "sample_records")]
    pub records: u64,
    /// Events.
    pub events: u64,
    /// The number of events of each name; invalid UTF-8 is replaced.
    pub event_names: BTreeMap<String, u64>,
    /// Distinct shapes of events: name, fields and annotations.
    #[serde(rename = "schemas")]
    pub shapes: usize,
    /// The earliest and the latest time of an event on the input's clock, in nanoseconds. Events at 0 do not count: recorders
    /// write 0 for events without a time.
    pub event_time_ns: Option<(u64, u64)>,
    /// The number of events of each shape.
    #[serde(skip)]
    shape_events: Vec<u64>,
    /// Samples with an empty stack.
    pub empty_stacks: u64,
    /// The deepest stack, in frames.
    pub deepest: u32,
    /// The sum of the depths of all samples; divided by `samples`, the mean depth.
    #[serde(skip)]
    pub depth_sum: u128,
    /// Segments.
    pub segments: u64,
    /// The first segments, up to [`Inventory::MAX_LISTED`].
    pub first_segments: Vec<SegmentFacts>,
    /// Known processes.
    #[serde(serialize_with = "json::processes")]
    pub processes: DistinctNumbers<i64>,
    /// Known threads.
    #[serde(serialize_with = "json::threads")]
    pub threads: DistinctNumbers<u64>,
    /// Known interpreters.
    pub interpreters: DistinctNumbers<u64>,
    /// The number of samples with each label key.
    pub label_keys: BTreeMap<String, u64>,
    /// The earliest and the latest time on the input's clock, in nanoseconds.
    pub time_ns: Option<(i64, i64)>,
    /// Distinct times of samples: the ticks of a profiler that samples all threads at once.
    pub ticks: DistinctTimes,
    /// Distinct strings.
    pub strings: usize,
    /// Distinct frames.
    pub frames: usize,
    /// Distinct stacks, including the callers of sampled stacks.
    pub stacks: usize,
    /// Distinct label sets.
    pub label_sets: usize,
    /// The value types of samples, as `kind/unit`.
    pub value_types: BTreeSet<String>,
}

/// A segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SegmentFacts {
    /// Its 0-based number in its input.
    pub index: u64,
    /// Its offset in the decompressed input, in bytes.
    pub offset: Option<u64>,
    /// The sampling period.
    pub period_ns: Option<u64>,
    /// The mode: whether the period counts wall time, CPU time or another.
    pub mode: Mode,
    /// Whether samples carry times.
    pub has_times: bool,
    /// The process of its samples.
    #[serde(rename = "pid")]
    pub process: Option<i64>,
    /// The metadata before its first sample; invalid UTF-8 is replaced.
    pub metadata: Vec<(String, String)>,
    /// Samples. A run counts as all of its samples.
    pub samples: u64,
    /// Events.
    pub events: u64,
}

/// Distinct numbers, up to a limit. Serialized, they are a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DistinctNumbers<T> {
    /// The numbers.
    pub values: BTreeSet<T>,
    /// Whether there are more.
    pub more: bool,
}

impl<T: Serialize> Serialize for DistinctNumbers<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.values.serialize(serializer)
    }
}

impl<T: Ord> DistinctNumbers<T> {
    fn note(&mut self, number: Option<T>) {
        let Some(number) = number else { return };
        if self.values.len() < Inventory::MAX_NUMBERS {
            self.values.insert(number);
        } else if !self.values.contains(&number) {
            self.more = true;
        }
    }
}

impl Inventory {
    /// The maximum number of segments listed.
    pub const MAX_LISTED: usize = 100;

    /// The maximum number of distinct processes or threads kept: more than a machine has.
    pub const MAX_NUMBERS: usize = 1 << 16;

    /// Adds up the events of the shapes that share a name.
    fn name_events(&mut self, tables: &Tables) {
        for (row, shape) in tables.shape_ids().enumerate() {
            let count = self.shape_events.get(row).copied().unwrap_or(0);
            if count > 0 {
                *self.event_names.entry(text(tables, tables.shape(shape).name)).or_default() += count;
            }
        }
    }

    fn note_labels(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        let Some(labels) = sample.labels else { return };
        for label in at.tables.labels(labels) {
            let key = text(at.tables, label.key);
            let count = self.label_keys.entry(key).or_default();
            *count = count.saturating_add(sample.count);
        }
    }
}

impl ProfileSink for Inventory {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.samples = self.samples.saturating_add(sample.count);
        self.records += 1;
        let depth = sample.stack.map_or(0, |stack| at.tables.depth(stack));
        self.deepest = self.deepest.max(depth);
        self.depth_sum = self.depth_sum.saturating_add(u128::from(depth) * u128::from(sample.count));
        if sample.stack.is_none() {
            self.empty_stacks = self.empty_stacks.saturating_add(sample.count);
        }
        if let Some(time) = sample.time_ns {
            let (first, last) = self.time_ns.unwrap_or((time, time));
            self.time_ns = Some((first.min(time), last.max(time)));
            self.ticks.note(time);
        }
        self.processes.note(at.process(sample));
        self.threads.note(sample.thread);
        self.interpreters.note(sample.interpreter);
        self.note_labels(at, sample);
        if self.segments <= Self::MAX_LISTED as u64
            && let Some(segment) = self.first_segments.last_mut()
        {
            segment.samples = segment.samples.saturating_add(sample.count);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, _at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.events += 1;
        let row = event.shape.index();
        if self.shape_events.len() <= row {
            self.shape_events.resize(row + 1, 0);
        }
        self.shape_events[row] += 1;
        if let Some(time) = event.time_ns.filter(|&time| time > 0) {
            let (first, last) = self.event_time_ns.unwrap_or((time, time));
            self.event_time_ns = Some((first.min(time), last.max(time)));
        }
        if self.segments <= Self::MAX_LISTED as u64
            && let Some(segment) = self.first_segments.last_mut()
        {
            segment.events += 1;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn keeps_events(&mut self) -> bool {
        true
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        let segment = at.segment;
        self.segments += 1;
        self.value_types
            .extend(segment.value_types.iter().map(|kind| format!("{}/{}", kind.kind, kind.unit)));
        if self.first_segments.len() < Self::MAX_LISTED {
            let pairs = segment.metadata.iter();
            self.first_segments.push(SegmentFacts {
                index: segment.index,
                offset: segment.offset,
                period_ns: segment.period_ns,
                mode: segment.mode,
                has_times: segment.has_times,
                process: segment.process,
                metadata: pairs.map(|&(key, value)| (text(at.tables, key), text(at.tables, value))).collect(),
                samples: 0,
                events: 0,
            });
        }
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.strings = tables.string_count();
        self.frames = tables.frame_count();
        self.stacks = tables.stack_count();
        self.label_sets = tables.labels_count();
        self.ticks.settle();
        self.shapes = tables.shape_count();
        self.name_events(tables);
        Ok(())
    }
}

fn text(tables: &Tables, string: StringId) -> String {
    String::from_utf8_lossy(tables.string(string)).into_owned()
}
