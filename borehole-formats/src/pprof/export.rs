//! The model into a document.

use std::io::{self, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Context, ProfileSink, Sample, Segment, StringId, Tables, Thread, ThreadNames, ValueType,
};
use hashbrown::{HashMap, HashSet};

use super::encode::{Facts, Header, ScopeLabels, write_samples};
use super::layout::{PERIODS_COMMENT, SHOWN_PERIODS, metadata};
use super::rows::{Rows, Scope};
use super::symbols::Symbols;
use super::write::{Compression, Output};
use crate::cut_sums::CUT_SUMS;
use crate::stated_duration::{StatedDuration, stated_ns};
use crate::{Export, Losses};
use borehole_model::nanoseconds_per;

/// Writes `profile.proto`: all samples added up by stack, process, thread and labels.
///
/// Sample types are `samples/count`, then `wall/nanoseconds` where a period is known, then the samples' own.
/// Nothing is written before `finish`; memory grows with what is distinct, never with how many samples pass.
///
/// # Examples
///
/// ```
/// use borehole_formats::pprof::{Compression, Exporter};
/// use borehole_model::{Context, ProfileSink as _, Sample, Segment, Tables};
///
/// let (tables, segment) = (Tables::default(), Segment::default());
/// let mut file = Vec::new();
/// let mut exporter = Exporter::new(&mut file, Compression::Gzip);
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
    output: Output<W>,
    rows: Rows,
    plan: Plan,
    own_types: Vec<ValueType>,
    has_wall: bool,
    /// The first distinct periods of segments that have samples, one more than are shown.
    periods: Vec<u64>,
    span: Span,
    input: u64,
    stated: StatedDuration,
    metadata: Vec<(StringId, StringId)>,
    metadata_seen: HashSet<(StringId, StringId)>,
    thread_names: ThreadNames,
    losses: Losses,
    timed_samples: u64,
    untimed_wall: u64,
}

/// What the metadata of all segments says of the file.
#[derive(Debug, Default)]
struct FileMetadata {
    comments: Vec<String>,
    default_type: Option<String>,
}

/// What the samples of the current segment are to be read as.
#[derive(Debug, Default)]
struct Plan {
    period_ns: Option<u64>,
    /// The segment's value that is the count, the one that is wall time, and where the others go.
    count: Option<usize>,
    wall: Option<usize>,
    own: Vec<(usize, usize)>,
    /// Whether the segment has samples, so that its plan has been noted.
    noted: bool,
}

/// How long the timed samples span, input by input.
#[derive(Debug, Default)]
struct Span {
    first_ns: Option<i64>,
    last_ns: i64,
    ended_ns: u64,
    /// The wall time of the very first sample.
    start_unix_ns: Option<i64>,
}

impl Span {
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

    /// Closes an input: the next one may count from another origin.
    fn end_input(&mut self) {
        if let Some(first) = self.first_ns.take() {
            self.ended_ns = self.ended_ns.saturating_add(self.last_ns.abs_diff(first));
        }
    }
}

impl<W: Write> Exporter<W> {
    /// An exporter to `output`.
    pub fn new(output: W, compression: Compression) -> Self {
        Self {
            output: Output::new(output, compression),
            rows: Rows::default(),
            plan: Plan::default(),
            own_types: Vec::new(),
            has_wall: false,
            periods: Vec::new(),
            span: Span::default(),
            input: 0,
            stated: StatedDuration::default(),
            metadata: Vec::new(),
            metadata_seen: HashSet::new(),
            thread_names: ThreadNames::default(),
            losses: Losses::default(),
            timed_samples: 0,
            untimed_wall: 0,
        }
    }

    fn plan(&mut self, segment: &Segment) {
        let is = |value_type: &ValueType, kind: &str, unit: &str| {
            value_type.kind == kind && value_type.unit == unit
        };
        let types = &segment.value_types;
        let count = types.iter().position(|value_type| is(value_type, "samples", "count"));
        let wall = types.iter().position(|value_type| is(value_type, "wall", "nanoseconds"));
        let mut own = Vec::new();
        for (index, value_type) in types.iter().enumerate() {
            if Some(index) == count || Some(index) == wall {
                continue;
            }
            let known = self.own_types.iter().position(|known| known == value_type);
            own.push((
                index,
                known.unwrap_or_else(|| {
                    self.own_types.push(value_type.clone());
                    self.own_types.len() - 1
                }),
            ));
        }
        self.rows.widen(self.own_types.len());
        // A segment that measures a time of its own (cpu, lock delay) is not given a wall time as well.
        let measures_time = types.iter().any(|value_type| nanoseconds_per(&value_type.unit).is_some());
        let period_ns = segment.period_ns.filter(|&period| period > 0 && !measures_time);
        self.plan = Plan { period_ns, count, wall, own, noted: false };
    }

    /// Notes a segment at its first sample: segments without samples have no say.
    #[cold]
    fn note_segment(&mut self, segment: &Segment) {
        self.plan.noted = true;
        self.has_wall |= self.plan.wall.is_some() || self.plan.period_ns.is_some();
        if let Some(period) = segment.period_ns.filter(|&period| period > 0)
            && self.periods.len() <= SHOWN_PERIODS
            && !self.periods.contains(&period)
        {
            self.periods.push(period);
        }
    }

    fn add_metadata(&mut self, tables: &Tables, key: StringId, value: StringId) {
        if let Some(duration_ns) = stated_ns(tables, (key, value)) {
            self.stated.take(self.input, duration_ns);
        } else if self.metadata_seen.insert((key, value)) {
            self.metadata.push((key, value));
        }
    }

