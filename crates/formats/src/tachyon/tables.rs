//! The string table and the frame table, read and built.

use std::io;

use borehole_memory::HeldBytes as _;
use borehole_model::{Distinct, InternedRows};
use borehole_wire::{Cursor, put_varint};

use super::number::{NumberFault, put_varint_i32, varint_i32, varint_u32};

/// A frame of the table.
///
/// Units: lines are 1-based, columns 0-based in bytes of UTF-8.
///
/// Absent: -1 for lines and columns; without a line, the frame has no location at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileFrame {
    /// The index of the file's name among the strings.
    pub file: u32,
    /// The index of the function's name among the strings.
    pub function: u32,
    /// The line.
    pub line: i32,
    /// The last line.
    pub end_line: i32,
    /// The column.
    pub column: i32,
    /// The column after the last.
    pub end_column: i32,
    /// The number of the bytecode instruction.
    pub opcode: Option<u8>,
}

/// The byte for an absent instruction.
const NO_OPCODE: u8 = 255;

/// The minimum length of a frame.
pub(super) const MIN_FRAME_BYTES: usize = 7;

impl FileFrame {
    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, NumberFault> {
        let (file, function) = (varint_u32(cursor)?, varint_u32(cursor)?);
        let (line, lines) = (varint_i32(cursor)?, varint_i32(cursor)?);
        let (column, columns) = (varint_i32(cursor)?, varint_i32(cursor)?);
        let opcode = cursor.u8()?;
        Ok(Self {
            file,
            function,
            line,
            end_line: end(line, lines),
            column,
            end_column: end(column, columns),
            opcode: (opcode != NO_OPCODE).then_some(opcode),
        })
    }

    /// Appends the frame to `out`. An end without a start, or a start without an end, is dropped: the format cannot
    /// hold it.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.file));
        put_varint(out, u64::from(self.function));
        for (start, end) in [(self.line, self.end_line), (self.column, self.end_column)] {
            let delta = if start == -1 || end == -1 { 0 } else { end.wrapping_sub(start) };
            put_varint_i32(out, start);
            put_varint_i32(out, delta);
        }
        out.push(self.opcode.unwrap_or(NO_OPCODE));
    }
}

/// The end that is `delta` after `start`; none if there is no start.
const fn end(start: i32, delta: i32) -> i32 {
    if start == -1 { -1 } else { start.wrapping_add(delta) }
}

/// The strings and frames of a file.
#[derive(Clone, Debug, Default)]
pub struct FileTables<'a> {
    pub(super) strings: Vec<&'a [u8]>,
    pub(super) frames: Vec<FileFrame>,
    /// Whether every frame names strings that exist.
    all_named: bool,
}

impl<'a> FileTables<'a> {
    pub(super) fn new(strings: Vec<&'a [u8]>, frames: Vec<FileFrame>) -> Self {
        let mut tables = Self { strings, frames, all_named: false };
        tables.all_named = tables.frames.iter().all(|frame| tables.is_named(frame));
        tables
    }

    /// A string, usually but not necessarily UTF-8.
    #[must_use]
    pub fn string(&self, index: u32) -> Option<&'a [u8]> {
        self.strings.get(index as usize).copied()
    }

    /// A frame.
    #[must_use]
    pub fn frame(&self, index: u32) -> Option<&FileFrame> {
        self.frames.get(index as usize)
    }

    /// The number of strings.
    #[must_use]
    pub const fn string_count(&self) -> usize {
        self.strings.len()
    }

    /// The number of frames.
    #[must_use]
    pub const fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The memory that the tables have allocated.
    pub(super) fn held_bytes(&self) -> usize {
        self.strings.held_bytes() + self.frames.held_bytes()
    }

    fn is_named(&self, frame: &FileFrame) -> bool {
        (frame.file.max(frame.function) as usize) < self.strings.len()
    }

    /// The first of `frames` that is missing in the table, or that names missing strings.
    #[inline]
    pub(super) fn first_bad(&self, frames: &[u32]) -> Option<u32> {
        if self.all_named && frames.iter().all(|&index| (index as usize) < self.frames.len()) {
            return None;
        }
        let is_bad = |&index: &u32| match self.frames.get(index as usize) {
            None => true,
            Some(frame) => !self.all_named && !self.is_named(frame),
        };
        frames.iter().copied().find(is_bad)
    }
}

/// The complete rows of a table, and the fault of the next one.
pub(super) struct DecodedRows<T> {
    pub(super) rows: Vec<T>,
    pub(super) fault: Option<NumberFault>,
}

/// Reads at most `count` strings.
pub(super) fn read_strings<'a>(cursor: &mut Cursor<'a>, count: u32) -> DecodedRows<&'a [u8]> {
    read_rows(count, || read_string(cursor))
}

