//! Exports the model to a document.

use std::io::{self, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Context, Lane, Lasting, Measure, ProfileSink, Sample, Sampled, Segment, StringId, Tables, Thread,
    ThreadNames, ValueType, Weigher,
};

use super::NAME;
use super::document::SpeedscopeWriter;
use super::layout::{Unit, WeightMeaning, keys};
use super::names::{FrameList, ShownStacks, Utf8Errors};
use super::track::{ProfileTrack, TrackKey, TrackOrigin, TrackSample};
use crate::documents::chains::SampleSpool;
use crate::documents::json_stream::JsonStream;
use crate::documents::numbered::Numbered;
use crate::registry::MakeSpool;
use crate::sums::losses::SampleLosses;
use crate::{Export, Losses};

/// The options of an export to speedscope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// The handling of names that are not UTF-8.
    pub utf8_errors: Utf8Errors,
    /// The name of the value type that weighs samples. `None` for each profile's own default, since a document can hold
    /// profiles of several units.
    pub value: Option<String>,
    /// Whether all lanes are one profile, in which samples have no times: lanes may overlap.
    pub is_combined: bool,
}

/// Writes a speedscope document: a profile for each [lane](borehole_model::Lane), and for each profile of a document
/// that was read from this format, or one profile of all if that is asked for.
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
/// let mut exporter =
///     Exporter::new(&mut file, ExportOptions::default(), || Ok(Box::new(std::io::Cursor::new(Vec::new()))));
/// let at = Context { tables: &tables, segment: &segment };
/// exporter.segment(at)?;
/// let _ = exporter.sample(at, &Sample { count: 3, ..Sample::default() })?;
/// exporter.finish(&tables)?;
/// assert!(String::from_utf8(file).unwrap().contains("\"weights\":[3]"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Exporter<W> {
    output: JsonStream<W>,
    options: ExportOptions,
    spool: SampleSpool,
    track_keys: Numbered<TrackKey>,
    /// By the number of their key.
    tracks: Vec<ProfileTrack>,
    weigher: Weigher,
    plan: WeightPlan,
    /// The number of profiles from sources of this format so far.
    profiles: u64,
    /// The value types that weigh samples.
    value_types: Numbered<ValueType>,
    shown: ShownStacks,
    thread_names: ThreadNames,
    lost: SampleLosses,
    /// The losses of names, known at the end.
    lost_in_names: Losses,
}

/// The weights of the current segment's samples.
#[derive(Clone, Copy, Debug, Default)]
struct WeightPlan {
    /// The duration of samples with a time; `None` if their number is not a time.
    lasting: Option<Lasting>,
    /// The measure of samples without a time.
    measure: Option<Measure>,
    /// The index of the type of that number, or of the duration, in `value_types`.
    value: Option<usize>,
    profile: Option<u64>,
    origin: TrackOrigin,
}

impl WeightPlan {
    fn column(&self, is_timed: bool) -> Option<usize> {
        match (is_timed, self.lasting, self.measure) {
            (true, Some(Lasting::Value { column, .. }), _) => Some(column),
            (true, Some(_), _) => None,
            (_, _, Some(Measure::Value(column))) => Some(column),
            _ => None,
        }
    }

