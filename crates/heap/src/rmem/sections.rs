//! The header, the table of contents, and the sections as tables of rows.

use borehole_text::{Error, ErrorKind, Position};
use borehole_wire::Cursor;

use super::layout::*;

/// The sections of a file by name.
pub(super) struct FileSections<'a> {
    file: &'a [u8],
    entries: Vec<SectionEntry>,
}

struct SectionEntry {
    name: [u8; NAME_BYTES],
    /// The offset of the entry.
    at: u64,
    offset: u64,
    length: u64,
    elements: u64,
}

/// A section whose bounds are within the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectionBytes<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) offset: u64,
    pub(super) elements: u64,
}

/// A section of rows of `N` bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowTable<'a, const N: usize> {
    rows: &'a [[u8; N]],
    pub(super) offset: u64,
}

impl<'a, const N: usize> RowTable<'a, N> {
    pub(super) const EMPTY: Self = Self { rows: &[], offset: 0 };

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    pub(super) fn row(&self, row: usize) -> Option<&'a [u8; N]> {
        self.rows.get(row)
    }

    /// The word at `index` of `row`; [`NULL`] if there is no such row.
    #[inline]
    pub(super) fn word(&self, row: usize, index: usize) -> u32 {
        self.row(row).map_or(NULL, |row| word(row, index))
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &'a [u8; N]> + Clone + use<'a, N> {
        self.rows.iter()
    }

    /// The offset of `row` in the file.
    pub(super) fn offset_of(&self, row: usize) -> u64 {
        self.offset.saturating_add((row as u64).saturating_mul(N as u64))
    }
}

impl RowTable<'_, 4> {
    /// Whether `number` is one of the rows, which are sorted.
    pub(super) fn has(&self, number: u32) -> bool {
        self.rows.binary_search_by_key(&number, |row| u32::from_le_bytes(*row)).is_ok()
    }
}

/// The 32-bit number at `index` of a row.
#[inline]
pub(super) fn word(row: &[u8], index: usize) -> u32 {
    let bytes = row.get(index * 4..).and_then(|rest| rest.first_chunk());
    bytes.map_or(NULL, |bytes| u32::from_le_bytes(*bytes))
}

/// The 64-bit number whose lower half is at `index` of a row.
#[inline]
pub(super) fn long(row: &[u8], index: usize) -> u64 {
    u64::from(word(row, index)) | u64::from(word(row, index + 1)) << 32
}

impl<'a> FileSections<'a> {
    pub(super) fn of(file: &'a [u8]) -> Result<Self, Error> {
        let mut header = Cursor::new(file, 0);
        let magic: [u8; 4] = header.array().map_err(truncated)?;
        if magic != MAGIC {
            return Err(malformed(format!("expected RMEM, found {:?}", magic.escape_ascii().to_string()), 0));
        }
        let version = header.u32_le().map_err(truncated)?;
        if version != VERSION {
            return Err(unsupported(format!("unsupported version: expected {VERSION}, found {version}"), 4));
        }
        if header.u32_le().map_err(truncated)? & LITTLE_ENDIAN == 0 {
            return Err(unsupported("unsupported byte order: expected little-endian".to_owned(), 8));
        }
        let count = header.u32_le().map_err(truncated)?;
        let toc = header.u64_le().map_err(truncated)?;
        header.bytes(HEADER_BYTES - 24).map_err(truncated)?;
        let at = usize::try_from(toc).ok().and_then(|toc| file.get(toc..));
        let contents = at.ok_or_else(|| {
            let message = format!("truncated: the file ends before the table of contents at byte {toc:#x}");
            Error::truncated(FORMAT, Position::Byte(16), message)
        })?;
        let mut cursor = Cursor::new(contents, toc);
        let mut entries = Vec::new();
        for _ in 0..count {
            entries.push(SectionEntry::read(&mut cursor).map_err(truncated)?);
        }
        Ok(Self { file, entries })
    }

    /// The section called `name`.
    pub(super) fn find(&self, name: &str) -> Result<Option<SectionBytes<'a>>, Error> {
        let mut found = self.entries.iter().filter(|entry| entry.is_called(name));
        let Some(entry) = found.next() else { return Ok(None) };
        if let Some(second) = found.next() {
            return Err(malformed(format!("duplicate section {name}"), second.at));
        }
        let end = entry.offset.checked_add(entry.length).and_then(|end| usize::try_from(end).ok());
        let start = usize::try_from(entry.offset).unwrap_or(usize::MAX);
        let bytes = end.and_then(|end| self.file.get(start..end)).ok_or_else(|| {
            let SectionEntry { offset, length, .. } = entry;
            let message = format!(
                "truncated: section {name} has {length} bytes at {offset:#x}, the file has {}",
                self.file.len()
            );
            Error::truncated(FORMAT, Position::Byte(entry.at), message)
        })?;
        Ok(Some(SectionBytes { bytes, offset: entry.offset, elements: entry.elements }))
    }

    pub(super) fn require(&self, name: &str) -> Result<SectionBytes<'a>, Error> {
        self.find(name)?.ok_or_else(|| malformed(format!("missing section {name}"), 16))
    }

    /// The section called `name` as rows; no rows if it is missing.
    pub(super) fn table<const N: usize>(&self, name: &str) -> Result<RowTable<'a, N>, Error> {
        self.find(name)?.map_or(Ok(RowTable::EMPTY), |section| section.table(name))
    }
}

impl SectionEntry {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, borehole_wire::Error> {
        let at = cursor.offset();
        let name = cursor.array()?;
        let (offset, length, elements) = (cursor.u64_le()?, cursor.u64_le()?, cursor.u64_le()?);
        Ok(Self { name, at, offset, length, elements })
    }

    fn is_called(&self, name: &str) -> bool {
        let end = self.name.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        &self.name[..end] == name.as_bytes()
    }
}

impl<'a> SectionBytes<'a> {
    pub(super) fn table<const N: usize>(self, name: &str) -> Result<RowTable<'a, N>, Error> {
        let (rows, rest) = self.bytes.as_chunks::<N>();
        if !rest.is_empty() || rows.len() as u64 != self.elements {
            let (found, elements) = (self.bytes.len(), self.elements);
            let message =
                format!("expected {elements} rows of {N} bytes in section {name}, found {found} bytes");
            return Err(malformed(message, self.offset));
        }
        if u32::try_from(rows.len()).is_ok_and(|rows| rows < NULL - 1) {
            return Ok(RowTable { rows, offset: self.offset });
        }
        let message = format!("too many rows in section {name}: expected fewer than 2^32");
        Err(too_many(message, self.offset))
    }
}

pub(super) fn truncated(error: borehole_wire::Error) -> Error {
    Error::truncated(FORMAT, Position::Byte(error.offset()), error.to_string())
}

pub(super) fn malformed(message: String, offset: u64) -> Error {
    Error::malformed(FORMAT, Position::Byte(offset), message)
}

fn unsupported(message: String, offset: u64) -> Error {
    Error::new(ErrorKind::Unsupported, FORMAT, Position::Byte(offset), message)
}

pub(super) fn too_many(message: String, offset: u64) -> Error {
    Error::new(ErrorKind::Limit, FORMAT, Position::Byte(offset), message)
}
