//! Finds a file's parts from its header and footer.
//!
//! Input that CPython rejects is an error here. Faults that it ignores, although the specification makes them detectable,
//! are warnings.

use borehole_wire::Cursor;

use super::NAME;
use super::layout::{
    ByteOrder, COMPRESSION_NONE, COMPRESSION_ZSTD, FOOTER_BYTES, FileHeader, Footer, HEADER_BYTES,
    HeaderLayout, VERSION,
};
use super::statistics::{
    OLD_STATISTICS_BYTES, STATISTICS_BYTES, STATISTICS_TAIL_BYTES, STATISTICS_VERSION, Statistics, Tail,
};
use super::tables::{DecodedRows, FileTables, MIN_FRAME_BYTES, read_frames, read_strings};
use crate::{Error, ErrorKind, Position, Recovery, Warning};

/// The parts of a file. The samples are still encoded.
#[derive(Debug)]
pub(super) struct FileParts<'a> {
    pub(super) header: FileHeader,
    pub(super) statistics: Option<Statistics>,
    pub(super) tables: FileTables<'a>,
    /// The sample region, with its offset.
    pub(super) samples: &'a [u8],
    pub(super) samples_offset: u64,
    pub(super) is_zstd: bool,
    /// The expected numbers of samples and threads; `None` if the header cannot be trusted.
    pub(super) expected: Option<(u64, u32)>,
    /// Whether the file has tables.
    pub(super) has_tables: bool,
}

/// The criterion for the end of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TablesEnd {
    /// The count in the footer, as in CPython.
    ByCount,
    /// The start of the next section.
    BySection,
}

/// Splits `bytes` into its parts.
///
/// # Errors
/// Those of CPython.
pub(super) fn open<'a>(
    bytes: &'a [u8],
    tables_end: TablesEnd,
    recovery: &mut Recovery,
) -> Result<FileParts<'a>, Error> {
    let header = header(bytes)?;
    check_header(&header, bytes.len(), recovery)?;
    let footer_offset = bytes.len().saturating_sub(FOOTER_BYTES);
    let footer = footer(bytes, footer_offset, header.byte_order)?;
    check_footer(&header, &footer, bytes.len())?;
    let (statistics, end) = statistics(bytes, footer_offset, header.byte_order)?;
    let tables = match tables_end {
        TablesEnd::ByCount => tables(bytes, &header, &footer, end, recovery)?,
        TablesEnd::BySection => whole_tables(bytes, &header, &footer, end, recovery)?,
    };
    if footer.file_bytes != bytes.len() as u64 {
        let message = format!("expected a file of {} bytes, found {}", footer.file_bytes, bytes.len());
        recovery.warn(Warning::new(message).at(footer_offset as u64 + 8));
    }
    let samples = &bytes[HEADER_BYTES..index(header.strings_offset)];
    Ok(FileParts {
        header,
        statistics,
        tables,
        samples,
        samples_offset: HEADER_BYTES as u64,
        is_zstd: header.compression == COMPRESSION_ZSTD,
        expected: Some((header.samples, header.threads)),
        has_tables: true,
    })
}

/// An offset that is known to lie within a slice.
pub(super) fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("it lies within a slice")
}

pub(super) fn malformed(offset: usize, message: impl Into<String>) -> Error {
    Error::malformed(NAME, Position::Byte(offset as u64), message)
}

/// The bytes of the header.
pub(super) fn header_bytes(bytes: &[u8]) -> Result<&[u8; HEADER_BYTES], Error> {
    bytes.first_chunk().ok_or_else(|| {
        let message = format!("expected a header of {HEADER_BYTES} bytes, found {} bytes", bytes.len());
        Error::truncated(NAME, Position::Byte(bytes.len() as u64), message)
    })
}

