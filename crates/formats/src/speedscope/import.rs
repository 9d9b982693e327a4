//! Imports a document into the model.

use std::io::BufRead;

use borehole_model::{
    Context, Frame, FrameId, LaneId, LaneName, Mode, ProfileSink, Recovery, Sample, Segment, StackId,
    StringId, Tables, Thread, ValueType, Warning,
};

use super::NAME;
use super::layout::{Unit, WeightMeaning, clamped, keys};
use super::read::{
    DocumentSeed, JsonNumber, ParsedDocument, ParsedProfile, ProfileExtras, ProfileType, SharedFrame,
};
use crate::documents::json::{self, JsonMemory};
use crate::documents::whole::DocumentDamage;
use crate::{Error, Position, ReadError, ReadOptions};

/// Reads a speedscope document; each profile becomes a segment and a lane.
///
/// Weights of profiles of other programs: a whole number without a unit is the count. A time moves the clock, and is
/// the count if all weights of the profile are multiples of the smallest, which is then the period; otherwise it is the
/// value `wall/nanoseconds` of one record. Everything else is a value `weight` of one record.
///
/// # Errors
/// If the input is not such a document or exceeds the limit, or the sink fails. Positions are lines.
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = DocumentDamage::new(options);
    let mut document = ParsedDocument::default();
    document.oddities.is_lenient = options.is_lenient();
    let memory = JsonMemory::new(options.limits);
    let seed = DocumentSeed { document: &mut document, memory: &memory };
    if let Err(error) = json::parse(NAME, input, &memory, seed) {
        damage.meet(error, 0)?;
    }
    for message in document.oddities.messages.drain(..) {
        damage.recovery.warn(Warning::new(message));
    }
    damage.recovery.more_warnings = damage.recovery.more_warnings.saturating_add(document.oddities.more);
    let stacks = match intern_stacks(&document, tables) {
        Err(ReadError::Input(error)) => {
            damage.meet(error, 0)?;
            return damage.finish(sink);
        }
        stacks => stacks?,
    };
    let several = document.profile_count > 1;
    for profile in &document.profiles {
        look_for_damage(profile, &mut damage)?;
        let reading = WeightReading::of(profile);
        let lane = ProfileLane::of(profile, several);
        let segment = segment(damage.recovery.segments, profile, &reading, &lane, tables)?;
        sink.segment(Context { tables, segment: &segment })?;
        damage.recovery.segments += 1;
        if let Some((number, name)) = lane.thread.zip(lane.name) {
            let name = tables.intern_string(name.as_bytes())?;
            let thread = Thread { process: lane.process, number };
            sink.thread(Context { tables, segment: &segment }, thread, name)?;
        }
        let at = Context { tables, segment: &segment };
        ProfileDelivery { profile, reading: &reading, lane: &lane, stacks: &stacks }.run(
            at,
            sink,
            &mut damage.recovery,
        )?;
        if damage.recovery.stopped {
            break;
        }
    }
    damage.finish(sink)
}

/// Warns of oddities in a profile, or ends the reading.
fn look_for_damage(profile: &ParsedProfile, damage: &mut DocumentDamage) -> Result<(), Error> {
    let ParsedProfile { index, open_frames, .. } = profile;
    let malformed = |message| Error::malformed(NAME, Position::Whole, message);
    let (entries, found) = (profile.samples.len(), profile.weights.len());
    if found != entries {
        let message = format!("expected {entries} weights in profile {index}, found {found}");
        damage.meet(malformed(message), 0)?;
    }
    let is_negative = |weight: &JsonNumber| weight.float() < 0.0;
    let is_sampled = profile.kind == ProfileType::Sampled;
    if is_sampled && profile.unit.nanoseconds().is_some() && profile.weights.iter().any(is_negative) {
        damage.recovery.note(Warning::new(format!("profile {index} has negative times")));
    }
    if let Some(unit) = &profile.other_unit {
        let message = format!("unknown unit in profile {index}: \"{}\"", unit.escape_debug());
        damage.recovery.note(Warning::new(message));
    }
    if *open_frames > 0 {
        // As in other formats, a cut-off end ends the data, and is not an error.
        let message = format!(
            "truncated: profile {index} ends with {open_frames} open frames, which end with the profile"
        );
        damage.recovery.warn(Warning::truncated(message));
    }
    let is_rounded = profile.unit.nanoseconds().is_none() && profile.weights.iter().any(|w| !w.is_whole());
    if is_rounded {
        damage
            .recovery
            .note(Warning::new(format!("weights of profile {index} are rounded to whole numbers")));
    }
    Ok(())
}

