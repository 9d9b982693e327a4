//! Recovers the contents of a damaged file.
//!
//! A killed profiler leaves a header of zeros, or samples without the tables after them; a truncated copy ends
//! anywhere. [`locate`] finds the sections from the remains of header and footer. Within the samples, a record that
//! cannot be read is skipped up to the next position that begins with the thread of an earlier record and continues
//! like samples.
//!
//! The names of a file that lost its tables can come from another run of the same program. Frames are numbered in order of
//! first use, so two runs that began alike numbered the same frames alike for as long as they ran alike. The shape of their
//! stacks shows how long that was: the caller and depth of each frame when it was first seen. Frames up to the first
//! difference are named; later names would be guesses.

use borehole_text::counted;
use borehole_wire::zstd::FRAME_MAGIC;
use borehole_wire::{Cursor, Effort};
use hashbrown::HashMap;
use memchr::memmem;

use super::layout::{
    ByteOrder, COMPRESSION_ZSTD, FOOTER_BYTES, FileHeader, Footer, HEADER_BYTES, HeaderLayout,
    RECORD_HEAD_BYTES, RUN_ENTRY_BYTES, RecordKind,
};
use super::open::{FileParts, TablesEnd, is_old, open};
use super::read::Reader;
use super::record::{RecordFields, longest_record, run_entry};
use super::region::{Region, frame_bytes};
use super::statistics::{
    OLD_STATISTICS_BYTES, STATISTICS_BYTES, STATISTICS_MAGIC, STATISTICS_TAIL_BYTES, Statistics,
};
use super::tables::{FileTables, MIN_FRAME_BYTES, read_frames, read_strings};
use super::threads::{ThreadState, Threads};
use crate::{Error, ReadOptions, Recovery, Warning};

/// Splits a file that may be damaged into its parts, as far as possible.
pub(super) fn open_damaged<'a>(bytes: &'a [u8], recovery: &mut Recovery) -> FileParts<'a> {
    match open(bytes, TablesEnd::BySection, recovery) {
        Ok(mut parts) => {
            correct_compression(&mut parts, recovery);
            parts
        }
        Err(error) => {
            *recovery = Recovery::default();
            locate(bytes, &error, recovery)
        }
    }
}

/// Detects the compression from the samples if it contradicts the header.
fn correct_compression(parts: &mut FileParts<'_>, recovery: &mut Recovery) {
    let is_record = begins_like_a_record(parts.samples, parts.header.byte_order);
    let looks_zstd = parts.samples.starts_with(&FRAME_MAGIC);
    let (said, found) = match parts.is_zstd {
        false if looks_zstd && !is_record => ("no compression", "a Zstandard stream"),
        true if is_record && !looks_zstd => ("a Zstandard stream", "no compression"),
        _ => return,
    };
    parts.is_zstd = !parts.is_zstd;
    let message = format!("expected {said}, found {found}");
    recovery.warn(Warning::new(message).at(parts.samples_offset));
}

/// Splits a damaged file into its parts. `error` is the error of strict reading.
fn locate<'a>(bytes: &'a [u8], error: &Error, recovery: &mut Recovery) -> FileParts<'a> {
    recovery.warn(Warning::of(error));
    let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else {
        recovery.warn(Warning::new("no samples are left").losing(bytes.len() as u64));
        return nothing();
    };
    let body = &bytes[HEADER_BYTES..];
    let known = header(head, bytes.len());
    let is_zstd = match known {
        _ if body.starts_with(&FRAME_MAGIC) => true,
        Some(header) => {
            header.compression == COMPRESSION_ZSTD && !begins_like_a_record(body, header.byte_order)
        }
        None => false,
    };
    let order = known.map_or_else(|| byte_order(body, is_zstd), |header| header.byte_order);
    let sections = Sections::find(bytes, known.as_ref(), order, is_zstd);
    let samples = &body[..sections.strings.saturating_sub(HEADER_BYTES).min(body.len())];
    let (tables, has_tables) = sections.tables(bytes);
    if !has_tables {
        let message = "missing tables: frames have numbers instead of names".to_owned();
        recovery.warn(Warning::new(message));
    }
    let mut header = known.unwrap_or(FileHeader { byte_order: order, ..FileHeader::default() });
    header.compression = u32::from(is_zstd);
    let expected = known.filter(|header| header.samples > 0).map(|header| (header.samples, header.threads));
    let statistics = sections.statistics(bytes, order);
    let samples_offset = HEADER_BYTES as u64;
    FileParts { header, statistics, tables, samples, samples_offset, is_zstd, expected, has_tables }
}

