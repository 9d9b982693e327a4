//! The definitions of samples: strings, functions, mappings, locations, attributes and stacks, each stored once.
//!
//! Entries are encoded on first use, and compared by their bytes. Number 0 of each table is the empty entry, which
//! stands for an absent one.

use std::borrow::Cow;

use borehole_model::{Frame, FrameId, Label, LabelValue, StackId, Status, StringId, Tables};
use hashbrown::HashMap;

use super::layout::{any, attribute, dictionary, function, key, line, location, mapping, stack};
use crate::Losses;
use crate::protobuf::{Message, put_bytes};

/// One table: its encoded entries with their numbers.
#[derive(Debug)]
struct Table {
    field: u32,
    bytes: Vec<u8>,
    index: HashMap<Vec<u8>, u64>,
}

impl Table {
    fn new(field: u32) -> Self {
        let mut table = Self { field, bytes: Vec::new(), index: HashMap::new() };
        table.number(&[]);
        table
    }

    fn number(&mut self, entry: &[u8]) -> u64 {
        if let Some(&number) = self.index.get(entry) {
            return number;
        }
        let number = self.index.len() as u64;
        put_bytes(&mut self.bytes, self.field, entry);
        self.index.insert(entry.to_vec(), number);
        number
    }
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug)]
pub(super) enum Said<'a> {
    Text(&'a str),
    Number(i64),
}

#[derive(Debug)]
pub(super) struct Dictionary<'t> {
    tables: &'t Tables,
    strings: Table,
    mappings: Table,
    locations: Table,
    functions: Table,
    attributes: Table,
    stacks: Table,
    /// By string, frame and stack: its number plus one, 0 if it has none.
    string_column: Vec<u64>,
    frame_column: Vec<u64>,
    stack_column: Vec<u64>,
    losses: Losses,
}

impl<'t> Dictionary<'t> {
    pub(super) fn new(tables: &'t Tables) -> Self {
        Self {
            tables,
            strings: Table::new(dictionary::STRING),
            mappings: Table::new(dictionary::MAPPING),
            locations: Table::new(dictionary::LOCATION),
            functions: Table::new(dictionary::FUNCTION),
            attributes: Table::new(dictionary::ATTRIBUTE),
            stacks: Table::new(dictionary::STACK),
            string_column: vec![0; tables.string_count()],
            frame_column: vec![0; tables.frame_count()],
            stack_column: vec![0; tables.stack_count()],
            losses: Losses::default(),
        }
    }

