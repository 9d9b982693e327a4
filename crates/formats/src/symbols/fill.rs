//! Gives lines to locations that have none. Everything else of a document is copied as it is.
//!
//! New functions and strings are appended to their tables, so that all references in the document stay valid.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::layout::{ID, SymbolKeys, function, line, location, mapping};
use super::read::SymbolLocation;
use crate::documents::protobuf::{Message, put_bytes};
use crate::documents::protobuf_fields::{MessageFields, WireField};
use crate::{Error, ErrorKind, Limits, Position};

/// Finds the functions at addresses of files.
pub trait AddressSymbols {
    /// Appends the functions of the code at `file_offset` in the file of `mapping`, innermost first. Returns whether there are
    /// any.
    fn find(&mut self, mapping: &StatedMapping<'_>, file_offset: u64, lines: &mut Vec<FilledLine>) -> bool;
}

/// A loaded file, as a document states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatedMapping<'a> {
    /// The path of the file, or a name in brackets.
    pub path: &'a [u8],
    /// The build ID in hexadecimal digits.
    pub build_id: Option<&'a [u8]>,
}

/// A line in a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilledLine {
    /// The function as people read it.
    pub function: Arc<str>,
    /// The name in the symbol table, if it differs.
    pub system_name: Option<Arc<str>>,
    /// The source file.
    pub file: Option<Arc<str>>,
    /// The line, 1-based; 0 is unknown.
    pub line: u32,
    /// The column, 1-based; 0 is unknown.
    pub column: u32,
}

/// The outcome for the locations of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilledAddresses {
    /// The locations that got functions.
    pub filled: u64,
    /// The locations that had functions before, and keep them.
    pub had_functions: u64,
    /// The locations outside all mappings: their file is unknown.
    pub unmapped: u64,
    /// The locations whose functions were not found.
    pub not_found: u64,
}

impl FilledAddresses {
    /// Adds the numbers of another document.
    pub fn add(&mut self, other: Self) {
        self.filled += other.filled;
        self.had_functions += other.had_functions;
        self.unmapped += other.unmapped;
        self.not_found += other.not_found;
    }
}

/// The numbers of a format's tables of symbols.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SymbolTableFields {
    pub(crate) format: &'static str,
    pub(crate) keys: SymbolKeys,
    pub(crate) mapping: u32,
    pub(crate) location: u32,
    pub(crate) function: u32,
    pub(crate) string: u32,
    /// The field of a mapping that leads to its build ID.
    pub(crate) build: u32,
}

/// The range and file of a mapping.
#[derive(Clone, Debug, Default)]
pub(crate) struct FillMapping {
    start: u64,
    limit: u64,
    file_offset: u64,
    file: u64,
    /// The numbers that lead to its build ID.
    pub(crate) build: Vec<u64>,
}

/// An address whose functions are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WantedAddress {
    mapping: u64,
    file_offset: u64,
    /// The place of its location among all.
    place: usize,
}

/// The symbols of a document, and what will be added to it.
#[derive(Debug)]
pub(crate) struct SymbolFilling<'a> {
    fields: SymbolTableFields,
    limits: Limits,
    pub(crate) strings: Vec<&'a [u8]>,
    mappings: HashMap<u64, FillMapping>,
    mapping_count: u64,
    /// The highest number of a function.
    functions: Option<u64>,
    wanted: Vec<WantedAddress>,
    /// The locations read.
    locations: usize,
    /// By location: its lines, encoded.
    lines: Vec<Range<usize>>,
    encoded: Vec<u8>,
    added: AddedSymbols<'a>,
    filled: FilledAddresses,
    /// The mappings of which addresses were filled, sorted.
    filled_mappings: Vec<u64>,
    /// The mappings and locations written.
    written: (u64, usize),
}

/// New strings and functions, encoded as fields of their tables.
#[derive(Debug, Default)]
struct AddedSymbols<'a> {
    known_strings: HashMap<&'a [u8], u64>,
    strings: HashMap<Arc<str>, u64>,
    functions: HashMap<[u64; 3], u64>,
    bytes: Vec<u8>,
}

impl<'a> SymbolFilling<'a> {
    pub(crate) fn new(fields: SymbolTableFields, limits: Limits) -> Self {
        Self {
            fields,
            limits,
            strings: Vec::new(),
            mappings: HashMap::new(),
            mapping_count: 0,
            functions: None,
            wanted: Vec::new(),
            locations: 0,
            lines: Vec::new(),
            encoded: Vec::new(),
            added: AddedSymbols::default(),
            filled: FilledAddresses::default(),
            filled_mappings: Vec::new(),
            written: (0, 0),
        }
    }

