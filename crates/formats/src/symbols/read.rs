//! The messages of symbols, decoded from bytes. A reference of 0 is absent; string 0 is empty.

use super::layout::{ID, SymbolKeys, function, line, location, mapping, value_type};
use crate::Error;
use crate::documents::protobuf_fields::{MessageFields, WireField};

/// A measured quantity with its unit, as string indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TypeIndexes {
    pub(crate) kind: u64,
    pub(crate) unit: u64,
}

/// A loaded file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SymbolMapping {
    start: u64,
    limit: u64,
    file_offset: u64,
    /// A string index.
    pub(crate) file: u64,
}

/// An address, without its lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SymbolLocation {
    pub(crate) mapping: u64,
    pub(crate) address: u64,
    /// The position of the message in the input.
    pub(crate) offset: u64,
}

/// A line in a function. `None` is an absent field.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SourceLine {
    pub(crate) function: u64,
    pub(crate) line: Option<i64>,
    pub(crate) column: i64,
}

/// A function, with string indexes. `None` is an absent field.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SymbolFunction {
    pub(crate) name: u64,
    pub(crate) system_name: u64,
    pub(crate) file: Option<u64>,
}

impl TypeIndexes {
    pub(crate) fn read(fields: MessageFields<'_>) -> Result<Self, Error> {
        fields.collect(Self::default(), |row, field| match field.number {
            value_type::TYPE => field.number_to(&mut row.kind),
            value_type::UNIT => field.number_to(&mut row.unit),
            _ => Ok(()),
        })
    }
}

impl SymbolMapping {
    /// Reads a mapping, after its id.
    pub(crate) fn read(fields: MessageFields<'_>, keys: SymbolKeys) -> Result<(u64, Self), Error> {
        fields.collect(Default::default(), |(id, row): &mut (u64, Self), field| {
            match keys.number(field.number) {
                ID => field.number_to(id),
                mapping::MEMORY_START => field.number_to(&mut row.start),
                mapping::MEMORY_LIMIT => field.number_to(&mut row.limit),
                mapping::FILE_OFFSET => field.number_to(&mut row.file_offset),
                mapping::FILENAME => field.number_to(&mut row.file),
                _ => Ok(()),
            }
        })
    }

    /// The offset in the file of an address in memory; `None` outside the range.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        let is_there = (self.start..self.limit).contains(&address);
        is_there.then(|| (address - self.start).checked_add(self.file_offset)).flatten()
    }

    /// The range of the file.
    pub(crate) const fn file_range(&self) -> (u64, u64) {
        let length = self.limit.saturating_sub(self.start);
        (self.file_offset, self.file_offset.saturating_add(length))
    }

    /// Whether it states its address range.
    pub(crate) const fn has_range(&self) -> bool {
        self.limit > self.start
    }
}

impl SymbolLocation {
    /// Reads a location, after its id. `take` receives its other fields, with their numbers in [`layout`](super::layout).
    pub(crate) fn read<'a>(
        field: &WireField<'a>,
        keys: SymbolKeys,
        mut take: impl FnMut(u32, &WireField<'a>) -> Result<(), Error>,
    ) -> Result<(u64, Self), Error> {
        let empty = (0, Self { offset: field.offset, ..Self::default() });
        field.message()?.collect(empty, |(id, row), field| match keys.number(field.number) {
            ID => field.number_to(id),
            location::MAPPING => field.number_to(&mut row.mapping),
            location::ADDRESS => field.number_to(&mut row.address),
            number => take(number, field),
        })
    }
}

impl SourceLine {
    pub(crate) fn read(fields: MessageFields<'_>) -> Result<Self, Error> {
        fields.collect(Self::default(), |row, field| match field.number {
            line::FUNCTION => field.number_to(&mut row.function),
            line::LINE => field.signed().map(|line| row.line = Some(line)),
            line::COLUMN => field.signed_to(&mut row.column),
            _ => Ok(()),
        })
    }
}

impl SymbolFunction {
    /// Reads a function, after its id.
    pub(crate) fn read(fields: MessageFields<'_>, keys: SymbolKeys) -> Result<(u64, Self), Error> {
        fields.collect(Default::default(), |(id, row): &mut (u64, Self), field| {
            match keys.number(field.number) {
                ID => field.number_to(id),
                function::NAME => field.number_to(&mut row.name),
                function::SYSTEM_NAME => field.number_to(&mut row.system_name),
                function::FILENAME => field.number().map(|file| row.file = Some(file)),
                _ => Ok(()),
            }
        })
    }

    /// Whether it names a file.
    pub(crate) fn has_file(&self) -> bool {
        self.file.unwrap_or(0) != 0
    }
}