    pub(super) const fn tables(&self) -> &'t Tables {
        self.tables
    }

    pub(super) fn text(&mut self, text: &str) -> u64 {
        self.strings.number(text.as_bytes())
    }

    fn string(&mut self, id: StringId) -> u64 {
        if self.string_column[id.index()] == 0 {
            // A `string` of protobuf is UTF-8, and most readers reject a whole document with an invalid one.
            let text = String::from_utf8_lossy(self.tables.string(id));
            self.losses.add("bytes outside UTF-8 (in names)", u64::from(matches!(text, Cow::Owned(_))));
            self.string_column[id.index()] = self.strings.number(text.as_bytes()) + 1;
        }
        self.string_column[id.index()] - 1
    }

    /// The number of a stack; 0 for the empty one.
    pub(super) fn stack(&mut self, stack: Option<StackId>) -> u64 {
        let Some(id) = stack else { return 0 };
        if self.stack_column[id.index()] == 0 {
            let frames = self.tables.frames_leaf_first(stack);
            let numbers: Vec<_> = frames.map(|frame| self.location(frame).cast_signed()).collect();
            let mut message = Message::default();
            message.packed_signed(stack::LOCATION_INDICES, numbers.iter().copied());
            self.stack_column[id.index()] = self.stacks.number(message.as_bytes()) + 1;
        }
        self.stack_column[id.index()] - 1
    }

    fn location(&mut self, id: FrameId) -> u64 {
        if self.frame_column[id.index()] == 0 {
            let frame = self.tables.frame(id);
            self.frame_column[id.index()] = self.new_location(&frame) + 1;
        }
        self.frame_column[id.index()] - 1
    }

    fn new_location(&mut self, frame: &Frame) -> u64 {
        let mut place = Message::default();
        place.number(line::FUNCTION_INDEX, self.function(frame));
        if let Some(line) = frame.line {
            place.explicit(line::LINE, line.cast_unsigned());
        }
        place.number(line::COLUMN, frame.column.map_or(0, |column| u64::from(column) + 1));
        let mut message = Message::default();
        if let Some(native) = frame.native {
            message.number(location::MAPPING_INDEX, self.mapping(native.module));
            message.number(location::ADDRESS, native.offset.map_or(0, i64::cast_unsigned));
        }
        message.bytes(location::LINES, place.as_bytes());
        let attributes = self.frame_attributes(frame);
        if !attributes.is_empty() {
            message.packed_signed(location::ATTRIBUTE_INDICES, attributes.iter().copied());
        }
        self.locations.number(message.as_bytes())
    }

    /// The number of a mapping; 0 for memory without a name, whose entry already exists.
    fn mapping(&mut self, module: StringId) -> u64 {
        let name = self.string(module);
        let mut message = Message::default();
        message.number(mapping::FILENAME, name);
        self.mappings.number(message.as_bytes())
    }

    fn frame_attributes(&mut self, frame: &Frame) -> Vec<i64> {
        let mut numbers = Vec::new();
        if frame.native.is_some() {
            numbers.push(self.attribute(key::FRAME_TYPE, Said::Text(key::NATIVE)));
        }
        if let Some(opcode) = frame.opcode {
            let name = String::from_utf8_lossy(self.tables.string(opcode));
            numbers.push(self.attribute(key::OPCODE, Said::Text(&name)));
        }
        if let Some(line) = frame.end_line {
            numbers.push(self.attribute(key::END_LINE, Said::Number(line)));
        }
        if let Some(column) = frame.end_column {
            numbers.push(self.attribute(key::END_COLUMN, Said::Number(i64::from(column))));
        }
        numbers
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let mut message = Message::default();
        message.explicit(function::NAME, self.string(frame.function));
        if let Some(file) = frame.file {
            message.explicit(function::FILENAME, self.string(file));
        }
        self.functions.number(message.as_bytes())
    }

    /// The number of an attribute with one value.
    pub(super) fn attribute(&mut self, key: &str, said: Said<'_>) -> i64 {
        let key = self.text(key);
        self.attribute_of(key, &scalar(said), 0)
    }

    fn attribute_of(&mut self, key: u64, value: &Message, unit: u64) -> i64 {
        let mut message = Message::default();
        message.number(attribute::KEY, key).bytes(attribute::VALUE, value.as_bytes());
        message.number(attribute::UNIT, unit);
        self.attributes.number(message.as_bytes()).cast_signed()
    }

    /// The number of the attribute that lists the flags of a status.
    pub(super) fn status(&mut self, status: Status) -> i64 {
        let flags: Vec<_> = status.names().map(|flag| scalar(Said::Text(flag))).collect();
        let key = self.text(key::STATUS);
        self.attribute_of(key, &array(&flags), 0)
    }

    /// The numbers of attributes for labels. A sample has an attribute of a name only once: labels with equal keys
    /// become a list.
    pub(super) fn labels(&mut self, labels: &[Label]) -> Vec<i64> {
        let mut keys = Vec::new();
        for label in labels {
            if !keys.contains(&label.key) {
                keys.push(label.key);
            }
        }
        let mut numbers = Vec::new();
        for key in keys {
            let same: Vec<_> =
                labels.iter().filter(|label| label.key == key).map(|label| label.value).collect();
            numbers.push(self.label(key, &same));
        }
        numbers
    }

    fn label(&mut self, key: StringId, values: &[LabelValue]) -> i64 {
        let mut units = values.iter().filter_map(|value| match value {
            LabelValue::Number { unit, .. } => Some(*unit),
            LabelValue::Text(_) => None,
        });
        let unit = units.next().flatten();
        let other = units.filter(|other| *other != unit).count();
        self.losses.add("units of labels that share their name", other as u64);
        let values: Vec<_> = values.iter().map(|&value| self.value(value)).collect();
        let (key, unit) = (self.string(key), unit.map_or(0, |unit| self.string(unit)));
        match &values[..] {
            [value] => self.attribute_of(key, value, unit),
            _ => self.attribute_of(key, &array(&values), unit),
        }
    }

    fn value(&mut self, value: LabelValue) -> Message {
        match value {
            LabelValue::Text(text) => {
                let text = String::from_utf8_lossy(self.tables.string(text));
                self.losses.add("bytes outside UTF-8 (in labels)", u64::from(matches!(text, Cow::Owned(_))));
                scalar(Said::Text(&text))
            }
            LabelValue::Number { value, .. } => scalar(Said::Number(value)),
        }
    }

    /// The numbers of attributes for metadata, whose keys may repeat like those of labels.
    pub(super) fn texts(&mut self, pairs: &[(Cow<'_, str>, Cow<'_, str>)]) -> Vec<i64> {
        let mut numbers = Vec::new();
        for (place, (key, _)) in pairs.iter().enumerate() {
            if pairs[..place].iter().any(|(known, _)| known == key) {
                continue;
            }
            let same = pairs.iter().filter(|(other, _)| other == key);
            let values: Vec<_> = same.map(|(_, value)| scalar(Said::Text(value))).collect();
            let key = self.text(key);
            numbers.push(match &values[..] {
                [value] => self.attribute_of(key, value, 0),
                _ => self.attribute_of(key, &array(&values), 0),
            });
        }
        numbers
    }

    /// The message, with its losses.
    pub(super) fn into_message(self) -> (Vec<u8>, Losses) {
        let mut links = Vec::new();
        put_bytes(&mut links, dictionary::LINK, &[]);
        let tables = [&self.mappings, &self.locations, &self.functions].map(|table| &table.bytes[..]);
        let more = [&self.strings, &self.attributes, &self.stacks].map(|table| &table.bytes[..]);
        let message = [tables.concat(), links, more.concat()].concat();
        (message, self.losses)
    }
}

pub(super) fn scalar(said: Said<'_>) -> Message {
    let mut value = Message::default();
    match said {
        Said::Text(text) => _ = value.bytes(any::STRING, text.as_bytes()),
        Said::Number(number) => _ = value.explicit(any::INT, number.cast_unsigned()),
    }
    value
}

fn array(values: &[Message]) -> Message {
    let (mut list, mut value) = (Message::default(), Message::default());
    for entry in values {
        list.bytes(any::VALUES, entry.as_bytes());
    }
    value.bytes(any::ARRAY, list.as_bytes());
    value
}