/// The process and thread of a profile.
#[derive(Debug)]
struct ProfileLane<'d> {
    process: Option<i64>,
    thread: Option<u64>,
    interpreter: Option<u64>,
    /// The name of the thread.
    name: Option<&'d str>,
}

impl<'d> ProfileLane<'d> {
    /// The lane of a profile. Profiles without a thread are threads of their own if there are several.
    fn of(profile: &'d ParsedProfile, several: bool) -> Self {
        if let Some(own) = &profile.own {
            let (process, thread, interpreter) = (own.process, own.thread, own.interpreter);
            return Self { process, thread, interpreter, name: own.thread_name.as_deref() };
        }
        let LaneName { process, thread, name } = LaneName::parse(&profile.name);
        let thread = thread.or_else(|| several.then_some(LaneId::Profile(profile.index)));
        Self { process, thread: thread.map(LaneId::to_u64), interpreter: None, name }
    }
}

/// The stack of each node, from node 0 on.
fn intern_stacks(document: &ParsedDocument, tables: &mut Tables) -> Result<Vec<Option<StackId>>, ReadError> {
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

fn intern_frame(frame: &SharedFrame, tables: &mut Tables) -> Result<FrameId, ReadError> {
    let whole = |number: Option<JsonNumber>| number.map(|number| number.scaled(1));
    let function = tables.intern_string(frame.name.as_bytes())?;
    let file = match &frame.file {
        Some(file) => Some(tables.intern_string(file.as_bytes())?),
        None => None,
    };
    let column = whole(frame.col).and_then(|column| u32::try_from(column.saturating_sub(1)).ok());
    // reli writes -1 for an unknown line.
    let line = whole(frame.line).filter(|&line| line != -1);
    Ok(tables.intern_frame(&Frame { file, line, column, ..Frame::named(function) })?)
}

/// The interpretation of a profile's weights.
#[derive(Debug)]
struct WeightReading {
    count: EntryCount,
    period_ns: Option<u64>,
    /// The factor from weights to nanoseconds for times, otherwise 1.
    factor: u32,
    has_clock: bool,
    /// The value type of weights kept as values, and their divisor.
    value: Option<(ValueType, i64)>,
    is_uncounted: bool,
}

/// The count of an entry.
#[derive(Clone, Copy, Debug)]
enum EntryCount {
    One,
    Weight,
    /// The weight in nanoseconds, divided by this.
    Per(u64),
}

impl WeightReading {
    /// The shortest period of profilers; a smaller common divisor comes from the clock.
    const SHORTEST_PERIOD_NS: u64 = 100_000;

    fn of(profile: &ParsedProfile) -> Self {
        if let Some(own) = &profile.own {
            return Self::of_own(own, profile.unit);
        }
        match profile.unit.nanoseconds() {
            Some(factor) => Self::of_times(profile, factor),
            None => Self::of_numbers(profile),
        }
    }

    fn of_numbers(profile: &ParsedProfile) -> Self {
        let is_count = |weight: &JsonNumber| weight.is_whole() && weight.float() >= 0.0;
        let is_position = |at: &JsonNumber| at.is_whole();
        let is_counted = profile.unit == Unit::None
            && profile.other_unit.is_none()
            && match profile.kind {
                ProfileType::Sampled => profile.weights.iter().all(is_count),
                ProfileType::Evented => profile.weights.iter().all(is_position),
            };
        let unit = profile.other_unit.as_deref().unwrap_or_else(|| profile.unit.name());
        Self {
            count: if is_counted { EntryCount::Weight } else { EntryCount::One },
            period_ns: None,
            factor: 1,
            has_clock: false,
            value: (!is_counted).then(|| (ValueType::new("weight", unit), 1)),
            is_uncounted: !is_counted,
        }
    }

    fn of_times(profile: &ParsedProfile, factor: u32) -> Self {
        let period_ns = Self::common_period(profile, factor.into());
        Self {
            count: period_ns.map_or(EntryCount::One, EntryCount::Per),
            period_ns,
            factor,
            has_clock: true,
            value: period_ns.is_none().then(|| (ValueType::time(Mode::Wall), 1)),
            is_uncounted: period_ns.is_none(),
        }
    }

    /// The smallest weight, if all others are multiples of it: the profile was sampled at that period.
    fn common_period(profile: &ParsedProfile, factor: i64) -> Option<u64> {
        if profile.kind == ProfileType::Evented {
            return None;
        }
        let weights = || profile.weights.iter().map(|weight| weight.scaled(factor));
        let period = weights().filter(|&weight| weight > 0).min()?.unsigned_abs();
        let is_multiple =
            |weight: i64| u64::try_from(weight).is_ok_and(|weight| weight.is_multiple_of(period));
        (period >= Self::SHORTEST_PERIOD_NS && weights().all(is_multiple)).then_some(period)
    }

    fn of_own(own: &ProfileExtras, unit: Unit) -> Self {
        let period_ns = own.period_ns.filter(|&period| period > 0);
        let per_period = || period_ns.map_or(EntryCount::One, EntryCount::Per);
        let (count, is_time) = match own.weights {
            WeightMeaning::Counts => (EntryCount::Weight, false),
            WeightMeaning::Periods => (per_period(), false),
            WeightMeaning::Durations => (per_period(), true),
            WeightMeaning::Times => (EntryCount::One, true),
            WeightMeaning::Values => (EntryCount::One, false),
        };
        let value = own.value_type.as_ref().map(|(kind, unit)| {
            let value_type = ValueType::new(kind, unit);
            let per_unit = value_type.nanoseconds_per_unit().filter(|_| is_time).unwrap_or(1);
            (value_type, i64::try_from(per_unit).unwrap_or(1))
        });
        Self {
            // An entry with its own time is one record, unless the counts say otherwise.
            count: if is_time && value.is_some() { EntryCount::One } else { count },
            period_ns,
            factor: if is_time { unit.nanoseconds().unwrap_or(1) } else { 1 },
            has_clock: is_time || own.timed,
            value,
            is_uncounted: own.uncounted.unwrap_or(own.weights == WeightMeaning::Values),
        }
    }
}

fn segment(
    index: u64,
    profile: &ParsedProfile,
    reading: &WeightReading,
    lane: &ProfileLane<'_>,
    tables: &mut Tables,
) -> Result<Segment, ReadError> {
    let own = profile.own.as_ref();
    let mode = own.and_then(|own| Mode::named(own.mode.as_deref()?));
    Ok(Segment {
        format: NAME,
        index,
        period_ns: reading.period_ns,
        has_times: reading.has_clock,
        start_unix_ns: own.and_then(|own| own.start_unix_ns),
        process: lane.process,
        metadata: if own.is_none_or(|own| own.named) {
            metadata(profile, reading, tables)?
        } else {
            Vec::new()
        },
        mode: mode.unwrap_or_default(),
        value_types: reading.value.iter().map(|(value_type, _)| value_type.clone()).collect(),
        is_uncounted: reading.is_uncounted,
        ..Segment::default()
    })
}

/// Adds metadata about the form of another program's profile.
fn metadata(
    profile: &ParsedProfile,
    reading: &WeightReading,
    tables: &mut Tables,
) -> Result<Vec<(StringId, StringId)>, ReadError> {
    let factor = reading.factor.into();
    let start = profile.start.map(|start| start.scaled(factor));
    let base = start.filter(|_| reading.has_clock).unwrap_or(0);
    let has_no_place = !reading.has_clock && start.is_some_and(|start| start != 0);
    let end =
        entries(profile, factor).fold(i128::from(base), |end, (_, weight)| end + i128::from(weight.max(0)));
    let is_elsewhere = profile.end.is_some_and(|stated| i128::from(stated.scaled(factor)) != end);
    let is_other = profile.unit.nanoseconds().is_some_and(|factor| factor > 1);
    let number = |number: Option<JsonNumber>, is_kept: bool| {
        number.filter(|_| is_kept).map(|number| number.to_string())
    };
    let facts = [
        (keys::NAME, Some(profile.name.clone())),
        (keys::UNIT, is_other.then(|| profile.unit.name().to_owned())),
        (keys::TYPE, (profile.kind == ProfileType::Evented).then(|| "evented".to_owned())),
        (keys::START, number(profile.start, has_no_place)),
        (keys::END, number(profile.end, is_elsewhere)),
    ];
    let mut metadata = Vec::new();
    for (key, value) in facts {
        if let Some(value) = value {
            metadata.push((tables.intern_string(key.as_bytes())?, tables.intern_string(value.as_bytes())?));
        }
    }
    Ok(metadata)
}

/// The entries of a profile: each a node and a weight, in nanoseconds for times.
fn entries(profile: &ParsedProfile, factor: i64) -> impl Iterator<Item = (u32, i64)> {
    let ParsedProfile { start, first_event, last_event, end, .. } = profile;
    let is_evented = first_event.is_some();
    let scaled = move |number: JsonNumber| number.scaled(factor);
    let mut at = first_event.map_or(0, scaled);
    // No frame is open before the first event.
    let before = start.filter(|_| is_evented).map(|start| (0, at.saturating_sub(scaled(start))));
    let after =
        last_event.zip(*end).map(|(last, end)| (profile.open_node, scaled(end).saturating_sub(scaled(last))));
    let all = profile.samples.iter().zip(&profile.weights).map(move |(&node, &weight)| {
        let end = weight.scaled(factor);
        let weight = if is_evented { end.saturating_sub(std::mem::replace(&mut at, end)) } else { end };
        (node, weight)
    });
    let takes_time = |&(_, weight): &(u32, i64)| weight > 0;
    before.filter(takes_time).into_iter().chain(all).chain(after.filter(takes_time))
}

/// A profile that is being delivered to a sink.
struct ProfileDelivery<'d> {
    profile: &'d ParsedProfile,
    reading: &'d WeightReading,
    lane: &'d ProfileLane<'d>,
    stacks: &'d [Option<StackId>],
}

