//! Exports the model to a document.

use std::io::{self, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Context, Measure, Mode, NativeModule, ProfileSink, Sample, Segment, StatedModules, StringId, Tables,
    Thread, ThreadNames, ValueType,
};
use borehole_wire::Compression;
use hashbrown::HashMap;

use super::encode::{ProfileHeader, depth_limit, number_type, scope_labels, write_samples};
use super::layout::{PERIODS_COMMENT, SHOWN_PERIODS, metadata};
use super::rows::StackRows;
use super::symbols::DocumentSymbols;
use super::write::{DocumentStream, FieldStream};
use crate::documents::numbered::Numbered;
use crate::documents::samples::SampleScope;
use crate::sums::losses::CUT_SUMS;
use crate::times::stated_duration::{StatedDuration, stated_ns};
use crate::times::stated_period::{self, StatedPeriod};
use crate::{Export, Losses};

/// Writes `profile.proto`: all samples added up by stack, process, thread and labels.
///
/// Sample types are `samples/count`, then the time of the mode (`wall/nanoseconds`) if a period is known, then the
/// samples' own types. If these state the number of samples, or nothing does, they are the only ones. Nothing is
/// written before `finish`; memory grows with the distinct contents, never with the number of samples.
///
/// # Examples
///
/// ```
/// use borehole_formats::Compression;
/// use borehole_formats::pprof::Exporter;
/// use borehole_model::{Context, ProfileSink as _, Sample, Segment, Tables};
///
/// let (tables, segment) = (Tables::default(), Segment::default());
/// let mut file = Vec::new();
/// let mut exporter = Exporter::new(&mut file, Compression::Gzip)?;
/// let at = Context { tables: &tables, segment: &segment };
/// exporter.segment(at)?;
/// let _ = exporter.sample(at, &Sample { count: 3, ..Sample::default() })?;
/// exporter.finish(&tables)?;
/// drop(exporter);
/// assert_eq!(file[..2], [0x1f, 0x8b]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Exporter<W: Write> {
    output: FieldStream<DocumentStream<W>>,
    rows: StackRows,
    plan: SegmentColumns,
    columns: Vec<ValueType>,
    /// The column by type and by the number of equal types before it in its segment.
    column_index: HashMap<(ValueType, usize), usize>,
    /// The column and mode of the time of the first samples with a period.
    time: Option<(usize, Mode)>,
    /// The default type of the first segment with samples, and whether that is an implied one, the last of its values.
    default_type: Option<(ValueType, bool)>,
    /// The types of a file without samples.
    empty_types: Vec<(Measure, ValueType)>,
    /// The first distinct periods of segments with samples, one more than are shown, and the type of the first one.
    periods: Vec<u64>,
    period_mode: Option<Mode>,
    span: TimeSpan,
    input: u64,
    stated: StatedDuration,
    metadata: Numbered<(StringId, StringId)>,
    thread_names: ThreadNames,
    losses: Losses,
    timed_samples: u64,
    untimed: u64,
}

/// The facts about the file in the metadata of all segments.
#[derive(Debug, Default)]
struct FileMetadata {
    comments: Vec<String>,
    default_type: Option<String>,
    doc_url: Option<String>,
    period: Option<StatedPeriod>,
}

/// The interpretation of the current segment's samples.
#[derive(Debug, Default)]
struct SegmentColumns {
    /// The period, if samples get the time that they stand for.
    period_ns: Option<u64>,
    /// The measures of a sample, with their columns.
    columns: Vec<(Measure, usize)>,
    /// Whether samples are counted and have no time.
    is_untimed: bool,
    /// Whether the segment has samples, so that there is a plan.
    noted: bool,
}

/// The time span of the timed samples, input by input.
#[derive(Debug, Default)]
struct TimeSpan {
    first_ns: Option<i64>,
    last_ns: i64,
    ended_ns: u64,
    /// The wall time of the very first sample.
    start_unix_ns: Option<i64>,
}

