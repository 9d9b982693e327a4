//! Exports the model to a document.

use std::io::{self, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Context, Label, LabelsId, ProfileSink, Sample, Segment, StringId, Tables, Thread, ThreadNames, ValueType,
};
use hashbrown::HashMap;

use super::dictionary::Dictionary;
use super::encode::{DocumentWriter, of_resource};
use super::rows::{BatchKey, ObservationBatch};
use crate::documents::chains::SampleSpool;
use crate::documents::numbered::Numbered;
use crate::documents::samples::SampleScope;
use crate::registry::MakeSpool;
use crate::sums::losses::CUT_SUMS;
use crate::times::stated_duration::stated_ns;
use crate::{Export, Losses};

/// Writes profiles of OpenTelemetry, development version: samples by process, stack, thread and labels, each with the
/// times of its observations.
///
/// There is a profile of `samples/count` for each resource, process and period, and one for each other value type;
/// uncounted samples have no profile of counts. Nothing is written before `finish`. Memory: the distinct contents, and
/// a block of 4 KiB for each stack and thread with many times; observations go to the spool that the caller supplies.
///
/// # Examples
///
/// ```
/// use borehole_formats::otlp::Exporter;
/// use borehole_model::{Context, ProfileSink as _, Sample, Segment, Tables};
///
/// let (tables, segment) = (Tables::default(), Segment::default());
/// let mut file = Vec::new();
/// let mut exporter = Exporter::new(&mut file, || Ok(Box::new(std::io::Cursor::new(Vec::new()))));
/// let at = Context { tables: &tables, segment: &segment };
/// exporter.segment(at)?;
/// let _ = exporter.sample(at, &Sample { count: 3, time_ns: Some(5), ..Sample::default() })?;
/// exporter.finish(&tables)?;
/// drop(exporter);
/// assert!(file.windows(7).any(|bytes| bytes == b"samples"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Exporter<W> {
    output: W,
    spool: SampleSpool,
    /// The value types of profiles.
    types: Numbered<Vec<ValueType>>,
    /// The labels of resources, and the resource by all labels of a sample. The first one has none.
    resources: Numbered<Vec<Label>>,
    resource_of_labels: HashMap<LabelsId, usize>,
    batch_keys: Numbered<BatchKey>,
    /// By key.
    batches: Vec<ObservationBatch>,
    scopes: Numbered<SampleScope>,
    thread_names: ThreadNames,
    plan: SegmentPlan,
    /// The number of the current segment of all inputs, 1-based.
    segment: u64,
    input: u64,
    values: Vec<i64>,
    losses: Losses,
}

/// The interpretation of the current segment's samples.
#[derive(Debug, Default)]
struct SegmentPlan {
    types: usize,
    /// Whether the samples are counted without a value for it, so that their counts are written first.
    adds_count: bool,
    metadata: Vec<(StringId, StringId)>,
    /// The duration that the segment states.
    stated_ns: Option<u64>,
    /// The batch of the last sample.
    batch: Option<(BatchKey, usize)>,
}

impl SegmentPlan {
    /// Takes a metadata entry of the segment.
    fn take(&mut self, tables: &Tables, pair: (StringId, StringId)) {
        match stated_ns(tables, pair) {
            Some(stated_ns) => self.stated_ns = self.stated_ns.max(Some(stated_ns)),
            None => self.metadata.push(pair),
        }
    }
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter to `output`. `spool` creates a temporary file, if there are many samples.
    pub fn new(output: W, spool: MakeSpool) -> Self {
        let mut resources = Numbered::default();
        resources.number(Vec::new());
        Self {
            output,
            spool: SampleSpool::new(spool),
            types: Numbered::default(),
            resources,
            resource_of_labels: HashMap::new(),
            batch_keys: Numbered::default(),
            batches: Vec::new(),
            scopes: Numbered::default(),
            thread_names: ThreadNames::default(),
            plan: SegmentPlan::default(),
            segment: 0,
            input: 0,
            values: Vec::new(),
            losses: Losses::default(),
        }
    }

    fn plan(&mut self, at: Context<'_>) {
        self.segment += 1;
        let segment = at.segment;
        let own = &segment.value_types;
        let is_counted = !segment.is_uncounted && !own.iter().any(ValueType::is_samples);
        let adds_count = is_counted || own.is_empty();
        let added = adds_count.then(ValueType::samples);
        let types = self.types.number(added.into_iter().chain(own.iter().cloned()).collect());
        self.plan = SegmentPlan { types, adds_count, ..SegmentPlan::default() };
        segment.metadata.iter().for_each(|&pair| self.plan.take(at.tables, pair));
    }

