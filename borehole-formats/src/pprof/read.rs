//! The messages as they stand in the bytes.
//!
//! Memory is proportional to the document: ids, indexes and cursors are kept, nothing is copied and nothing
//! is sized by a number in the file. What a message refers to is looked up later, by the importer.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::NAME;
use super::layout::{function, label, line, location, mapping, profile, sample, value_type};
use crate::document::Damage;
use crate::protobuf_fields::{Field, Fields, read_document};
use crate::{Error, Position};

/// What is measured and in which unit, as string indexes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueType {
    pub(super) kind: i64,
    pub(super) unit: i64,
}

/// One label, with string indexes. `None` is a field that is absent, which `0` need not be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Label {
    pub(super) key: i64,
    pub(super) text: Option<i64>,
    pub(super) number: Option<i64>,
    pub(super) unit: i64,
}

/// A loaded file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) limit: u64,
    pub(super) file: i64,
}

/// An address with its lines, which are read when they are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location<'a> {
    pub(super) mapping: u64,
    pub(super) address: u64,
    pub(super) offset: u64,
    fields: Fields<'a>,
}

/// A place in a function. `None` is a field that is absent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    pub(super) function: u64,
    pub(super) line: Option<i64>,
    pub(super) column: i64,
}

/// A function, with string indexes. `None` is a field that is absent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Function {
    pub(super) name: i64,
    pub(super) system_name: i64,
    pub(super) file: Option<i64>,
}

/// One sample, in buffers that the next one uses again.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) offset: u64,
    pub(super) locations: Vec<u64>,
    pub(super) values: Vec<i64>,
    pub(super) labels: Vec<Label>,
}

/// A whole profile but for its samples, which are read one by one.
#[derive(Debug)]
pub(super) struct Document<'a> {
    bytes: &'a [u8],
    pub(super) strings: Vec<&'a [u8]>,
    pub(super) sample_types: Vec<ValueType>,
    pub(super) mappings: HashMap<u64, Mapping>,
    pub(super) locations: HashMap<u64, Location<'a>>,
    pub(super) functions: HashMap<u64, Function>,
    pub(super) comments: Vec<i64>,
    pub(super) drops_frames: bool,
    pub(super) time_ns: i64,
    pub(super) duration_ns: i64,
    pub(super) period_type: ValueType,
    pub(super) period: i64,
    pub(super) default_sample_type: i64,
    pub(super) doc_url: i64,
}

impl<'a> Document<'a> {
    /// Reads all messages that samples refer to.
    ///
    /// # Errors
    /// Damage that is not read over.
    pub(super) fn read(bytes: &'a [u8], damage: &mut Damage) -> Result<Self, Error> {
        let mut document = Self::empty(bytes);
        document.bytes = read_document(NAME, bytes, damage, |field| document.take(field))?;
        Ok(document)
    }

    fn empty(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            strings: Vec::new(),
            sample_types: Vec::new(),
            mappings: HashMap::new(),
            locations: HashMap::new(),
            functions: HashMap::new(),
            comments: Vec::new(),
            drops_frames: false,
            time_ns: 0,
            duration_ns: 0,
            period_type: ValueType::default(),
            period: 0,
            default_sample_type: 0,
            doc_url: 0,
        }
    }

    fn take(&mut self, field: &Field<'a>) -> Result<(), Error> {
        match field.number {
            profile::SAMPLE_TYPE => self.sample_types.push(ValueType::read(field.message()?)?),
            profile::SAMPLE => drop(field.message()?),
            profile::MAPPING => self.take_mapping(field)?,
            profile::LOCATION => self.take_location(field)?,
            profile::FUNCTION => self.take_function(field)?,
            profile::STRING_TABLE => self.take_string(field)?,
            profile::DROP_FRAMES | profile::KEEP_FRAMES => self.drops_frames |= field.signed()? != 0,
            profile::TIME_NANOS => self.time_ns = field.signed()?,
            profile::DURATION_NANOS => self.duration_ns = field.signed()?,
            profile::PERIOD_TYPE => self.period_type = ValueType::read(field.message()?)?,
            profile::PERIOD => self.period = field.signed()?,
            profile::COMMENT => field.numbers(|index| self.comments.push(index.cast_signed()))?,
            profile::DEFAULT_SAMPLE_TYPE => self.default_sample_type = field.signed()?,
            profile::DOC_URL => self.doc_url = field.signed()?,
            _ => {}
        }
        Ok(())
    }

    fn take_string(&mut self, field: &Field<'a>) -> Result<(), Error> {
        let string = field.cursor("a string")?.rest();
        if self.strings.is_empty() && !string.is_empty() {
            return Err(malformed(field.offset, "expected the empty string as the first, found another"));
        }
        self.strings.push(string);
        Ok(())
    }

    fn take_mapping(&mut self, field: &Field<'a>) -> Result<(), Error> {
        let (mut id, mut row) = (0, Mapping::default());
        let mut fields = field.message()?;
        while let Some(field) = fields.next_field()? {
            match field.number {
                mapping::ID => id = field.number()?,
                mapping::MEMORY_START => row.start = field.number()?,
                mapping::MEMORY_LIMIT => row.limit = field.number()?,
                mapping::FILENAME => row.file = field.signed()?,
                _ => {}
            }
        }
        insert(&mut self.mappings, "mapping", id, row, field.offset)
    }

    fn take_location(&mut self, field: &Field<'a>) -> Result<(), Error> {
        let message = field.message()?;
        let mut row = Location { mapping: 0, address: 0, offset: field.offset, fields: message };
        let (mut id, mut fields) = (0, message);
        while let Some(field) = fields.next_field()? {
            match field.number {
                location::ID => id = field.number()?,
                location::MAPPING_ID => row.mapping = field.number()?,
                location::ADDRESS => row.address = field.number()?,
                location::LINE => drop(Line::read(field.message()?)?),
                _ => {}
            }
        }
        insert(&mut self.locations, "location", id, row, field.offset)
    }

    fn take_function(&mut self, field: &Field<'a>) -> Result<(), Error> {
        let (mut id, mut row) = (0, Function::default());
        let mut fields = field.message()?;
        while let Some(field) = fields.next_field()? {
            match field.number {
                function::ID => id = field.number()?,
                function::NAME => row.name = field.signed()?,
                function::SYSTEM_NAME => row.system_name = field.signed()?,
                function::FILENAME => row.file = Some(field.signed()?),
                _ => {}
            }
        }
        insert(&mut self.functions, "function", id, row, field.offset)
    }

    /// A string.
    ///
    /// # Errors
    /// When there is none at `index`; `offset` is where the index stands.
    pub(super) fn string(&self, index: i64, offset: u64) -> Result<&'a [u8], Error> {
        // Index 0 is the empty string by definition, also in a document that has no strings.
        if index == 0 {
            return Ok(b"");
        }
        usize::try_from(index).ok().and_then(|index| self.strings.get(index)).copied().ok_or_else(|| {
            let count = self.strings.len();
            malformed(offset, format!("expected a string index below {count}, found {index}"))
        })
    }

    /// The size of the document in bytes.
    pub(super) const fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The samples, in the order of the file.
    pub(super) const fn samples(&self) -> Samples<'a> {
        Samples { fields: Fields::of_document(NAME, self.bytes) }
    }
}

