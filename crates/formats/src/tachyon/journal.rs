//! Strings and frames beside incomplete samples, so that those keep their names whatever happens to their writer.
//!
//! A journal begins with [`JOURNAL_MAGIC`] and the first 64 bytes of the file that it belongs to. Blocks follow: the
//! number of new strings, the strings, the number of new frames, the frames, all encoded as in the tables of a file.
//! The names of a sample are in the journal before the sample is in the file.

use std::fmt;
use std::io::{self, Write};

use borehole_text::counted;
use borehole_wire::{Cursor, put_varint, write_out};

use super::layout::{ByteOrder, COMPRESSION_ZSTD, FileHeader, HEADER_BYTES, HeaderLayout};
use super::number::varint_u32;
use super::open::{FileParts, header_bytes, malformed};
use super::tables::{FileTables, NumberedFrames, NumberedStrings, put_string, read_frames, read_strings};
use crate::{Error, Recovery, Warning};

/// The first bytes of a journal.
pub const JOURNAL_MAGIC: [u8; 8] = *b"TACHDEFS";

/// Writes a journal.
pub(super) struct Journal {
    output: Box<dyn Write + Send>,
    /// Bytes that the output has not accepted yet: the rest of a block is written after its beginning.
    unwritten: Vec<u8>,
    /// The numbers of strings and frames already written or buffered.
    written: (usize, usize),
}

impl Journal {
    /// Begins the journal of the file that begins with `head`.
    pub(super) fn begin(mut output: Box<dyn Write + Send>, head: &[u8; HEADER_BYTES]) -> io::Result<Self> {
        output.write_all(&JOURNAL_MAGIC)?;
        output.write_all(head)?;
        output.flush()?;
        Ok(Self { output, unwritten: Vec::new(), written: (0, 0) })
    }

    /// Writes the definitions since the last call.
    pub(super) fn write_new(&mut self, strings: &NumberedStrings, frames: &NumberedFrames) -> io::Result<()> {
        let new_strings = strings.since(self.written.0);
        let new_frames = frames.since(self.written.1);
        if new_strings.len() > 0 || !new_frames.is_empty() {
            self.written.0 += new_strings.len();
            self.written.1 += new_frames.len();
            let block = &mut self.unwritten;
            put_varint(block, new_strings.len() as u64);
            new_strings.for_each(|string| put_string(block, string));
            put_varint(block, new_frames.len() as u64);
            new_frames.iter().for_each(|frame| frame.encode(block));
        }
        if self.unwritten.is_empty() {
            return Ok(());
        }
        write_out(&mut self.output, &mut self.unwritten)?;
        self.output.flush()
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("written", &self.written).finish_non_exhaustive()
    }
}

/// Opens `bytes`, the samples that a killed writer left, with the names in its journal.
///
/// # Errors
/// If the journal belongs to another file.
pub(super) fn open_unfinished<'a>(
    bytes: &'a [u8],
    journal: &'a [u8],
    recovery: &mut Recovery,
) -> Result<FileParts<'a>, Error> {
    let header = header(bytes, journal)?;
    let blocks = Cursor::new(&journal[HEAD_BYTES..], HEAD_BYTES as u64);
    let tables = read_blocks(blocks);
    recovery.warn(Warning::new(format!(
        "unfinished file: its writer was killed; read {} and {} from its journal",
        counted(tables.string_count() as u64, "string"),
        counted(tables.frame_count() as u64, "frame")
    )));
    Ok(FileParts {
        header,
        statistics: None,
        tables,
        samples: &bytes[HEADER_BYTES..],
        samples_offset: HEADER_BYTES as u64,
        is_zstd: header.compression == COMPRESSION_ZSTD,
        expected: None,
        has_tables: true,
    })
}

/// The length of the part before the blocks.
const HEAD_BYTES: usize = JOURNAL_MAGIC.len() + HEADER_BYTES;

/// The header of the samples, which equals that of the journal.
fn header(bytes: &[u8], journal: &[u8]) -> Result<FileHeader, Error> {
    let head = header_bytes(bytes)?;
    let belongs = journal.strip_prefix(&JOURNAL_MAGIC).is_some_and(|rest| rest.starts_with(head));
    let order = ByteOrder::of_magic(*head.first_chunk().expect("a header is longer"));
    match order.filter(|_| belongs) {
        Some(order) => Ok(FileHeader::decode(head, order, HeaderLayout::New)),
        None => Err(malformed(0, "the journal belongs to another file")),
    }
}

/// All complete strings and frames.
fn read_blocks(mut cursor: Cursor<'_>) -> FileTables<'_> {
    let (mut strings, mut frames) = (Vec::new(), Vec::new());
    while let Ok(count) = varint_u32(&mut cursor) {
        let new = read_strings(&mut cursor, count);
        strings.extend(new.rows);
        let count = if new.fault.is_none() { varint_u32(&mut cursor) } else { break };
        let Ok(count) = count else { break };
        let new = read_frames(&mut cursor, count);
        frames.extend(new.rows);
        if new.fault.is_some() {
            break;
        }
    }
    FileTables::new(strings, frames)
}
