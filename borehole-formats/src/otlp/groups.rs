//! Which profiles of a document are about the same samples.
//!
//! A profile has one type of value. Who measures several writes as many profiles, with the same samples in the same
//! order: those are one segment again.

use super::layout::key;
use super::read::{Any, Document, Key, Profile, Sample};

/// Profiles of the same samples, one for each type of value.
#[derive(Debug)]
pub(super) struct Group<'d, 'a> {
    pub(super) profiles: Vec<&'d Profile<'a>>,
    /// The one whose values are numbers of samples.
    pub(super) count: Option<usize>,
    pub(super) has_times: bool,
    /// Whether its times count from a moment that nobody knows.
    pub(super) is_relative: bool,
    /// When its first sample was taken.
    pub(super) earliest_unix_ns: Option<u64>,
}

/// What a look at all samples of a profile shows.
#[derive(Debug, Default)]
struct Survey {
    has_negative: bool,
    earliest_unix_ns: Option<u64>,
}

impl Survey {
    /// A malformed sample is met again, and told of, when it is delivered.
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

/// The profiles of a document, put together.
pub(super) fn groups<'d, 'a>(document: &'d Document<'a>) -> Vec<Group<'d, 'a>> {
    let mut groups: Vec<Group<'d, 'a>> = Vec::new();
    for profile in &document.profiles {
        let survey = Survey::of(profile);
        // A name that is not there is met again when the segment is made.
        let text = |index| document.string(index, profile.offset).unwrap_or_default();
        let (kind, unit) = (text(profile.sample_type.kind), text(profile.sample_type.unit));
        // A difference of two profiles has negative counts, which the model keeps as values.
        let counts = matches!(kind, b"samples" | b"sample") && unit == b"count" && !survey.has_negative;
        match groups.last_mut().filter(|group| group.takes(profile)) {
            Some(group) => {
                group.count = group.count.or(counts.then_some(group.profiles.len()));
                group.profiles.push(profile);
            }
            None => groups.push(Group {
                profiles: vec![profile],
                count: counts.then_some(0),
                has_times: survey.earliest_unix_ns.is_some(),
                is_relative: is_relative(document, profile),
                earliest_unix_ns: survey.earliest_unix_ns,
            }),
        }
    }
    groups
}

/// Whether the exporter says that it did not know when its clock began.
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

impl Group<'_, '_> {
    /// Whether a profile is about the samples of this group, and measures something else.
    fn takes(&self, profile: &Profile<'_>) -> bool {
        let facts = |profile: &Profile<'_>| {
            let Profile { resource, scope, time_unix_ns, duration_ns, period, .. } = *profile;
            (resource, scope, time_unix_ns, duration_ns, period)
        };
        let name = |profile: &Profile<'_>| (profile.sample_type.kind, profile.sample_type.unit);
        let first = self.profiles[0];
        facts(first) == facts(profile)
            && first.attributes == profile.attributes
            && self.profiles.iter().all(|known| name(known) != name(profile))
            && has_same_samples(first, profile)
    }
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
