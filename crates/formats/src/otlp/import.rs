//! Imports a document into the model.

use std::io::BufRead;

use borehole_memory::HeldBytes as _;
use borehole_model::{
    CodePlaces, Context, NativeModule, ProfileSink, Recovery, Sample, Segment, StringId, Tables, ThreadNames,
    Warning,
};

use super::NAME;
use super::attributes::{Properties, name_of, text, values};
use super::documents::{Documents, PackedDocument};
use super::groups::{Group, groups, value_type};
use super::layout::{SCOPE, key};
use super::read::{Any, Attribute, OtlpDocument, OtlpSample, OtlpSamples, at, malformed};
use super::resolve::StackResolver;
use crate::documents::samples::ResolvedSample;
use crate::documents::whole::DocumentDamage;
use crate::symbols::resolve::SymbolDocument as _;
use crate::times::stated_duration;
use crate::times::stated_period::{self, StatedPeriod};
use crate::{Error, Position, ReadError, ReadOptions};

/// Reads decompressed profiles of OpenTelemetry: `ProfilesData`, or the request that carries them to a collector, in
/// binary form or as JSON, or several of them in one input.
///
/// Each profile becomes a segment; profiles of one scope with the same samples and different values become one segment
/// with several values. Those of CPU time come first, then those of wall time, then the others of the document. Samples
/// with times come in the order of time. Attributes become labels, except for those that name process and thread; so do
/// the attributes that distinguish resources. Other attributes of the resource and of the profile become metadata.
///
/// A file that is cut off is an error, since samples refer to later parts of it.
///
/// # Errors
/// If the input is not such a document or exceeds the limit, or the sink fails.
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut documents = Documents::new(input, options.limits)?;
    let mut state = ImportState { damage: DocumentDamage::new(options), ..ImportState::default() };
    let places = options.code_places;
    while let Some(piece) = documents.next_piece(&mut state.damage)? {
        state.damage.line = piece.line;
        import_document(&piece, places, &mut state, tables, sink)?;
        state.damage.line = None;
        if state.damage.recovery.stopped {
            break;
        }
    }
    state.finish(sink)
}

/// The state shared by the documents of an input.
#[derive(Default)]
struct ImportState {
    damage: DocumentDamage,
    /// The origin of the clock; 0 if unknown.
    origin_unix_ns: u64,
    properties: Properties,
    thread_names: ThreadNames,
}

impl ImportState {
    fn finish(mut self, sink: &mut dyn ProfileSink) -> Result<Recovery, ReadError> {
        if self.properties.nested > 0 {
            let message = format!("{} nested attribute values not read", self.properties.nested);
            self.damage.recovery.note(Warning::new(message));
        }
        self.damage.finish(sink)
    }
}

