//! The records of the format, and a buffer that groups them into segments.

use std::io::{self, Write};

/// The version that all readers know. Numbers are big-endian, and ids have 8 bytes.
pub(super) const MAGIC: &[u8] = b"JAVA PROFILE 1.0.2\0";
pub(super) const ID_BYTES: u32 = 8;

// Records of the file.
pub(super) const STRING: u8 = 0x01;
pub(super) const LOAD_CLASS: u8 = 0x02;
pub(super) const STACK_TRACE: u8 = 0x05;
const HEAP_SEGMENT: u8 = 0x1c;
const HEAP_END: u8 = 0x2c;

// Records of the heap.
pub(super) const ROOT_UNKNOWN: u8 = 0xff;
pub(super) const CLASS: u8 = 0x20;
pub(super) const INSTANCE: u8 = 0x21;
pub(super) const OBJECT_ARRAY: u8 = 0x22;
pub(super) const PRIMITIVE_ARRAY: u8 = 0x23;

// Types of fields.
pub(super) const OBJECT_TYPE: u8 = 2;
pub(super) const BOOLEAN_TYPE: u8 = 4;
pub(super) const CHAR_TYPE: u8 = 5;
pub(super) const DOUBLE_TYPE: u8 = 7;
pub(super) const INT_TYPE: u8 = 10;
pub(super) const LONG_TYPE: u8 = 11;

/// The only stack trace, which is empty: readers require one.
pub(super) const TRACE: u32 = 1;

/// The size beyond which a segment is written.
const SEGMENT_BYTES: usize = 1 << 22;

/// Appends numbers in the format's encoding.
pub(super) trait Put {
    fn u8(&mut self, number: u8) -> &mut Self;
    fn u16(&mut self, number: u16) -> &mut Self;
    fn u32(&mut self, number: u32) -> &mut Self;
    fn u64(&mut self, number: u64) -> &mut Self;
}

impl Put for Vec<u8> {
    fn u8(&mut self, number: u8) -> &mut Self {
        self.push(number);
        self
    }

    fn u16(&mut self, number: u16) -> &mut Self {
        self.extend_from_slice(&number.to_be_bytes());
        self
    }

    fn u32(&mut self, number: u32) -> &mut Self {
        self.extend_from_slice(&number.to_be_bytes());
        self
    }

    fn u64(&mut self, number: u64) -> &mut Self {
        self.extend_from_slice(&number.to_be_bytes());
        self
    }
}

/// Writes records of the file, and records of the heap in segments.
pub(super) struct HprofRecords<W: Write> {
    out: io::BufWriter<W>,
    segment: Vec<u8>,
}

impl<W: Write> HprofRecords<W> {
    pub(super) fn new(output: W) -> io::Result<Self> {
        let mut out = io::BufWriter::with_capacity(1 << 16, output);
        out.write_all(MAGIC)?;
        let mut header = Vec::new();
        header.u32(ID_BYTES).u64(0);
        out.write_all(&header)?;
        Ok(Self { out, segment: Vec::new() })
    }

    /// Writes a record of the file.
    pub(super) fn record(&mut self, tag: u8, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len())
            .map_err(|_| io::Error::other("record too large: expected less than 4 GiB"))?;
        let mut header = Vec::new();
        header.u8(tag).u32(0).u32(length);
        self.out.write_all(&header)?;
        self.out.write_all(body)
    }

    /// The current segment, for another record of the heap.
    pub(super) fn heap(&mut self) -> io::Result<&mut Vec<u8>> {
        if self.segment.len() >= SEGMENT_BYTES {
            self.end_segment()?;
        }
        Ok(&mut self.segment)
    }

    fn end_segment(&mut self) -> io::Result<()> {
        let mut segment = std::mem::take(&mut self.segment);
        self.record(HEAP_SEGMENT, &segment)?;
        segment.clear();
        self.segment = segment;
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.end_segment()?;
        self.record(HEAP_END, &[])?;
        self.out.flush()
    }
}