/// The header in the layout in which it is consistent; in the new one if in neither.
fn header(bytes: &[u8]) -> Result<FileHeader, Error> {
    let head = header_bytes(bytes)?;
    let magic = *head.first_chunk().expect("a header is longer");
    let Some(order) = ByteOrder::of_magic(magic) else {
        let message = format!("expected the magic number TACH in either byte order, found {magic:02x?}");
        return Err(malformed(0, message));
    };
    let new = FileHeader::decode(head, order, HeaderLayout::New);
    let old = FileHeader::decode(head, order, HeaderLayout::Old);
    let is_old = !new.is_consistent(bytes.len()) && is_old(&old, head, bytes.len());
    Ok(if is_old { old } else { new })
}

/// Whether a header is consistent in the old layout, in which eight bytes are reserved.
pub(super) fn is_old(old: &FileHeader, head: &[u8; HEADER_BYTES], file_bytes: usize) -> bool {
    old.is_consistent(file_bytes) && old.compression <= COMPRESSION_ZSTD && head[56..] == [0; 8]
}

/// The positions of the offsets in the header, for messages.
pub(super) const fn offset_fields(layout: HeaderLayout) -> [usize; 2] {
    match layout {
        HeaderLayout::New => [40, 48],
        HeaderLayout::Old => [36, 44],
    }
}

fn check_header(header: &FileHeader, file_bytes: usize, recovery: &mut Recovery) -> Result<(), Error> {
    if header.version != VERSION {
        let [major, minor, micro] = header.python;
        let found = header.version;
        let message = format!(
            "unsupported version: expected {VERSION}, found {found} (Python {major}.{minor}.{micro})"
        );
        return Err(Error::new(ErrorKind::Unsupported, NAME, Position::Byte(4), message));
    }
    if header.config.mode_number() as usize > super::layout::Config::MODES.len() {
        let found = header.config.mode_number();
        return Err(malformed(60, format!("expected a profiling mode of 0 to 5, found {found}")));
    }
    let [strings_at, frames_at] = offset_fields(header.layout);
    let sections = [
        (strings_at, "strings", header.strings_offset, HEADER_BYTES as u64),
        (frames_at, "frames", header.frames_offset, header.strings_offset),
    ];
    for (at, what, found, least) in sections {
        if found < least || found > file_bytes as u64 {
            let message =
                format!("expected the {what} between bytes {least} and {file_bytes}, found them at {found}");
            return Err(malformed(at, message));
        }
    }
    if ![COMPRESSION_NONE, COMPRESSION_ZSTD].contains(&header.compression) {
        // CPython reads any value but 1 as no compression.
        let message =
            format!("expected compression 0 or 1, found {}; read as uncompressed", header.compression);
        recovery.warn(Warning::new(message).at(frames_at as u64 + 8));
    }
    Ok(())
}

fn footer(bytes: &[u8], at: usize, order: ByteOrder) -> Result<Footer, Error> {
    let mut cursor = Cursor::new(&bytes[at..], at as u64);
    Footer::decode(&mut cursor, order)
        .map_err(|error| Error::truncated(NAME, Position::Byte(error.offset()), "expected a footer"))
}

/// Rejects counts of strings and frames that exceed the bytes of the file, before any allocation.
fn check_footer(header: &FileHeader, footer: &Footer, file_bytes: usize) -> Result<(), Error> {
    let at = file_bytes - FOOTER_BYTES;
    let behind = |offset: u64| file_bytes as u64 - offset;
    let (strings, frames) = (u64::from(footer.strings), u64::from(footer.frames));
    let most = behind(header.strings_offset);
    if strings > most {
        return Err(malformed(at, format!("expected at most {most} strings, found a count of {strings}")));
    }
    let most = behind(header.frames_offset) / MIN_FRAME_BYTES as u64;
    if frames > most {
        return Err(malformed(at + 4, format!("expected at most {most} frames, found a count of {frames}")));
    }
    Ok(())
}

