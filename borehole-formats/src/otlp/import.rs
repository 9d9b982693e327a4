//! A document into the model.

use std::io::BufRead;

use borehole_model::{
    Context, ProfileSink, Recovery, Sample as ModelSample, Segment, StringId, Tables, ThreadNames,
    ValueType as ModelValueType, Warning,
};

use super::attributes::{Properties, Resolved, name_of, text, values};
use super::groups::{Group, groups};
use super::layout::{SCOPE, key};
use super::read::{Any, Attribute, Document, Sample, Samples, at, malformed};
use super::resolve::Resolver;
use super::{NAME, read};
use crate::document::{self, Damage};
use crate::{Error, ReadError, ReadOptions, stated_duration};
use borehole_model::nanoseconds_per;

/// Reads decompressed profiles of OpenTelemetry: `ProfilesData`, or the request that carries them to a collector.
///
/// Each profile becomes a segment; profiles of one scope with the same samples and different values become one segment
/// with several values. Samples with times come in the order of time. Attributes become labels, but for those that
/// name process and thread. Attributes of the resource and of the profile become metadata.
///
/// A file that is cut off is an error, since samples refer to what stands behind them.
///
/// # Errors
/// When the input is no such document, is larger than the limit, or the sink fails.
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let bytes = document::read_whole(NAME, input, options.limits.document_bytes)?;
    let mut damage = Damage::new(options);
    let document = Document::read(&bytes, &mut damage)?;
    let groups = groups(&document);
    let mut importer = Importer {
        origin_unix_ns: origin(&groups),
        resolver: Resolver::new(&document, tables),
        properties: Properties::default(),
        thread_names: ThreadNames::default(),
        damage,
        sink,
    };
    for group in &groups {
        importer.group(group)?;
        if importer.damage.recovery.stopped {
            break;
        }
    }
    importer.finish()
}

/// When the first profile began: the origin of the clock that all segments share.
fn origin(groups: &[Group<'_, '_>]) -> u64 {
    let known = groups.iter().filter(|group| !group.is_relative);
    let times = known.flat_map(|group| {
        let stated = Some(group.profiles[0].time_unix_ns).filter(|&time| time > 0);
        stated.into_iter().chain(group.earliest_unix_ns)
    });
    times.min().unwrap_or(0)
}

struct Importer<'d, 'a> {
    origin_unix_ns: u64,
    resolver: Resolver<'d, 'a>,
    properties: Properties,
    thread_names: ThreadNames,
    damage: Damage,
    sink: &'d mut dyn ProfileSink,
}

/// One observation that waits for its turn: samples are kept by stack, and wanted by time.
struct Observation {
    time_ns: i64,
    sample: usize,
    count: u64,
    /// Where its values are.
    values: usize,
}

/// The observations of a group that have times.
#[derive(Default)]
struct Held {
    samples: Vec<ModelSample<'static>>,
    observations: Vec<Observation>,
    values: Vec<i64>,
}

