//! Exports the model to a document.

use std::io::{self, Read, Seek, Write};
use std::num::NonZeroU32;
use std::ops::ControlFlow;

use borehole_model::{
    Context, Lasting, Measure, ProfileSink, Sample, Sampled, Segment, StackId, StringId, Tables, Thread,
    ThreadNames, ValueType, Weigher,
};
use hashbrown::HashMap;

use super::NAME;
use super::document::Document;
use super::layout::{Unit, Weights, keys};
use super::names::Names;
use super::shown::ShownStacks;
use super::track::{Key, Origin, Taken, Track};
use super::utf8::Utf8Errors;
use crate::chains::Spool;
use crate::json_stream::JsonStream;
use crate::{Export, Losses};

/// The options of an export to speedscope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// The handling of names that are not UTF-8.
    pub utf8_errors: Utf8Errors,
    /// The name of the value type that weighs samples. `None` for each profile's own default, since a document can hold
    /// profiles of several units.
    pub value: Option<String>,
}

/// Writes a speedscope document: a profile for each [lane](borehole_model::Lane), and for each profile of a document
/// that was read from this format.
///
/// A sample with a time weighs as long as it [lasts](Lasting), and if a period or more passes until the next one, an
/// entry without a stack separates them. Other samples weigh their profile's default measure. Adjacent samples with
/// equal stacks become one entry.
///
/// Entries wait in a temporary file that `make_spool` supplies, so memory grows with the distinct stacks and not with
/// the samples. Nothing is written before `finish`.
///
/// # Examples
///
/// ```
/// use borehole_formats::speedscope::{ExportOptions, Exporter};
/// use borehole_model::{Context, ProfileSink as _, Sample, Segment, Tables};
///
/// let (tables, segment) = (Tables::default(), Segment::default());
/// let mut file = Vec::new();
/// let make_spool = || Ok(std::io::Cursor::new(Vec::new()));
/// let mut exporter = Exporter::new(&mut file, ExportOptions::default(), make_spool);
/// let at = Context { tables: &tables, segment: &segment };
/// exporter.segment(at)?;
/// let _ = exporter.sample(at, &Sample { count: 3, ..Sample::default() })?;
/// exporter.finish(&tables)?;
/// assert!(String::from_utf8(file).unwrap().contains("\"weights\":[3]"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Exporter<W, S, F> {
    output: JsonStream<W>,
    options: ExportOptions,
    spool: Spool<S, F>,
    tracks: Vec<Track>,
    track_index: HashMap<Key, usize>,
    current: usize,
    weigher: Weigher,
    plan: Plan,
    profiles: u64,
    value_types: Vec<ValueType>,
    /// The stacks of samples, only the first of those with equal text; by stack, its index there plus one; and the same
    /// by the number of its text.
    stacks: Vec<StackId>,
    places: Vec<u32>,
    shown: ShownStacks,
    shown_places: HashMap<NonZeroU32, u32>,
    thread_names: ThreadNames,
    lost: Lost,
    losses: Losses,
}

/// The weights of the current segment's samples.
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    /// The duration of samples with a time; `None` if their number is not a time.
    lasting: Option<Lasting>,
    /// The measure of samples without a time.
    measure: Option<Measure>,
    /// The index of the type of that number, or of the duration, in `value_types`.
    value: Option<usize>,
    profile: Option<u64>,
    origin: Origin,
}

impl Plan {
    fn column(&self, is_timed: bool) -> Option<usize> {
        match (is_timed, self.lasting, self.measure) {
            (true, Some(Lasting::Value { column, .. }), _) => Some(column),
            (true, Some(_), _) => None,
            (_, _, Some(Measure::Value(column))) => Some(column),
            _ => None,
        }
    }

    /// The kind of weights of a segment's samples.
    fn weights(&self, is_timed: bool) -> Weights {
        match (is_timed, self.lasting, self.measure) {
            (true, Some(Lasting::UntilNext), _) => Weights::Times,
            (true, Some(_), _) => Weights::Durations,
            (_, _, Some(Measure::Value(_))) => Weights::Values,
            (_, _, Some(Measure::Time)) => Weights::Periods,
            (_, _, Some(Measure::Count) | None) => Weights::Counts,
        }
    }

    /// The minimum delay after the end of the sample before that counts as a gap.
    fn gap_ns(&self, lasts_ns: u64) -> u64 {
        match (self.lasting, self.origin.name, self.origin.period_ns) {
            (Some(Lasting::Value { .. }), Some(_), _) => 1,
            (_, _, Some(period_ns)) => period_ns,
            _ => (lasts_ns / 2).max(1),
        }
    }
}

/// The parts of samples that could not be kept.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    labels: u64,
    statuses: u64,
    values: u64,
    metadata: u64,
}