/// The statistics before the footer, if there are any, and the end of the tables.
fn statistics(
    bytes: &[u8],
    footer_offset: usize,
    order: ByteOrder,
) -> Result<(Option<Statistics>, usize), Error> {
    let before = &bytes[..footer_offset];
    let Some(tail) = Tail::at_end_of(before, order) else { return Ok((None, footer_offset)) };
    if tail.version != STATISTICS_VERSION {
        // A future form, of which only the size can be used.
        let size = usize::try_from(tail.size).ok().filter(|&size| size >= STATISTICS_TAIL_BYTES);
        let start = size.and_then(|size| footer_offset.checked_sub(size));
        return Ok((None, start.unwrap_or(footer_offset)));
    }
    let size = usize::try_from(tail.size).unwrap_or(usize::MAX);
    let start = footer_offset.checked_sub(size).filter(|_| size >= OLD_STATISTICS_BYTES);
    let Some(start) = start else {
        let message = format!("expected statistics of {STATISTICS_BYTES} bytes, found a size of {size}");
        return Err(malformed(footer_offset - 4, message));
    };
    let found = Statistics::decode(&before[start..], order).filter(Statistics::is_valid);
    match found {
        Some(statistics) => Ok((Some(statistics), start)),
        None => Err(malformed(start, "invalid statistics: expected finite numbers")),
    }
}

fn tables<'a>(
    bytes: &'a [u8],
    header: &FileHeader,
    footer: &Footer,
    tables_end: usize,
    recovery: &mut Recovery,
) -> Result<FileTables<'a>, Error> {
    let section = |offset: u64| Cursor::new(&bytes[index(offset)..], offset);
    let mut cursor = section(header.strings_offset);
    let strings = whole("strings", read_strings(&mut cursor, footer.strings))?;
    check_end("strings", &cursor, header.frames_offset, recovery);
    let mut cursor = section(header.frames_offset);
    let frames = whole("frames", read_frames(&mut cursor, footer.frames))?;
    check_end("frames", &cursor, tables_end as u64, recovery);
    Ok(FileTables::new(strings, frames))
}

/// The tables up to the next sections, if they hold more than the counts say.
fn whole_tables<'a>(
    bytes: &'a [u8],
    header: &FileHeader,
    footer: &Footer,
    end: usize,
    recovery: &mut Recovery,
) -> Result<FileTables<'a>, Error> {
    let (strings_at, frames_at) = (index(header.strings_offset), index(header.frames_offset));
    let frames_bytes = bytes.get(frames_at..end).unwrap_or_default();
    let strings = read_strings(&mut Cursor::new(&bytes[strings_at..frames_at], 0), u32::MAX).rows;
    let frames = read_frames(&mut Cursor::new(frames_bytes, 0), u32::MAX).rows;
    if strings.len() < footer.strings as usize || frames.len() < footer.frames as usize {
        // The rest is where CPython expects it, or nowhere.
        return tables(bytes, header, footer, end, recovery);
    }
    for (what, count, found) in
        [("strings", footer.strings, strings.len()), ("frames", footer.frames, frames.len())]
    {
        if count as usize != found {
            let message = format!("expected {count} {what}, found {found}");
            recovery.warn(Warning::new(message).at(end as u64));
        }
    }
    Ok(FileTables::new(strings, frames))
}

fn whole<T>(what: &str, read: DecodedRows<T>) -> Result<Vec<T>, Error> {
    let Some(fault) = read.fault else { return Ok(read.rows) };
    let message = format!("expected {what}: {}", fault.message());
    Err(Error::truncated(NAME, Position::Byte(fault.offset()), message))
}

/// Compares the end of a table with its expected end. CPython reads tables until the counts are reached, wherever that
/// is.
fn check_end(what: &str, cursor: &Cursor<'_>, end: u64, recovery: &mut Recovery) {
    let found = cursor.offset();
    if found != end {
        let message = format!("expected the {what} to end at byte {end}, found their end at {found}");
        recovery.warn(Warning::new(message).at(found.min(end)));
    }
}