impl ProfileDelivery<'_> {
    fn run(
        &self,
        at: Context<'_>,
        sink: &mut dyn ProfileSink,
        recovery: &mut Recovery,
    ) -> Result<(), ReadError> {
        let Self { profile, reading, lane, stacks } = self;
        let own = profile.own.as_deref();
        let late = own.and_then(|own| own.late.as_deref()).unwrap_or_default();
        let mut progress = Progress::of(profile, reading);
        for (index, (node, weight)) in entries(profile, reading.factor.into()).enumerate() {
            let count = self.count(index, weight);
            let time_ns = progress.pass(weight, late.get(index).copied().unwrap_or(0));
            if count == 0 && node == 0 && own.is_some_and(|own| own.weights == WeightMeaning::Durations) {
                // Not a sample: this fills the time until the next one.
                continue;
            }
            let value = reading.value.as_ref().map(|&(_, divisor)| weight / divisor);
            let sample = Sample {
                stack: stacks[node as usize],
                count,
                time_ns,
                thread: lane.thread,
                interpreter: lane.interpreter,
                values: value.as_slice(),
                ..Sample::default()
            };
            recovery.samples = recovery.samples.saturating_add(count);
            if sink.sample(at, &sample)?.is_break() {
                recovery.stopped = true;
                return Ok(());
            }
        }
        Ok(())
    }

    fn count(&self, index: usize, weight: i64) -> u64 {
        let counts = self.profile.own.as_ref().and_then(|own| own.counts.as_deref());
        let weighed = || match self.reading.count {
            EntryCount::One => 1,
            EntryCount::Weight => weight.unsigned_abs(),
            EntryCount::Per(period) => weight.unsigned_abs() / period,
        };
        counts.and_then(|counts| counts.get(index)).copied().unwrap_or_else(weighed)
    }
}

/// The current time of a profile.
enum Progress {
    /// The profile has no times.
    Nowhere,
    /// Weights are not times: the time of the entry before.
    Stamped(i64),
    /// The end of the entries before.
    Passed(i128),
}

impl Progress {
    fn of(profile: &ParsedProfile, reading: &WeightReading) -> Self {
        let is_timed = profile.own.as_ref().is_some_and(|own| own.timed);
        let start = profile.start.map_or(0, |start| start.scaled(reading.factor.into()));
        match reading.has_clock {
            false => Self::Nowhere,
            true if is_timed => Self::Stamped(0),
            true => Self::Passed(start.into()),
        }
    }

    /// The time of the next entry, which is `late_ns` after its position.
    fn pass(&mut self, weight: i64, late_ns: i64) -> Option<i64> {
        match self {
            Self::Nowhere => None,
            Self::Stamped(time_ns) => {
                *time_ns = time_ns.wrapping_add(late_ns);
                Some(*time_ns)
            }
            Self::Passed(end_ns) => {
                let place = clamped(*end_ns);
                *end_ns += i128::from(weight.max(0));
                Some(place.wrapping_add(late_ns))
            }
        }
    }
}
