//! The words of a CPU profile of gperftools.
//!
//! Source: gperftools 2.10, `docs/cpuprofile-fileformat.html`.

use borehole_wire::Cursor;

use super::facts::word_bytes;

/// A profile.
#[derive(Debug)]
pub(super) struct CpuProfileWords<'a> {
    cursor: Cursor<'a>,
    word_bytes: usize,
    pub(super) period_us: u64,
}

/// A sample, or the end of them.
#[derive(Debug)]
pub(super) enum CpuRecord {
    /// Observations of the stack that was read.
    Sample {
        count: u64,
    },
    End,
}

impl<'a> CpuProfileWords<'a> {
    /// Reads the header; `None` if the bytes begin otherwise.
    ///
    /// # Errors
    /// If it is cut off.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Result<Self, borehole_wire::Error>> {
        let mut words = Self { cursor: Cursor::new(bytes, 0), word_bytes: word_bytes(bytes)?, period_us: 0 };
        Some(words.header().map(|()| words))
    }

    fn header(&mut self) -> Result<(), borehole_wire::Error> {
        for _ in 0..3 {
            self.word()?;
        }
        self.period_us = self.word()?;
        self.word()?;
        Ok(())
    }

    #[inline]
    fn word(&mut self) -> Result<u64, borehole_wire::Error> {
        if self.word_bytes == 8 { self.cursor.u64_le() } else { self.cursor.u32_le().map(u64::from) }
    }

    /// Reads a record, and puts its addresses from the leaf to the root.
    ///
    /// # Errors
    /// If it is cut off.
    pub(super) fn record(&mut self, addresses: &mut Vec<u64>) -> Result<CpuRecord, borehole_wire::Error> {
        let (count, depth) = (self.word()?, self.word()?);
        let start = addresses.len();
        for _ in 0..depth {
            addresses.push(self.word()?);
        }
        let is_end = count == 0 && addresses[start..] == [0];
        Ok(if is_end { CpuRecord::End } else { CpuRecord::Sample { count } })
    }

    /// The bytes behind the records.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    pub(super) const fn offset(&self) -> u64 {
        self.cursor.offset()
    }
}