/// A file without any readable part.
fn nothing<'a>() -> FileParts<'a> {
    FileParts {
        header: FileHeader::default(),
        statistics: None,
        tables: FileTables::default(),
        samples: &[],
        samples_offset: 0,
        is_zstd: false,
        expected: None,
        has_tables: true,
    }
}

/// The header, if any part of it is credible: offsets that fit the file, or its magic number.
fn header(head: &[u8; HEADER_BYTES], file_bytes: usize) -> Option<FileHeader> {
    let magic = ByteOrder::of_magic(*head.first_chunk().expect("a header is longer"));
    let orders = magic.into_iter().chain(ByteOrder::ALL.iter().copied());
    let all = orders.flat_map(|order| {
        [HeaderLayout::New, HeaderLayout::Old].map(|layout| FileHeader::decode(head, order, layout))
    });
    let fits = |header: &FileHeader| match header.layout {
        HeaderLayout::New => header.is_consistent(file_bytes),
        HeaderLayout::Old => is_old(header, head, file_bytes),
    };
    // In the wrong layout the offsets are above 2³².
    let is_small = |header: &FileHeader| header.strings_offset.max(header.frames_offset) < 1 << 32;
    let of_magic = || all.clone().filter(|header| Some(header.byte_order) == magic);
    all.clone().find(fits).or_else(|| of_magic().find(is_small)).or_else(|| of_magic().next())
}

/// The byte order in which the first record has a thread number that a system would assign.
fn byte_order(body: &[u8], is_zstd: bool) -> ByteOrder {
    let mut region = if is_zstd { Region::zstd(body, 0) } else { Region::plain(body, 0) };
    region.ensure(RECORD_HEAD_BYTES);
    let begins = |order| begins_like_a_record(region.rest(), order);
    if !begins(ByteOrder::Little) && begins(ByteOrder::Big) { ByteOrder::Big } else { ByteOrder::Little }
}

/// Whether `bytes` begin with a thread as Linux, macOS and Windows number them, one of a few interpreters, and a kind
/// of record.
fn begins_like_a_record(bytes: &[u8], order: ByteOrder) -> bool {
    let Some((thread, interpreter, kind)) = record_head(bytes, order) else { return false };
    thread < 1 << 48 && interpreter < 1 << 16 && kind <= RecordKind::PopPush as u8
}

fn record_head(bytes: &[u8], order: ByteOrder) -> Option<(u64, u32, u8)> {
    let mut cursor = Cursor::new(bytes, 0);
    Some((order.u64(cursor.array().ok()?), order.u32(cursor.array().ok()?), cursor.u8().ok()?))
}

/// The sections of a damaged file, as far as they can be found.
struct Sections {
    /// The end of the samples.
    strings: usize,
    /// The start of the frames; `None` if it is unknown.
    frames: Option<usize>,
    /// The end of the tables.
    end: usize,
    statistics: Option<usize>,
    footer: Option<Footer>,
}

