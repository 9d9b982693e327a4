//! The message, whose parts say their lengths first: each is measured, then written.

use std::io::{self, Read, Seek, Write};

use borehole_model::{ThreadNames, ValueType};
use borehole_wire::{put_varint, varint_len};

use super::dictionary::{Dictionary, Said};
use super::layout::{SCOPE, any, data, key, key_value, profile, resource, sample, scope, value_type};
use super::rows::{Batch, Row, Scope, Series};
use crate::Losses;
use crate::chains::{Entry, Pull, Spool};
use crate::protobuf::{Message, put_tag, wire};
use borehole_model::nanoseconds_per;

/// Bytes that are collected before the stream sees them.
const BUFFER_BYTES: usize = 64 << 10;

/// One profile, but for its samples.
struct Facts {
    /// Which value of the batch's samples it has.
    column: usize,
    /// What stands before the samples, and behind them.
    before: Message,
    after: Message,
    /// Whether observations are written without their values, all of which are 1.
    omits_values: bool,
    length: u64,
}

/// The stream, and what fills it.
pub(super) struct Document<'a, W, S, F> {
    output: &'a mut W,
    buffer: Vec<u8>,
    spool: &'a mut Spool<S, F>,
    dictionary: Dictionary<'a>,
    /// By scope: the attributes of its samples.
    attributes: Vec<Vec<i64>>,
}