impl<W, S, F> Exporter<W, S, F>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    /// Creates an exporter to `output`. `make_spool` creates an empty temporary file; it is called at most once, and
    /// not for profiles of a few thousand entries.
    pub fn new(output: W, options: ExportOptions, make_spool: F) -> Self {
        Self {
            output: JsonStream::new(output),
            weigher: Weigher::new(options.value.as_deref(), Sampled::Time),
            options,
            spool: Spool::new(make_spool),
            tracks: Vec::new(),
            track_index: HashMap::new(),
            current: 0,
            plan: Plan::default(),
            profiles: 0,
            value_types: Vec::new(),
            stacks: Vec::new(),
            places: Vec::new(),
            shown: ShownStacks::default(),
            shown_places: HashMap::new(),
            thread_names: ThreadNames::default(),
            lost: Lost::default(),
            losses: Losses::default(),
        }
    }

    /// Decides the weights of a segment's samples.
    fn plan(&mut self, at: Context<'_>) {
        let segment = at.segment;
        self.weigher.segment(segment);
        let is_own = segment.format == NAME;
        let is_asked = self.options.value.is_some();
        let measure = if is_asked { self.weigher.measure() } else { Some(segment.default_measure()) };
        let lasting = measure.and_then(|measure| self.lasting(segment, measure));
        self.profiles += u64::from(is_own);
        let profile = is_own.then_some(self.profiles);
        let plan = Plan { lasting, measure, profile, ..Plan::default() };
        let column = plan.column(true).or(plan.column(false));
        let value_type = column.and_then(|column| segment.value_types.get(column));
        let mut origin = Origin {
            unit: value_type.map_or(Unit::None, |own| unit_of(&own.unit)),
            period_ns: segment.period_ns.filter(|&period_ns| period_ns > 0),
            start_unix_ns: segment.start_unix_ns,
            is_uncounted: segment.is_uncounted,
            ..Origin::default()
        };
        let read = if is_own { read_facts(&mut origin, at) } else { 0 };
        self.lost.metadata += (segment.metadata.len() - read) as u64;
        let value = value_type.map(|own| self.value_place(own));
        self.plan = Plan { value, origin, ..plan };
    }

    /// The duration of samples with a time, if the chosen number is a time, or if their count was not asked for.
    fn lasting(&self, segment: &Segment, measure: Measure) -> Option<Lasting> {
        let is_asked = self.options.value.is_some();
        let is_default = measure == segment.default_measure() && !is_asked;
        match measure {
            Measure::Count => (!is_asked).then(|| Lasting::of(segment)),
            Measure::Time => segment.period_ns.map(Lasting::Period),
            Measure::Value(column) => {
                let factor = segment.value_type(measure).nanoseconds_per_unit()?;
                Some(if is_default { Lasting::of(segment) } else { Lasting::Value { column, factor } })
            }
        }
    }

    /// The index of a value type among those that weigh samples.
    fn value_place(&mut self, value_type: &ValueType) -> usize {
        let known = self.value_types.iter().position(|known| known == value_type);
        known.unwrap_or_else(|| {
            self.value_types.push(value_type.clone());
            self.value_types.len() - 1
        })
    }

    #[inline]
    fn weigh(&mut self, at: Context<'_>, sample: &Sample<'_>) -> (Key, Taken) {
        let plan = self.plan;
        let is_timed = sample.time_ns.is_some();
        let weights = plan.weights(is_timed);
        let weight = match (weights, plan.lasting, plan.measure) {
            (Weights::Counts, ..) => sample.count,
            (Weights::Times | Weights::Durations, Some(lasting), _) => lasting.ns(sample).unwrap_or(0),
            // The viewer rejects negative weights.
            (_, _, Some(measure)) => u64::try_from(measure.of(at.segment, sample)).unwrap_or(0),
            _ => 0,
        };
        let value = plan.column(is_timed).and(plan.value);
        let mode = at.segment.mode;
        let key = Key { lane: at.lane(sample), profile: plan.profile, weights, value, is_timed, mode };
        let stack = self.place(sample.stack, at.tables).into();
        let (count, time_ns, period_ns) = (sample.count, sample.time_ns, plan.origin.period_ns);
        (key, Taken { stack, count, weight, time_ns, period_ns, gap_ns: plan.gap_ns(weight) })
    }

    /// The track of `key`, created if it is new.
    #[inline]
    fn track(&mut self, key: Key, first: &Taken) -> usize {
        if self.tracks.get(self.current).is_some_and(|track| track.key == key) {
            return self.current;
        }
        let Self { tracks, track_index, plan, .. } = self;
        self.current = *track_index.entry(key).or_insert_with(|| {
            tracks.push(Track::new(key, plan.origin, first));
            tracks.len() - 1
        });
        self.current
    }

    /// The index of a stack among those of samples, plus one; 0 for the empty stack.
    #[inline]
    fn place(&mut self, stack: Option<StackId>, tables: &Tables) -> u32 {
        let Some(stack) = stack else { return 0 };
        match self.places.get(stack.index()) {
            Some(&place) if place != 0 => place,
            _ => self.new_place(stack, tables),
        }
    }

    #[cold]
    fn new_place(&mut self, stack: StackId, tables: &Tables) -> u32 {
        if self.places.len() <= stack.index() {
            self.places.resize(stack.index() + 1, 0);
        }
        let Self { stacks, shown_places, shown, .. } = self;
        let place = *shown_places.entry(shown.number(stack, tables)).or_insert_with(|| {
            stacks.push(stack);
            u32::try_from(stacks.len()).expect("there are as many stacks as ids at most")
        });
        self.places[stack.index()] = place;
        place
    }

    #[cold]
    fn note_losses(&mut self, sample: &Sample<'_>) {
        let column = self.plan.column(sample.time_ns.is_some());
        let is_kept = sample.values.is_empty()
            || (column == Some(0) && matches!(sample.values, &[value] if value >= 0));
        let Lost { labels, statuses, values, .. } = &mut self.lost;
        for (sum, is_lost) in
            [(labels, sample.labels.is_some()), (statuses, sample.status.is_some()), (values, !is_kept)]
        {
            *sum = sum.saturating_add(if is_lost { sample.count } else { 0 });
        }
    }

    fn close_tracks(&mut self) -> io::Result<()> {
        self.tracks.iter_mut().try_for_each(|track| track.close(&mut self.spool))
    }

    fn sum_losses(&mut self, of_names: &Losses) {
        let Lost { labels, statuses, values, metadata } = self.lost;
        self.losses.add("annotations", labels);
        self.losses.add("thread states", statuses);
        self.losses.add("measured values", values);
        self.losses.add("metadata entries", metadata);
        of_names.iter().for_each(|(what, count)| self.losses.add(what, count));
        self.losses.add("exact times of samples", self.tracks.iter().map(|track| track.moved).sum());
        self.losses.add("samples of other value types", self.weigher.hidden_samples());
    }
}