impl<'a> Importer<'_, 'a> {
    fn finish(mut self) -> Result<Recovery, ReadError> {
        if self.properties.nested > 0 {
            let message = format!("{} values within attributes are not read", self.properties.nested);
            self.damage.recovery.note(Warning::new(message));
        }
        self.damage.finish(self.sink)
    }

    fn group(&mut self, group: &Group<'_, 'a>) -> Result<(), ReadError> {
        let segment = match self.segment(group) {
            Err(ReadError::Input(error)) => return Ok(self.damage.meet(error, 0)?),
            segment => segment?,
        };
        self.sink.segment(Context { tables: self.resolver.tables, segment: &segment })?;
        self.damage.recovery.segments += 1;
        // What has a time is an observation, and so one sample.
        if group.count.is_none() && !group.has_times {
            self.damage.note_uncounted(&segment);
        }
        let mut readers: Vec<_> = group.profiles.iter().map(|profile| profile.samples()).collect();
        let mut records = vec![Sample::default(); readers.len()];
        let mut held = Held::default();
        loop {
            let taken = match next(&mut readers, &mut records) {
                Ok(false) => break,
                Ok(true) => self.records(group, &segment, &records, &mut held),
                Err(error) => Err(error.into()),
            };
            match taken {
                Ok(()) if self.damage.recovery.stopped => return Ok(()),
                Ok(()) => {}
                Err(ReadError::Input(error)) => self.damage.meet(error, 0)?,
                Err(error) => return Err(error),
            }
        }
        self.deliver(group, &segment, held)
    }

    /// The same sample of all profiles of a group.
    fn records(
        &mut self,
        group: &Group<'_, 'a>,
        segment: &Segment,
        records: &[Sample],
        held: &mut Held,
    ) -> Result<(), ReadError> {
        records.iter().try_for_each(check_lengths)?;
        let resolved = self.properties.resolve(&records[0], &mut self.resolver)?;
        let at = Context { tables: self.resolver.tables, segment };
        if let Some((thread, name)) = at.thread(&resolved.sample).zip(resolved.thread_name)
            && self.thread_names.name(thread, name)
        {
            self.sink.thread(at, thread, name)?;
        }
        if records[0].times_unix_ns.is_empty() {
            return self.timeless(group, segment, records, &resolved);
        }
        held.samples.push(resolved.sample);
        for (index, &time) in records[0].times_unix_ns.iter().enumerate() {
            let time_ns = self.time(group, time, records[0].offset)?;
            // Without values each observation counts once.
            let value = |record: &Sample| record.values.get(index).copied().unwrap_or(1);
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
        let since = time_unix_ns.saturating_sub(self.origin_unix_ns);
        i64::try_from(since)
            .map_err(|_| malformed(offset, format!("expected a time below 2^63, found {time_unix_ns}")))
    }

    /// A sum without times is delivered at once.
    fn timeless(
        &mut self,
        group: &Group<'_, 'a>,
        segment: &Segment,
        records: &[Sample],
        resolved: &Resolved,
    ) -> Result<(), ReadError> {
        let sum = |record: &Sample| record.values.iter().fold(0_i64, |sum, &value| sum.saturating_add(value));
        let values: Vec<_> = own(group, records).map(sum).collect();
        // Without a profile that counts, each sample is one observation.
        let count = group.count.map_or(1, |column| sum(&records[column]).unsigned_abs());
        let sample = ModelSample { count, values: &values, ..resolved.sample };
        self.give(segment, &sample)
    }

    fn deliver(&mut self, group: &Group<'_, 'a>, segment: &Segment, mut held: Held) -> Result<(), ReadError> {
        let width = group.profiles.len() - usize::from(group.count.is_some());
        held.observations.sort_by_key(|observation| observation.time_ns);
        for &Observation { time_ns, sample, count, values } in &held.observations {
            let values = &held.values[values..values + width];
            let sample = ModelSample { count, values, time_ns: Some(time_ns), ..held.samples[sample] };
            self.give(segment, &sample)?;
            if self.damage.recovery.stopped {
                break;
            }
        }
        Ok(())
    }

    fn give(&mut self, segment: &Segment, sample: &ModelSample<'_>) -> Result<(), ReadError> {
        let at = Context { tables: self.resolver.tables, segment };
        let recovery = &mut self.damage.recovery;
        recovery.samples = recovery.samples.saturating_add(sample.count);
        recovery.stopped = self.sink.sample(at, sample)?.is_break();
        Ok(())
    }

    fn segment(&mut self, group: &Group<'_, 'a>) -> Result<Segment, ReadError> {
        let document = self.resolver.document;
        let (mut value_types, first) = (Vec::new(), group.profiles[0]);
        for (column, profile) in group.profiles.iter().enumerate() {
            if group.count != Some(column) {
                let text = |index| document.string(index, profile.offset);
                let text = |index| text(index).map(|text| String::from_utf8_lossy(text).into_owned());
                let read::ValueType { kind, unit } = profile.sample_type;
                value_types.push(ModelValueType { kind: text(kind)?, unit: text(unit)? });
            }
        }
        let unit = document.string(first.period_type.unit, first.offset)?;
        let factor = std::str::from_utf8(unit).ok().and_then(nanoseconds_per);
        let period = u64::try_from(first.period).ok().filter(|&period| period > 0);
        let start = Some(self.origin_unix_ns).filter(|&origin| origin > 0 && !group.is_relative);
        let mut segment = Segment {
            format: NAME,
            index: self.damage.recovery.segments,
            period_ns: period.zip(factor).and_then(|(period, factor)| period.checked_mul(factor)),
            has_times: group.has_times,
            start_unix_ns: start.and_then(|origin| i64::try_from(origin).ok()),
            value_types,
            ..Segment::default()
        };
        self.facts(group, &mut segment)?;
        Ok(segment)
    }

    /// What resource, scope and profile say, as process and metadata.
    fn facts(&mut self, group: &Group<'_, 'a>, segment: &mut Segment) -> Result<(), ReadError> {
        let (document, first) = (self.resolver.document, group.profiles[0]);
        for attribute in &document.resources[first.resource] {
            let name = name_of(attribute, &self.resolver)?;
            match values(attribute)?[..] {
                [Any::Number(number)] if name == key::PROCESS.as_bytes() => segment.process = Some(number),
                _ => self.metadata(attribute, &mut segment.metadata)?,
            }
        }
        let scope = document.scopes[first.scope];
        if !scope.name.is_empty() && scope.name != SCOPE.as_bytes() {
            for (key, value) in [(key::SCOPE_NAME, scope.name), (key::SCOPE_VERSION, scope.version)] {
                let tables = &mut *self.resolver.tables;
                segment.metadata.push((tables.intern_string(key.as_bytes())?, tables.intern_string(value)?));
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
            let tables = &mut *self.resolver.tables;
            let value = tables.intern_string(first.duration_ns.to_string().as_bytes())?;
            segment.metadata.push((tables.intern_string(stated_duration::KEY.as_bytes())?, value));
        }
        Ok(())
    }

    fn metadata(
        &mut self,
        attribute: &Attribute<'a>,
        pairs: &mut Vec<(StringId, StringId)>,
    ) -> Result<(), ReadError> {
        let name = name_of(attribute, &self.resolver)?;
        let key = self.resolver.tables.intern_string(name)?;
        for value in values(attribute)? {
            if value == Any::Nested {
                self.properties.nested += 1;
            } else {
                pairs.push((key, text(value, attribute.offset, &mut self.resolver)?));
            }
        }
        Ok(())
    }
}

/// The records of the profiles whose values are not counts of samples.
fn own<'r>(group: &Group<'_, '_>, records: &'r [Sample]) -> impl Iterator<Item = &'r Sample> {
    let count = group.count;
    records.iter().enumerate().filter(move |&(column, _)| Some(column) != count).map(|(_, record)| record)
}

/// The next sample of each profile; false at the end.
fn next(readers: &mut [Samples<'_>], records: &mut [Sample]) -> Result<bool, Error> {
    let mut any = false;
    for (reader, record) in readers.iter_mut().zip(records) {
        any = reader.next_sample(record)?;
    }
    Ok(any)
}

fn check_lengths(record: &Sample) -> Result<(), Error> {
    let (values, times) = (record.values.len(), record.times_unix_ns.len());
    match (values, times) {
        (0, 0) => Err(malformed(record.offset, "expected a value or a time in a sample, found neither")),
        (_, 0) | (0, _) => Ok(()),
        _ if values == times => Ok(()),
        _ => Err(malformed(
            record.offset,
            format!("expected as many values as times, {times}, found {values}"),
        )),
    }
}