impl Sections {
    fn find(bytes: &[u8], header: Option<&FileHeader>, order: ByteOrder, is_zstd: bool) -> Self {
        let footer = find_footer(bytes, order);
        let file_end = footer.map_or(bytes.len(), |(at, _)| at);
        let statistics = find_statistics(&bytes[..file_end], order);
        let end = statistics.unwrap_or(file_end);
        let mut sections = Self {
            strings: bytes.len(),
            frames: None,
            end,
            statistics,
            footer: footer.map(|(_, footer)| footer),
        };
        let offset =
            |offset: u64| usize::try_from(offset).ok().filter(|&at| (HEADER_BYTES..=end).contains(&at));
        let said = header.and_then(|header| offset(header.strings_offset));
        let by_stream = || {
            let length = is_zstd.then(|| frame_bytes(&bytes[HEADER_BYTES..])).flatten();
            length.map(|length| HEADER_BYTES + length)
        };
        let fits = |at: &usize| sections.tables_fit(bytes, *at);
        let by_tables = || if is_zstd { None } else { sections.strings_by_tables(bytes, order) };
        let fitting = said.filter(fits).or_else(|| by_stream().filter(fits)).or_else(by_tables);
        if fitting.is_none() {
            let frames = header.and_then(|header| offset(header.frames_offset));
            sections.frames = frames.filter(|&at| Some(at) >= said);
        }
        let without_tables = if sections.footer.is_some() { end } else { bytes.len() };
        sections.strings = fitting.or(said).or_else(by_stream).unwrap_or(without_tables);
        sections
    }

    /// Whether the footer's numbers of strings and frames fill the bytes from `at` to the end of the tables.
    fn tables_fit(&self, bytes: &[u8], at: usize) -> bool {
        let Some(footer) = self.footer else { return false };
        let mut cursor = Cursor::new(bytes.get(at..self.end).unwrap_or_default(), 0);
        read_strings(&mut cursor, footer.strings).fault.is_none()
            && read_frames(&mut cursor, footer.frames).fault.is_none()
            && cursor.is_empty()
    }

    /// The start of the strings in a file without a header: after the record after which the tables fit.
    fn strings_by_tables(&self, bytes: &[u8], order: ByteOrder) -> Option<usize> {
        self.footer?;
        let mut boundaries = Boundaries::of(bytes, order, self.end);
        let mut effort = Effort::default();
        let end = self.end as u64;
        let tables_fit = |&at: &usize| {
            // Tables are read in vain up to their end, at worst.
            let may_look = effort.is_left(end);
            effort.work(end.saturating_sub(at as u64));
            may_look && self.tables_fit(bytes, at)
        };
        boundaries.0.make_contiguous().iter().rev().copied().find(tables_fit)
    }

    /// The tables, as far as they are present; and whether there are any.
    fn tables<'a>(&self, bytes: &'a [u8]) -> (FileTables<'a>, bool) {
        let all = bytes.get(self.strings..self.end).unwrap_or_default();
        if all.is_empty() && self.footer.is_none() {
            return (FileTables::default(), false);
        }
        // Either the start of the frames is known, or the number of strings before them.
        let border = self.frames.and_then(|at| at.checked_sub(self.strings)).filter(|&at| at <= all.len());
        let count = self.footer.map_or(u32::MAX, |footer| footer.strings);
        let (strings_bytes, count) = border.map_or((all, count), |at| (&all[..at], u32::MAX));
        let mut cursor = Cursor::new(strings_bytes, 0);
        let strings = read_strings(&mut cursor, count).rows;
        let frames_at = border.unwrap_or_else(|| all.len() - cursor.rest().len());
        let frames = match (border, self.footer) {
            (None, None) => Vec::new(),
            _ => read_frames(&mut Cursor::new(&all[frames_at..], 0), u32::MAX).rows,
        };
        let has_tables = !strings.is_empty() || self.footer.is_some();
        (FileTables::new(strings, frames), has_tables)
    }

    fn statistics(&self, bytes: &[u8], order: ByteOrder) -> Option<Statistics> {
        let start = self.statistics?;
        let length = memmem::find(&bytes[start..], &STATISTICS_MAGIC)? + STATISTICS_TAIL_BYTES;
        Statistics::decode(&bytes[start..start + length], order).filter(Statistics::is_valid)
    }
}

