//! Groups the profiles of a document that have the same samples.
//!
//! A profile has one value type. Writers that measure several write as many profiles, with the same samples in the same
//! order: those form one segment again.

use borehole_model::{Measure, Mode, ValueType};
use hashbrown::HashSet;

use super::layout::key;
use super::read::{Any, Attribute, AttributeKey, OtlpDocument, OtlpProfile, OtlpSample};
use crate::symbols::read::TypeIndexes;
use crate::symbols::resolve::SymbolDocument as _;
use crate::times::stated_period::StatedPeriod;

/// Profiles of the same samples, one for each value type.
#[derive(Debug)]
pub(super) struct Group<'d, 'a> {
    pub(super) profiles: Vec<&'d OtlpProfile<'a>>,
    names: HashSet<TypeIndexes>,
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
struct ProfileSurvey {
    has_negative: bool,
    earliest_unix_ns: Option<u64>,
}

impl ProfileSurvey {
    /// Surveys a profile. A malformed sample is reported later, when it is delivered.
    fn of(profile: &OtlpProfile<'_>) -> Self {
        let (mut survey, mut sample, mut samples) =
            (Self::default(), OtlpSample::default(), profile.samples());
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
pub(super) fn groups<'d, 'a>(document: &'d OtlpDocument<'a>) -> Vec<Group<'d, 'a>> {
    let mut groups: Vec<Group<'d, 'a>> = Vec::new();
    for profile in &document.profiles {
        let survey = ProfileSurvey::of(profile);
        // A difference of two profiles has negative counts, which the model keeps as values.
        let counts = value_type(document, profile).is_samples() && !survey.has_negative;
        match groups.last_mut().filter(|group| group.takes(profile)) {
            Some(group) => {
                group.count = group.count.or(counts.then_some(group.profiles.len()));
                group.names.insert(profile.sample_type);
                group.profiles.push(profile);
            }
            None => groups.push(Group {
                profiles: vec![profile],
                names: HashSet::from_iter([profile.sample_type]),
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

/// The value type of a profile. A missing name is reported later, when the segment is created.
pub(super) fn value_type(document: &OtlpDocument<'_>, profile: &OtlpProfile<'_>) -> ValueType {
    document.value_type(profile.sample_type, profile.offset).unwrap_or_default()
}

/// The period of a profile. A missing name is reported later, when the segment is created.
fn stated_period(document: &OtlpDocument<'_>, profile: &OtlpProfile<'_>) -> StatedPeriod {
    let period_type = document.value_type(profile.period_type, profile.offset).unwrap_or_default();
    StatedPeriod { period: profile.period, period_type }
}

/// Whether the exporter states that the start of its clock was unknown.
fn is_relative(document: &OtlpDocument<'_>, profile: &OtlpProfile<'_>) -> bool {
    let named = attributes_named(document, profile, key::CLOCK);
    named.into_iter().any(|attribute| {
        let mut says = false;
        let _ = attribute.each_value(|value| says |= value == Any::Text(key::RELATIVE.as_bytes()));
        says
    })
}

/// The kind that a profile names as its default.
fn default_type<'a>(document: &OtlpDocument<'a>, profile: &OtlpProfile<'_>) -> Option<&'a [u8]> {
    attributes_named(document, profile, key::DEFAULT_TYPE).into_iter().find_map(|attribute| {
        let mut kind = None;
        let _ = attribute.each_value(|value| match value {
            Any::Text(text) => kind = Some(text),
            Any::Index(index) => kind = document.string(index, attribute.offset).ok(),
            _ => {}
        });
        kind
    })
}

/// The attributes of a profile with a name. Missing ones are reported later, when the segment is created.
fn attributes_named<'d, 'a>(
    document: &'d OtlpDocument<'a>,
    profile: &OtlpProfile<'_>,
    name: &str,
) -> Vec<&'d Attribute<'a>> {
    let is_named = |attribute: &&Attribute<'a>| match attribute.key {
        AttributeKey::Index(index) => {
            document.string(index, attribute.offset).is_ok_and(|text| text == name.as_bytes())
        }
        AttributeKey::Text(_) => false,
    };
    let indices = profile.attributes.iter().filter_map(|&index| usize::try_from(index).ok());
    indices.filter_map(|index| document.attributes.get(index)).filter(is_named).collect()
}

impl Group<'_, '_> {
    /// Decides the roles of the profiles, once all are there.
    fn settle(&mut self, document: &OtlpDocument<'_>) {
        let types: Vec<_> = self.profiles.iter().map(|profile| value_type(document, profile)).collect();
        if !self.counts_all() {
            self.count = None;
        }
        let is_other = |own: &ValueType| !own.is_samples();
        let is_implied =
            self.count == Some(0) && types[0] == ValueType::samples() && types[1..].iter().all(is_other);
        self.own = (usize::from(is_implied)..types.len()).collect();
        self.mode = stated_period(document, self.profiles[0]).mode_with(&types);
        let is_time = |own: &ValueType| own.nanoseconds_per_unit().is_some();
        let time = |mode: Mode| types.iter().position(|own| own.kind == mode.name() && is_time(own));
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
        let mut records = vec![OtlpSample::default(); readers.len()];
        loop {
            for (reader, record) in readers.iter_mut().zip(&mut records) {
                // These are the same samples, which have been read once before.
                if !reader.next_sample(record).unwrap_or(false) {
                    return true;
                }
            }
            let is_zero = |place: usize| records[count].values.get(place) == Some(&0);
            let has_value = |place: usize| {
                let value = |record: &OtlpSample| record.values.get(place).is_none_or(|&value| value != 0);
                records.iter().enumerate().any(|(column, record)| column != count && value(record))
            };
            if (0..records[count].values.len()).any(|place| is_zero(place) && has_value(place)) {
                return false;
            }
        }
    }

    /// The group's position in the order of all groups.
    fn rank(&self, document: &OtlpDocument<'_>) -> usize {
        let types = self.profiles.iter().map(|profile| value_type(document, profile));
        let times = types.filter(|own| own.nanoseconds_per_unit().is_some());
        let mut modes: Vec<_> = times.filter_map(|own| Mode::named(&own.kind)).collect();
        if self.count.is_some() {
            modes.extend(stated_period(document, self.profiles[0]).mode());
        }
        let ranks = [Mode::Cpu, Mode::Wall];
        ranks.iter().position(|mode| modes.contains(mode)).unwrap_or(ranks.len())
    }

    /// Whether a profile has the samples of this group, and another value type.
    fn takes(&self, profile: &OtlpProfile<'_>) -> bool {
        let facts = |profile: &OtlpProfile<'_>| {
            let OtlpProfile { resource, scope, time_unix_ns, duration_ns, period, .. } = *profile;
            (resource, scope, time_unix_ns, duration_ns, period)
        };
        let first = self.profiles[0];
        facts(first) == facts(profile)
            && first.attributes == profile.attributes
            && !self.names.contains(&profile.sample_type)
            && has_same_samples(first, profile)
    }
}

fn has_same_samples(one: &OtlpProfile<'_>, other: &OtlpProfile<'_>) -> bool {
    let (mut ours, mut theirs) = (OtlpSample::default(), OtlpSample::default());
    let (mut our_samples, mut their_samples) = (one.samples(), other.samples());
    loop {
        match (our_samples.next_sample(&mut ours), their_samples.next_sample(&mut theirs)) {
            (Ok(false), Ok(false)) => return true,
            (Ok(true), Ok(true)) if is_same(&ours, &theirs) => {}
            _ => return false,
        }
    }
}

fn is_same(one: &OtlpSample, other: &OtlpSample) -> bool {
    one.stack == other.stack
        && one.link == other.link
        && one.attributes == other.attributes
        && one.times_unix_ns == other.times_unix_ns
}
