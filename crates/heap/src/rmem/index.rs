//! Finds rows and strings, with the indexes of a file of ours or with indexes made when a file is opened.

use std::ops::Range;

use borehole_text::Error;
use borehole_wire::Cursor;

use super::layout::*;
use super::sections::{RowTable, SectionBytes, malformed, truncated, word};
use crate::graph::{NodeRows, ROWS_STRIDE, STRINGS_STRIDE, range_within};

/// The strings of a file.
#[derive(Debug)]
pub(super) struct StringSection<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) offset: u64,
    pub(super) count: usize,
    starts: StringStarts<'a>,
}

/// The start of every sixteenth string in its section.
#[derive(Debug)]
enum StringStarts<'a> {
    File(RowTable<'a, 8>),
    Made(Vec<u64>),
}

impl<'a> StringSection<'a> {
    pub(super) fn of(section: SectionBytes<'a>, starts: Option<RowTable<'a, 8>>) -> Result<Self, Error> {
        let count = Cursor::new(section.bytes, section.offset).u32_le().map_err(truncated)?;
        if u64::from(count) != section.elements {
            let message = format!("expected {} strings, found {count}", section.elements);
            return Err(malformed(message, section.offset));
        }
        let count = count as usize;
        let starts = match starts {
            Some(starts) if starts.len() == count.div_ceil(STRINGS_STRIDE) => StringStarts::File(starts),
            Some(starts) => {
                let (expected, found) = (count.div_ceil(STRINGS_STRIDE), starts.len());
                let message = format!("expected {expected} rows in section {STRING_STARTS}, found {found}");
                return Err(malformed(message, starts.offset));
            }
            None => StringStarts::Made(find_starts(section, count)?),
        };
        Ok(Self { bytes: section.bytes, offset: section.offset, count, starts })
    }

    /// The string with this number; empty if there is none.
    pub(super) fn get(&self, row: usize) -> &'a [u8] {
        if row >= self.count {
            return &[];
        }
        let mut rest =
            self.start(row / STRINGS_STRIDE).and_then(|start| self.bytes.get(start..)).unwrap_or_default();
        for _ in 0..row % STRINGS_STRIDE {
            rest = next_string(rest).map_or(&[], |(_, rest)| rest);
        }
        next_string(rest).map_or(&[], |(string, _)| string)
    }

    pub(super) fn start(&self, entry: usize) -> Option<usize> {
        let start = match &self.starts {
            StringStarts::File(table) => u64::from_le_bytes(*table.row(entry)?),
            StringStarts::Made(starts) => *starts.get(entry)?,
        };
        usize::try_from(start).ok()
    }
}

fn next_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

fn find_starts(section: SectionBytes<'_>, count: usize) -> Result<Vec<u64>, Error> {
    let mut cursor = Cursor::new(section.bytes, section.offset);
    cursor.u32_le().map_err(truncated)?;
    let mut starts = Vec::new();
    for number in 0..count {
        if number.is_multiple_of(STRINGS_STRIDE) {
            starts.push(cursor.offset() - section.offset);
        }
        let length = cursor.u32_le().map_err(truncated)?;
        cursor.bytes(length as usize).map_err(truncated)?;
    }
    Ok(starts)
}

/// A table with the order of its rows by node.
#[derive(Debug)]
pub(super) struct OrderedTable<'a, const N: usize> {
    pub(super) table: RowTable<'a, N>,
    /// The number to add to the node of a row for its sort key.
    shift: u32,
    starts: Starts<'a>,
    /// The rows in order; `None` if the table is sorted.
    rows: Option<Vec<u32>>,
}

#[derive(Debug)]
enum Starts<'a> {
    File(RowTable<'a, 4>),
    Made(NodeRows),
}