/// Reads at most `count` frames.
pub(super) fn read_frames(cursor: &mut Cursor<'_>, count: u32) -> DecodedRows<FileFrame> {
    read_rows(count, || {
        let mut after = *cursor;
        let frame = FileFrame::decode(&mut after)?;
        *cursor = after;
        Ok(frame)
    })
}

fn read_rows<T>(count: u32, mut read: impl FnMut() -> Result<T, NumberFault>) -> DecodedRows<T> {
    let mut rows = Vec::new();
    for _ in 0..count {
        // A row takes up to 32 times as much memory as in the file. Whoever opens the file asks again, and gets the error.
        if rows.len() == rows.capacity() && borehole_memory::check().is_err() {
            break;
        }
        match read() {
            Ok(row) => rows.push(row),
            Err(fault) => return DecodedRows { rows, fault: Some(fault) },
        }
    }
    DecodedRows { rows, fault: None }
}

/// Appends a string to `out`.
pub(super) fn put_string(out: &mut Vec<u8>, string: &[u8]) {
    put_varint(out, string.len() as u64);
    out.extend_from_slice(string);
}

fn read_string<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], NumberFault> {
    let mut after = *cursor;
    let length = varint_u32(&mut after)?;
    let string = after.bytes(usize::try_from(length).unwrap_or(usize::MAX))?;
    *cursor = after;
    Ok(string)
}

/// Byte strings. The last number is reserved for lost frames, so there are fewer than 2^32 of either.
#[derive(Debug, Default)]
pub(super) struct NumberedStrings(Distinct<u8>);

impl NumberedStrings {
    pub(super) fn intern(&mut self, string: &[u8]) -> io::Result<u32> {
        if u32::try_from(string.len()).is_err() {
            return Err(io::Error::other("string too large: expected less than 2^32 bytes"));
        }
        self.0.intern(string).ok_or_else(|| too_many("strings"))
    }

    /// The number of strings.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.0.count()).unwrap_or(u32::MAX)
    }

    /// The strings from number `first` on.
    pub(super) fn since(&self, first: usize) -> impl ExactSizeIterator<Item = &[u8]> {
        (first..self.0.count()).map(|number| self.0.get(number))
    }
}

/// Frames, compared by content.
#[derive(Debug, Default)]
pub(super) struct NumberedFrames(InternedRows<FileFrame>);

impl NumberedFrames {
    pub(super) fn intern(&mut self, frame: &FileFrame) -> io::Result<u32> {
        self.0.intern(frame).ok_or_else(|| too_many("frames"))
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.0.rows().len()).unwrap_or(u32::MAX)
    }

    /// The frames from number `first` on.
    pub(super) fn since(&self, first: usize) -> &[FileFrame] {
        &self.0.rows()[first..]
    }
}

#[cold]
fn too_many(rows: &str) -> io::Error {
    io::Error::other(format!("too many {rows}: expected fewer than 2^32"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_restored_except_ends_without_starts() {
        let frame = |line, end_line, column, end_column, opcode| FileFrame {
            file: 1,
            function: 300,
            line,
            end_line,
            column,
            end_column,
            opcode,
        };
        for (written, read) in [
            (frame(9, 10, 4, 9, Some(7)), frame(9, 10, 4, 9, Some(7))),
            (frame(-1, -1, -1, -1, None), frame(-1, -1, -1, -1, None)),
            (frame(0, 0, -1, -1, Some(254)), frame(0, 0, -1, -1, Some(254))),
            (frame(9, -1, 3, -1, None), frame(9, 9, 3, 3, None)),
            (frame(9, 2, 8, 3, None), frame(9, 2, 8, 3, None)),
            (frame(i32::MAX, i32::MIN, -7, 7, None), frame(i32::MAX, i32::MIN, -7, 7, None)),
        ] {
            let mut bytes = Vec::new();
            written.encode(&mut bytes);
            let mut cursor = Cursor::new(&bytes, 0);
            assert_eq!(read_frames(&mut cursor, 1).rows, [read]);
            assert!(cursor.is_empty());
        }
    }

    #[test]
    fn complete_rows_are_read_before_a_truncated_one() {
        let mut cursor = Cursor::new(b"\x01a\x00\x05bc", 10);
        let DecodedRows { rows, fault } = read_strings(&mut cursor, u32::MAX);
        assert_eq!(rows, [b"a".as_slice(), b""]);
        assert_eq!((cursor.offset(), fault.unwrap().offset()), (13, 14));
    }

    #[test]
    fn frames_with_missing_strings_are_invalid_where_used() {
        let frame = |function| FileFrame {
            file: 0,
            function,
            line: 1,
            end_line: 1,
            column: 0,
            end_column: 0,
            opcode: None,
        };
        let tables = FileTables::new(vec![b"f"], vec![frame(0), frame(1)]);
        assert_eq!(tables.first_bad(&[0, 0]), None);
        assert_eq!(tables.first_bad(&[0, 1, 2]), Some(1));
        assert_eq!(tables.first_bad(&[2]), Some(2));
    }
}
