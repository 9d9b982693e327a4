//! The messages, decoded from bytes.
//!
//! Memory is proportional to the document: the definitions are copied, no allocation is sized by a number in the file,
//! and the bytes of the samples, most of the document, are released while they are delivered. The importer resolves
//! references later.

use std::ops::Range;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::NAME;
use super::layout::{function, label, line, location, mapping, profile, sample, value_type};
use crate::document::Damage;
use crate::protobuf_fields::{Field, Fields, read_document};
use crate::{Error, Position};

/// A measured quantity with its unit, as string indexes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueType {
    pub(super) kind: i64,
    pub(super) unit: i64,
}

/// One label, with string indexes. `None` is an absent field, which may differ from `0`.
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

/// An address with its lines.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) mapping: u64,
    pub(super) address: u64,
    pub(super) offset: u64,
    /// The range among the document's lines, innermost first.
    lines: Range<usize>,
}

/// A location in a function. `None` is an absent field.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    pub(super) function: u64,
    pub(super) line: Option<i64>,
    pub(super) column: i64,
}

/// A function, with string indexes. `None` is an absent field.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Function {
    pub(super) name: i64,
    pub(super) system_name: i64,
    pub(super) file: Option<i64>,
}

/// One sample, in reused buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) offset: u64,
    pub(super) locations: Vec<u64>,
    pub(super) values: Vec<i64>,
    pub(super) labels: Vec<Label>,
}

/// A whole profile without its samples.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// The size of the document in bytes.
    pub(super) len: u64,
    /// All strings, end to end.
    strings: Vec<u8>,
    string_ends: Vec<usize>,
    lines: Vec<Line>,
    pub(super) sample_types: Vec<ValueType>,
    pub(super) mappings: HashMap<u64, Mapping>,
    pub(super) locations: HashMap<u64, Location>,
    pub(super) functions: HashMap<u64, Function>,
    pub(super) comments: Vec<i64>,
    pub(super) drop_frames: i64,
    pub(super) keep_frames: i64,
    pub(super) time_ns: i64,
    pub(super) duration_ns: i64,
    pub(super) period_type: ValueType,
    pub(super) period: i64,
    pub(super) default_sample_type: i64,
    pub(super) doc_url: i64,
}

impl Document {
    /// Reads all messages that samples refer to, and locates the samples. The document begins at `base` in its input.
    ///
    /// # Errors
    /// Damage that is not skipped.
    pub(super) fn read(base: u64, bytes: Vec<u8>, damage: &mut Damage) -> Result<(Self, Samples), Error> {
        let (mut document, mut outline) = (Self::default(), Outline { base, ..Outline::default() });
        let read = read_document(NAME, base, &bytes, damage, |field| {
            outline.add(field);
            document.take(field)
        })?;
        document.len = read.len() as u64;
        let samples = outline.samples(read.len(), bytes);
        Ok((document, samples))
    }