/// A footer whose position matches its file size: at the end, or before appended bytes.
fn find_footer(bytes: &[u8], order: ByteOrder) -> Option<(usize, Footer)> {
    let last = bytes.len().checked_sub(FOOTER_BYTES)?;
    (HEADER_BYTES..=last).rev().find_map(|at| {
        let [.., checksum] = bytes.get(at..at + FOOTER_BYTES)?.as_chunks::<16>().0 else { return None };
        let footer = Footer::decode(&mut Cursor::new(&bytes[at..], 0), order).ok()?;
        let ends_here = footer.file_bytes == (at + FOOTER_BYTES) as u64;
        let least = u64::from(footer.strings) + u64::from(footer.frames) * MIN_FRAME_BYTES as u64;
        // A number in the samples may equal its own position. The checksum is zeros so far.
        let fits = at == last || (*checksum == [0; 16] && least <= (at - HEADER_BYTES) as u64);
        (ends_here && fits).then_some((at, footer))
    })
}

/// The start of statistics whose mark is at the end of `bytes`, or further back if the end was cut off.
fn find_statistics(bytes: &[u8], order: ByteOrder) -> Option<usize> {
    let mark = memmem::rfind(bytes, &STATISTICS_MAGIC)?;
    let mut cursor = Cursor::new(&bytes[mark + STATISTICS_MAGIC.len()..], 0);
    let _version = cursor.array::<4>().ok()?;
    let size = usize::try_from(order.u32(cursor.array().ok()?)).ok()?;
    let is_whole = [STATISTICS_BYTES, OLD_STATISTICS_BYTES].contains(&size);
    (mark + STATISTICS_TAIL_BYTES).checked_sub(size).filter(|&start| is_whole && start >= HEADER_BYTES)
}

/// The ends of the last records before the position from which none can be read.
struct Boundaries(std::collections::VecDeque<usize>);

impl Boundaries {
    /// The number of ends kept. A string table is not expected to read like that many records.
    const KEPT: usize = 4096;

    fn of(bytes: &[u8], order: ByteOrder, end: usize) -> Self {
        let mut kept = std::collections::VecDeque::from([HEADER_BYTES]);
        let mut cursor = Cursor::new(bytes.get(HEADER_BYTES..end).unwrap_or_default(), HEADER_BYTES as u64);
        let mut added = Vec::new();
        while skip_record(&mut cursor, order, &mut added).is_some() {
            if kept.len() == Self::KEPT {
                kept.pop_front();
            }
            kept.push_back(usize::try_from(cursor.offset()).expect("it lies within a slice"));
        }
        Self(kept)
    }
}

/// Skips the record at the cursor, its run included.
fn skip_record(cursor: &mut Cursor<'_>, order: ByteOrder, added: &mut Vec<u32>) -> Option<RecordFields> {
    let record = RecordFields::decode(cursor, order, super::layout::MAX_DEPTH, added).ok()?;
    if record.kind == RecordKind::Repeat {
        if record.count as usize > cursor.rest().len() / 2 {
            return None;
        }
        for _ in 0..record.count {
            run_entry(cursor).ok()?;
        }
    }
    Some(record)
}

/// The flags of a status that have a meaning.
const KNOWN_STATUS: u8 = 0x3f;

/// The number of samples of a run that have to look valid before it is accepted.
const RUN_PROOF: usize = 64;

