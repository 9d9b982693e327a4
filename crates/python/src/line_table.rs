//! The tables that say which instruction belongs to which line, in all their formats.
//!
//! Each function ends where the table does, whatever the table contains.

use crate::layout::LineFormat;
use crate::location::SourceLocation;

/// The place of the instruction at `offset`, in bytes from the first instruction; negative before it.
pub(crate) fn locate(format: LineFormat, table: &[u8], first_line: i64, offset: i64) -> SourceLocation {
    if offset < 0 {
        return SourceLocation::of_line(first_line);
    }
    match format {
        LineFormat::Increments => SourceLocation::of_line(by_increments(table, first_line, offset)),
        LineFormat::Ranges => {
            by_ranges(table, first_line, offset).map_or_else(SourceLocation::default, SourceLocation::of_line)
        }
        LineFormat::Locations => by_locations(table, first_line, offset),
    }
}

/// Pairs of an increment of the offset and a signed increment of the line.
///
/// Source: CPython 3.9, `Objects/lnotab_notes.txt`, `PyCode_Addr2Line`.
fn by_increments(table: &[u8], first_line: i64, offset: i64) -> i64 {
    let (mut line, mut start) = (first_line, 0);
    for pair in table.chunks_exact(2) {
        start += i64::from(pair[0]);
        if start > offset {
            break;
        }
        line += i64::from(pair[1].cast_signed());
    }
    line
}

/// Pairs of the length of a range and a signed increment of the line, of which -128 means no line.
///
/// Source: CPython 3.10, `Objects/lnotab_notes.txt`, `advance` in `Objects/codeobject.c`.
fn by_ranges(table: &[u8], first_line: i64, offset: i64) -> Option<i64> {
    let (mut line, mut end) = (first_line, 0);
    for pair in table.chunks_exact(2) {
        let increment = pair[1].cast_signed();
        let has_line = increment != i8::MIN;
        if has_line {
            line += i64::from(increment);
        }
        end += i64::from(pair[0]);
        if offset < end {
            return has_line.then_some(line);
        }
    }
    None
}

/// Entries of a first byte with the kind and the number of instructions, and more by kind.
///
/// Source: CPython 3.11, `Objects/locations.md`; `advance_with_locations` in `Objects/codeobject.c`.
fn by_locations(table: &[u8], first_line: i64, offset: i64) -> SourceLocation {
    let mut entries = LocationEntries { rest: table, line: first_line, end: 0 };
    while let Some(location) = entries.next() {
        if offset < entries.end {
            return location;
        }
    }
    SourceLocation::default()
}

struct LocationEntries<'t> {
    rest: &'t [u8],
    line: i64,
    /// The offset behind the last entry, in bytes.
    end: i64,
}

impl LocationEntries<'_> {
    fn next(&mut self) -> Option<SourceLocation> {
        let first = self.byte()?;
        self.end += (i64::from(first & 7) + 1) * 2;
        let kind = first >> 3 & 15;
        match kind {
            // No location.
            15 => return Some(SourceLocation::default()),
            14 => return self.long(),
            // No columns.
            13 => {
                self.line += self.signed()?;
                return Some(SourceLocation {
                    end_line: Some(self.line),
                    ..SourceLocation::of_line(self.line)
                });
            }
            _ => {}
        }
        let (column, end_column);
        if kind >= 10 {
            self.line += i64::from(kind) - 10;
            (column, end_column) = (u32::from(self.byte()?), u32::from(self.byte()?));
        } else {
            let second = self.byte()?;
            column = u32::from(kind) << 3 | u32::from(second >> 4);
            end_column = column + u32::from(second & 15);
        }
        Some(SourceLocation {
            line: Some(self.line),
            end_line: Some(self.line),
            column: Some(column),
            end_column: Some(end_column),
        })
    }

    fn long(&mut self) -> Option<SourceLocation> {
        self.line += self.signed()?;
        let end_line = self.line + i64::try_from(self.number()?).ok()?;
        let (column, end_column) = (self.number()?, self.number()?);
        // One more than the column; 0 means none.
        let column_of = |number: u64| u32::try_from(number.checked_sub(1)?).ok();
        Some(SourceLocation {
            line: Some(self.line),
            end_line: Some(end_line),
            column: column_of(column),
            end_column: column_of(end_column),
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// Six bits a byte, the lowest first; a seventh says that more follow. At most 32 bits.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..36).step_by(6) {
            let byte = self.byte()?;
            number |= u64::from(byte & 63) << shift;
            if byte & 64 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// A number whose lowest bit is its sign.
    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        let size = i64::try_from(number >> 1).ok()?;
        Some(if number & 1 == 1 { -size } else { size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_up_and_down_by_increments() {
        // Offsets 0, 4, 6 and 300; the increment of an offset above 255 takes two pairs.
        let table = [4, 1, 2, 0xfe, 255, 0, 39, 5];
        let line = |offset| locate(LineFormat::Increments, &table, 10, offset).line.unwrap();
        assert_eq!([-1, 0, 3, 4, 5, 6, 299, 300, 9999].map(line), [10, 10, 10, 11, 11, 9, 9, 14, 14]);
    }

    #[test]
    fn ranges_may_have_no_line() {
        let table = [4, 1, 2, 0x80, 6, 2];
        let line = |offset| locate(LineFormat::Ranges, &table, 10, offset).line;
        assert_eq!([-2, 0, 2, 4, 6, 12].map(line), [Some(10), Some(11), Some(11), None, Some(13), None]);
    }

    #[test]
    fn locations_have_all_kinds() {
        // A short form, one with a line above, one without columns, a long one, and none.
        let table = [
            0x80,
            0x12,
            0x80 | 11 << 3,
            4,
            9,
            0x80 | 13 << 3,
            0b11,
            0x80 | 14 << 3 | 1,
            0b100,
            3,
            5,
            0x41,
            1,
            0x80 | 15 << 3,
        ];
        let location = |offset| {
            let SourceLocation { line, end_line, column, end_column } =
                locate(LineFormat::Locations, &table, 100, offset);
            (line, end_line, column, end_column)
        };
        assert_eq!(location(0), (Some(100), Some(100), Some(1), Some(3)));
        assert_eq!(location(2), (Some(101), Some(101), Some(4), Some(9)));
        assert_eq!(location(4), (Some(100), Some(100), None, None));
        assert_eq!(location(6), (Some(102), Some(105), Some(4), Some(64)));
        assert_eq!(location(8), location(6));
        assert_eq!(location(10), (None, None, None, None));
        assert_eq!(location(12), (None, None, None, None));
        assert_eq!(location(-2).0, Some(100));
    }

    #[test]
    fn cut_tables_end() {
        for format in [LineFormat::Increments, LineFormat::Ranges, LineFormat::Locations] {
            for length in 0..6 {
                locate(format, &[0xff; 6][..length], i64::from(i32::MAX), i64::MAX);
            }
        }
    }
}
