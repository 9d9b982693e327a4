//! The definitions of samples: strings, functions, mappings, locations, attributes and stacks, each stored once.

use std::borrow::Cow;
use std::hash::Hash;
use std::io::{self, Write};

use borehole_model::{Frame, FrameId, Label, LabelValue, StackId, Status, StringId, Tables};
use hashbrown::HashMap;

use super::layout::{KEYS, any, attribute, dictionary, key, location};
use super::stacks::StackEntries;
use crate::Losses;
use crate::documents::protobuf::{FieldStream, Message, field_length};
use crate::symbols::layout::mapping;
use crate::symbols::tables::{EntryTable, SymbolTables};

/// The value of an attribute that is not a list.
#[derive(Clone, Copy, Debug)]
pub(super) enum ScalarValue<'a> {
    Text(&'a str),
    Number(i64),
}

#[derive(Debug)]
pub(super) struct Dictionary<'t> {
    symbols: SymbolTables<'t>,
    attributes: EntryTable,
    stacks: StackEntries,
    new_stacks: Vec<StackId>,
}

impl<'t> Dictionary<'t> {
    pub(super) fn new(tables: &'t Tables) -> Self {
        Self {
            symbols: SymbolTables::new(tables, KEYS),
            attributes: EntryTable::default(),
            stacks: StackEntries::new(tables.stack_count()),
            new_stacks: Vec::new(),
        }
    }

