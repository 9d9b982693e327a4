//! The messages, decoded from bytes.
//!
//! Memory is proportional to the document: the definitions are copied, no allocation is sized by a number in the file,
//! and the bytes of the samples, most of the document, are released while they are delivered. The importer resolves
//! references later.

use std::ops::Range;

use borehole_memory::HeldBytes as _;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::NAME;
use super::layout::{KEYS, label, mapping as own, profile, sample};
use crate::documents::protobuf_fields::{MessageFields, WireField, read_document};
use crate::documents::whole::DocumentDamage;
use crate::symbols::layout::location;
use crate::symbols::read::{SourceLine, SymbolFunction, SymbolLocation, SymbolMapping, TypeIndexes};
use crate::symbols::resolve::{MADE_OF_LOCATION_BYTES, StatedFiles, SymbolDocument, missing_entry};
use crate::{CodePlaces, Error, Limits, Position};

/// One label, with string indexes. `None` is an absent field, which may differ from `0`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PprofLabel {
    pub(super) key: u64,
    pub(super) text: Option<u64>,
    pub(super) number: Option<i64>,
    pub(super) unit: u64,
}

/// An address with its lines.
#[derive(Clone, Debug)]
pub(super) struct PprofLocation {
    pub(super) symbol: SymbolLocation,
    /// The range among the document's lines, innermost first.
    lines: Range<usize>,
}

/// One sample, in reused buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct PprofSample {
    pub(super) offset: u64,
    pub(super) locations: Vec<u64>,
    pub(super) values: Vec<i64>,
    pub(super) labels: Vec<PprofLabel>,
}

/// A whole profile without its samples.
#[derive(Debug, Default)]
pub(super) struct PprofDocument {
    /// The length in bytes.
    length: u64,
    limits: Limits,
    /// All strings, end to end.
    strings: Vec<u8>,
    string_ends: Vec<usize>,
    lines: Vec<SourceLine>,
    pub(super) sample_types: Vec<TypeIndexes>,
    mappings: HashMap<u64, SymbolMapping>,
    /// The strings of the build IDs of mappings.
    build_ids: HashMap<u64, u64>,
    locations: HashMap<u64, PprofLocation>,
    functions: HashMap<u64, SymbolFunction>,
    pub(super) comments: Vec<u64>,
    pub(super) drop_frames: u64,
    pub(super) keep_frames: u64,
    pub(super) time_ns: i64,
    pub(super) duration_ns: i64,
    pub(super) period_type: TypeIndexes,
    pub(super) period: i64,
    pub(super) default_sample_type: u64,
    pub(super) doc_url: u64,
}

impl PprofDocument {
    /// Reads all messages that samples refer to, and locates the samples. The document begins at `base` in its input.
    ///
    /// # Errors
    /// Damage that is not skipped.
    pub(super) fn read(
        base: u64,
        bytes: Vec<u8>,
        damage: &mut DocumentDamage,
    ) -> Result<(Self, PprofSamples), Error> {
        let limits = damage.limits;
        let (mut document, mut outline) =
            (Self { limits, ..Self::default() }, SampleOutline { base, ..SampleOutline::default() });
        let bytes_held = bytes.held_bytes();
        let read = read_document(NAME, base, &bytes, damage, |field| {
            outline.add(field);
            document.take(field)?;
            if field.number == profile::SAMPLE {
                return Ok(());
            }
            field.check_memory(&limits, bytes_held + document.held_bytes())
        })?;
        document.length = read.len() as u64;
        let samples = outline.samples(read.len(), bytes, limits);
        Ok((document, samples))
    }

    /// The memory that the messages have allocated.
    fn held_bytes(&self) -> usize {
        let strings = self.strings.held_bytes() + self.string_ends.held_bytes();
        let maps = self.mappings.allocation_size()
            + self.build_ids.allocation_size()
            + self.locations.allocation_size()
            + self.functions.allocation_size();
        strings + maps + self.lines.held_bytes() + self.sample_types.held_bytes() + self.comments.held_bytes()
    }