impl Reader<'_> {
    /// Whether the bytes from `start` in the window to the end read like samples of a run.
    pub(super) fn run_reaches_the_end(&self, start: usize) -> bool {
        let mut cursor = Cursor::new(self.region.rest().get(start..).unwrap_or_default(), 0);
        for _ in 0..RUN_PROOF {
            match run_entry(&mut cursor) {
                Ok((delta_us, status)) if is_believable(delta_us, status) => {}
                Ok(_) => return false,
                Err(_) => return cursor.rest().len() < RUN_ENTRY_BYTES,
            }
        }
        true
    }

    /// Skips bytes that are not a record, with a warning.
    pub(super) fn pass_over(&mut self, message: String, offset: u64) {
        let start = self.region.offset();
        self.effort.work(Effort::PER_DAMAGE + ROW_BYTES * self.threads.len() as u64);
        let head = record_head(self.region.rest(), self.header.byte_order);
        let owner = head.map(|(thread, interpreter, _)| (thread, interpreter));
        let owner = owner.filter(|&(thread, interpreter)| self.threads.contains(thread, interpreter));
        let is_last = !self.find_record();
        let lost = self.region.offset() - start;
        self.warn(offset, lost, message);
        if is_last {
            return;
        }
        // A short gap that begins with a thread is a record of that thread; a longer one may belong to all.
        let is_short = lost <= longest_record(super::layout::MAX_DEPTH) as u64;
        let touched = self.threads.lose_stacks(owner.filter(|_| is_short));
        // Times are reported as early for all threads that may have a record in the gap.
        self.threads.note_hole(offset, owner.filter(|_| lost < LEAST_FOR_TWO));
        let resumed = self.region.offset();
        let message =
            format!("resumed: {touched} of the threads lack outer frames until their next full stack");
        self.warn(resumed, 0, message);
        self.early_times_at.get_or_insert(self.recovery.warnings.len());
    }

    /// Warns of samples with early times, directly after the warning of the first damage: so it is never among the
    /// warnings that are too many to be kept.
    pub(super) fn warn_of_early_times(&mut self) {
        let Some(at) = self.early_times_at.take() else { return };
        let early = early_times(&self.threads);
        let Recovery { warnings, more_warnings, .. } = &mut self.recovery;
        let at = at.min(Recovery::MAX_WARNINGS - early.len()).min(warnings.len());
        warnings.splice(at..at, early);
        *more_warnings += warnings.len().saturating_sub(Recovery::MAX_WARNINGS) as u64;
        warnings.truncate(Recovery::MAX_WARNINGS);
    }

    /// Warns of possibly wrong times in a file whose samples read well to the end, but are too few.
    pub(super) fn warn_of_missing_samples(&mut self) {
        let Some((expected, _)) = self.expected.filter(|_| self.has_tables) else { return };
        let missing = expected.saturating_sub(self.recovery.samples);
        // If damage has been skipped, other warnings report the early times.
        if missing > 0 && self.early_times_at.is_none() {
            let message =
                format!("times after the {missing} missing samples may be early by an unknown time");
            self.recovery.warn(Warning::new(message));
        }
    }

    /// Advances to the next position that reads like a record; returns whether there is one.
    fn find_record(&mut self) -> bool {
        let look_ahead = 4 * longest_record(super::layout::MAX_DEPTH);
        let mut at = 1;
        loop {
            self.region.ensure(look_ahead);
            let rest = self.region.rest().len();
            let last = if self.region.has_ended() { rest } else { rest.saturating_sub(look_ahead / 2) };
            while at < last {
                if self.effort.is_left(self.region.offset() + at as u64) && self.reads_like_samples(at) {
                    self.region.consume(at);
                    return true;
                }
                at += 1;
            }
            if self.region.has_ended() {
                self.region.consume(rest);
                return false;
            }
            self.region.consume(at.min(rest).saturating_sub(1));
            at = 1;
        }
    }

    /// Whether the bytes `at` bytes into the window are a record of a known thread, or begin a chain of records of an
    /// unknown one.
    fn reads_like_samples(&mut self, at: usize) -> bool {
        let order = self.header.byte_order;
        let bytes = self.region.rest().get(at..).unwrap_or_default();
        if bytes.get(RECORD_HEAD_BYTES - 1).is_none_or(|&kind| kind > RecordKind::PopPush as u8) {
            return false;
        }
        let Some((thread, interpreter, _)) = record_head(bytes, order) else { return false };
        let is_known = self.threads.contains(thread, interpreter);
        let links = if is_known { 1 } else { CHAIN };
        let mut added = std::mem::take(&mut self.added);
        let mut cursor = Cursor::new(bytes, 0);
        let reads = (is_known || begins_like_a_record(bytes, order))
            && (0..links).all(|_| {
                let record = believable(&mut cursor, order, is_known, &mut added);
                let is_named = !self.has_tables || self.tables.first_bad(&added).is_none();
                record.is_some_and(|found| {
                    is_named && (found.thread, found.interpreter) == (thread, interpreter)
                })
            });
        self.effort.spend(self.region.offset() + at as u64, cursor.offset() + added.len() as u64);
        self.added = added;
        reads
    }
}