fn import_document(
    piece: &PackedDocument,
    places: CodePlaces,
    state: &mut ImportState,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<(), ReadError> {
    let document = OtlpDocument::read(piece.base, &piece.bytes, &mut state.damage)?;
    let groups = groups(&document);
    if state.origin_unix_ns == 0 {
        state.origin_unix_ns = origin(&groups);
    }
    let mut importer = GroupImporter { resolver: StackResolver::new(&document, places, tables), state, sink };
    for group in &groups {
        importer.group(group)?;
        if importer.state.damage.recovery.stopped {
            break;
        }
    }
    Ok(())
}

/// The start of the first profile: the origin of the clock that all segments share.
fn origin(groups: &[Group<'_, '_>]) -> u64 {
    let known = groups.iter().filter(|group| !group.is_relative);
    let times = known.flat_map(|group| {
        let stated = Some(group.profiles[0].time_unix_ns).filter(|&time| time > 0);
        stated.into_iter().chain(group.earliest_unix_ns)
    });
    times.min().unwrap_or(0)
}

struct GroupImporter<'d, 'a> {
    resolver: StackResolver<'d, 'a>,
    state: &'d mut ImportState,
    sink: &'d mut dyn ProfileSink,
}

/// A pending observation: files group observations by stack, but sinks need them by time.
struct Observation {
    time_ns: i64,
    sample: usize,
    count: u64,
    /// The index of its values.
    values: usize,
}

/// The observations of a group that have times.
#[derive(Default)]
struct HeldObservations {
    samples: Vec<Sample<'static>>,
    observations: Vec<Observation>,
    values: Vec<i64>,
}

impl HeldObservations {
    fn held_bytes(&self) -> usize {
        self.samples.held_bytes() + self.observations.held_bytes() + self.values.held_bytes()
    }
}

impl<'a> GroupImporter<'_, 'a> {
    fn group(&mut self, group: &Group<'_, 'a>) -> Result<(), ReadError> {
        let segment = match self.segment(group) {
            Err(ReadError::Input(error)) => return Ok(self.state.damage.meet(error, 0)?),
            segment => segment?,
        };
        self.sink.segment(Context { tables: self.resolver.symbols.tables, segment: &segment })?;
        self.state.damage.recovery.segments += 1;
        let mut readers: Vec<_> = group.profiles.iter().map(|profile| profile.samples()).collect();
        let mut records = vec![OtlpSample::default(); readers.len()];
        let mut held = HeldObservations::default();
        loop {
            let taken = match next(&mut readers, &mut records) {
                Ok(false) => break,
                Ok(true) => self.records(group, &segment, &records, &mut held),
                Err(error) => Err(error.into()),
            };
            match taken {
                Ok(()) if self.state.damage.recovery.stopped => return Ok(()),
                Ok(()) => {}
                Err(ReadError::Input(error)) => self.state.damage.meet(error, 0)?,
                Err(error) => return Err(error),
            }
        }
        self.deliver(group, &segment, held)
    }

    /// The corresponding sample of each profile of a group.
    fn records(
        &mut self,
        group: &Group<'_, 'a>,
        segment: &Segment,
        records: &[OtlpSample],
        held: &mut HeldObservations,
    ) -> Result<(), ReadError> {
        records.iter().try_for_each(check_lengths)?;
        let resolved = self.state.properties.resolve(&records[0], &mut self.resolver)?;
        let at = Context { tables: self.resolver.symbols.tables, segment };
        resolved.name_thread(at, &mut self.state.thread_names, self.sink)?;
        if records[0].times_unix_ns.is_empty() {
            return self.timeless(group, segment, records, &resolved);
        }
        self.state
            .damage
            .limits
            .check(held.held_bytes())
            .map_err(|over| Error::memory(NAME, Position::Byte(records[0].offset), over))?;
        held.samples.push(resolved.sample);
        for (index, &time) in records[0].times_unix_ns.iter().enumerate() {
            let time_ns = self.time(group, time, records[0].offset)?;
            // Without values each observation counts once.
            let value = |record: &OtlpSample| record.values.get(index).copied().unwrap_or(1);
            let count = group.count.map_or(1, |column| value(&records[column]).unsigned_abs());
            let (sample, start) = (held.samples.len() - 1, held.values.len());
            held.values.extend(own(group, records).map(value));
            held.observations.push(Observation { time_ns, sample, count, values: start });
        }
        Ok(())
    }

    fn time(&self, group: &Group<'_, 'a>, time_unix_ns: u64, offset: u64) -> Result<i64, Error> {
        if group.is_relative {
            return Ok(time_unix_ns.cast_signed());
        }
        i64::try_from(i128::from(time_unix_ns) - i128::from(self.state.origin_unix_ns))
            .map_err(|_| malformed(offset, format!("expected a time below 2^63, found {time_unix_ns}")))
    }

    /// Delivers a sum without times at once.
    fn timeless(
        &mut self,
        group: &Group<'_, 'a>,
        segment: &Segment,
        records: &[OtlpSample],
        resolved: &ResolvedSample,
    ) -> Result<(), ReadError> {
        let sum =
            |record: &OtlpSample| record.values.iter().fold(0_i64, |sum, &value| sum.saturating_add(value));
        let values: Vec<_> = own(group, records).map(sum).collect();
        // An uncounted record is one record.
        let count = group.count.map_or(1, |column| sum(&records[column]).unsigned_abs());
        let sample = Sample { count, values: &values, ..resolved.sample };
        self.give(segment, &sample)
    }

    fn deliver(
        &mut self,
        group: &Group<'_, 'a>,
        segment: &Segment,
        mut held: HeldObservations,
    ) -> Result<(), ReadError> {
        let width = group.own.len();
        held.observations.sort_by_key(|observation| observation.time_ns);
        for &Observation { time_ns, sample, count, values } in &held.observations {
            let values = &held.values[values..values + width];
            let sample = Sample { count, values, time_ns: Some(time_ns), ..held.samples[sample] };
            self.give(segment, &sample)?;
            if self.state.damage.recovery.stopped {
                break;
            }
        }
        Ok(())
    }

    fn give(&mut self, segment: &Segment, sample: &Sample<'_>) -> Result<(), ReadError> {
        let at = Context { tables: self.resolver.symbols.tables, segment };
        let recovery = &mut self.state.damage.recovery;
        recovery.samples = recovery.samples.saturating_add(sample.count);
        recovery.stopped = self.sink.sample(at, sample)?.is_break();
        Ok(())
    }

    fn segment(&mut self, group: &Group<'_, 'a>) -> Result<Segment, ReadError> {
        let document = self.resolver.symbols.document;
        let first = group.profiles[0];
        for profile in &group.profiles {
            document.value_type(profile.sample_type, profile.offset)?;
        }
        let period_type = document.value_type(first.period_type, first.offset)?;
        let stated = StatedPeriod { period: first.period, period_type };
        let start = Some(self.state.origin_unix_ns).filter(|&origin| origin > 0 && !group.is_relative);
        let mut segment = Segment {
            format: NAME,
            index: self.state.damage.recovery.segments,
            period_ns: stated.ns(),
            has_times: group.has_times,
            start_unix_ns: start.and_then(|origin| i64::try_from(origin).ok()),
            mode: group.mode,
            value_types: group.own.iter().map(|&own| value_type(document, group.profiles[own])).collect(),
            default_measure: group.default_measure,
            is_uncounted: group.count.is_none(),
            ..Segment::default()
        };
        self.facts(group, &mut segment)?;
        for module in &self.resolver.symbols.files.texts.clone() {
            self.note(NativeModule::KEY, module.as_bytes(), &mut segment)?;
        }
        if let Some(period) = stated.metadata(group.mode, &segment.value_types, true) {
            self.note(stated_period::KEY, period.as_bytes(), &mut segment)?;
        }
        Ok(segment)
    }

    /// Adds a metadata entry.
    fn note(&mut self, key: &str, value: &[u8], segment: &mut Segment) -> Result<(), ReadError> {
        let tables = &mut *self.resolver.symbols.tables;
        segment.metadata.push((tables.intern_string(key.as_bytes())?, tables.intern_string(value)?));
        Ok(())
    }

    /// Takes the facts of resource, scope and profile, as process, labels and metadata.
    fn facts(&mut self, group: &Group<'_, 'a>, segment: &mut Segment) -> Result<(), ReadError> {
        let (document, first) = (self.resolver.symbols.document, group.profiles[0]);
        self.state.properties.begin_resource();
        for attribute in &document.resources[first.resource] {
            let name = name_of(attribute, &self.resolver)?;
            match values(attribute)?[..] {
                [Any::Number(number)] if name == key::PROCESS.as_bytes() => segment.process = Some(number),
                [value]
                    if value != Any::Nested && key::OF_RESOURCE.iter().any(|own| own.as_bytes() == name) =>
                {
                    self.state.properties.take_of_resource(name, attribute, &mut self.resolver)?;
                    self.metadata(attribute, &mut segment.metadata)?;
                }
                _ => self.metadata(attribute, &mut segment.metadata)?,
            }
        }
        let scope = document.scopes[first.scope];
        if !scope.name.is_empty() && scope.name != SCOPE.as_bytes() {
            for (key, value) in [(key::SCOPE_NAME, scope.name), (key::SCOPE_VERSION, scope.version)] {
                self.note(key, value, segment)?;
            }
        }
        for &index in first.attributes.iter().filter(|&&index| index != 0) {
            let attribute = at(&document.attributes, index, "an attribute", first.offset)?;
            let name = name_of(attribute, &self.resolver)?;
            match values(attribute)?[..] {
                _ if name == key::CLOCK.as_bytes() => {}
                [Any::Number(number)] if name == key::BEGAN.as_bytes() && group.is_relative => {
                    segment.began_ns = Some(number);
                }
                _ => self.metadata(attribute, &mut segment.metadata)?,
            }
        }
        if first.duration_ns > 0 && !group.has_times {
            self.note(stated_duration::KEY, first.duration_ns.to_string().as_bytes(), segment)?;
        }
        Ok(())
    }

    fn metadata(
        &mut self,
        attribute: &Attribute<'a>,
        pairs: &mut Vec<(StringId, StringId)>,
    ) -> Result<(), ReadError> {
        let name = name_of(attribute, &self.resolver)?;
        let key = self.resolver.symbols.tables.intern_string(name)?;
        for value in values(attribute)? {
            if value == Any::Nested {
                self.state.properties.nested += 1;
            } else {
                pairs.push((key, text(value, attribute.offset, &mut self.resolver)?));
            }
        }
        Ok(())
    }
}

/// The records of the profiles that are kept as values.
fn own<'r>(group: &Group<'_, '_>, records: &'r [OtlpSample]) -> impl Iterator<Item = &'r OtlpSample> {
    group.own.iter().map(|&column| &records[column])
}

/// Reads the next sample of each profile; false at the end.
fn next(readers: &mut [OtlpSamples<'_>], records: &mut [OtlpSample]) -> Result<bool, Error> {
    let mut any = false;
    for (reader, record) in readers.iter_mut().zip(records) {
        any = reader.next_sample(record)?;
    }
    Ok(any)
}

fn check_lengths(record: &OtlpSample) -> Result<(), Error> {
    let (values, times) = (record.values.len(), record.times_unix_ns.len());
    match (values, times) {
        (0, 0) => Err(malformed(record.offset, "expected a value or a time in a sample, found neither")),
        (_, 0) | (0, _) => Ok(()),
        _ if values == times => Ok(()),
        _ => Err(malformed(
            record.offset,
            format!("expected {times} values for {times} times, found {values}"),
        )),
    }
}