    fn take(&mut self, field: &WireField<'_>) -> Result<(), Error> {
        match field.number {
            profile::SAMPLE_TYPE => {
                TypeIndexes::read(field.message()?).map(|names| self.sample_types.push(names))
            }
            profile::SAMPLE => field.message().map(drop),
            profile::MAPPING => {
                let (id, row) = SymbolMapping::read(field.message()?, KEYS)?;
                let mut build_id = 0;
                field.message()?.each(|field| match field.number {
                    own::BUILD_ID => field.number_to(&mut build_id),
                    _ => Ok(()),
                })?;
                self.build_ids.insert(id, build_id);
                insert(&mut self.mappings, "mapping", id, row, field.offset)
            }
            profile::LOCATION => self.take_location(field),
            profile::FUNCTION => {
                let (id, row) = SymbolFunction::read(field.message()?, KEYS)?;
                insert(&mut self.functions, "function", id, row, field.offset)
            }
            profile::STRING_TABLE => self.take_string(field),
            profile::DROP_FRAMES => field.number_to(&mut self.drop_frames),
            profile::KEEP_FRAMES => field.number_to(&mut self.keep_frames),
            profile::TIME_NANOS => field.signed_to(&mut self.time_ns),
            profile::DURATION_NANOS => field.signed_to(&mut self.duration_ns),
            profile::PERIOD_TYPE => TypeIndexes::read(field.message()?).map(|names| self.period_type = names),
            profile::PERIOD => field.signed_to(&mut self.period),
            profile::COMMENT => field.numbers_to(&mut self.comments, &self.limits, 0, |index| index),
            profile::DEFAULT_SAMPLE_TYPE => field.number_to(&mut self.default_sample_type),
            profile::DOC_URL => field.number_to(&mut self.doc_url),
            _ => Ok(()),
        }
    }

    fn take_string(&mut self, field: &WireField<'_>) -> Result<(), Error> {
        let string = field.bytes("a string")?;
        if self.string_ends.is_empty() && !string.is_empty() {
            return Err(malformed(field.offset, "expected an empty first string, found another"));
        }
        self.strings.extend_from_slice(string);
        self.string_ends.push(self.strings.len());
        Ok(())
    }

    fn take_location(&mut self, field: &WireField<'_>) -> Result<(), Error> {
        let first = self.lines.len();
        let Self { lines, limits, .. } = self;
        let (id, symbol) = SymbolLocation::read(field, KEYS, |number, field| {
            if number == location::LINES {
                let line = SourceLine::read(field.message()?)?;
                // reli writes -1 for an unknown line.
                let line = SourceLine { line: line.line.filter(|&line| line != -1), ..line };
                field.push(lines, limits, 0, line)?;
            }
            Ok(())
        })?;
        let row = PprofLocation { symbol, lines: first..self.lines.len() };
        insert(&mut self.locations, "location", id, row, field.offset)
    }

    /// A location; `offset` is the position of its id.
    ///
    /// # Errors
    /// If there is none with this id.
    pub(super) fn location(&self, id: u64, offset: u64) -> Result<&PprofLocation, Error> {
        at(&self.locations, "location", id, offset)
    }

    /// The files with build IDs of code whose place is kept.
    pub(super) fn files(&self, places: CodePlaces) -> StatedFiles {
        let locations = self.locations.values();
        let located = locations.map(|location| (&location.symbol, !location.lines.is_empty()));
        StatedFiles::of(self, places, located)
    }

    /// The lines of a location, innermost first.
    pub(super) fn lines(&self, location: &PprofLocation) -> &[SourceLine] {
        &self.lines[location.lines.clone()]
    }
}

impl SymbolDocument for PprofDocument {
    const FORMAT: &'static str = NAME;

    fn length(&self) -> u64 {
        self.length
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn string(&self, index: u64, offset: u64) -> Result<&[u8], Error> {
        // Index 0 is the empty string by definition, even in a document without strings.
        if index == 0 {
            return Ok(b"");
        }
        let end_of = |index: usize| self.string_ends.get(index).copied();
        let range = usize::try_from(index).ok().and_then(|index| Some(end_of(index - 1)?..end_of(index)?));
        let count = self.string_ends.len();
        range
            .map(|range| &self.strings[range])
            .ok_or_else(|| missing_entry(NAME, "a string", count, index, offset))
    }

    fn mapping(&self, id: u64, offset: u64) -> Result<SymbolMapping, Error> {
        at(&self.mappings, "mapping", id, offset).copied()
    }

    fn build_id(&self, id: u64) -> Option<&[u8]> {
        self.string(*self.build_ids.get(&id)?, 0).ok()
    }

    fn function(&self, id: u64, offset: u64) -> Result<SymbolFunction, Error> {
        at(&self.functions, "function", id, offset).copied()
    }
}

fn at<'r, T>(rows: &'r HashMap<u64, T>, what: &str, id: u64, offset: u64) -> Result<&'r T, Error> {
    rows.get(&id).ok_or_else(|| malformed(offset, format!("expected a known {what} id, found {id}")))
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
        Entry::Occupied(_) => Err(malformed(offset, format!("expected a new {what} id, found {id} twice"))),
    }
}