impl<'a, const N: usize> OrderedTable<'a, N> {
    /// A table of a file of ours, whose rows are sorted, with its index in the section `name`.
    pub(super) fn stored(
        table: RowTable<'a, N>,
        starts: RowTable<'a, 4>,
        nodes: usize,
        shift: u32,
        name: &str,
    ) -> Result<Self, Error> {
        let expected = nodes.div_ceil(ROWS_STRIDE as usize) + 1;
        if starts.len() != expected {
            let message = format!("expected {expected} rows in section {name}, found {}", starts.len());
            return Err(malformed(message, starts.offset));
        }
        Ok(Self { table, shift, starts: Starts::File(starts), rows: None })
    }

    /// Computes the order of a table for this many nodes.
    pub(super) fn made(table: RowTable<'a, N>, nodes: usize, shift: u32) -> Self {
        // A row of a missing node goes to the end, where no node finds it.
        let last = u32::try_from(nodes).unwrap_or(NULL);
        let key = |row| sort_key(table, row, shift).min(last);
        let is_sorted = (0..table.len()).map(key).is_sorted();
        let rows = (!is_sorted).then(|| {
            // A table has fewer than 2^32 rows.
            let mut rows: Vec<u32> = (0..u32::try_from(table.len()).unwrap_or(u32::MAX)).collect();
            rows.sort_by_key(|&row| key(row as usize));
            rows
        });
        let mut ordered = Self { table, shift, starts: Starts::Made(NodeRows::default()), rows };
        let keys = (0..table.len()).map(|place| key(ordered.number(place)));
        ordered.starts = Starts::Made(NodeRows::of(keys, last as usize + 1));
        ordered
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// The row at `place` in the order.
    #[inline]
    pub(super) fn row(&self, place: usize) -> Option<&'a [u8; N]> {
        self.table.row(self.number(place))
    }

    /// The number in the file of the row at `place` in the order.
    #[inline]
    pub(super) fn number(&self, place: usize) -> usize {
        match &self.rows {
            None => place,
            Some(rows) => rows.get(place).map_or(usize::MAX, |&row| row as usize),
        }
    }

    /// The node of the row at `place` in the order, which is the first word of the row.
    #[inline]
    pub(super) fn node(&self, place: usize) -> u32 {
        self.table.word(self.number(place), 0)
    }

    fn key(&self, place: usize) -> u32 {
        sort_key(self.table, self.number(place), self.shift)
    }

    /// The places of the rows with this sort key.
    pub(super) fn range(&self, key: u32) -> Range<usize> {
        let entry = (key / ROWS_STRIDE) as usize;
        let (Some(first), Some(end)) = (self.starts.get(entry), self.starts.get(entry + 1)) else {
            return 0..0;
        };
        let places = (first as usize).min(self.len())..(end as usize).min(self.len());
        range_within(places, key, |place| self.key(place))
    }

    /// Checks that the rows are sorted and that the index finds them.
    pub(super) fn check(&self, nodes: usize, name: &str) -> Result<(), Error> {
        let keys = || (0..self.len()).map(|place| self.key(place));
        let found = NodeRows::of(keys(), nodes);
        let entries = nodes.div_ceil(ROWS_STRIDE as usize) + 1;
        let expected = found.starts().iter().copied().take(entries);
        let starts = (0..entries).map_while(|entry| self.starts.get(entry));
        if keys().is_sorted() && starts.eq(expected) {
            return Ok(());
        }
        Err(malformed(format!("invalid index in section {name}"), self.table.offset))
    }
}

/// The sort key of a row of the file; the maximum if there is no such row.
#[inline]
fn sort_key<const N: usize>(table: RowTable<'_, N>, row: usize, shift: u32) -> u32 {
    table.row(row).map_or(NULL, |row| word(row, 0).wrapping_add(shift))
}

impl Starts<'_> {
    fn get(&self, entry: usize) -> Option<u32> {
        match self {
            Self::File(table) => table.row(entry).map(|row| word(row, 0)),
            Self::Made(rows) => rows.starts().get(entry).copied(),
        }
    }
}
