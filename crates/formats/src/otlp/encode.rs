//! Writes the message. Its parts are preceded by their lengths: each is measured, then written.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use borehole_model::{Label, LabelValue, StringId, Tables, ThreadNames, ValueType};
use borehole_wire::put_varint;
use hashbrown::{HashMap, HashSet};

use super::dictionary::{Dictionary, ScalarValue, scalar};
use super::layout::{SCOPE, data, key, key_value, profile, resource, sample, scope};
use super::rows::{ObservationBatch, StackObservations, ValueSeries};
use crate::Losses;
use crate::documents::chains::{ChainEntry, Pull, SampleSpool};
use crate::documents::protobuf::{FieldStream, Message, field_length};
use crate::documents::samples::SampleScope;
use crate::symbols::layout::value_type;
use crate::times::stated_period::{self, StatedPeriod};

/// One profile without its samples.
struct ProfileParts {
    /// The index of its value in the batch's samples.
    column: usize,
    /// The parts before and after the samples.
    before: Message,
    after: Arc<Message>,
    /// Whether values are omitted because all of them are 1.
    omits_values: bool,
    length: u64,
}

/// The stream, with the state to write it.
pub(super) struct DocumentWriter<'a, W> {
    output: FieldStream<&'a mut W>,
    spool: &'a mut SampleSpool,
    dictionary: Dictionary<'a>,
    /// By scope: the attributes of its samples.
    attributes: Vec<Vec<u64>>,
}

impl<'a, W: Write> DocumentWriter<'a, W> {
    pub(super) fn new(
        output: &'a mut W,
        spool: &'a mut SampleSpool,
        mut dictionary: Dictionary<'a>,
        scopes: &[SampleScope],
        thread_names: &ThreadNames,
    ) -> Self {
        let attributes =
            scopes.iter().map(|scope| scope_attributes(scope, thread_names, &mut dictionary)).collect();
        Self { output: FieldStream::new(output), spool, dictionary, attributes }
    }

    /// Writes all batches, grouped by resource and process, and the dictionary. Returns the losses.
    pub(super) fn write(
        mut self,
        batches: &[ObservationBatch],
        types: &[Vec<ValueType>],
        resources: &[Vec<Label>],
    ) -> io::Result<Losses> {
        let mut together: Vec<Vec<(&ObservationBatch, &[ValueType])>> = Vec::new();
        let mut index = HashMap::new();
        for batch in batches {
            let place = *index.entry((batch.key.process, batch.key.resource)).or_insert_with(|| {
                together.push(Vec::new());
                together.len() - 1
            });
            together[place].push((batch, &types[batch.key.types][..]));
        }
        for batches in &together {
            let key = batches[0].0.key;
            self.write_resource(key.process, &resources[key.resource], batches)?;
        }
        self.dictionary.write(data::DICTIONARY, &mut self.output)?;
        self.output.finish()?;
        Ok(self.dictionary.into_losses())
    }

    fn write_resource(
        &mut self,
        process: Option<i64>,
        labels: &[Label],
        batches: &[(&ObservationBatch, &[ValueType])],
    ) -> io::Result<()> {
        let mut profiles = Vec::new();
        for &(batch, types) in batches {
            let mut behind = None;
            for column in 0..types.len() {
                let before = self.value_type(&types[column]);
                let behind = behind.get_or_insert_with(|| Arc::new(self.facts_behind(batch, types, labels)));
                profiles.push((batch, self.facts(batch, types, column, (before, behind.clone()))));
            }
        }
        let resource = resource_message(process, labels, self.dictionary.tables());
        let scope = scope_message();
        let scope_length = scope.as_bytes().len() as u64
            + profiles.iter().map(|(_, facts)| field_length(facts.length)).sum::<u64>();
        let length = resource.as_bytes().len() as u64 + field_length(scope_length);
        self.output.begin(data::RESOURCE_PROFILES, length);
        self.output.buffer().extend_from_slice(resource.as_bytes());
        self.output.begin(resource::SCOPE_PROFILES, scope_length);
        self.output.buffer().extend_from_slice(scope.as_bytes());
        profiles.iter().try_for_each(|(batch, facts)| self.write_profile(batch, facts))
    }

    fn write_profile(&mut self, batch: &ObservationBatch, facts: &ProfileParts) -> io::Result<()> {
        self.output.begin(scope::PROFILES, facts.length);
        self.output.buffer().extend_from_slice(facts.before.as_bytes());
        for row in &batch.rows {
            self.write_row(row, facts)?;
            self.output.spill()?;
        }
        self.output.buffer().extend_from_slice(facts.after.as_bytes());
        Ok(())
    }

