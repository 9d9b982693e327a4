//! The attributes of a sample: its process, its thread, its state, and labels.

use borehole_model::{Label, LabelValue, Sample, Status, StringId};
use hashbrown::HashSet;

use super::layout::key;
use super::read::{Any, Attribute, AttributeKey, OtlpSample, at};
use super::resolve::StackResolver;
use crate::ReadError;
use crate::documents::samples::ResolvedSample;

/// Labels under construction.
#[derive(Debug, Default)]
pub(super) struct Properties {
    labels: Vec<Label>,
    /// Labels of the resource, for every sample without its own label of that key.
    of_resource: Vec<Label>,
    keys_of_resource: HashSet<StringId>,
    /// The number of nested values, which labels cannot hold.
    pub(super) nested: u64,
}

impl Properties {
    /// Resolves all parts of a sample except its numbers.
    ///
    /// # Errors
    /// If a reference is to a missing entry.
    pub(super) fn resolve(
        &mut self,
        record: &OtlpSample,
        resolver: &mut StackResolver<'_, '_>,
    ) -> Result<ResolvedSample, ReadError> {
        let stack = resolver.stack(record.stack, record.offset)?;
        let mut resolved =
            ResolvedSample { sample: Sample { stack, ..Sample::default() }, thread_name: None };
        self.labels.clear();
        let mut thread_name = None;
        for &index in record.attributes.iter().filter(|&&index| index != 0) {
            let attribute = *at(&resolver.symbols.document.attributes, index, "an attribute", record.offset)?;
            let name = name_of(&attribute, resolver)?;
            if name == key::THREAD_NAME.as_bytes() {
                thread_name = first_text(&attribute, resolver)?.map(|text| (attribute, text));
            } else if !take_property(name, &attribute, resolver, &mut resolved.sample)? {
                self.take_labels(name, &attribute, resolver)?;
            }
        }
        if let Some((attribute, name)) = thread_name {
            match resolved.sample.thread {
                Some(_) => resolved.thread_name = Some(name),
                None => self.take_labels(key::THREAD_NAME.as_bytes(), &attribute, resolver)?,
            }
        }
        self.take_link(record, resolver)?;
        self.add_missing();
        if !self.labels.is_empty() {
            resolved.sample.labels = Some(resolver.symbols.tables.intern_labels(&self.labels)?);
        }
        Ok(resolved)
    }

    /// Begins a resource.
    pub(super) fn begin_resource(&mut self) {
        self.of_resource.clear();
        self.keys_of_resource.clear();
    }

    /// Takes an attribute of the resource as one of its samples.
    ///
    /// # Errors
    /// If it cannot be resolved.
    pub(super) fn take_of_resource(
        &mut self,
        name: &[u8],
        attribute: &Attribute<'_>,
        resolver: &mut StackResolver<'_, '_>,
    ) -> Result<(), ReadError> {
        self.labels.clear();
        self.take_labels(name, attribute, resolver)?;
        // All of them have the key of the attribute.
        if self.labels.first().is_some_and(|label| self.keys_of_resource.insert(label.key)) {
            self.of_resource.extend_from_slice(&self.labels);
        }
        Ok(())
    }

    /// Puts the labels of the resource, whose keys the sample does not have, before those of the sample.
    fn add_missing(&mut self) {
        if self.of_resource.is_empty() {
            return;
        }
        let own: HashSet<_> = self.labels.iter().map(|label| label.key).collect();
        let is_missing = |common: &&Label| !own.contains(&common.key);
        let missing: Vec<_> = self.of_resource.iter().filter(is_missing).copied().collect();
        self.labels.splice(..0, missing);
    }

    fn take_labels(
        &mut self,
        name: &[u8],
        attribute: &Attribute<'_>,
        resolver: &mut StackResolver<'_, '_>,
    ) -> Result<(), ReadError> {
        let key = resolver.symbols.tables.intern_string(name)?;
        let unit = match attribute.unit {
            0 => None,
            unit => Some(resolver.symbols.intern(unit, attribute.offset)?),
        };
        for value in values(attribute)? {
            let value = match value {
                Any::Number(value) => LabelValue::Number { value, unit },
                Any::Nested => {
                    self.nested += 1;
                    continue;
                }
                other => LabelValue::Text(text(other, attribute.offset, resolver)?),
            };
            self.labels.push(Label { key, value });
        }
        Ok(())
    }