/// The shortest gap that begins with a thread and holds a whole record of another: head, count, time and status of a
/// run.
const LEAST_FOR_TWO: u64 = 2 * RECORD_HEAD_BYTES as u64 + 3;

/// The number of threads with early times that are named; the others are counted.
const NAMED_THREADS: usize = 8;

/// The warnings about the threads with early times.
fn early_times(threads: &Threads) -> Vec<Warning> {
    let mut said = Vec::new();
    let (mut others, mut behind_others) = (0_u64, 0_u64);
    for (thread, hole, behind) in threads.early() {
        if said.len() == NAMED_THREADS {
            others += 1;
            behind_others = behind_others.saturating_add(behind);
            continue;
        }
        let ThreadState { id, interpreter, .. } = *thread;
        let interpreter =
            if interpreter > 0 { format!(" in interpreter {interpreter}") } else { String::new() };
        let message = format!(
            "times of {behind} samples of thread {id}{interpreter} after the damage at byte {} are early by an unknown \
             time",
            hole.offset
        );
        said.push(Warning::new(message));
    }
    if others > 0 {
        let message = format!(
            "times of {behind_others} samples of {others} more threads after the damage are early by an unknown time"
        );
        said.push(Warning::new(message));
    }
    said
}

/// The record at the cursor, if it is credible. Only the beginning of a run is checked, and where more has to follow, a
/// long run proves nothing.
fn believable(
    cursor: &mut Cursor<'_>,
    order: ByteOrder,
    is_last: bool,
    added: &mut Vec<u32>,
) -> Option<RecordFields> {
    let record = RecordFields::decode(cursor, order, super::layout::MAX_DEPTH, added).ok()?;
    if record.kind == RecordKind::Repeat {
        let entries = (record.count as usize).min(RUN_PROOF);
        for _ in 0..entries {
            let (delta_us, status) = run_entry(cursor).ok()?;
            is_believable(delta_us, status).then_some(())?;
        }
        return (is_last || record.count as usize == entries).then_some(record);
    }
    is_believable(record.delta_us, record.status).then_some(record)
}

/// The number of bytes that could be examined in the time that damage takes to be noted in the row of a thread.
const ROW_BYTES: u64 = 4;

/// The number of consecutive records that an unknown thread needs.
const CHAIN: usize = 3;

/// Whether less than two weeks have passed since the last sample, and all flags are known.
const fn is_believable(delta_us: u64, status: u8) -> bool {
    delta_us < 1 << 40 && status & !KNOWN_STATUS == 0
}

/// The caller and depth of each frame when it was first seen.
type CallShape = HashMap<u32, (Option<u32>, usize)>;