    /// Everything about the profile that is not a sample.
    fn header(&self, symbols: &mut Symbols<'_>) -> Header {
        let mut types = vec![ValueType { kind: "samples".into(), unit: "count".into() }];
        if self.has_wall {
            types.push(wall_type());
        }
        types.extend(self.own_types.iter().cloned());
        let metadata = self.read_metadata(symbols.tables());
        // Without a default the tool shows the last type, which is what files with values of their own expect.
        let default_type = metadata.default_type.or_else(|| {
            let kind = if self.has_wall { "wall" } else { "samples" };
            self.own_types.is_empty().then(|| kind.to_owned())
        });
        let time_type = self.own_types.iter().find(|own| nanoseconds_per(&own.unit) == Some(1));
        let period_type =
            if self.has_wall { wall_type() } else { time_type.cloned().unwrap_or_else(wall_type) };
        Header::new(
            symbols,
            &types,
            &period_type,
            default_type.as_deref(),
            &metadata.comments,
            Facts {
                time_ns: self.span.start_unix_ns.unwrap_or(0),
                duration_ns: self.duration_ns(),
                period_ns: self.periods.first().map_or(0, |&period| clamp(u128::from(period))),
            },
        )
    }

    /// How long the profile took.
    ///
    /// With times: from the first sample to one period after the last, added up over the inputs, as
    /// `go tool pprof` does when it merges. Without: what the inputs say, added up as well; or else the wall time of
    /// the process and thread that has most, since the others ran beside it.
    fn duration_ns(&self) -> i64 {
        if self.span.ended_ns > 0 {
            return clamp(u128::from(self.span.ended_ns));
        }
        if let Some(stated) = self.stated.sum_ns() {
            return clamp(u128::from(stated));
        }
        let mut timelines = HashMap::new();
        for (row, _) in self.rows.iter() {
            let scope = self.rows.scopes()[row.scope];
            let sum: &mut i64 = timelines.entry((scope.process, scope.thread)).or_default();
            *sum = sum.saturating_add(row.wall_ns);
        }
        timelines.into_values().max().unwrap_or(0).max(0)
    }

    fn read_metadata(&self, tables: &Tables) -> FileMetadata {
        let mut file = FileMetadata::default();
        for &(key, value) in &self.metadata {
            let (key, value) = (tables.string(key), tables.string(value));
            let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
            match &*key {
                metadata::COMMENT => file.comments.push(value.into_owned()),
                metadata::DEFAULT_SAMPLE_TYPE => file.default_type = Some(value.into_owned()),
                _ => file.comments.push(format!("{key}={value}")),
            }
        }
        file.comments.extend(periods_comment(&self.periods));
        file
    }

    fn note_losses(&mut self, lost: &Losses) {
        self.losses.add("timestamps", self.timed_samples);
        if self.has_wall {
            self.losses.add("wall times of samples without a period", self.untimed_wall);
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
        let Sample { thread, interpreter, status, labels, .. } = *sample;
        let scope = Scope { process: at.process(sample), thread, interpreter, status, labels };
        let row = self.rows.row(sample.stack, &scope).ok_or_else(too_many_rows)?;
        let value = |column: Option<usize>| column.and_then(|index| sample.values.get(index).copied());
        let count = value(self.plan.count).unwrap_or_else(|| clamp(u128::from(sample.count)));
        let period = self.plan.period_ns;
        let derived = period.map(|period| clamp(u128::from(period) * u128::from(sample.count)));
        let wall_ns = value(self.plan.wall).or(derived);
        self.rows.add(row, count, wall_ns.unwrap_or(0));
        for &(from, to) in &self.plan.own {
            self.rows.add_value(row, to, sample.values.get(from).copied().unwrap_or(0));
        }
        if wall_ns.is_none() {
            self.untimed_wall = self.untimed_wall.saturating_add(sample.count);
        }
        if let Some(time_ns) = sample.time_ns {
            self.timed_samples = self.timed_samples.saturating_add(sample.count);
            self.span.take(time_ns, period.unwrap_or(0));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        if at.segment.index == 0 {
            self.span.end_input();
            self.input += 1;
        }
        self.plan(at.segment);
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
        let mut symbols = Symbols::new(tables);
        let header = self.header(&mut symbols);
        let labels = ScopeLabels::new(&mut symbols, self.rows.scopes(), &self.thread_names);
        for scope in self.rows.scopes() {
            labels.number(scope, &mut symbols);
        }
        self.rows.iter().for_each(|(row, _)| symbols.add_stack(row.stack));
        header.write_types(&mut self.output)?;
        let lost = symbols.write(&mut self.output)?;
        write_samples(&mut self.output, &self.rows, &mut symbols, &labels, self.has_wall)?;
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

fn wall_type() -> ValueType {
    ValueType { kind: "wall".into(), unit: "nanoseconds".into() }
}

/// A comment that names the periods where they differ: the format has room for one.
fn periods_comment(periods: &[u64]) -> Option<String> {
    if periods.len() < 2 {
        return None;
    }
    let shown: Vec<_> = periods.iter().take(SHOWN_PERIODS).map(u64::to_string).collect();
    let rest = if periods.len() > SHOWN_PERIODS { ",..." } else { "" };
    Some(format!("{PERIODS_COMMENT}{}{rest}", shown.join(",")))
}