    fn take_link(
        &mut self,
        record: &OtlpSample,
        resolver: &mut StackResolver<'_, '_>,
    ) -> Result<(), ReadError> {
        if record.link == 0 {
            return Ok(());
        }
        let link = *at(&resolver.symbols.document.links, record.link, "a link", record.offset)?;
        for (name, id) in [(key::TRACE_ID, link.trace), (key::SPAN_ID, link.span)] {
            let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            let value = LabelValue::Text(resolver.symbols.tables.intern_string(digits.as_bytes())?);
            self.labels.push(Label { key: resolver.symbols.tables.intern_string(name.as_bytes())?, value });
        }
        Ok(())
    }
}

/// The name of an attribute.
///
/// # Errors
/// If it cannot be resolved.
pub(super) fn name_of<'a>(
    attribute: &Attribute<'a>,
    resolver: &StackResolver<'_, 'a>,
) -> Result<&'a [u8], ReadError> {
    Ok(match attribute.key {
        AttributeKey::Text(text) => text,
        AttributeKey::Index(index) => resolver.symbols.document.string(index, attribute.offset)?,
    })
}

/// The values of an attribute: several, if it is an array.
///
/// # Errors
/// If they are malformed.
pub(super) fn values<'a>(attribute: &Attribute<'a>) -> Result<Vec<Any<'a>>, ReadError> {
    let mut values = Vec::new();
    attribute.each_value(|value| values.push(value))?;
    Ok(values)
}

/// A value as text; empty for a nested one.
///
/// # Errors
/// If it cannot be resolved.
pub(super) fn text(
    value: Any<'_>,
    offset: u64,
    resolver: &mut StackResolver<'_, '_>,
) -> Result<StringId, ReadError> {
    let made = match value {
        Any::Text(text) => return Ok(resolver.symbols.tables.intern_string(text)?),
        Any::Index(index) => return resolver.symbols.intern(index, offset),
        Any::Number(number) => number.to_string(),
        Any::Bool(truth) => truth.to_string(),
        Any::Float(number) => number.to_string(),
        Any::Nested => String::new(),
    };
    Ok(resolver.symbols.tables.intern_string(made.as_bytes())?)
}

fn first_text(
    attribute: &Attribute<'_>,
    resolver: &mut StackResolver<'_, '_>,
) -> Result<Option<StringId>, ReadError> {
    match values(attribute)?.first() {
        Some(&value @ (Any::Text(_) | Any::Index(_))) => Ok(Some(text(value, attribute.offset, resolver)?)),
        _ => Ok(None),
    }
}

/// Takes an attribute that stands for a property of the sample; false if it is an ordinary one.
fn take_property(
    name: &[u8],
    attribute: &Attribute<'_>,
    resolver: &StackResolver<'_, '_>,
    sample: &mut Sample<'static>,
) -> Result<bool, ReadError> {
    let values = values(attribute)?;
    let number = match values[..] {
        [Any::Number(number)] if attribute.unit == 0 => Some(number),
        _ => None,
    };
    match (std::str::from_utf8(name).unwrap_or_default(), number) {
        (key::PROCESS, Some(number)) => sample.process = Some(number),
        (key::THREAD, Some(number)) => sample.thread = Some(number.cast_unsigned()),
        (key::INTERPRETER, Some(number)) => sample.interpreter = Some(number.cast_unsigned()),
        (key::STATUS, None) => {
            let mut status = Status::default();
            for value in values {
                let name = match value {
                    Any::Text(text) => text,
                    Any::Index(index) => resolver.symbols.document.string(index, attribute.offset)?,
                    _ => return Ok(false),
                };
                let Some(Status(flag)) = Status::flag(name) else { return Ok(false) };
                status.0 |= flag;
            }
            sample.status = Some(status);
        }
        _ => return Ok(false),
    }
    Ok(true)
}
