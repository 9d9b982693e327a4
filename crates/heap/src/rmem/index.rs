//! Finds rows and strings, with the indexes of a file of ours or with indexes made when a file is opened.

use std::ops::Range;

use super::layout::*;
use super::sections::{Section, Table, malformed, truncated, word};
use crate::error::Error;
use crate::graph::{ROWS_STRIDE, Rows, STRINGS_STRIDE, range_within};
use borehole_wire::Cursor;

/// The strings of a file.
#[derive(Debug)]
pub(super) struct Strings<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) offset: u64,
    pub(super) count: usize,
    starts: StringStarts<'a>,
}

/// The start of every sixteenth string in its section.
#[derive(Debug)]
enum StringStarts<'a> {
    File(Table<'a, 8>),
    Made(Vec<u64>),
}

impl<'a> Strings<'a> {
    pub(super) fn of(section: Section<'a>, starts: Option<Table<'a, 8>>) -> Result<Self, Error> {
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

fn find_starts(section: Section<'_>, count: usize) -> Result<Vec<u64>, Error> {
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

/// The order of a table's rows by node.
#[derive(Debug)]
pub(super) struct Order<'a> {
    starts: Starts<'a>,
    /// The rows in order; `None` if the table is sorted.
    rows: Option<Vec<u32>>,
}

#[derive(Debug)]
enum Starts<'a> {
    File(Table<'a, 4>),
    Made(Rows),
}

impl<'a> Order<'a> {
    /// The order of a file of ours, whose rows are sorted.
    pub(super) fn stored(starts: Table<'a, 4>, nodes: usize, name: &str) -> Result<Self, Error> {
        let expected = nodes.div_ceil(ROWS_STRIDE as usize) + 1;
        if starts.len() != expected {
            let message = format!("expected {expected} rows in section {name}, found {}", starts.len());
            return Err(malformed(message, starts.offset));
        }
        Ok(Self { starts: Starts::File(starts), rows: None })
    }

    /// Computes the order of a table of `count` rows, of which `key` gives the node.
    pub(super) fn made(count: usize, nodes: usize, key: impl Fn(usize) -> u32) -> Self {
        // A table has fewer than 2^32 rows.
        let numbers = 0..u32::try_from(count).unwrap_or(u32::MAX);
        if (0..count).map(&key).is_sorted() {
            let starts = Rows::of((0..count).map(&key), nodes);
            return Self { starts: Starts::Made(starts), rows: None };
        }
        let mut rows: Vec<u32> = numbers.collect();
        rows.sort_by_key(|&row| key(row as usize));
        let starts = Rows::of(rows.iter().map(|&row| key(row as usize)), nodes);
        Self { starts: Starts::Made(starts), rows: Some(rows) }
    }

    /// The row of the table at `place` in the order.
    #[inline]
    pub(super) fn row(&self, place: usize) -> usize {
        match &self.rows {
            None => place,
            Some(rows) => rows.get(place).map_or(usize::MAX, |&row| row as usize),
        }
    }

    /// The places of `node` among `count`.
    pub(super) fn range(&self, node: u32, count: usize, key: impl Fn(usize) -> u32) -> Range<usize> {
        let entry = (node / ROWS_STRIDE) as usize;
        let (Some(first), Some(end)) = (self.starts.get(entry), self.starts.get(entry + 1)) else {
            return 0..0;
        };
        let places = (first as usize).min(count)..(end as usize).min(count);
        range_within(places, node, |place| key(self.row(place)))
    }

    pub(super) fn starts(&self) -> impl Iterator<Item = u32> {
        (0..).map_while(|entry| self.starts.get(entry))
    }
}

impl Starts<'_> {
    fn get(&self, entry: usize) -> Option<u32> {
        match self {
            Self::File(table) => table.row(entry).map(|row| word(row, 0)),
            Self::Made(rows) => rows.starts().get(entry).copied(),
        }
    }
}