impl<'a> Reader<'a> {
    /// Takes strings and frames from `sibling`, the whole file of another run of the same program, if this file has
    /// lost its own: `bytes` is this file. A warning reports what was borrowed.
    ///
    /// # Errors
    /// If the sibling cannot be read.
    pub fn borrow_tables(&mut self, bytes: &[u8], sibling: &'a [u8]) -> Result<(), Error> {
        if self.has_tables {
            self.recovery.warn(Warning::new("no names borrowed: this file has its own tables"));
            return Ok(());
        }
        let lender = Reader::new(sibling)?;
        let tables = lender.tables().clone();
        let theirs = shape(lender)?;
        let ours = shape(Reader::with_options(bytes, ReadOptions::lenient())?)?;
        let count = alike(&ours, &theirs, tables.frame_count());
        let named = ours.keys().filter(|&&frame| (frame as usize) < count).count();
        let message = format!(
            "names borrowed from another file for {named} of {}: those before the first difference between the stacks",
            counted(ours.len() as u64, "frame")
        );
        self.recovery.warn(Warning::new(message));
        let FileTables { strings, mut frames, .. } = tables;
        frames.truncate(count);
        self.tables = FileTables::new(strings, frames);
        Ok(())
    }
}

fn shape(mut reader: Reader<'_>) -> Result<CallShape, Error> {
    let mut shape = CallShape::new();
    while let Some(sample) = reader.next_sample()? {
        for depth in sample.kept..sample.frames_root_first.len() {
            let caller = depth.checked_sub(1).map(|caller| sample.frames_root_first[caller]);
            shape.entry(sample.frames_root_first[depth]).or_insert((caller, depth));
        }
    }
    Ok(shape)
}

/// The number of frames, from the first on, that were first seen alike or not seen in the damaged file.
fn alike(ours: &CallShape, theirs: &CallShape, frames: usize) -> usize {
    let differs = |frame: &u32| ours.get(frame).is_some_and(|seen| theirs.get(frame) != Some(seen));
    let first = (0..).take(frames).find(differs);
    first.map_or(frames, |frame| frame as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 256 << 10;

    /// The header of a killed profiler, and a record of an empty stack of thread 0.
    fn beginning() -> Vec<u8> {
        [&[0; HEADER_BYTES][..], &[0; RECORD_HEAD_BYTES - 1], &[1, 0, 0, 0]].concat()
    }

    /// The number of bytes examined in vain, per byte of a file.
    fn looked_at(bytes: &[u8]) -> f64 {
        let mut reader = Reader::with_options(bytes, ReadOptions::lenient()).unwrap();
        while reader.next_sample().unwrap().is_some() {}
        assert!(reader.recovery().lost_bytes > 0);
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let ratio = reader.effort.spent().saturating_sub(Effort::START) as f64 / bytes.len() as f64;
        ratio
    }

    #[test]
    fn no_input_is_looked_at_more_often_than_so() {
        let head = [0; RECORD_HEAD_BYTES - 1];
        let pieces: [(&str, Vec<u8>); 3] = [
            ("records in records", [&head[..], &[1, 0, 0, 0x80, 0x08]].concat()),
            ("heads of unknown kinds", [&head[..], &[9]].concat()),
            ("runs in runs", [&head[..], &[0, 0xff, 0x7f]].concat()),
        ];
        for (name, piece) in pieces {
            let mut bytes = beginning();
            while bytes.len() < LEN {
                bytes.extend_from_slice(&piece);
            }
            let ratio = looked_at(&bytes);
            assert!(ratio <= 2.0 * Effort::PER_BYTE as f64 + 2.0, "{name}: {ratio}");
        }
    }

    #[test]
    fn damage_is_not_noted_in_every_row_again_and_again() {
        let mut bytes = beginning();
        for thread in 0..LEN as u64 / 32 {
            let record = [&thread.to_le_bytes()[..], &[0, 0, 0, 0, 1, 0, 0, 0], &[0xff; 3]].concat();
            bytes.extend_from_slice(&record);
        }
        let ratio = looked_at(&bytes);
        // One more damage is noted in every row.
        assert!(ratio <= 2.0 * Effort::PER_BYTE as f64 + 4.0, "{ratio}");
    }
}