    fn write_row(&mut self, row: &StackObservations, facts: &ProfileParts) -> io::Result<()> {
        let head = self.head(row, facts);
        self.output.begin(profile::SAMPLES, row_length(&head, row, facts));
        self.output.buffer().extend_from_slice(head.as_bytes());
        let Some(series) = row.series.get(facts.column) else { return Ok(()) };
        if !facts.omits_values {
            self.output.begin(sample::VALUES, series.value_bytes);
            self.each_entry(series, |buffer, [_, value, _]| put_varint(buffer, value))?;
        }
        self.output.begin(sample::TIMESTAMPS, series.points * 8);
        let mut time = 0_u64;
        self.each_entry(series, |buffer, [since, ..]| {
            time = time.wrapping_add(since);
            buffer.extend_from_slice(&time.to_le_bytes());
        })
    }

    fn each_entry(
        &mut self,
        series: &ValueSeries,
        mut put: impl FnMut(&mut Vec<u8>, ChainEntry),
    ) -> io::Result<()> {
        let mut pull = Pull::of(&series.chain);
        while let Some(entry) = self.spool.pull(&mut pull)? {
            put(self.output.buffer(), entry);
            self.output.spill()?;
        }
        Ok(())
    }

    /// The part of a sample before its observations, with the sum of those without times.
    fn head(&mut self, row: &StackObservations, facts: &ProfileParts) -> Message {
        let mut head = Message::default();
        head.number(sample::STACK_INDEX, self.dictionary.stack(row.stack));
        let attributes = &self.attributes[row.scope];
        if !attributes.is_empty() {
            head.packed(sample::ATTRIBUTE_INDICES, attributes.iter().copied());
        }
        if let Some(&sum) = row.sums.get(facts.column) {
            head.packed(sample::VALUES, std::iter::once(sum.cast_unsigned()));
        }
        head
    }

    fn facts(
        &mut self,
        batch: &ObservationBatch,
        types: &[ValueType],
        column: usize,
        (value_type, after): (Message, Arc<Message>),
    ) -> ProfileParts {
        let mut before = Message::default();
        before.bytes(profile::SAMPLE_TYPE, value_type.as_bytes());
        let mut facts = ProfileParts {
            column,
            before,
            after,
            omits_values: types[column].is_samples() && batch.all_ones[column],
            length: 0,
        };
        let rows: u64 = batch
            .rows
            .iter()
            .map(|row| {
                let head = self.head(row, &facts);
                field_length(row_length(&head, row, &facts))
            })
            .sum();
        facts.length = (facts.before.as_bytes().len() + facts.after.as_bytes().len()) as u64 + rows;
        facts
    }

    fn facts_behind(&mut self, batch: &ObservationBatch, types: &[ValueType], labels: &[Label]) -> Message {
        let tables = self.dictionary.tables();
        let mut after = Message::default();
        let mut duration_ns = batch.stated.sum_ns().unwrap_or(0);
        let mut start_unix_ns = batch.start_unix_ns.filter(|_| !batch.key.is_relative);
        let (mut said, mut period) = (Vec::new(), None);
        // Labels of the resource are written there.
        let of_resource: HashSet<_> = labels.iter().map(|label| label.key).collect();
        let of_profile = |(key, _): &&(StringId, StringId)| !of_resource.contains(key);
        for &(key, value) in batch.metadata.values().iter().filter(of_profile) {
            let (key, value): (Cow<'_, str>, Cow<'_, str>) =
                [key, value].map(|id| String::from_utf8_lossy(tables.string(id))).into();
            match StatedPeriod::parse(&value).filter(|_| key == stated_period::KEY) {
                Some(stated) if period.is_none() => period = Some(stated),
                _ => said.push((key, value)),
            }
        }
        if let Some((first, last)) = batch.span_ns {
            duration_ns = last.abs_diff(first).saturating_add(batch.key.period_ns.unwrap_or(1));
            // This also applies to a relative clock: a profile's times lie between its start and its end, whatever
            // their origin.
            start_unix_ns = Some(first);
        }
        if let Some(start) =
            start_unix_ns.and_then(|start| u64::try_from(start).ok()).filter(|&start| start > 0)
        {
            after.fixed64(profile::TIME_UNIX_NANO, start);
        }
        after.number(profile::DURATION_NANO, duration_ns);
        let implied = |period_ns| StatedPeriod::implied(period_ns, batch.key.mode, types);
        if let Some(stated) = period.or_else(|| batch.key.period_ns.map(implied)) {
            after.bytes(profile::PERIOD_TYPE, self.value_type(&stated.period_type).as_bytes());
            after.number(profile::PERIOD, stated.period.cast_unsigned());
        }
        let mut attributes = self.dictionary.texts(&said);
        if batch.key.is_relative && batch.span_ns.is_some() {
            attributes.push(self.dictionary.attribute(key::CLOCK, ScalarValue::Text(key::RELATIVE)));
            let began = batch.began_ns.map(ScalarValue::Number);
            attributes.extend(began.map(|began| self.dictionary.attribute(key::BEGAN, began)));
        }
        if !attributes.is_empty() {
            after.packed(profile::ATTRIBUTE_INDICES, attributes.iter().copied());
        }
        after
    }