fn insert<T>(rows: &mut HashMap<u64, T>, what: &str, id: u64, row: T, offset: u64) -> Result<(), Error> {
    if id == 0 {
        return Err(malformed(offset, format!("expected a {what} id above 0, found 0")));
    }
    match rows.entry(id) {
        Entry::Vacant(entry) => {
            entry.insert(row);
            Ok(())
        }
        Entry::Occupied(_) => Err(malformed(offset, format!("expected a new {what} id, found {id} again"))),
    }
}

impl ValueType {
    fn read(mut fields: Fields<'_>) -> Result<Self, Error> {
        let mut row = Self::default();
        while let Some(field) = fields.next_field()? {
            match field.number {
                value_type::TYPE => row.kind = field.signed()?,
                value_type::UNIT => row.unit = field.signed()?,
                _ => {}
            }
        }
        Ok(row)
    }
}

impl Line {
    fn read(mut fields: Fields<'_>) -> Result<Self, Error> {
        let mut row = Self::default();
        while let Some(field) = fields.next_field()? {
            match field.number {
                line::FUNCTION_ID => row.function = field.number()?,
                line::LINE => row.line = Some(field.signed()?),
                line::COLUMN => row.column = field.signed()?,
                _ => {}
            }
        }
        Ok(row)
    }
}

impl Label {
    fn read(mut fields: Fields<'_>) -> Result<Self, Error> {
        let mut row = Self::default();
        while let Some(field) = fields.next_field()? {
            match field.number {
                label::KEY => row.key = field.signed()?,
                label::STR => row.text = Some(field.signed()?),
                label::NUM => row.number = Some(field.signed()?),
                label::NUM_UNIT => row.unit = field.signed()?,
                _ => {}
            }
        }
        Ok(row)
    }
}

impl<'a> Location<'a> {
    /// The lines, innermost first. They were read once before: a bad one is an error of the document.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line> + use<'a> {
        let mut fields = self.fields;
        std::iter::from_fn(move || fields.next_field().ok().flatten())
            .filter(|field| field.number == location::LINE)
            .filter_map(|field| field.message().and_then(Line::read).ok())
    }
}

/// Reads the samples of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Samples<'a> {
    fields: Fields<'a>,
}

impl Samples<'_> {
    /// Reads the next sample into `into`; false at the end. After an error the one behind it can be read.
    ///
    /// # Errors
    /// When the sample is malformed.
    pub(super) fn next_sample(&mut self, into: &mut Sample) -> Result<bool, Error> {
        while let Some(field) = self.fields.next_field()? {
            // A sample that is not a message was found when the document was read.
            if field.number == profile::SAMPLE
                && let Ok(message) = field.message()
            {
                into.read(field.offset, message)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Sample {
    fn read(&mut self, offset: u64, mut fields: Fields<'_>) -> Result<(), Error> {
        self.offset = offset;
        self.locations.clear();
        self.values.clear();
        self.labels.clear();
        while let Some(field) = fields.next_field()? {
            match field.number {
                sample::LOCATION_ID => field.numbers(|id| self.locations.push(id))?,
                sample::VALUE => field.numbers(|value| self.values.push(value.cast_signed()))?,
                sample::LABEL => self.labels.push(Label::read(field.message()?)?),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cold]
pub(super) fn malformed(offset: u64, message: impl Into<String>) -> Error {
    Error::malformed(NAME, Position::Byte(offset), message)
}
