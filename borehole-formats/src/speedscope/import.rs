//! A document into the model.

use std::io::BufRead;

use borehole_model::{
    Context, Frame as ModelFrame, FrameId, ProfileSink, Recovery, Sample, Segment, StackId, Tables,
    ValueType as ModelValueType,
};

use super::NAME;
use super::layout::{Unit, Weights};
use super::read::{Document, DocumentSeed, Frame, Kind, Number, Profile};
use crate::document::Damage;
use crate::{Error, Position, ReadError, ReadOptions, json_document};

/// Reads a speedscope document; each profile becomes a segment.
///
/// What a weight becomes, in profiles of other programs: without a unit and whole, it is the count. A time
/// moves the clock, and is the count if all weights of the profile are multiples of the smallest, which is
/// then the period; otherwise it is the value `wall/nanoseconds` of one sample. Everything else is a value
/// `weight` of one sample.
///
/// # Errors
/// When the input is not such a document, is larger than the limit, or the sink fails. Positions are lines.
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = Damage::new(options);
    let mut document = Document::default();
    let seed = DocumentSeed(&mut document);
    if let Err(error) = json_document::parse(NAME, input, options.limits.document_bytes, seed) {
        damage.meet(error, 0)?;
    }
    let stacks = match intern_stacks(&document, tables) {
        Err(ReadError::Input(error)) => {
            damage.meet(error, 0)?;
            return damage.finish(sink);
        }
        stacks => stacks?,
    };
    for (index, profile) in (0..).zip(&document.profiles) {
        let entries = profile.samples.len();
        if profile.weights.len() != entries {
            let found = profile.weights.len();
            let message = format!("expected {entries} weights in profile {index}, found {found}");
            damage.meet(Error::malformed(NAME, Position::Whole, message), 0)?;
        }
        let reading = match Reading::of(profile) {
            Ok(reading) => reading,
            Err(error) => {
                damage.meet(error, 0)?;
                continue;
            }
        };
        let segment = segment(index, profile, &reading, tables)?;
        sink.segment(Context { tables, segment: &segment })?;
        damage.recovery.segments += 1;
        if reading.is_uncounted(profile) {
            damage.note_uncounted(&segment);
        }
        deliver(
            profile,
            &reading,
            &stacks,
            Context { tables, segment: &segment },
            sink,
            &mut damage.recovery,
        )?;
        if damage.recovery.stopped {
            break;
        }
    }
    damage.finish(sink)
}

/// The stack of each node, that of node 0 first.
fn intern_stacks(document: &Document, tables: &mut Tables) -> Result<Vec<Option<StackId>>, ReadError> {
    let rows = document.nodes.rows();
    let frames = document.frames.as_deref();
    if frames.is_none() && !rows.is_empty() {
        return Err(Error::malformed(NAME, Position::Whole, "missing field `shared`").into());
    }
    let frames = frames.unwrap_or_default();
    let frames = frames.iter().map(|frame| intern_frame(frame, tables)).collect::<Result<Vec<_>, _>>()?;
    let mut stacks = vec![None];
    for &(parent, frame) in rows {
        let &frame = frames.get(frame as usize).ok_or_else(|| {
            let count = frames.len();
            let message = format!("expected a frame below {count}, found {frame}");
            Error::malformed(NAME, Position::Whole, message)
        })?;
        let parent = stacks[parent as usize];
        stacks.push(Some(tables.intern_stack(parent, frame)?));
    }
    Ok(stacks)
}

fn intern_frame(frame: &Frame, tables: &mut Tables) -> Result<FrameId, ReadError> {
    let whole = |number: Option<Number>| number.map(|number| number.scaled(1));
    let function = tables.intern_string(frame.name.as_bytes())?;
    let file = match &frame.file {
        Some(file) => Some(tables.intern_string(file.as_bytes())?),
        None => None,
    };
    let column = whole(frame.col).and_then(|column| u32::try_from(column.saturating_sub(1)).ok());
    // -1 is how reli writes that it does not know.
    let line = whole(frame.line).filter(|&line| line != -1);
    Ok(tables.intern_frame(&ModelFrame { file, line, column, ..ModelFrame::named(function) })?)
}

/// What the weights of a profile mean.
#[derive(Debug)]
struct Reading {
    count: Count,
    period_ns: Option<u64>,
    /// How many nanoseconds a weight of 1 moves the clock; `None` where there is no clock.
    clock: Option<i64>,
    /// What is kept as a value, and what a weight of 1 is then.
    value: Option<(ModelValueType, i64)>,
}

/// How many samples an entry is.
#[derive(Clone, Copy, Debug)]
enum Count {
    One,
    Weight,
    /// The weight in nanoseconds, divided by this.
    Per(u64),
}

impl Reading {
    /// Profilers do not sample more often than this; a smaller common divisor comes from the clock.
    const SHORTEST_PERIOD_NS: u64 = 100_000;