/// The unit in which a value is written.
fn unit_of(name: &str) -> Unit {
    let short = match name {
        "ns" | "nanosecond" => "nanoseconds",
        "us" | "microsecond" => "microseconds",
        "ms" | "millisecond" => "milliseconds",
        "s" | "second" => "seconds",
        "byte" => "bytes",
        name => name,
    };
    Unit::named(short).unwrap_or_default()
}

/// Takes the facts about the original profile from a segment's metadata; returns their number.
fn read_facts(origin: &mut Origin, at: Context<'_>) -> usize {
    let mut read = 0;
    for &(key, value) in &at.segment.metadata {
        let text = std::str::from_utf8(at.tables.string(value)).unwrap_or_default();
        let is_number =
            text.parse::<f64>().is_ok_and(f64::is_finite) && serde_json::from_str::<f64>(text).is_ok();
        match std::str::from_utf8(at.tables.string(key)) {
            Ok(keys::NAME) => origin.name = Some(value),
            Ok(keys::UNIT) => origin.unit = unit_of(text),
            Ok(keys::TYPE) => origin.is_evented = text == "evented",
            Ok(keys::START) if is_number => origin.start = Some(value),
            Ok(keys::END) if is_number => origin.end = Some(value),
            _ => continue,
        }
        read += 1;
    }
    read
}

impl<W, S, F> ProfileSink for Exporter<W, S, F>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    #[inline]
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if self.options.value.is_some() && self.weigher.weigh(at, sample).is_none() {
            return Ok(ControlFlow::Continue(()));
        }
        if sample.labels.is_some() || sample.status.is_some() || !sample.values.is_empty() {
            self.note_losses(sample);
        }
        let (key, taken) = self.weigh(at, sample);
        let track = self.track(key, &taken);
        self.tracks[track].take(&taken, &mut self.spool)?;
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        if at.segment.index == 0 {
            // Another input has another clock.
            self.close_tracks()?;
        }
        self.plan(at);
        Ok(())
    }

    fn metadata(&mut self, _at: Context<'_>, _key: StringId, _value: StringId) -> io::Result<()> {
        self.lost.metadata += 1;
        Ok(())
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.thread_names.name(thread, name);
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.close_tracks()?;
        let Self { output, spool, tracks, value_types, stacks, thread_names, .. } = self;
        let names = Names::of_stacks(tables, stacks);
        let utf8_errors = self.options.utf8_errors;
        let mut document =
            Document { output, spool, tables, utf8_errors, value_types, stacks, thread_names, names };
        let of_names = document.write(tracks)?;
        self.sum_losses(&of_names);
        self.output.finish()
    }
}

impl<W, S, F> Export for Exporter<W, S, F>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    fn losses(&self) -> Losses {
        self.losses.clone()
    }
}