    fn take(&mut self, field: &Field<'_>) -> Result<(), Error> {
        match field.number {
            profile::SAMPLE_TYPE => self.sample_types.push(ValueType::read(field.message()?)?),
            profile::SAMPLE => drop(field.message()?),
            profile::MAPPING => self.take_mapping(field)?,
            profile::LOCATION => self.take_location(field)?,
            profile::FUNCTION => self.take_function(field)?,
            profile::STRING_TABLE => self.take_string(field)?,
            profile::DROP_FRAMES => self.drop_frames = field.signed()?,
            profile::KEEP_FRAMES => self.keep_frames = field.signed()?,
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

    fn take_string(&mut self, field: &Field<'_>) -> Result<(), Error> {
        let string = field.cursor("a string")?.rest();
        if self.string_ends.is_empty() && !string.is_empty() {
            return Err(malformed(field.offset, "expected the empty string as the first, found another"));
        }
        self.strings.extend_from_slice(string);
        self.string_ends.push(self.strings.len());
        Ok(())
    }

    fn take_mapping(&mut self, field: &Field<'_>) -> Result<(), Error> {
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

    fn take_location(&mut self, field: &Field<'_>) -> Result<(), Error> {
        let first = self.lines.len();
        let mut row = Location { mapping: 0, address: 0, offset: field.offset, lines: first..first };
        let (mut id, mut fields) = (0, field.message()?);
        while let Some(field) = fields.next_field()? {
            match field.number {
                location::ID => id = field.number()?,
                location::MAPPING_ID => row.mapping = field.number()?,
                location::ADDRESS => row.address = field.number()?,
                location::LINE => self.lines.push(Line::read(field.message()?)?),
                _ => {}
            }
        }
        row.lines.end = self.lines.len();
        insert(&mut self.locations, "location", id, row, field.offset)
    }

    fn take_function(&mut self, field: &Field<'_>) -> Result<(), Error> {
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
    /// If there is none at `index`; `offset` is the position of the index.
    pub(super) fn string(&self, index: i64, offset: u64) -> Result<&[u8], Error> {
        // Index 0 is the empty string by definition, even in a document without strings.
        if index == 0 {
            return Ok(b"");
        }
        let end_of = |index: usize| self.string_ends.get(index).copied();
        let range = usize::try_from(index).ok().and_then(|index| Some(end_of(index - 1)?..end_of(index)?));
        range.map(|range| &self.strings[range]).ok_or_else(|| {
            let count = self.string_ends.len();
            malformed(offset, format!("expected a string index below {count}, found {index}"))
        })
    }

    /// The lines of a location, innermost first.
    pub(super) fn lines(&self, location: &Location) -> &[Line] {
        &self.lines[location.lines.clone()]
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

/// The positions of the samples in a document.
#[derive(Default)]
struct Outline {
    /// The start of the document in its input.
    base: u64,
    /// The starts of pieces, each of which begins with a sample.
    pieces: Vec<usize>,
    /// The start of the part after the last sample.
    end: Option<usize>,
}

impl Outline {
    fn add(&mut self, field: &Field<'_>) {
        // The document is in memory.
        let at = usize::try_from(field.offset - self.base).unwrap_or(usize::MAX);
        if field.number != profile::SAMPLE {
            self.end.get_or_insert(at);
            return;
        }
        self.end = None;
        if self.pieces.last().is_none_or(|&last| at - last >= Samples::PIECE_BYTES) {
            self.pieces.push(at);
        }
    }

    /// The samples among the first `len` of `bytes`.
    fn samples(self, len: usize, mut bytes: Vec<u8>) -> Samples {
        bytes.truncate(self.end.map_or(len, |end| end.min(len)));
        let cut = |at: usize| {
            let piece = Piece { offset: self.base + at as u64, bytes: bytes.split_off(at) };
            bytes.shrink_to_fit();
            piece
        };
        Samples { pieces: self.pieces.into_iter().rev().map(cut).collect(), read: 0 }
    }
}

/// Samples, and the fields between them.
#[derive(Debug)]
struct Piece {
    /// The start of the piece in the input.
    offset: u64,
    bytes: Vec<u8>,
}

impl Piece {
    /// The rest of the piece after `read` bytes.
    fn fields(&self, read: usize) -> Fields<'_> {
        Fields::within_document(NAME, &self.bytes[read..], self.offset + read as u64)
    }
}

/// The samples of a document.
#[derive(Debug)]
pub(super) struct Samples {
    /// The unread pieces, the first one last.
    pieces: Vec<Piece>,
    /// The number of bytes read of the first piece.
    read: usize,
}

impl Samples {
    /// The minimum length of a piece, except for the last.
    const PIECE_BYTES: usize = 1 << 18;

    /// Reads the next sample into `into`, and frees the piece before it; false at the end. After an error the following
    /// sample can be read.
    ///
    /// # Errors
    /// If the sample is malformed.
    pub(super) fn next_sample(&mut self, into: &mut Sample) -> Result<bool, Error> {
        while let Some(piece) = self.pieces.last() {
            let mut fields = piece.fields(self.read);
            let found = next_sample(&mut fields, into);
            // The rest is in memory.
            self.read = piece.bytes.len() - fields.left();
            if !matches!(found, Ok(false)) {
                return found;
            }
            self.pieces.pop();
            self.read = 0;
        }
        Ok(false)
    }

    /// Passes every sample to `take`, without advancing. A malformed one is passed as far as it could be read.
    pub(super) fn look_at(&self, mut take: impl FnMut(&Sample)) {
        let mut sample = Sample::default();
        for piece in self.pieces.iter().rev() {
            let mut fields = piece.fields(0);
            while next_sample(&mut fields, &mut sample).unwrap_or(true) {
                take(&sample);
            }
        }
    }
}

/// Reads the next sample among `fields`; false if there is none.
fn next_sample(fields: &mut Fields<'_>, into: &mut Sample) -> Result<bool, Error> {
    while let Some(field) = fields.next_field()? {
        // A sample that is not a message was reported when the document was read.
        if field.number == profile::SAMPLE
            && let Ok(message) = field.message()
        {
            into.read(field.offset, message)?;
            return Ok(true);
        }
    }
    Ok(false)
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