    /// Takes a field of the message that has the tables. Locations may come before their mappings.
    ///
    /// # Errors
    /// If it is malformed, or too large.
    pub(crate) fn take(&mut self, field: &WireField<'a>) -> Result<(), Error> {
        let tables = self.fields;
        match field.number {
            number if number == tables.string => {
                field.push(&mut self.strings, &self.limits, 0, field.bytes("a string")?)
            }
            number if number == tables.mapping => self.take_mapping(field),
            number if number == tables.location => self.take_location(field),
            number if number == tables.function => self.take_function(field),
            _ => Ok(()),
        }
    }

    fn take_mapping(&mut self, field: &WireField<'a>) -> Result<(), Error> {
        let (mut key, mut row) = (self.mapping_count, FillMapping::default());
        let build = self.fields.build;
        field.message()?.each(|field| match self.fields.keys.number(field.number) {
            _ if field.number == build => field.numbers_to(&mut row.build, &self.limits, 0, |number| number),
            ID if self.fields.keys == SymbolKeys::Ids => field.number_to(&mut key),
            mapping::MEMORY_START => field.number_to(&mut row.start),
            mapping::MEMORY_LIMIT => field.number_to(&mut row.limit),
            mapping::FILE_OFFSET => field.number_to(&mut row.file_offset),
            mapping::FILENAME => field.number_to(&mut row.file),
            _ => Ok(()),
        })?;
        self.mapping_count += 1;
        self.mappings.insert(key, row);
        field.check_memory(&self.limits, self.mappings.len() * size_of::<(u64, FillMapping)>())
    }

    fn take_location(&mut self, field: &WireField<'a>) -> Result<(), Error> {
        let mut has_lines = false;
        let (_, symbol) = SymbolLocation::read(field, self.fields.keys, |number, _| {
            has_lines |= number == location::LINES;
            Ok(())
        })?;
        let place = self.locations;
        self.locations += 1;
        // The first entry of a table without ids stands for an absent one.
        if has_lines || (self.fields.keys == SymbolKeys::Indexes && place == 0) {
            self.filled.had_functions += u64::from(has_lines);
            return Ok(());
        }
        // The position in the file is known when all mappings are.
        let row = WantedAddress { mapping: symbol.mapping, file_offset: symbol.address, place };
        field.push(&mut self.wanted, &self.limits, 0, row)
    }

    fn take_function(&mut self, field: &WireField<'a>) -> Result<(), Error> {
        let mut id = self.functions.map_or(0, |last| last.saturating_add(1));
        if self.fields.keys == SymbolKeys::Ids {
            field
                .message()?
                .each(|field| if field.number == 1 { field.number_to(&mut id) } else { Ok(()) })?;
        }
        self.functions = self.functions.max(Some(id));
        Ok(())
    }

    /// Asks `symbols` for all addresses without functions. `build_id` finds the text that the numbers of a mapping lead to.
    ///
    /// # Errors
    /// If the functions do not fit into the document, or into memory.
    pub(crate) fn fill(
        &mut self,
        symbols: &mut dyn AddressSymbols,
        build_id: impl Fn(&Self, &FillMapping) -> Option<&'a [u8]>,
    ) -> Result<(), Error> {
        self.lines = vec![0..0; self.locations];
        self.added.known_strings = self.strings.iter().copied().zip(0..).collect();
        let mut wanted = self.positions();
        // Code that is near is found in the same parts of a file.
        wanted.sort_unstable();
        let mut lines = Vec::new();
        for address in wanted {
            let Some(row) = self.mappings.get(&address.mapping) else { continue };
            let path = self.string(row.file);
            let mapping = StatedMapping { path, build_id: build_id(self, row).filter(|id| !id.is_empty()) };
            lines.clear();
            if symbols.find(&mapping, address.file_offset, &mut lines) && !lines.is_empty() {
                self.add_lines(address, &lines)?;
            } else {
                self.filled.not_found += 1;
            }
        }
        Ok(())
    }

    /// The wanted addresses as positions in files. Counts those outside all mappings.
    fn positions(&mut self) -> Vec<WantedAddress> {
        let mut wanted = std::mem::take(&mut self.wanted);
        let before = wanted.len();
        wanted.retain_mut(|row| match self.mappings.get(&row.mapping) {
            // Number 0 stands for no mapping.
            Some(mapping)
                if row.mapping != 0 && (mapping.start..mapping.limit).contains(&row.file_offset) =>
            {
                let position = (row.file_offset - mapping.start).checked_add(mapping.file_offset);
                row.file_offset = position.unwrap_or(u64::MAX);
                true
            }
            _ => false,
        });
        self.filled.unmapped += (before - wanted.len()) as u64;
        wanted
    }