impl<'a, W, S, F> Document<'a, W, S, F>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    pub(super) fn new(
        output: &'a mut W,
        spool: &'a mut Spool<S, F>,
        mut dictionary: Dictionary<'a>,
        scopes: &[Scope],
        thread_names: &ThreadNames,
    ) -> Self {
        let attributes =
            scopes.iter().map(|scope| scope_attributes(scope, thread_names, &mut dictionary)).collect();
        Self { output, buffer: Vec::new(), spool, dictionary, attributes }
    }

    /// Writes all batches, those of a process together, and the dictionary. Answers with what could not be said.
    pub(super) fn write(mut self, batches: &[Batch], types: &[Vec<ValueType>]) -> io::Result<Losses> {
        let mut processes = Vec::new();
        for batch in batches {
            if !processes.contains(&batch.kind.process) {
                processes.push(batch.kind.process);
            }
        }
        for process in processes {
            let batches = batches.iter().filter(|batch| batch.kind.process == process);
            let batches: Vec<_> = batches.map(|batch| (batch, &types[batch.kind.types][..])).collect();
            self.write_resource(process, &batches)?;
        }
        self.spill(0)?;
        let (dictionary, losses) = self.dictionary.into_message();
        put_tag(&mut self.buffer, data::DICTIONARY, wire::BYTES);
        put_varint(&mut self.buffer, dictionary.len() as u64);
        self.output.write_all(&self.buffer)?;
        self.output.write_all(&dictionary)?;
        self.output.flush()?;
        Ok(losses)
    }

    fn write_resource(&mut self, process: Option<i64>, batches: &[(&Batch, &[ValueType])]) -> io::Result<()> {
        let mut profiles = Vec::new();
        for &(batch, types) in batches {
            for column in 0..types.len() {
                profiles.push((batch, self.facts(batch, types, column)));
            }
        }
        let resource = process_resource(process);
        let scope = scope_message();
        let scope_length = scope.as_bytes().len() as u64
            + profiles.iter().map(|(_, facts)| field_length(facts.length)).sum::<u64>();
        let length = resource.as_bytes().len() as u64 + field_length(scope_length);
        self.open(data::RESOURCE_PROFILES, length);
        self.buffer.extend_from_slice(resource.as_bytes());
        self.open(resource::SCOPE_PROFILES, scope_length);
        self.buffer.extend_from_slice(scope.as_bytes());
        profiles.iter().try_for_each(|(batch, facts)| self.write_profile(batch, facts))
    }

    fn write_profile(&mut self, batch: &Batch, facts: &Facts) -> io::Result<()> {
        self.open(scope::PROFILES, facts.length);
        self.buffer.extend_from_slice(facts.before.as_bytes());
        for row in &batch.rows {
            self.write_row(row, facts)?;
            self.spill(BUFFER_BYTES)?;
        }
        self.buffer.extend_from_slice(facts.after.as_bytes());
        Ok(())
    }

    fn write_row(&mut self, row: &Row, facts: &Facts) -> io::Result<()> {
        let head = self.head(row, facts);
        self.open(profile::SAMPLES, row_length(&head, row, facts));
        self.buffer.extend_from_slice(head.as_bytes());
        let Some(series) = row.series.get(facts.column) else { return Ok(()) };
        if !facts.omits_values {
            self.open(sample::VALUES, series.value_bytes);
            self.each_entry(series, |buffer, [_, value, _]| put_varint(buffer, value))?;
        }
        self.open(sample::TIMESTAMPS, series.points * 8);
        let mut time = 0_u64;
        self.each_entry(series, |buffer, [since, ..]| {
            time = time.wrapping_add(since);
            buffer.extend_from_slice(&time.to_le_bytes());
        })
    }

    fn each_entry(&mut self, series: &Series, mut put: impl FnMut(&mut Vec<u8>, Entry)) -> io::Result<()> {
        let mut pull = Pull::of(&series.chain);
        while let Some(entry) = self.spool.pull(&mut pull)? {
            put(&mut self.buffer, entry);
            self.spill(BUFFER_BYTES)?;
        }
        Ok(())
    }

    /// What a sample is before its observations; with the sum of those without times.
    fn head(&mut self, row: &Row, facts: &Facts) -> Message {
        let mut head = Message::default();
        head.number(sample::STACK_INDEX, self.dictionary.stack(row.stack));
        let attributes = &self.attributes[row.scope];
        if !attributes.is_empty() {
            head.packed_signed(sample::ATTRIBUTE_INDICES, attributes.iter().copied());
        }
        if let Some(&sum) = row.sums.get(facts.column) {
            head.packed_signed(sample::VALUES, std::iter::once(sum));
        }
        head
    }

    fn facts(&mut self, batch: &Batch, types: &[ValueType], column: usize) -> Facts {
        let mut before = Message::default();
        let sample_type = self.value_type(&types[column].kind, &types[column].unit);
        before.bytes(profile::SAMPLE_TYPE, sample_type.as_bytes());
        let mut facts = Facts {
            column,
            before,
            after: self.facts_behind(batch, types),
            omits_values: is_count(&types[column]) && batch.all_ones[column],
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

    fn facts_behind(&mut self, batch: &Batch, types: &[ValueType]) -> Message {
        let tables = self.dictionary.tables();
        let mut after = Message::default();
        let mut duration_ns = batch.stated.sum_ns().unwrap_or(0);
        let mut start_unix_ns = batch.start_unix_ns.filter(|_| !batch.kind.is_relative);
        let mut said = Vec::new();
        for &(key, value) in &batch.metadata {
            said.push([key, value].map(|id| String::from_utf8_lossy(tables.string(id))).into());
        }
        if let Some((first, last)) = batch.span_ns {
            duration_ns = last.abs_diff(first).saturating_add(batch.kind.period_ns.unwrap_or(1));
            // Of a relative clock too: a profile's times lie between its start and its end, whatever they count from.
            start_unix_ns = Some(first);
        }
        if let Some(start) =
            start_unix_ns.and_then(|start| u64::try_from(start).ok()).filter(|&start| start > 0)
        {
            after.fixed64(profile::TIME_UNIX_NANO, start);
        }
        after.number(profile::DURATION_NANO, duration_ns);
        if let Some(period_ns) = batch.kind.period_ns {
            let time = types.iter().find(|own| nanoseconds_per(&own.unit) == Some(1));
            let kind = time.map_or("wall", |own| &own.kind);
            let period_type = self.value_type(kind, "nanoseconds");
            after.bytes(profile::PERIOD_TYPE, period_type.as_bytes());
            after.number(profile::PERIOD, period_ns);
        }
        let mut attributes = self.dictionary.texts(&said);
        if batch.kind.is_relative && batch.span_ns.is_some() {
            attributes.push(self.dictionary.attribute(key::CLOCK, Said::Text(key::RELATIVE)));
            let began = batch.began_ns.map(Said::Number);
            attributes.extend(began.map(|began| self.dictionary.attribute(key::BEGAN, began)));
        }
        if !attributes.is_empty() {
            after.packed_signed(profile::ATTRIBUTE_INDICES, attributes.iter().copied());
        }
        after
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message.number(value_type::TYPE, self.dictionary.text(kind));
        message.number(value_type::UNIT, self.dictionary.text(unit));
        message
    }

    /// Begins a field of bytes that is `length` long.
    fn open(&mut self, field: u32, length: u64) {
        put_tag(&mut self.buffer, field, wire::BYTES);
        put_varint(&mut self.buffer, length);
    }

    fn spill(&mut self, threshold: usize) -> io::Result<()> {
        if self.buffer.len() >= threshold {
            self.output.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// The numbers of the attributes of a scope's samples.
fn scope_attributes(scope: &Scope, thread_names: &ThreadNames, dictionary: &mut Dictionary<'_>) -> Vec<i64> {
    let mut numbers = Vec::new();
    let thread = scope.thread.map(|thread| thread.number);
    let known = [(key::THREAD, thread), (key::INTERPRETER, scope.interpreter)];
    for (key, number) in known {
        if let Some(number) = number {
            numbers.push(dictionary.attribute(key, Said::Number(number.cast_signed())));
        }
    }
    if let Some(&name) = scope.thread.and_then(|thread| thread_names.of(thread)) {
        let name = String::from_utf8_lossy(dictionary.tables().string(name));
        numbers.push(dictionary.attribute(key::THREAD_NAME, Said::Text(&name)));
    }
    if let Some(status) = scope.status {
        numbers.push(dictionary.status(status));
    }
    if let Some(labels) = scope.labels {
        let labels = dictionary.tables().labels(labels);
        numbers.extend(dictionary.labels(labels));
    }
    numbers
}

/// The fields of `ResourceProfiles` before its profiles.
fn process_resource(process: Option<i64>) -> Message {
    let (mut value, mut pair) = (Message::default(), Message::default());
    let (mut inner, mut outer) = (Message::default(), Message::default());
    if let Some(process) = process {
        value.explicit(any::INT, process.cast_unsigned());
        pair.bytes(key_value::KEY, key::PROCESS.as_bytes()).bytes(key_value::VALUE, value.as_bytes());
        inner.bytes(resource::ATTRIBUTES, pair.as_bytes());
    }
    outer.bytes(resource::RESOURCE, inner.as_bytes());
    outer
}

/// The fields of `ScopeProfiles` before its profiles.
fn scope_message() -> Message {
    let (mut inner, mut outer) = (Message::default(), Message::default());
    inner.bytes(scope::NAME, SCOPE.as_bytes());
    inner.bytes(scope::VERSION, env!("CARGO_PKG_VERSION").as_bytes());
    outer.bytes(scope::SCOPE, inner.as_bytes());
    outer
}

/// Whether values are numbers of samples.
pub(super) fn is_count(value_type: &ValueType) -> bool {
    value_type.kind == "samples" && value_type.unit == "count"
}

fn row_length(head: &Message, row: &Row, facts: &Facts) -> u64 {
    let observations = row.series.get(facts.column).map_or(0, |series| {
        let values = if facts.omits_values { 0 } else { field_length(series.value_bytes) };
        values + field_length(series.points * 8)
    });
    head.as_bytes().len() as u64 + observations
}

/// How many bytes a field of so many bytes takes, with its tag, which is one byte here.
fn field_length(length: u64) -> u64 {
    1 + varint_len(length) as u64 + length
}
