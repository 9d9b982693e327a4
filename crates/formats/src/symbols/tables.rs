//! The strings, functions, mappings and locations of a document that is being written, numbered on first use.
//!
//! Entries are encoded once, and compared by their bytes. Columns beside the model's tables hold the numbers of strings
//! and frames. Number 0 of each table is the empty entry, which stands for an absent one.

use std::borrow::Cow;

use borehole_model::{Distinct, Frame, FrameId, StringId, Tables};

use super::layout::{SymbolKeys, function, line, location};
use crate::Losses;
use crate::documents::protobuf::Message;

/// One table: its encoded entries, without their ids.
#[derive(Debug)]
pub(crate) struct EntryTable(Distinct<u8>);

impl Default for EntryTable {
    fn default() -> Self {
        let mut entries = Distinct::default();
        entries.intern(&[]);
        Self(entries)
    }
}

impl EntryTable {
    /// The number of an entry, added if it is new; 0 if no number is left.
    pub(crate) fn number(&mut self, entry: &[u8]) -> u32 {
        self.0.intern(entry).unwrap_or(0)
    }

    /// All entries, the empty one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter()
    }
}

#[derive(Debug)]
pub(crate) struct SymbolTables<'t> {
    tables: &'t Tables,
    keys: SymbolKeys,
    pub(crate) strings: EntryTable,
    pub(crate) mappings: EntryTable,
    pub(crate) functions: EntryTable,
    pub(crate) locations: EntryTable,
    /// By string and by frame: its number, 0 if it has none (or is empty).
    string_column: Vec<u32>,
    frame_column: Vec<u32>,
    entry: Message,
    line: Message,
    pub(crate) losses: Losses,
}

impl<'t> SymbolTables<'t> {
    pub(crate) fn new(tables: &'t Tables, keys: SymbolKeys) -> Self {
        Self {
            tables,
            keys,
            strings: EntryTable::default(),
            mappings: EntryTable::default(),
            functions: EntryTable::default(),
            locations: EntryTable::default(),
            string_column: vec![0; tables.string_count()],
            frame_column: vec![0; tables.frame_count()],
            entry: Message::default(),
            line: Message::default(),
            losses: Losses::default(),
        }
    }

    pub(crate) const fn tables(&self) -> &'t Tables {
        self.tables
    }

    /// The number of a string that may be outside the model's tables.
    pub(crate) fn text(&mut self, text: &str) -> u64 {
        u64::from(self.strings.number(text.as_bytes()))
    }

    /// The number of a string of the model's tables.
    pub(crate) fn string(&mut self, id: StringId) -> u64 {
        if self.string_column[id.index()] == 0 {
            // A `string` of protobuf is UTF-8, and most readers reject a whole document with an invalid one.
            let text = String::from_utf8_lossy(self.tables.string(id));
            self.losses.add("bytes outside UTF-8 (in names)", u64::from(matches!(text, Cow::Owned(_))));
            self.string_column[id.index()] = self.strings.number(text.as_bytes());
        }
        u64::from(self.string_column[id.index()])
    }

    /// The number of a frame's location; 0 if none has been added.
    #[inline]
    pub(crate) fn location(&self, frame: FrameId) -> u32 {
        self.frame_column[frame.index()]
    }

    /// Adds the location of a frame, and returns its number. The format has numbered the mapping; `more` appends fields.
    pub(crate) fn add_location(
        &mut self,
        id: FrameId,
        frame: &Frame,
        mapping: u64,
        more: impl FnOnce(&mut Message),
    ) -> u32 {
        let function = self.function(frame);
        self.line.clear().number(line::FUNCTION, function);
        if let Some(line) = frame.line {
            self.line.explicit(line::LINE, line.cast_unsigned());
        }
        self.line.number(line::COLUMN, frame.column.map_or(0, |column| u64::from(column) + 1));
        let address = frame.native.and_then(|native| native.offset).map_or(0, i64::cast_unsigned);
        self.entry.clear().number(self.keys.field(location::MAPPING), mapping);
        self.entry.number(self.keys.field(location::ADDRESS), address);
        self.entry.bytes(self.keys.field(location::LINES), self.line.as_bytes());
        more(&mut self.entry);
        let number = self.locations.number(self.entry.as_bytes());
        self.frame_column[id.index()] = number;
        number
    }

    /// Adds the location of a frame of which only the address is known.
    pub(crate) fn add_address(&mut self, id: FrameId, mapping: u64, address: u64) {
        self.entry.clear().number(self.keys.field(location::MAPPING), mapping);
        self.entry.number(self.keys.field(location::ADDRESS), address);
        self.frame_column[id.index()] = self.locations.number(self.entry.as_bytes());
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let name = self.string(frame.function);
        let file = frame.file.map(|file| self.string(file));
        // An entry of a function without a name must not be empty.
        self.entry.clear().explicit(self.keys.field(function::NAME), name);
        if let Some(file) = file {
            self.entry.explicit(self.keys.field(function::FILENAME), file);
        }
        u64::from(self.functions.number(self.entry.as_bytes()))
    }
}