    /// The kind of weights of a segment's samples.
    fn weights(&self, is_timed: bool) -> WeightMeaning {
        match (is_timed, self.lasting, self.measure) {
            (true, Some(Lasting::UntilNext), _) => WeightMeaning::Times,
            (true, Some(_), _) => WeightMeaning::Durations,
            (_, _, Some(Measure::Value(_))) => WeightMeaning::Values,
            (_, _, Some(Measure::Time)) => WeightMeaning::Periods,
            (_, _, Some(Measure::Count) | None) => WeightMeaning::Counts,
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

impl<W: Write> Exporter<W> {
    /// Creates an exporter to `output`. `make_spool` is called at most once, and not for profiles of a few thousand
    /// entries.
    pub fn new(output: W, options: ExportOptions, make_spool: MakeSpool) -> Self {
        Self {
            output: JsonStream::new(output),
            weigher: Weigher::new(options.value.as_deref(), Sampled::Time),
            options,
            spool: SampleSpool::new(make_spool),
            track_keys: Numbered::default(),
            tracks: Vec::new(),
            plan: WeightPlan::default(),
            profiles: 0,
            value_types: Numbered::default(),
            shown: ShownStacks::default(),
            thread_names: ThreadNames::default(),
            lost: SampleLosses::default(),
            lost_in_names: Losses::default(),
        }
    }

    /// Decides the weights of a segment's samples.
    fn plan(&mut self, at: Context<'_>) {
        let segment = at.segment;
        self.weigher.segment(segment);
        let is_own = segment.format == NAME && !self.options.is_combined;
        let is_asked = self.options.value.is_some();
        let measure = if is_asked { self.weigher.measure() } else { Some(segment.default_measure()) };
        let lasting = measure.and_then(|measure| self.lasting(segment, measure));
        self.profiles += u64::from(is_own);
        let profile = is_own.then_some(self.profiles);
        let plan = WeightPlan { lasting, measure, profile, ..WeightPlan::default() };
        let column = plan.column(true).or(plan.column(false));
        let value_type = column.and_then(|column| segment.value_types.get(column));
        let mut origin = TrackOrigin {
            unit: value_type.map_or(Unit::None, |own| unit_of(&own.unit)),
            period_ns: segment.period_ns.filter(|&period_ns| period_ns > 0),
            start_unix_ns: segment.start_unix_ns,
            is_uncounted: segment.is_uncounted,
            ..TrackOrigin::default()
        };
        let read = if is_own { read_facts(&mut origin, at) } else { 0 };
        self.lost.add_metadata(segment.metadata.len() - read);
        let value = value_type.map(|own| self.value_types.number(own.clone()));
        self.plan = WeightPlan { value, origin, ..plan };
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

    #[inline]
    fn weigh(&mut self, at: Context<'_>, sample: &Sample<'_>) -> (TrackKey, TrackSample) {
        let plan = self.plan;
        let is_combined = self.options.is_combined;
        let lane = if is_combined { Lane::default() } else { at.lane(sample) };
        let time_ns = sample.time_ns.filter(|_| !is_combined);
        let is_timed = time_ns.is_some();
        let weights = plan.weights(is_timed);
        let weight = match (weights, plan.lasting, plan.measure) {
            (WeightMeaning::Counts, ..) => sample.count,
            (WeightMeaning::Times | WeightMeaning::Durations, Some(lasting), _) => {
                lasting.ns(sample).unwrap_or(0)
            }
            // The viewer rejects negative weights.
            (_, _, Some(measure)) => u64::try_from(measure.of(at.segment, sample)).unwrap_or(0),
            _ => 0,
        };
        let value = plan.column(is_timed).and(plan.value);
        let mode = at.segment.mode;
        let key = TrackKey { lane, profile: plan.profile, weights, value, is_timed, mode };
        let stack = sample.stack.map_or(0, |stack| self.shown.place(stack, at.tables).get().into());
        let (count, period_ns) = (sample.count, plan.origin.period_ns);
        (key, TrackSample { stack, count, weight, time_ns, period_ns, gap_ns: plan.gap_ns(weight) })
    }

    #[cold]
    fn note_losses(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        let is_combined = self.options.is_combined;
        let column = self.plan.column(sample.time_ns.is_some() && !is_combined);
        let is_kept = column == Some(0) && matches!(sample.values, &[value] if value >= 0);
        let values = if is_kept { &[] } else { sample.values };
        let rest = Sample { values, ..*sample };
        if is_combined {
            return self.lost.all_but_stack(at, &rest);
        }
        self.lost.extras(&rest);
    }

    fn close_tracks(&mut self) -> io::Result<()> {
        self.tracks.iter_mut().try_for_each(|track| track.close(&mut self.spool))
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
fn read_facts(origin: &mut TrackOrigin, at: Context<'_>) -> usize {
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

impl<W: Write> ProfileSink for Exporter<W> {
    #[inline]
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if self.options.value.is_some() && self.weigher.weigh(at, sample).is_none() {
            return Ok(ControlFlow::Continue(()));
        }
        let has_more = sample.labels.is_some() || sample.status.is_some() || !sample.values.is_empty();
        if has_more || self.options.is_combined {
            self.note_losses(at, sample);
        }
        let (key, taken) = self.weigh(at, sample);
        let track = self.track_keys.number(key);
        if track == self.tracks.len() {
            self.tracks.push(ProfileTrack::new(key, self.plan.origin, &taken));
        }
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

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.thread_names.name(thread, name);
        Ok(())
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.lost)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.close_tracks()?;
        let Self { output, spool, tracks, value_types, shown, thread_names, .. } = self;
        let names = FrameList::of_stacks(tables, &shown.stacks);
        let utf8_errors = self.options.utf8_errors;
        let (stacks, value_types) = (&shown.stacks, value_types.values());
        let mut document =
            SpeedscopeWriter { output, spool, tables, utf8_errors, value_types, stacks, thread_names, names };
        self.lost_in_names = document.write(tracks)?;
        self.output.finish()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        let mut losses = self.lost.report();
        self.lost_in_names.iter().for_each(|(what, count)| losses.add(what, count));
        losses.add("exact times of samples", self.tracks.iter().map(|track| track.moved).sum());
        losses.add("samples of other value types", self.weigher.hidden_samples());
        losses
    }
}