impl TimeSpan {
    fn take(&mut self, time_ns: i64, period_ns: u64) {
        let end = time_ns.saturating_add_unsigned(period_ns);
        match &mut self.first_ns {
            None => (self.first_ns, self.last_ns) = (Some(time_ns), end),
            Some(first) => {
                *first = time_ns.min(*first);
                self.last_ns = end.max(self.last_ns);
            }
        }
    }

    /// Ends an input: the next one may count from another origin.
    fn end_input(&mut self) {
        if let Some(first) = self.first_ns.take() {
            self.ended_ns = self.ended_ns.saturating_add(self.last_ns.abs_diff(first));
        }
    }
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter to `output`. Equal profiles give equal bytes: a gzip member has no time in its header.
    ///
    /// # Errors
    /// If the compression is neither none nor gzip, which are those that `go tool pprof` reads.
    pub fn new(output: W, compression: Compression) -> io::Result<Self> {
        Ok(Self::to(DocumentStream::new(output, compression)?))
    }

    /// Creates an exporter of a compressed file, as profilers write them.
    pub(super) fn compressed(output: W) -> Self {
        Self::to(DocumentStream::gzip(output))
    }

    fn to(output: DocumentStream<W>) -> Self {
        Self {
            output: FieldStream::new(output),
            rows: StackRows::default(),
            plan: SegmentColumns::default(),
            columns: Vec::new(),
            column_index: HashMap::new(),
            time: None,
            default_type: None,
            empty_types: Vec::new(),
            periods: Vec::new(),
            period_mode: None,
            span: TimeSpan::default(),
            input: 0,
            stated: StatedDuration::default(),
            metadata: Numbered::default(),
            thread_names: ThreadNames::default(),
            losses: Losses::default(),
            timed_samples: 0,
            untimed: 0,
        }
    }

    /// Notes a segment at its first sample: segments without samples are ignored.
    #[cold]
    fn note_segment(&mut self, segment: &Segment) {
        let is_first = self.columns.is_empty();
        let columns = self.add_columns(&written(segment));
        if is_first {
            let shown = segment.default_measure();
            let is_last_own = segment.default_measure.is_none() && matches!(shown, Measure::Value(_));
            self.default_type = Some((segment.value_type(shown), is_last_own));
        }
        let time = columns.iter().find(|(measure, _)| *measure == Measure::Time);
        let period_ns = segment.period_ns.filter(|&period| period > 0);
        self.time = self.time.or_else(|| time.map(|&(_, column)| (column, segment.mode)));
        let measures_time = |&(_, column): &(_, usize)| self.columns[column].nanoseconds_per_unit().is_some();
        let is_untimed = !segment.is_uncounted && !columns.iter().any(measures_time);
        self.plan = SegmentColumns {
            period_ns: period_ns.filter(|_| time.is_some()),
            columns,
            is_untimed,
            noted: true,
        };
        if let Some(period) = period_ns
            && self.periods.len() <= SHOWN_PERIODS
            && !self.periods.contains(&period)
        {
            self.periods.push(period);
            self.period_mode = self.period_mode.or(Some(segment.mode));
        }
    }

    /// Finds the columns of a segment's numbers, and adds missing ones. The first of several numbers of one type shares
    /// the column of the first one in other segments.
    fn add_columns(&mut self, numbers: &[(Measure, ValueType)]) -> Vec<(Measure, usize)> {
        let mut before: HashMap<&ValueType, usize> = HashMap::new();
        let mut columns = Vec::new();
        for (measure, value_type) in numbers {
            let before = before.entry(value_type).or_default();
            let key = (value_type.clone(), *before);
            *before += 1;
            let Self { column_index, columns: all, .. } = self;
            let column = *column_index.entry(key).or_insert_with(|| {
                all.push(value_type.clone());
                all.len() - 1
            });
            columns.push((*measure, column));
        }
        self.rows.widen(self.columns.len());
        columns
    }

    fn add_metadata(&mut self, tables: &Tables, key: StringId, value: StringId) {
        if let Some(duration_ns) = stated_ns(tables, (key, value)) {
            self.stated.take(self.input, duration_ns);
        } else {
            self.metadata.number((key, value));
        }
    }

