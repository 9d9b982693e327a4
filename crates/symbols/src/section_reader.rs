//! Bytes of a DWARF section, read within a budget of work.
//!
//! References in DWARF make it possible that a few bytes of a file take any amount of time and memory: thousands of
//! functions may share one list of ranges. Whatever is read twice therefore counts twice, and real files stay far below the
//! budget.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use addr2line::gimli::{Error, Reader, ReaderOffsetId, Result, RunTimeEndian};

/// The work that may still be done, in bytes to read.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    left: AtomicU64,
}

impl WorkBudget {
    /// So many times the bytes of a file may be read. Real files need less than 8.
    const TIMES: u64 = 16;
    /// The work that any file may take.
    const FREE: u64 = 4 << 20;

    pub(crate) fn new(file_bytes: u64) -> Self {
        let left = file_bytes.saturating_mul(Self::TIMES).saturating_add(Self::FREE);
        Self { left: AtomicU64::new(left) }
    }

    /// Takes work from the budget. One thread at a time uses a file, so no addition is lost between reading and writing.
    fn take(&self, bytes: usize) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        let rest = left.checked_sub(bytes as u64);
        self.left.store(rest.unwrap_or(0), Ordering::Relaxed);
        // What is made of the bytes is held by the program; asking costs as much as a comparison.
        rest.is_some() && borehole_memory::check().is_ok()
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

#[derive(Debug)]
struct Section {
    content: Vec<u8>,
    endian: RunTimeEndian,
    budget: Arc<WorkBudget>,
}

/// A stretch of a section.
#[derive(Clone, Debug)]
pub(crate) struct SectionReader {
    section: Arc<Section>,
    start: usize,
    end: usize,
}

impl SectionReader {
    pub(crate) fn new(content: Vec<u8>, endian: RunTimeEndian, budget: &Arc<WorkBudget>) -> Self {
        let end = content.len();
        Self { section: Arc::new(Section { content, endian, budget: Arc::clone(budget) }), start: 0, end }
    }

    fn rest(&self) -> &[u8] {
        &self.section.content[self.start..self.end]
    }

    /// The next `length` bytes, past which the reader moves.
    #[inline]
    fn advance(&mut self, length: usize, work: usize) -> Result<&[u8]> {
        if length > self.end - self.start || !self.section.budget.take(work) {
            return Err(Error::UnexpectedEof(self.offset_id()));
        }
        let start = self.start;
        self.start += length;
        Ok(&self.section.content[start..self.start])
    }
}

impl Reader for SectionReader {
    type Endian = RunTimeEndian;
    type Offset = usize;

    fn endian(&self) -> RunTimeEndian {
        self.section.endian
    }

    fn len(&self) -> usize {
        self.end - self.start
    }

    fn empty(&mut self) {
        self.end = self.start;
    }

    fn truncate(&mut self, length: usize) -> Result<()> {
        if length > self.len() {
            return Err(Error::UnexpectedEof(self.offset_id()));
        }
        self.end = self.start + length;
        Ok(())
    }

    fn offset_from(&self, base: &Self) -> usize {
        self.start.saturating_sub(base.start)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId((self.section.content.as_ptr().addr() + self.start) as u64)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let start = self.section.content.as_ptr().addr() + self.start;
        usize::try_from(id.0).ok()?.checked_sub(start).filter(|&offset| offset <= self.len())
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let found = memchr::memchr(byte, self.rest());
        let work = found.unwrap_or(self.len());
        found.filter(|_| self.section.budget.take(work)).ok_or_else(|| Error::UnexpectedEof(self.offset_id()))
    }

    fn skip(&mut self, length: usize) -> Result<()> {
        self.advance(length, 1).map(drop)
    }

    fn split(&mut self, length: usize) -> Result<Self> {
        let mut piece = self.clone();
        self.advance(length, 1)?;
        piece.end = self.start;
        Ok(piece)
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(self.rest()))
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        std::str::from_utf8(self.rest()).map(Cow::Borrowed).map_err(|_| Error::BadUtf8)
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        Ok(String::from_utf8_lossy(self.rest()))
    }

    #[inline]
    fn read_slice(&mut self, into: &mut [u8]) -> Result<()> {
        into.copy_from_slice(self.advance(into.len(), into.len())?);
        Ok(())
    }

    #[inline]
    fn read_u8(&mut self) -> Result<u8> {
        self.advance(1, 1).map(|byte| byte[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(content: &[u8], work: u64) -> SectionReader {
        let budget = Arc::new(WorkBudget { left: AtomicU64::new(work) });
        SectionReader::new(content.to_vec(), RunTimeEndian::Little, &budget)
    }

    #[test]
    fn pieces_of_a_section_keep_to_their_ends() {
        let mut all = reader(b"\x01\x02\x03\x04name\0rest", 100);
        let whole = all.clone();
        assert_eq!(all.read_u32().unwrap(), 0x0403_0201);
        let name = all.read_null_terminated_slice().unwrap();
        assert_eq!((&*name.to_string().unwrap(), name.offset_from(&whole)), ("name", 4));
        assert_eq!(all.offset_from(&whole), 9);
        assert_eq!(whole.lookup_offset_id(all.offset_id()), Some(9));
        let mut piece = all.split(2).unwrap();
        assert_eq!((piece.read_u16().unwrap(), piece.is_empty()), (u16::from_le_bytes(*b"re"), true));
        assert!(piece.read_u8().is_err());
        assert!(all.truncate(3).is_err());
        all.truncate(1).unwrap();
        assert!(all.skip(2).is_err());
        assert_eq!(all.read_u8().unwrap(), b's');
    }

    #[test]
    fn nothing_is_read_once_the_budget_is_used_up() {
        let first = reader(b"12345678", 12);
        let mut second = first.clone();
        assert!(second.read_u64().is_ok());
        let mut third = first.clone();
        assert!(third.read_u64().is_err());
        assert!(first.section.budget.is_exhausted());
        assert!(third.read_u8().is_err());
    }
}
