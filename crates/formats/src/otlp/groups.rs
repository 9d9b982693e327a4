//! Groups the profiles of a document that have the same samples.
//!
//! A profile has one value type. Writers that measure several write as many profiles, with the same samples in the same
//! order: those form one segment again.

use borehole_model::{Measure, Mode, ValueType, nanoseconds_per};
use hashbrown::HashSet;

use super::layout::key;
use super::read::{self, Any, Document, Key, Profile, Sample};

/// Profiles of the same samples, one for each value type.
#[derive(Debug)]
pub(super) struct Group<'d, 'a> {
    pub(super) profiles: Vec<&'d Profile<'a>>,
    names: HashSet<(u64, u64)>,
    /// The profile whose values count samples. It may be among the values too.
    pub(super) count: Option<usize>,
    /// The profiles kept as values.
    pub(super) own: Vec<usize>,
    pub(super) mode: Mode,
    pub(super) default_measure: Option<Measure>,
    pub(super) has_times: bool,
    /// Whether its times have an unknown origin.
    pub(super) is_relative: bool,
    /// The time of its first sample.
    pub(super) earliest_unix_ns: Option<u64>,
}

/// The findings of a pass over all samples of a profile.
#[derive(Debug, Default)]
struct Survey {
    has_negative: bool,
    earliest_unix_ns: Option<u64>,
}

impl Survey {
    /// Surveys a profile. A malformed sample is reported later, when it is delivered.
    fn of(profile: &Profile<'_>) -> Self {
        let (mut survey, mut sample, mut samples) = (Self::default(), Sample::default(), profile.samples());
        while samples.next_sample(&mut sample).unwrap_or(true) {
            survey.has_negative |= sample.values.iter().any(|value| value.is_negative());
            let earliest = sample.times_unix_ns.iter().copied().min();
            survey.earliest_unix_ns = match (survey.earliest_unix_ns, earliest) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        survey
    }
}

/// The groups of a document's profiles: those of CPU time first, then those of wall time, then all others. Consumers
/// that add up only one kind take the first one.
pub(super) fn groups<'d, 'a>(document: &'d Document<'a>) -> Vec<Group<'d, 'a>> {
    let mut groups: Vec<Group<'d, 'a>> = Vec::new();
    for profile in &document.profiles {
        let survey = Survey::of(profile);
        // A difference of two profiles has negative counts, which the model keeps as values.
        let counts = value_type(document, profile).is_samples() && !survey.has_negative;
        match groups.last_mut().filter(|group| group.takes(profile)) {
            Some(group) => {
                group.count = group.count.or(counts.then_some(group.profiles.len()));
                group.names.insert(name_of(profile));
                group.profiles.push(profile);
            }
            None => groups.push(Group {
                profiles: vec![profile],
                names: HashSet::from_iter([name_of(profile)]),
                count: counts.then_some(0),
                own: Vec::new(),
                mode: Mode::default(),
                default_measure: None,
                has_times: survey.earliest_unix_ns.is_some(),
                is_relative: is_relative(document, profile),
                earliest_unix_ns: survey.earliest_unix_ns,
            }),
        }
    }
    groups.iter_mut().for_each(|group| group.settle(document));
    groups.sort_by_cached_key(|group| group.rank(document));
    groups
}

const fn name_of(profile: &Profile<'_>) -> (u64, u64) {
    (profile.sample_type.kind, profile.sample_type.unit)
}

/// The value type of a profile. A missing name is reported later, when the segment is created.
pub(super) fn value_type(document: &Document<'_>, profile: &Profile<'_>) -> ValueType {
    let text = |index| String::from_utf8_lossy(document.string(index, profile.offset).unwrap_or_default());
    let read::ValueType { kind, unit } = profile.sample_type;
    ValueType::new(text(kind), text(unit))
}

/// Whether the exporter states that the start of its clock was unknown.
fn is_relative(document: &Document<'_>, profile: &Profile<'_>) -> bool {
    let attributes = profile.attributes.iter().filter_map(|&index| usize::try_from(index).ok());
    let mut attributes = attributes.filter_map(|index| document.attributes.get(index));
    attributes.any(|attribute| {
        let Key::Index(index) = attribute.key else { return false };
        let mut says = false;
        let _ = attribute.each_value(|value| says |= value == Any::Text(key::RELATIVE.as_bytes()));
        says && document.string(index, attribute.offset).is_ok_and(|name| name == key::CLOCK.as_bytes())
    })
}

/// The kind that a profile names as its default.
fn default_type<'a>(document: &Document<'a>, profile: &Profile<'_>) -> Option<&'a [u8]> {
    let attributes = profile.attributes.iter().filter_map(|&index| usize::try_from(index).ok());
    let mut attributes = attributes.filter_map(|index| document.attributes.get(index));
    attributes.find_map(|attribute| {
        let Key::Index(index) = attribute.key else { return None };
        let name = document.string(index, attribute.offset).ok()?;
        let mut kind = None;
        let _ = attribute.each_value(|value| match value {
            Any::Text(text) => kind = Some(text),
            Any::Index(index) => kind = document.string(index, attribute.offset).ok(),
            _ => {}
        });
        kind.filter(|_| name == key::DEFAULT_TYPE.as_bytes())
    })
}

impl Group<'_, '_> {
    /// Decides the roles of the profiles, once all are there.
    fn settle(&mut self, document: &Document<'_>) {
        let types: Vec<_> = self.profiles.iter().map(|profile| value_type(document, profile)).collect();
        if !self.counts_all() {
            self.count = None;
        }
        let is_other = |own: &ValueType| !own.is_samples();
        let is_implied =
            self.count == Some(0) && types[0] == ValueType::samples() && types[1..].iter().all(is_other);
        self.own = (usize::from(is_implied)..types.len()).collect();
        let is_time = |own: &&ValueType| own.nanoseconds_per_unit().is_some();
        let mut measured = types.iter().filter(is_time).filter_map(|own| Mode::named(&own.kind));
        self.mode = period_mode(document, self.profiles[0]).or_else(|| measured.next()).unwrap_or_default();
        let time = |mode: Mode| types.iter().position(|own| own.kind == mode.name() && is_time(&own));
        let named = default_type(document, self.profiles[0]);
        let named = named.and_then(|name| types.iter().position(|own| own.kind.as_bytes() == name));
        let default = named.or_else(|| time(Mode::Cpu)).or_else(|| time(Mode::Wall));
        self.default_measure = default.map(|column| match self.own.binary_search(&column) {
            Ok(own) => Measure::Value(own),
            Err(_) => Measure::Count,
        });
    }