    fn of(profile: &Profile) -> Result<Self, Error> {
        let unit = profile.unit;
        if profile.own.is_some() {
            return Ok(Self::of_own(profile));
        }
        let Some(factor) = unit.nanoseconds() else {
            let is_count = |weight: &Number| matches!(weight, Number::Whole(0..));
            return Ok(if unit == Unit::None && profile.weights.iter().all(is_count) {
                Self { count: Count::Weight, period_ns: None, clock: None, value: None }
            } else {
                let value = Some((value_type("weight", unit.name()), 1));
                Self { count: Count::One, period_ns: None, clock: None, value }
            });
        };
        if profile.weights.iter().any(|weight| weight.float() < 0.0) {
            return Err(Error::malformed(NAME, Position::Whole, "expected times of 0 or more, found less"));
        }
        let clock = Some(factor);
        Ok(match Self::common_period(profile, factor) {
            Some(period) => Self { count: Count::Per(period), period_ns: Some(period), clock, value: None },
            None => {
                let value = Some((value_type("wall", Unit::Nanoseconds.name()), factor));
                Self { count: Count::One, period_ns: None, clock, value }
            }
        })
    }

    /// The smallest weight, if all others are multiples of it: the profile was sampled at that period.
    fn common_period(profile: &Profile, factor: i64) -> Option<u64> {
        if profile.kind == Kind::Evented {
            return None;
        }
        let weights = || profile.weights.iter().map(|weight| weight.scaled(factor).unsigned_abs());
        let period = weights().filter(|&weight| weight > 0).min()?;
        let is_regular = period >= Self::SHORTEST_PERIOD_NS && weights().all(|weight| weight % period == 0);
        is_regular.then_some(period)
    }

    /// Whether entries are no samples, but have values. Samples of ours with times are.
    fn is_uncounted(&self, profile: &Profile) -> bool {
        let has_times = profile.own.as_ref().is_some_and(|own| own.weights == Weights::Times);
        matches!(self.count, Count::One) && self.value.is_some() && !has_times
    }

    fn of_own(profile: &Profile) -> Self {
        let own = profile.own.as_ref().expect("asked only for profiles that have it");
        let period_ns = own.period_ns.filter(|&period| period > 0);
        let (count, clock) = match own.weights {
            Weights::Counts => (Count::Weight, None),
            Weights::Periods => (period_ns.map_or(Count::One, Count::Per), None),
            Weights::Times => (Count::One, Some(1)),
            Weights::Values => (Count::One, None),
        };
        let value = own.value_type.as_ref().map(|(kind, unit)| (value_type(kind, unit), 1));
        Self { count, period_ns, clock, value }
    }
}

fn value_type(kind: &str, unit: &str) -> ModelValueType {
    ModelValueType { kind: kind.to_owned(), unit: unit.to_owned() }
}

fn segment(
    index: u64,
    profile: &Profile,
    reading: &Reading,
    tables: &mut Tables,
) -> Result<Segment, ReadError> {
    let mut metadata = Vec::new();
    let own = profile.own.as_ref();
    if own.is_none() && !profile.name.is_empty() {
        metadata.push((tables.intern_string(b"profile")?, tables.intern_string(profile.name.as_bytes())?));
    }
    Ok(Segment {
        format: NAME,
        index,
        period_ns: reading.period_ns,
        has_times: reading.clock.is_some(),
        start_unix_ns: own.and_then(|own| own.start_unix_ns),
        process: own.and_then(|own| own.process),
        metadata,
        value_types: reading.value.iter().map(|(value_type, _)| value_type.clone()).collect(),
        ..Segment::default()
    })
}

/// The entries of a profile: a node and a weight each.
fn entries(profile: &Profile) -> impl Iterator<Item = (u32, Number)> {
    // Nothing is open before the first event and after the last: the program ran none of its functions.
    let gap = |later: Option<Number>, earlier: Option<Number>| {
        let gap = later.zip(earlier).map(|(later, earlier)| later.since(earlier));
        gap.filter(|gap| gap.float() > 0.0).map(|gap| (0, gap))
    };
    let before = gap(profile.first_event, profile.start);
    let after = gap(profile.end, profile.last_event);
    let sampled = profile.samples.iter().copied().zip(profile.weights.iter().copied());
    before.into_iter().chain(sampled).chain(after)
}

fn deliver(
    profile: &Profile,
    reading: &Reading,
    stacks: &[Option<StackId>],
    at: Context<'_>,
    sink: &mut dyn ProfileSink,
    recovery: &mut Recovery,
) -> Result<(), ReadError> {
    let own = profile.own.as_ref();
    let counts = own.and_then(|own| own.counts.as_deref());
    let start = profile.start.unwrap_or(Number::Whole(0));
    let mut time_ns = reading.clock.map(|factor| start.scaled(factor));
    for (index, (node, weight)) in entries(profile).enumerate() {
        let passed_ns = reading.clock.map(|factor| weight.scaled(factor));
        let weighed = match reading.count {
            Count::One => 1,
            Count::Weight => weight.scaled(1).unsigned_abs(),
            Count::Per(period) => {
                weight.scaled(profile.unit.nanoseconds().unwrap_or(1)).unsigned_abs() / period
            }
        };
        let count = counts.and_then(|counts| counts.get(index)).copied().unwrap_or(weighed);
        let value = reading.value.as_ref().map(|&(_, factor)| weight.scaled(factor));
        let sample = Sample {
            stack: stacks[node as usize],
            count,
            time_ns,
            thread: own.and_then(|own| own.thread),
            values: value.as_slice(),
            ..Sample::default()
        };
        recovery.samples = recovery.samples.saturating_add(count);
        if sink.sample(at, &sample)?.is_break() {
            recovery.stopped = true;
            return Ok(());
        }
        time_ns = time_ns.map(|time| time.saturating_add(passed_ns.unwrap_or(0)));
    }
    Ok(())
}