    /// All parts of the profile except the samples.
    fn header(&self, symbols: &mut DocumentSymbols<'_>) -> ProfileHeader {
        let metadata = self.read_metadata(symbols.tables());
        let period = metadata.period.or_else(|| self.implied_period());
        // Without a default the tool shows the last type, which files with their own values expect.
        let is_stated =
            |(shown, is_last_own): &&(ValueType, bool)| !is_last_own || self.columns.last() != Some(shown);
        let default_type = self.default_type.as_ref().filter(is_stated).map(|(shown, _)| &*shown.kind);
        let default_type = metadata.default_type.as_deref().or(default_type);
        ProfileHeader {
            types: self.columns.iter().map(|column| number_type(symbols, column)).collect(),
            time_ns: self.span.start_unix_ns.unwrap_or(0),
            duration_ns: self.duration_ns(),
            period: period.map(|stated| (stated.period, number_type(symbols, &stated.period_type))),
            default_type: default_type.map_or(0, |name| symbols.text(name)),
            doc_url: metadata.doc_url.map_or(0, |url| symbols.text(&url)),
            comments: metadata.comments.iter().map(|comment| symbols.text(comment)).collect(),
        }
    }

    /// The first period, of the type of the samples' time, or else of the first time among the values.
    fn implied_period(&self) -> Option<StatedPeriod> {
        let values = if self.time.is_some() { &[] } else { &*self.columns };
        Some(StatedPeriod::implied(*self.periods.first()?, self.period_mode.unwrap_or_default(), values))
    }

    /// The duration of the profile.
    ///
    /// With times: from the first sample to one period after the last, added up over the inputs, as `go tool pprof`
    /// does when it merges. Without: the stated durations of the inputs, added up as well; or else the time of the
    /// process and thread with the most, since the others ran in parallel.
    fn duration_ns(&self) -> i64 {
        if self.span.ended_ns > 0 {
            return clamp(u128::from(self.span.ended_ns));
        }
        if let Some(stated) = self.stated.sum_ns() {
            return clamp(u128::from(stated));
        }
        let wall = self.columns.iter().position(|own| *own == ValueType::time(Mode::Wall));
        let Some(column) = self.time.map(|(column, _)| column).or(wall) else { return 0 };
        let mut timelines = HashMap::new();
        for (row, values) in self.rows.iter() {
            let scope = self.rows.scopes()[row.scope];
            let sum: &mut i64 = timelines.entry((scope.process, scope.thread)).or_default();
            *sum = sum.saturating_add(values[column]);
        }
        timelines.into_values().max().unwrap_or(0).max(0)
    }

    fn read_metadata(&self, tables: &Tables) -> FileMetadata {
        let mut file = FileMetadata::default();
        for &(key, value) in self.metadata.values() {
            let (key, value) = (tables.string(key), tables.string(value));
            let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
            match &*key {
                NativeModule::KEY => {}
                metadata::COMMENT => file.comments.push(value.into_owned()),
                metadata::DEFAULT_SAMPLE_TYPE => file.default_type = Some(value.into_owned()),
                metadata::DOC_URL => file.doc_url = Some(value.into_owned()),
                stated_period::KEY if file.period.is_none() && StatedPeriod::parse(&value).is_some() => {
                    file.period = StatedPeriod::parse(&value);
                }
                _ => file.comments.push(format!("{key}={value}")),
            }
        }
        file.comments.extend(periods_comment(&self.periods));
        file
    }

    fn stated_modules(&self, tables: &Tables) -> StatedModules {
        let mut modules = StatedModules::default();
        for &(key, value) in self.metadata.values() {
            if tables.string(key) == NativeModule::KEY.as_bytes() {
                modules.add(tables.string(value));
            }
        }
        modules
    }

    fn note_losses(&mut self, lost: &Losses) {
        self.losses.add("timestamps", self.timed_samples);
        if let Some((_, mode)) = self.time {
            let what = match mode {
                Mode::Wall => "wall times of samples without a period",
                _ => "times of samples without a period",
            };
            self.losses.add(what, self.untimed);
        }
        self.losses.add(CUT_SUMS, self.rows.cut_sums());
        lost.iter().for_each(|(what, count)| self.losses.add(what, count));
    }