    /// Whether every record with values counts samples.
    fn counts_all(&self) -> bool {
        let Some(count) = self.count.filter(|_| self.profiles.len() > 1) else { return true };
        let mut readers: Vec<_> = self.profiles.iter().map(|profile| profile.samples()).collect();
        let mut records = vec![Sample::default(); readers.len()];
        loop {
            for (reader, record) in readers.iter_mut().zip(&mut records) {
                // These are the same samples, which have been read once before.
                if !reader.next_sample(record).unwrap_or(false) {
                    return true;
                }
            }
            let is_zero = |place: usize| records[count].values.get(place) == Some(&0);
            let has_value = |place: usize| {
                let value = |record: &Sample| record.values.get(place).is_none_or(|&value| value != 0);
                records.iter().enumerate().any(|(column, record)| column != count && value(record))
            };
            if (0..records[count].values.len()).any(|place| is_zero(place) && has_value(place)) {
                return false;
            }
        }
    }

    /// The group's position in the order of all groups.
    fn rank(&self, document: &Document<'_>) -> usize {
        let types = self.profiles.iter().map(|profile| value_type(document, profile));
        let times = types.filter(|own| own.nanoseconds_per_unit().is_some());
        let mut modes: Vec<_> = times.filter_map(|own| Mode::named(&own.kind)).collect();
        if self.count.is_some() {
            modes.extend(period_mode(document, self.profiles[0]));
        }
        let ranks = [Mode::Cpu, Mode::Wall];
        ranks.iter().position(|mode| modes.contains(mode)).unwrap_or(ranks.len())
    }

    /// Whether a profile has the samples of this group, and another value type.
    fn takes(&self, profile: &Profile<'_>) -> bool {
        let facts = |profile: &Profile<'_>| {
            let Profile { resource, scope, time_unix_ns, duration_ns, period, .. } = *profile;
            (resource, scope, time_unix_ns, duration_ns, period)
        };
        let first = self.profiles[0];
        facts(first) == facts(profile)
            && first.attributes == profile.attributes
            && !self.names.contains(&name_of(profile))
            && has_same_samples(first, profile)
    }
}

/// The mode of a profile's period, if that is a time.
fn period_mode(document: &Document<'_>, profile: &Profile<'_>) -> Option<Mode> {
    let text = |index| document.string(index, profile.offset).ok().and_then(|text| str::from_utf8(text).ok());
    let mode = Mode::named(text(profile.period_type.kind)?)?;
    nanoseconds_per(text(profile.period_type.unit)?).map(|_| mode)
}

fn has_same_samples(one: &Profile<'_>, other: &Profile<'_>) -> bool {
    let (mut ours, mut theirs) = (Sample::default(), Sample::default());
    let (mut our_samples, mut their_samples) = (one.samples(), other.samples());
    loop {
        match (our_samples.next_sample(&mut ours), their_samples.next_sample(&mut theirs)) {
            (Ok(false), Ok(false)) => return true,
            (Ok(true), Ok(true)) if is_same(&ours, &theirs) => {}
            _ => return false,
        }
    }
}

fn is_same(one: &Sample, other: &Sample) -> bool {
    one.stack == other.stack
        && one.link == other.link
        && one.attributes == other.attributes
        && one.times_unix_ns == other.times_unix_ns
}