    fn value_type(&mut self, names: &ValueType) -> Message {
        let mut message = Message::default();
        message.number(value_type::TYPE, self.dictionary.text(&names.kind));
        message.number(value_type::UNIT, self.dictionary.text(&names.unit));
        message
    }
}

/// The numbers of the attributes of a scope's samples.
fn scope_attributes(
    scope: &SampleScope,
    thread_names: &ThreadNames,
    dictionary: &mut Dictionary<'_>,
) -> Vec<u64> {
    let mut numbers = Vec::new();
    let known = [(key::THREAD, scope.thread), (key::INTERPRETER, scope.interpreter)];
    for (key, number) in known {
        if let Some(number) = number {
            numbers.push(dictionary.attribute(key, ScalarValue::Number(number.cast_signed())));
        }
    }
    if let Some(&name) = scope.thread().and_then(|thread| thread_names.of(thread)) {
        let name = String::from_utf8_lossy(dictionary.tables().string(name));
        numbers.push(dictionary.attribute(key::THREAD_NAME, ScalarValue::Text(&name)));
    }
    if let Some(status) = scope.status {
        numbers.push(dictionary.status(status));
    }
    if let Some(labels) = scope.labels {
        let tables = dictionary.tables();
        let labels = tables.labels(labels);
        let said = of_resource(tables, labels);
        let of_sample: Vec<_> = labels.iter().filter(|label| !said.contains(label)).copied().collect();
        numbers.extend(dictionary.labels(&of_sample));
    }
    numbers
}

/// The fields of `ResourceProfiles` before its profiles.
fn resource_message(process: Option<i64>, labels: &[Label], tables: &Tables) -> Message {
    let (mut inner, mut outer) = (Message::default(), Message::default());
    if let Some(process) = process {
        inner.bytes(resource::ATTRIBUTES, pair(key::PROCESS, ScalarValue::Number(process)).as_bytes());
    }
    for label in labels {
        let name = String::from_utf8_lossy(tables.string(label.key));
        let text;
        let said = match label.value {
            LabelValue::Number { value, .. } => ScalarValue::Number(value),
            LabelValue::Text(value) => {
                text = String::from_utf8_lossy(tables.string(value));
                ScalarValue::Text(&text)
            }
        };
        inner.bytes(resource::ATTRIBUTES, pair(&name, said).as_bytes());
    }
    outer.bytes(resource::RESOURCE, inner.as_bytes());
    outer
}

/// A `KeyValue`.
fn pair(name: &str, said: ScalarValue<'_>) -> Message {
    let mut pair = Message::default();
    pair.bytes(key_value::KEY, name.as_bytes()).bytes(key_value::VALUE, scalar(said).as_bytes());
    pair
}

/// The labels written at the resource: those with a unique key and without a unit.
pub(super) fn of_resource<'l>(tables: &'l Tables, labels: &'l [Label]) -> Vec<&'l Label> {
    let is_known = |label: &&Label| {
        let name = tables.string(label.key);
        key::OF_RESOURCE.iter().any(|known| known.as_bytes() == name)
    };
    let mut times: HashMap<StringId, usize> = HashMap::new();
    labels.iter().filter(is_known).for_each(|label| *times.entry(label.key).or_default() += 1);
    let has_unit = |label: &Label| matches!(label.value, LabelValue::Number { unit: Some(_), .. });
    labels.iter().filter(|label| times.get(&label.key) == Some(&1) && !has_unit(label)).collect()
}

/// The fields of `ScopeProfiles` before its profiles.
fn scope_message() -> Message {
    let (mut inner, mut outer) = (Message::default(), Message::default());
    inner.bytes(scope::NAME, SCOPE.as_bytes());
    inner.bytes(scope::VERSION, env!("CARGO_PKG_VERSION").as_bytes());
    outer.bytes(scope::SCOPE, inner.as_bytes());
    outer
}

fn row_length(head: &Message, row: &StackObservations, facts: &ProfileParts) -> u64 {
    let observations = row.series.get(facts.column).map_or(0, |series| {
        let values = if facts.omits_values { 0 } else { field_length(series.value_bytes) };
        values + field_length(series.points * 8)
    });
    head.as_bytes().len() as u64 + observations
}