    #[cold]
    fn note_time(&mut self, segment: &Segment, time_ns: i64) {
        if let Some(origin) = segment.start_unix_ns {
            let time = origin.saturating_add(time_ns);
            self.span.start_unix_ns = Some(self.span.start_unix_ns.map_or(time, |start| start.min(time)));
        }
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    #[inline]
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if !self.plan.noted {
            self.note_segment(at.segment);
            self.note_time(at.segment, sample.time_ns.unwrap_or(0));
        }
        let row = self.rows.row(sample.stack, SampleScope::of(at, sample)).ok_or_else(too_many_rows)?;
        for &(measure, column) in &self.plan.columns {
            self.rows.add_value(row, column, measure.of(at.segment, sample));
        }
        if self.plan.is_untimed {
            self.untimed = self.untimed.saturating_add(sample.count);
        }
        if let Some(time_ns) = sample.time_ns {
            self.timed_samples = self.timed_samples.saturating_add(sample.count);
            self.span.take(time_ns, self.plan.period_ns.unwrap_or(0));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        if at.segment.index == 0 {
            self.span.end_input();
            self.input += 1;
        }
        self.plan = SegmentColumns::default();
        self.empty_types = written(at.segment);
        for &(key, value) in &at.segment.metadata {
            self.add_metadata(at.tables, key, value);
        }
        Ok(())
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.add_metadata(at.tables, key, value);
        Ok(())
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.thread_names.name(thread, name);
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.span.end_input();
        if self.columns.is_empty() {
            let mut types = std::mem::take(&mut self.empty_types);
            types.retain(|(measure, _)| *measure != Measure::Time);
            self.add_columns(&types);
        }
        let mut symbols = DocumentSymbols::new(tables, self.stated_modules(tables));
        let header = self.header(&mut symbols);
        let labels = scope_labels(&mut symbols, self.rows.scopes(), &self.thread_names);
        self.rows.iter().for_each(|(row, _)| symbols.add_stack(row.stack));
        header.write_types(&mut self.output)?;
        let lost = symbols.write(&mut self.output)?;
        let (depth, cut) = depth_limit(&self.rows, tables);
        self.losses.add("outer frames of very deep stacks", cut);
        write_samples(&mut self.output, &self.rows, &symbols, &labels, depth)?;
        header.write_facts(&mut self.output)?;
        self.note_losses(&lost);
        self.output.finish()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        self.losses.clone()
    }
}

fn clamp(value: u128) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn too_many_rows() -> io::Error {
    io::Error::other(format!("too many distinct samples: expected at most {}", u32::MAX - 1))
}

/// The numbers of a segment's samples that are written, in order: only those that its source has, without those that
/// follow from count and period.
fn written(segment: &Segment) -> Vec<(Measure, ValueType)> {
    let is_own = |number: &(Measure, ValueType)| matches!(number.0, Measure::Value(_));
    let is_counted = segment.value_types.iter().any(ValueType::is_samples);
    let (own, derived): (Vec<_>, Vec<_>) = segment.measures().partition(is_own);
    // A source whose default is the count had no time.
    let shows_count = segment.default_measure == Some(Measure::Count);
    let is_written = |(measure, _): &_| !(is_counted || shows_count && *measure == Measure::Time);
    let numbers: Vec<_> = derived.into_iter().filter(is_written).chain(own).collect();
    // A document without a type could not hold the samples.
    if numbers.is_empty() { vec![(Measure::Count, ValueType::samples())] } else { numbers }
}

/// A comment that lists several distinct periods: the format can hold one.
fn periods_comment(periods: &[u64]) -> Option<String> {
    if periods.len() < 2 {
        return None;
    }
    let shown: Vec<_> = periods.iter().take(SHOWN_PERIODS).map(u64::to_string).collect();
    let rest = if periods.len() > SHOWN_PERIODS { ",..." } else { "" };
    Some(format!("{PERIODS_COMMENT}{}{rest}", shown.join(",")))
}