    pub(super) const fn tables(&self) -> &'t Tables {
        self.symbols.tables()
    }

    pub(super) fn text(&mut self, text: &str) -> u64 {
        self.symbols.text(text)
    }

    /// The number of a stack; 0 for the empty one.
    pub(super) fn stack(&mut self, stack: Option<StackId>) -> u64 {
        let Some(stack) = stack else { return 0 };
        if self.stacks.node(stack) == 0 {
            self.add_stack(stack);
        }
        self.stacks.number(stack).into()
    }

    /// Adds a stack and those of its callers that are new. Their locations are numbered from the leaf on.
    fn add_stack(&mut self, leaf: StackId) {
        let tables = self.tables();
        let mut next = Some(leaf);
        while let Some(stack) = next.filter(|&stack| self.stacks.node(stack) == 0) {
            self.location(tables.leaf(stack));
            self.new_stacks.push(stack);
            next = tables.parent(stack);
        }
        let mut caller = next.map_or(0, |stack| self.stacks.node(stack));
        while let Some(stack) = self.new_stacks.pop() {
            let location = self.location(tables.leaf(stack));
            caller = self.stacks.add(stack, caller, location);
        }
    }

    fn location(&mut self, id: FrameId) -> u32 {
        let known = self.symbols.location(id);
        if known != 0 {
            return known;
        }
        let frame = self.tables().frame(id);
        let mapping = frame.native.map_or(0, |native| self.mapping(native.module));
        let attributes = self.frame_attributes(&frame);
        self.symbols.add_location(id, &frame, mapping, |message| {
            if !attributes.is_empty() {
                message.packed(location::ATTRIBUTE_INDICES, attributes.iter().copied());
            }
        })
    }

    /// The number of a mapping; 0 for memory without a name, whose entry already exists.
    fn mapping(&mut self, module: StringId) -> u64 {
        let (file, mut message) = (self.symbols.string(module), Message::default());
        message.number(KEYS.field(mapping::FILENAME), file);
        u64::from(self.symbols.mappings.number(message.as_bytes()))
    }

    fn frame_attributes(&mut self, frame: &Frame) -> Vec<u64> {
        let mut numbers = Vec::new();
        if frame.native.is_some() {
            numbers.push(self.attribute(key::FRAME_TYPE, ScalarValue::Text(key::NATIVE)));
        }
        if let Some(opcode) = frame.opcode {
            let name = String::from_utf8_lossy(self.tables().string(opcode));
            numbers.push(self.attribute(key::OPCODE, ScalarValue::Text(&name)));
        }
        if let Some(line) = frame.end_line {
            numbers.push(self.attribute(key::END_LINE, ScalarValue::Number(line)));
        }
        if let Some(column) = frame.end_column {
            numbers.push(self.attribute(key::END_COLUMN, ScalarValue::Number(i64::from(column))));
        }
        numbers
    }

    /// The number of an attribute with one value.
    pub(super) fn attribute(&mut self, key: &str, value: ScalarValue<'_>) -> u64 {
        let key = self.text(key);
        self.attribute_of(key, &[scalar(value)], 0)
    }

    /// The number of an attribute with these values: a list, unless there is one.
    fn attribute_of(&mut self, key: u64, values: &[Message], unit: u64) -> u64 {
        let list;
        let value = match values {
            [value] => value,
            _ => {
                list = array(values);
                &list
            }
        };
        let mut message = Message::default();
        message.number(attribute::KEY, key).bytes(attribute::VALUE, value.as_bytes());
        message.number(attribute::UNIT, unit);
        u64::from(self.attributes.number(message.as_bytes()))
    }

    /// The number of the attribute that lists the flags of a status, however many there are.
    pub(super) fn status(&mut self, status: Status) -> u64 {
        let flags: Vec<_> = status.names().map(|flag| scalar(ScalarValue::Text(flag))).collect();
        let key = self.text(key::STATUS);
        self.attribute_of(key, &[array(&flags)], 0)
    }

    /// The numbers of attributes for labels. A sample has an attribute of a name only once: labels with equal keys
    /// become a list.
    pub(super) fn labels(&mut self, labels: &[Label]) -> Vec<u64> {
        let groups = grouped(labels.iter().map(|label| (label.key, label.value)));
        groups.into_iter().map(|(key, values)| self.label(key, &values)).collect()
    }

    fn label(&mut self, key: StringId, values: &[LabelValue]) -> u64 {
        let mut units = values.iter().filter_map(|value| match value {
            LabelValue::Number { unit, .. } => Some(*unit),
            LabelValue::Text(_) => None,
        });
        let unit = units.next().flatten();
        let other = units.filter(|other| *other != unit).count();
        self.symbols.losses.add("units of labels that share their name", other as u64);
        let values: Vec<_> = values.iter().map(|&value| self.value(value)).collect();
        let (key, unit) = (self.symbols.string(key), unit.map_or(0, |unit| self.symbols.string(unit)));
        self.attribute_of(key, &values, unit)
    }

    fn value(&mut self, value: LabelValue) -> Message {
        match value {
            LabelValue::Text(text) => {
                let text = String::from_utf8_lossy(self.tables().string(text));
                let is_cut = matches!(text, Cow::Owned(_));
                self.symbols.losses.add("bytes outside UTF-8 (in labels)", u64::from(is_cut));
                scalar(ScalarValue::Text(&text))
            }
            LabelValue::Number { value, .. } => scalar(ScalarValue::Number(value)),
        }
    }

    /// The numbers of attributes for metadata, whose keys may repeat like those of labels.
    pub(super) fn texts(&mut self, pairs: &[(Cow<'_, str>, Cow<'_, str>)]) -> Vec<u64> {
        let groups = grouped(pairs.iter().map(|(key, value)| (key, scalar(ScalarValue::Text(value)))));
        let number = |(key, values): (&Cow<'_, str>, Vec<Message>)| {
            let key = self.text(key);
            self.attribute_of(key, &values, 0)
        };
        groups.into_iter().map(number).collect()
    }

    /// Writes the dictionary as a field.
    pub(super) fn write<W: Write>(&self, field: u32, output: &mut FieldStream<W>) -> io::Result<()> {
        let links = EntryTable::default();
        let tables = [
            (dictionary::MAPPING, &self.symbols.mappings),
            (dictionary::LOCATION, &self.symbols.locations),
            (dictionary::FUNCTION, &self.symbols.functions),
            (dictionary::LINK, &links),
            (dictionary::STRING, &self.symbols.strings),
            (dictionary::ATTRIBUTE, &self.attributes),
        ];
        let entries = tables.iter().flat_map(|(_, table)| table.iter());
        let entries: u64 = entries.map(|entry| field_length(entry.len() as u64)).sum();
        output.begin(field, entries + self.stacks.field_bytes());
        for (field, table) in tables {
            table.iter().try_for_each(|entry| output.bytes(field, entry))?;
        }
        self.stacks.write(output)
    }

    pub(super) fn into_losses(self) -> Losses {
        self.symbols.losses
    }
}

/// The values of each key, in the order of the first ones.
fn grouped<K: Copy + Eq + Hash, V>(pairs: impl Iterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let (mut groups, mut index): (Vec<(K, Vec<V>)>, _) = (Vec::new(), HashMap::new());
    for (key, value) in pairs {
        let place = *index.entry(key).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(value);
    }
    groups
}

pub(super) fn scalar(value: ScalarValue<'_>) -> Message {
    let mut message = Message::default();
    match value {
        ScalarValue::Text(text) => message.bytes(any::STRING, text.as_bytes()),
        ScalarValue::Number(number) => message.explicit(any::INT, number.cast_unsigned()),
    };
    message
}

fn array(values: &[Message]) -> Message {
    let (mut list, mut value) = (Message::default(), Message::default());
    for entry in values {
        list.bytes(any::VALUES, entry.as_bytes());
    }
    value.bytes(any::ARRAY, list.as_bytes());
    value
}