    fn batch(&mut self, at: Context<'_>, sample: &Sample<'_>) -> usize {
        let key = BatchKey {
            process: at.process(sample),
            resource: sample.labels.map_or(0, |labels| self.resource(at.tables, labels)),
            mode: at.segment.mode,
            period_ns: at.segment.period_ns.filter(|&period| period > 0),
            types: self.plan.types,
            is_relative: at.segment.start_unix_ns.is_none(),
        };
        match self.plan.batch {
            Some((known, batch)) if known == key => batch,
            _ => self.enter(key, at.segment),
        }
    }

    /// The number of the resource that the labels describe.
    fn resource(&mut self, tables: &Tables, labels: LabelsId) -> usize {
        *self.resource_of_labels.entry(labels).or_insert_with(|| {
            let labels = tables.labels(labels);
            self.resources.number(of_resource(tables, labels).into_iter().copied().collect())
        })
    }

    #[cold]
    fn enter(&mut self, key: BatchKey, segment: &Segment) -> usize {
        let batch = self.batch_keys.number(key);
        if batch == self.batches.len() {
            self.batches.push(ObservationBatch::new(key, self.types.values()[key.types].len()));
        }
        let row = &mut self.batches[batch];
        // Samples of several processes take turns: metadata that the batch has is not looked at again.
        let (taken, known) = std::mem::replace(&mut row.taken, (self.segment, self.plan.metadata.len()));
        for &pair in &self.plan.metadata[if taken == self.segment { known } else { 0 }..] {
            row.metadata.number(pair);
        }
        self.plan.stated_ns.into_iter().for_each(|stated_ns| row.stated.take(self.input, stated_ns));
        row.start_unix_ns = earlier(row.start_unix_ns, segment.start_unix_ns);
        row.began_ns = earlier(row.began_ns, segment.began_ns);
        self.plan.batch = Some((key, batch));
        batch
    }

    fn scope(&mut self, at: Context<'_>, sample: &Sample<'_>) -> usize {
        let scope = SampleScope::of(at, sample);
        // The process is that of the batch; threads are of a process.
        let process = scope.process.filter(|_| scope.thread.is_some());
        self.scopes.number(SampleScope { process, ..scope })
    }

    /// The time of a sample in the format's form.
    fn time(&mut self, segment: &Segment, sample: &Sample<'_>) -> Option<i64> {
        let time_ns = sample.time_ns?;
        let Some(origin) = segment.start_unix_ns else { return Some(time_ns) };
        let time_unix_ns = origin.checked_add(time_ns).filter(|&time| time >= 0);
        if time_unix_ns.is_none() {
            self.losses.add("timestamps before 1970", sample.count);
        }
        time_unix_ns
    }
}

fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if self.types.values().is_empty() {
            self.plan(at);
        }
        let batch = self.batch(at, sample);
        let scope = self.scope(at, sample);
        let time_ns = self.time(at.segment, sample);
        let count = i64::try_from(sample.count).unwrap_or(i64::MAX);
        if sample.count > count.unsigned_abs() && time_ns.is_some() {
            self.losses.add(CUT_SUMS, 1);
        }
        self.values.clear();
        self.values.extend(self.plan.adds_count.then_some(count));
        let own = &at.segment.value_types;
        let value = |index: usize| sample.values.get(index).copied().unwrap_or(0);
        self.values.extend((0..own.len()).map(value));
        let batch = &mut self.batches[batch];
        batch.add(sample.stack, scope, time_ns, &self.values, &mut self.spool)?;
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.input += u64::from(at.segment.index == 0);
        self.plan(at);
        Ok(())
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.plan.take(at.tables, (key, value));
        if let Some((key, _)) = self.plan.batch {
            self.enter(key, at.segment);
        }
        Ok(())
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.thread_names.name(thread, name);
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        let dictionary = Dictionary::new(tables);
        let Self { output, spool, scopes, thread_names, resources, .. } = self;
        let document = DocumentWriter::new(output, spool, dictionary, scopes.values(), thread_names);
        let lost = document.write(&self.batches, self.types.values(), resources.values())?;
        lost.iter().for_each(|(what, count)| self.losses.add(what, count));
        self.losses.add(CUT_SUMS, self.batches.iter().map(ObservationBatch::cut_sums).sum());
        Ok(())
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        self.losses.clone()
    }
}