    /// The string at an index, or an empty one.
    pub(crate) fn string(&self, index: u64) -> &'a [u8] {
        usize::try_from(index).ok().and_then(|index| self.strings.get(index)).copied().unwrap_or_default()
    }

    /// Adds the first entries of tables without any, which stand for absent ones.
    fn begin_tables(&mut self) {
        if self.strings.is_empty() {
            put_bytes(&mut self.added.bytes, self.fields.string, b"");
            self.strings.push(b"");
            self.added.known_strings.insert(b"", 0);
        }
        if self.functions.is_none() {
            if self.fields.keys == SymbolKeys::Indexes {
                put_bytes(&mut self.added.bytes, self.fields.function, b"");
            }
            self.functions = Some(0);
        }
    }

    fn add_lines(&mut self, address: WantedAddress, lines: &[FilledLine]) -> Result<(), Error> {
        self.begin_tables();
        let start = self.encoded.len();
        let mut row = Message::default();
        for filled in lines {
            let function = self.function(filled)?;
            row.clear().number(line::FUNCTION, function);
            row.number(line::LINE, u64::from(filled.line)).number(line::COLUMN, u64::from(filled.column));
            put_bytes(&mut self.encoded, self.fields.keys.field(location::LINES), row.as_bytes());
        }
        self.lines[address.place] = start..self.encoded.len();
        self.filled.filled += 1;
        if self.filled_mappings.last() != Some(&address.mapping) {
            self.filled_mappings.push(address.mapping);
        }
        let held = self.encoded.len() + self.added.bytes.len();
        self.limits.check(2 * held).map_err(|over| Error::memory(self.fields.format, Position::Whole, over))
    }

    /// The number of a function, added if it is new.
    fn function(&mut self, filled: &FilledLine) -> Result<u64, Error> {
        let name = self.text(&filled.function);
        let system_name = filled.system_name.as_ref().map_or(name, |name| self.text(name));
        let file = filled.file.as_ref().map_or(0, |file| self.text(file));
        if let Some(&known) = self.added.functions.get(&[name, system_name, file]) {
            return Ok(known);
        }
        let number = self.functions.unwrap_or(0).checked_add(1).ok_or_else(|| {
            let message = "unsupported: no number is left for a function";
            Error::new(ErrorKind::Unsupported, self.fields.format, Position::Whole, message)
        })?;
        let mut row = Message::default();
        let keys = self.fields.keys;
        if keys == SymbolKeys::Ids {
            row.number(keys.field(ID), number);
        }
        row.number(keys.field(function::NAME), name);
        row.number(keys.field(function::SYSTEM_NAME), system_name);
        row.number(keys.field(function::FILENAME), file);
        put_bytes(&mut self.added.bytes, self.fields.function, row.as_bytes());
        self.functions = Some(number);
        self.added.functions.insert([name, system_name, file], number);
        Ok(number)
    }

    /// The number of a string, added if it is new.
    fn text(&mut self, text: &Arc<str>) -> u64 {
        let added = &mut self.added;
        let known = added.known_strings.get(text.as_bytes()).or_else(|| added.strings.get(text));
        if let Some(&known) = known {
            return known;
        }
        let number = (self.strings.len() + added.strings.len()) as u64;
        put_bytes(&mut added.bytes, self.fields.string, text.as_bytes());
        added.strings.insert(Arc::clone(text), number);
        number
    }

    /// Writes a field of the message that has the tables. `raw` is the whole field; `more` appends to mappings of which addresses
    /// were filled.
    ///
    /// # Errors
    /// If the field is malformed.
    pub(crate) fn write(
        &mut self,
        field: &WireField<'_>,
        raw: &[u8],
        more: impl Fn(&mut Message),
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut row = Message::default();
        if field.number == self.fields.location {
            let lines = self.lines.get(self.written.1).cloned().unwrap_or_default();
            self.written.1 += 1;
            if !lines.is_empty() {
                row.fields(field.bytes("a message")?).fields(&self.encoded[lines]);
                put_bytes(out, field.number, row.as_bytes());
                return Ok(());
            }
        } else if field.number == self.fields.mapping {
            let mut key = self.written.0;
            self.written.0 += 1;
            if self.fields.keys == SymbolKeys::Ids {
                field
                    .message()?
                    .each(|field| if field.number == 1 { field.number_to(&mut key) } else { Ok(()) })?;
            }
            if self.filled_mappings.binary_search(&key).is_ok() {
                more(row.fields(field.bytes("a message")?));
                put_bytes(out, field.number, row.as_bytes());
                return Ok(());
            }
        }
        out.extend_from_slice(raw);
        Ok(())
    }

    /// The new functions and strings, as fields of the message that has the tables.
    pub(crate) fn added(&self) -> &[u8] {
        &self.added.bytes
    }

    /// The outcome for all locations.
    pub(crate) const fn outcome(&self) -> FilledAddresses {
        self.filled
    }
}

/// Passes each field of a document in memory, with its bytes, to `take`.
///
/// # Errors
/// If a field is malformed, or those of `take`.
pub(crate) fn each_raw_field<'a>(
    document: &'a [u8],
    mut fields: MessageFields<'a>,
    mut take: impl FnMut(&WireField<'a>, &'a [u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(document.len());
    while let Some(field) = fields.next_field()? {
        take(&field, &document[place(field.offset)..place(fields.offset())])?;
    }
    Ok(())
}
