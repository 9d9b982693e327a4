//! Records, and the fields of those that matter here.

use std::ops::Range;

use super::fields::{FieldReader, NumberOrder, Numbers};
use super::header::PerfEvent;
use super::layout::{counters, record, record_flags, sample};

/// The bytes of the head of a record.
const RECORD_HEAD_BYTES: usize = 8;

/// A record.
#[derive(Clone, Copy, Debug)]
pub(super) struct PerfRecord<'a> {
    pub(super) kind: u32,
    pub(super) misc: u16,
    /// Its position in the file.
    pub(super) offset: usize,
    /// The bytes behind its head.
    pub(super) payload: &'a [u8],
    order: NumberOrder,
}

impl<'a> PerfRecord<'a> {
    /// The record at `offset` of `file`.
    ///
    /// # Errors
    /// If the file ends before it does, or its size is less than that of its head.
    pub(super) fn at(file: &'a [u8], offset: usize, order: NumberOrder) -> Result<Self, RecordFault> {
        let mut fields = FieldReader::from(file, offset as u64, order);
        let (kind, misc, size) = (fields.u32()?, fields.u16()?, usize::from(fields.u16()?));
        let Some(length) = size.checked_sub(RECORD_HEAD_BYTES) else {
            return Err(RecordFault::TooSmall { size, at: offset });
        };
        Ok(Self { kind, misc, offset, payload: fields.bytes(length as u64)?, order })
    }

    /// Its fields.
    #[inline]
    pub(super) const fn fields(&self) -> FieldReader<'a> {
        FieldReader::new(self.payload, self.offset + RECORD_HEAD_BYTES, self.order)
    }

    /// The position behind it, and behind the data that follows some records.
    fn end(&self) -> usize {
        let mut fields = self.fields();
        let data = match self.kind {
            record::AUXTRACE => fields.u64().unwrap_or(0),
            record::TRACING_DATA => fields.u32().map_or(0, |size| u64::from(size).next_multiple_of(8)),
            _ => 0,
        };
        let end = self.offset + RECORD_HEAD_BYTES + self.payload.len();
        usize::try_from(data).map_or(usize::MAX, |data| end.saturating_add(data))
    }
}

/// The reason why there is no further record.
#[derive(Clone, Copy, Debug)]
pub(super) enum RecordFault {
    /// The data ends in the middle of a record.
    Cut(borehole_wire::Error),
    TooSmall {
        size: usize,
        at: usize,
    },
}

impl From<borehole_wire::Error> for RecordFault {
    fn from(error: borehole_wire::Error) -> Self {
        Self::Cut(error)
    }
}

/// The records of a part of the file, up to the first fault.
pub(super) fn records(
    file: &[u8],
    data: Range<usize>,
    order: NumberOrder,
) -> impl Iterator<Item = Result<PerfRecord<'_>, RecordFault>> {
    let file = &file[..data.end];
    let mut next = Some(data.start);
    std::iter::from_fn(move || {
        let at = next.take().filter(|&at| at < file.len())?;
        let found = PerfRecord::at(file, at, order);
        next = found.as_ref().ok().map(PerfRecord::end);
        Some(found)
    })
}

/// The fields of a sample. Absent: 0, and `None` for the process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PerfSample<'a> {
    pub(super) address: u64,
    pub(super) process: Option<[u32; 2]>,
    pub(super) time_ns: Option<u64>,
    pub(super) cpu: Option<u32>,
    pub(super) period: u64,
    /// Addresses from the leaf to the root, and the contexts that they are in.
    pub(super) chain: Numbers<'a>,
}

impl<'a> PerfSample<'a> {
    /// Reads a sample of `event`.
    ///
    /// # Errors
    /// If the record is too short.
    pub(super) fn read(mut fields: FieldReader<'a>, event: &PerfEvent) -> Result<Self, borehole_wire::Error> {
        let has = |bit: u64| event.sample_type & bit != 0;
        let mut found = Self { period: event.period, ..Self::default() };
        if has(sample::IDENTIFIER) {
            fields.u64()?;
        }
        if has(sample::IP) {
            found.address = fields.u64()?;
        }
        if has(sample::TID) {
            found.process = Some([fields.u32()?, fields.u32()?]);
        }
        if has(sample::TIME) {
            found.time_ns = Some(fields.u64()?);
        }
        let skipped = event.sample_type & (sample::ADDRESS | sample::ID | sample::STREAM_ID);
        fields.bytes(8 * u64::from(skipped.count_ones()))?;
        if has(sample::CPU) {
            found.cpu = Some(fields.u32()?);
            fields.u32()?;
        }
        if has(sample::PERIOD) {
            found.period = fields.u64()?;
        }
        if has(sample::READ) {
            skip_counters(&mut fields, event.read_format)?;
        }
        if has(sample::CALL_CHAIN) {
            let count = fields.u64()?;
            found.chain = fields.numbers(count)?;
        }
        Ok(found)
    }
}

/// Skips the values of counters.
fn skip_counters(fields: &mut FieldReader<'_>, format: u64) -> Result<(), borehole_wire::Error> {
    let times = u64::from((format & (counters::TIME_ENABLED | counters::TIME_RUNNING)).count_ones());
    let each = 1 + u64::from((format & (counters::ID | counters::LOST)).count_ones());
    let count = if format & counters::GROUP != 0 { fields.u64()? } else { 1 };
    fields.numbers(count.saturating_mul(each).saturating_add(times))?;
    Ok(())
}

/// A file that was mapped into a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileMapping<'a> {
    pub(super) process: u32,
    pub(super) start: u64,
    pub(super) size: u64,
    pub(super) file_offset: u64,
    pub(super) build_id: Option<&'a [u8]>,
    pub(super) file: &'a [u8],
}

impl<'a> FileMapping<'a> {
    /// Reads a record `MMAP` or `MMAP2`.
    pub(super) fn read(found: &PerfRecord<'a>) -> Result<Self, borehole_wire::Error> {
        // Device and inode or a build ID with its size; protection and flags.
        const IDENTITY_BYTES: u64 = 24;
        const PROTECTION_BYTES: u64 = 8;
        let mut fields = found.fields();
        let process = fields.u32()?;
        fields.u32()?;
        let (start, size, file_offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let mut build_id = None;
        if found.kind == record::MMAP2 {
            let identity = fields.bytes(IDENTITY_BYTES)?;
            fields.bytes(PROTECTION_BYTES)?;
            if found.misc & record_flags::MAPPED_BUILD_ID != 0 {
                build_id = identity.get(4..4 + usize::from(identity[0])).filter(|id| !id.is_empty());
            }
        }
        Ok(Self { process, start, size, file_offset, build_id, file: fields.text() })
    }
}