impl PprofLabel {
    fn read(fields: MessageFields<'_>) -> Result<Self, Error> {
        fields.collect(Self::default(), |row, field| match field.number {
            label::KEY => field.number_to(&mut row.key),
            label::STR => field.number().map(|text| row.text = Some(text)),
            label::NUM => field.signed().map(|number| row.number = Some(number)),
            label::NUM_UNIT => field.number_to(&mut row.unit),
            _ => Ok(()),
        })
    }
}

/// The positions of the samples in a document.
#[derive(Default)]
struct SampleOutline {
    /// The start of the document in its input.
    base: u64,
    /// The starts of pieces, each of which begins with a sample.
    pieces: Vec<usize>,
    /// The start of the part after the last sample.
    end: Option<usize>,
}

impl SampleOutline {
    fn add(&mut self, field: &WireField<'_>) {
        // The document is in memory.
        let at = usize::try_from(field.offset - self.base).unwrap_or(usize::MAX);
        if field.number != profile::SAMPLE {
            self.end.get_or_insert(at);
            return;
        }
        self.end = None;
        if self.pieces.last().is_none_or(|&last| at - last >= PprofSamples::PIECE_BYTES) {
            self.pieces.push(at);
        }
    }

    /// The samples among the first `len` of `bytes`.
    fn samples(self, len: usize, mut bytes: Vec<u8>, limits: Limits) -> PprofSamples {
        bytes.truncate(self.end.map_or(len, |end| end.min(len)));
        let cut = |at: usize| {
            let piece = SamplePiece { offset: self.base + at as u64, bytes: bytes.split_off(at) };
            bytes.shrink_to_fit();
            piece
        };
        PprofSamples { pieces: self.pieces.into_iter().rev().map(cut).collect(), read: 0, limits }
    }
}

/// Samples, and the fields between them.
#[derive(Debug)]
struct SamplePiece {
    /// The start of the piece in the input.
    offset: u64,
    bytes: Vec<u8>,
}

impl SamplePiece {
    /// The rest of the piece after `read` bytes.
    fn fields(&self, read: usize) -> MessageFields<'_> {
        MessageFields::within_document(NAME, &self.bytes[read..], self.offset + read as u64)
    }
}

/// The samples of a document.
#[derive(Debug)]
pub(super) struct PprofSamples {
    /// The unread pieces, the first one last.
    pieces: Vec<SamplePiece>,
    /// The number of bytes read of the first piece.
    read: usize,
    limits: Limits,
}

impl PprofSamples {
    /// The minimum length of a piece, except for the last.
    const PIECE_BYTES: usize = 1 << 18;

    /// Reads the next sample into `into`, and frees the piece before it; false at the end. After an error the following
    /// sample can be read.
    ///
    /// # Errors
    /// If the sample is malformed.
    pub(super) fn next_sample(&mut self, into: &mut PprofSample) -> Result<bool, Error> {
        while let Some(piece) = self.pieces.last() {
            let mut fields = piece.fields(self.read);
            let found = next_sample(&mut fields, into, &self.limits);
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
    pub(super) fn look_at(&self, mut take: impl FnMut(&PprofSample)) {
        let mut sample = PprofSample::default();
        for piece in self.pieces.iter().rev() {
            let mut fields = piece.fields(0);
            while next_sample(&mut fields, &mut sample, &self.limits).unwrap_or(true) {
                take(&sample);
            }
        }
    }
}

/// Reads the next sample among `fields`; false if there is none.
fn next_sample(
    fields: &mut MessageFields<'_>,
    into: &mut PprofSample,
    limits: &Limits,
) -> Result<bool, Error> {
    while let Some(field) = fields.next_field()? {
        // A sample that is not a message was reported when the document was read.
        if field.number == profile::SAMPLE
            && let Ok(message) = field.message()
        {
            into.read(field.offset, message, limits)?;
            return Ok(true);
        }
    }
    Ok(false)
}

impl PprofSample {
    fn read(&mut self, offset: u64, fields: MessageFields<'_>, limits: &Limits) -> Result<(), Error> {
        self.offset = offset;
        self.locations.clear();
        self.values.clear();
        self.labels.clear();
        fields.each(|field| match field.number {
            sample::LOCATION_ID => {
                field.numbers_to(&mut self.locations, limits, MADE_OF_LOCATION_BYTES, |id| id)
            }
            sample::VALUE => field.numbers_to(&mut self.values, limits, 0, u64::cast_signed),
            sample::LABEL => field.push(&mut self.labels, limits, 0, PprofLabel::read(field.message()?)?),
            _ => Ok(()),
        })
    }
}

#[cold]
pub(super) fn malformed(offset: u64, message: impl Into<String>) -> Error {
    Error::malformed(NAME, Position::Byte(offset), message)
}
