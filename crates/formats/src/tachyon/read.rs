//! Samples, pulled in order.

use borehole_wire::{Cursor, Effort};

use super::NAME;
use super::journal::open_unfinished;
use super::layout::{FileHeader, HEADER_BYTES, MAX_DEPTH, RUN_ENTRY_BYTES, RecordKind};
use super::open::{FileParts, TablesEnd, open};
use super::record::{RecordFault, RecordFields, longest_record, run_entry};
use super::recover::open_damaged;
use super::region::Region;
use super::statistics::Statistics;
use super::tables::FileTables;
use super::threads::Threads;
use crate::{Error, ErrorKind, Position, ReadOptions, Recovery, Warning, WarningKind};

/// The deepest stack accepted when damage is skipped: the maximum of CPython's unwinder.
///
/// Source: CPython 3.15.2, the limit of the live sampler.
const MAX_LENIENT_DEPTH: usize = 1536;

/// Reads the samples of a file, in the order of the file. The samples of one thread are in the order of time; those of
/// different threads are not, because runs of equal stacks are written when they end.
///
/// Input that CPython rejects is an error, after all samples before it. Faults that it ignores, although the
/// specification makes them detectable, are warnings in [`Reader::recovery`]. With lenient options only a limit is an
/// error.
///
/// Compressed samples go through a window of fixed size. Nothing is allocated per sample. Offsets in the sample region
/// count decompressed bytes.
pub struct Reader<'a> {
    pub(super) header: FileHeader,
    pub(super) tables: FileTables<'a>,
    pub(super) region: Region<'a>,
    pub(super) threads: Threads,
    pub(super) options: ReadOptions,
    pub(super) recovery: Recovery,
    pub(super) has_tables: bool,
    /// The frames that the current record adds.
    pub(super) added: Vec<u32>,
    statistics: Option<Statistics>,
    /// The number of warnings before those about early times; `None` if no damage has been skipped.
    pub(super) early_times_at: Option<usize>,
    /// The bytes that the search behind damage has examined.
    pub(super) effort: Effort,
    /// The numbers of samples and threads in the header.
    pub(super) expected: Option<(u64, u32)>,
    counts: RecordKindCounts,
    run: ThreadRun,
    ended: bool,
}

/// A sample: the stack of a thread at a time.
#[derive(Clone, Copy, Debug)]
pub struct ThreadSample<'r> {
    /// The index of its pair of thread and interpreter, 0-based, in the order of their first records.
    pub thread_index: usize,
    /// The thread's number in the operating system.
    pub thread: u64,
    /// The interpreter within the process.
    pub interpreter: u32,
    /// The time, on the clock of [`FileHeader::start_us`].
    pub time_us: u64,
    /// The state of the thread, as flags.
    pub status: u8,
    /// The stack, as numbers of frames, the root first. [`LOST_FRAME`](super::LOST_FRAME) marks frames lost in damage.
    pub frames_root_first: &'r [u32],
    /// The number of outer frames shared with the thread's previous sample. The others are new.
    pub kept: usize,
    /// The tables that the frames' numbers refer to.
    pub tables: &'r FileTables<'r>,
}

/// The number of records of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordKindCounts {
    /// By [`RecordKind`].
    pub records: [u64; 4],
    /// The number of samples in runs.
    pub run_samples: u64,
}

/// The run that is being read.
#[derive(Clone, Copy, Default)]
struct ThreadRun {
    thread: usize,
    left: u32,
}

/// A sample without its borrows.
///
/// It repeats values just written to the thread's row: reading them there, next to older ones, would wait until the
/// write has finished.
struct Turn {
    thread: usize,
    time_us: u64,
    status: u8,
    kept: usize,
    depth: usize,
}

/// The result of a step.
enum ReadStep {
    Sample(Turn),
    /// No sample yet.
    Again,
    End,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, a whole file, strictly.
    ///
    /// # Errors
    /// If header, tables or footer are invalid.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::with_options(bytes, ReadOptions::default())
    }

    /// Reads `bytes`, a whole file, with `options`.
    ///
    /// # Errors
    /// If header, tables or footer are invalid, unless damage is skipped.
    pub fn with_options(bytes: &'a [u8], options: ReadOptions) -> Result<Self, Error> {
        let mut recovery = Recovery::default();
        let parts = if options.is_lenient() {
            open_damaged(bytes, &mut recovery)
        } else {
            open(bytes, TablesEnd::ByCount, &mut recovery)?
        };
        let checked = options.limits.check(parts.tables.held_bytes());
        checked.map_err(|over| Error::memory(NAME, Position::Byte(parts.header.strings_offset), over))?;
        Ok(Self::of_parts(parts, options, recovery))
    }

    /// Reads `bytes`, the spool of a [`Writer`](super::Writer) that was killed, with the strings and frames of its
    /// journal. With strict options such a file counts as damaged.
    ///
    /// # Errors
    /// If the journal belongs to another file, and those of [`Reader::with_options`].
    pub fn with_journal(bytes: &'a [u8], journal: &'a [u8], options: ReadOptions) -> Result<Self, Error> {
        if !options.is_lenient() {
            return Self::with_options(bytes, options);
        }
        let mut recovery = Recovery::default();
        let parts = open_unfinished(bytes, journal, &mut recovery)?;
        Ok(Self::of_parts(parts, options, recovery))
    }

    fn of_parts(parts: FileParts<'a>, options: ReadOptions, recovery: Recovery) -> Self {
        let FileParts { header, statistics, tables, samples, samples_offset, is_zstd, expected, has_tables } =
            parts;
        let mut region = if is_zstd {
            Region::zstd(samples, samples_offset)
        } else {
            Region::plain(samples, samples_offset)
        };
        if !options.is_lenient() {
            region.refuse_leading_skippable_frame();
        }
        Self {
            header,
            tables,
            region,
            threads: Threads::default(),
            options,
            recovery,
            has_tables,
            added: Vec::with_capacity(MAX_DEPTH),
            statistics,
            early_times_at: None,
            effort: Effort::default(),
            expected,
            counts: RecordKindCounts::default(),
            run: ThreadRun::default(),
            ended: false,
        }
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The profiler's statistics about its own work.
    #[must_use]
    pub const fn statistics(&self) -> Option<&Statistics> {
        self.statistics.as_ref()
    }

    /// The strings and frames.
    #[must_use]
    pub const fn tables(&self) -> &FileTables<'a> {
        &self.tables
    }

    /// The number of pairs of thread and interpreter so far.
    #[must_use]
    pub const fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// The numbers of records so far.
    #[must_use]
    pub const fn record_counts(&self) -> &RecordKindCounts {
        &self.counts
    }

    /// The length of the samples in the file, and the part of it decompressed so far, in bytes; `None` if they are not
    /// compressed.
    #[must_use]
    pub const fn compressed_bytes(&self) -> Option<(u64, u64)> {
        let begins = HEADER_BYTES as u64;
        let stored = self.header.strings_offset.saturating_sub(begins);
        let decompressed = self.region.offset().saturating_sub(begins);
        if self.region.is_compressed() { Some((stored, decompressed)) } else { None }
    }

    /// The number of bytes of the file, from its beginning, that have been read; the tables come after them.
    #[must_use]
    pub fn passed_bytes(&self) -> usize {
        self.region.passed_bytes()
    }

    /// The numbers of records read so far, and the warnings.
    #[must_use]
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The numbers of records read, and the warnings.
    #[must_use]
    pub fn into_recovery(self) -> Recovery {
        self.recovery
    }

    /// The next sample; `None` at the end, and after an error.
    ///
    /// # Errors
    /// If the samples contradict the format. All samples before that position have been returned. With lenient options
    /// only a limit is an error.
    #[inline]
    pub fn next_sample(&mut self) -> Result<Option<ThreadSample<'_>>, Error> {
        if self.ended {
            return Ok(None);
        }
        loop {
            let step = if self.run.left > 0 { self.run_sample() } else { self.record() };
            match step {
                Ok(ReadStep::Sample(turn)) => {
                    self.recovery.samples += 1;
                    let is_new = std::mem::take(&mut self.threads.row_mut(turn.thread).is_new);
                    let kept = if is_new { 0 } else { turn.kept };
                    return Ok(Some(self.sample(&Turn { kept, ..turn })));
                }
                Ok(ReadStep::Again) => {}
                Ok(ReadStep::End) => {
                    self.ended = true;
                    self.warn_of_early_times();
                    return Ok(None);
                }
                Err(error) => {
                    self.ended = true;
                    return Err(error);
                }
            }
        }
    }

    #[inline]
    fn sample(&self, turn: &Turn) -> ThreadSample<'_> {
        let row = self.threads.row(turn.thread);
        ThreadSample {
            thread_index: turn.thread,
            thread: row.id,
            interpreter: row.interpreter,
            time_us: turn.time_us,
            status: turn.status,
            frames_root_first: &row.stack[..turn.depth],
            kept: turn.kept,
            tables: &self.tables,
        }
    }

    pub(super) const fn max_depth(&self) -> usize {
        if self.options.is_lenient() { MAX_LENIENT_DEPTH } else { MAX_DEPTH }
    }

    /// Reads one sample of the current run.
    #[inline]
    fn run_sample(&mut self) -> Result<ReadStep, Error> {
        self.region.ensure(RUN_ENTRY_BYTES);
        let offset = self.region.offset();
        let mut cursor = Cursor::new(self.region.rest(), offset);
        match run_entry(&mut cursor) {
            Ok((delta_us, status)) => {
                let length = self.region.rest().len() - cursor.rest().len();
                self.region.consume(length);
                self.run.left -= 1;
                self.counts.run_samples += 1;
                let thread = self.run.thread;
                let row = self.threads.row_mut(thread);
                let (time_us, depth) = (row.time_us.wrapping_add(delta_us), row.stack.len());
                row.time_us = time_us;
                row.samples += 1;
                Ok(ReadStep::Sample(Turn { thread, time_us, status, kept: depth, depth }))
            }
            Err(fault) => self.broken_run(RecordFault::Number(fault), offset),
        }
    }

    #[cold]
    fn broken_run(&mut self, fault: RecordFault, offset: u64) -> Result<ReadStep, Error> {
        let left = std::mem::take(&mut self.run.left);
        let at = fault.offset(offset);
        let message = format!("{}, {left} samples before the end of a run", fault.message());
        self.threads.row_mut(self.run.thread).note_hole(at);
        self.broken(message, at, fault.is_truncated())
    }

    /// Reads the next record.
    #[inline]
    fn record(&mut self) -> Result<ReadStep, Error> {
        let most = self.max_depth();
        self.region.ensure(longest_record(most));
        let offset = self.region.offset();
        let mut cursor = Cursor::new(self.region.rest(), offset);
        if cursor.is_empty() {
            return self.end();
        }
        match RecordFields::decode(&mut cursor, self.header.byte_order, most, &mut self.added) {
            Ok(record) => {
                let length = self.region.rest().len() - cursor.rest().len();
                if record.kind == RecordKind::Repeat {
                    self.begin_run(&record, offset, length)
                } else {
                    self.new_stack(&record, offset, length)
                }
            }
            Err(fault) => self.broken(fault.message(), fault.offset(offset), fault.is_truncated()),
        }
    }

    fn begin_run(&mut self, record: &RecordFields, offset: u64, length: usize) -> Result<ReadStep, Error> {
        // Every sample of a run takes at least two bytes. The end of a compressed region is not known yet.
        let most = self.region.rest().len().saturating_sub(length) / 2;
        let is_too_long = !self.region.is_compressed() && record.count as usize > most;
        // The region has been cut off, or the number is wrong.
        if is_too_long && !(self.options.is_lenient() && self.run_reaches_the_end(length)) {
            let message = format!("expected a run of at most {most} samples, found {}", record.count);
            return self.broken(message, offset, false);
        }
        let thread = self.thread(record, offset)?;
        self.counts.records[0] += 1;
        self.region.consume(length);
        self.run = ThreadRun { thread, left: record.count };
        Ok(ReadStep::Again)
    }

    #[inline]
    fn new_stack(&mut self, record: &RecordFields, offset: u64, length: usize) -> Result<ReadStep, Error> {
        if let Some(index) = self.tables.first_bad(&self.added) {
            self.bad_frame(index, offset)?;
        }
        let thread = self.thread(record, offset)?;
        let kept = match record.kind {
            RecordKind::Full => self.threads.row_mut(thread).replace(&self.added),
            RecordKind::Suffix => self.suffix(thread, record.count, offset)?,
            RecordKind::PopPush | RecordKind::Repeat => self.pop_push(thread, record.count, offset)?,
        };
        let row = self.threads.row_mut(thread);
        let (time_us, depth) = (row.time_us.wrapping_add(record.delta_us), row.stack.len());
        row.time_us = time_us;
        row.samples += 1;
        if depth > MAX_DEPTH {
            self.warn(offset, 0, format!("expected a stack of at most {MAX_DEPTH} frames, found {depth}"));
        }
        self.counts.records[record.kind as usize] += 1;
        self.region.consume(length);
        Ok(ReadStep::Sample(Turn { thread, time_us, status: record.status, kept, depth }))
    }

    /// Keeps the outer frames that the record shares.
    ///
    /// If nothing is added, CPython's reader keeps the inner ones instead, against the specification and its own
    /// writer, which never writes such a record.
    fn suffix(&mut self, thread: usize, shared: u32, offset: u64) -> Result<usize, Error> {
        let row = self.threads.row(thread);
        let (depth, shared) = (row.stack.len(), shared as usize);
        if row.lacks_root {
            let depth = depth.min(1);
            self.threads.row_mut(thread).push(depth, &self.added);
            return Ok(depth);
        }
        if shared > depth {
            self.tolerate(offset, || format!("expected at most {depth} shared frames, found {shared}"))?;
            let row = self.threads.row_mut(thread);
            row.lose();
            row.push(1, &self.added);
            return Ok(0);
        }
        self.push(thread, shared, offset)?;
        Ok(shared)
    }

    fn pop_push(&mut self, thread: usize, popped: u32, offset: u64) -> Result<usize, Error> {
        let row = self.threads.row(thread);
        let (depth, popped) = (row.stack.len(), popped as usize);
        let kept =
            if row.lacks_root { depth.saturating_sub(popped).max(1) } else { depth.saturating_sub(popped) };
        if popped > depth && !row.lacks_root {
            // CPython pops the frames there are.
            self.warn(offset, 0, format!("expected at most {depth} popped frames, found {popped}"));
        }
        self.push(thread, kept, offset)?;
        Ok(kept)
    }

    fn push(&mut self, thread: usize, kept: usize, offset: u64) -> Result<(), Error> {
        let (depth, most) = (kept + self.added.len(), self.max_depth());
        if depth > most {
            self.tolerate(offset, || format!("expected a stack of at most {most} frames, found {depth}"))?;
        }
        // The part beyond the limit is the innermost one; it is dropped so that memory stays bounded.
        let beyond = depth.saturating_sub(most).min(self.added.len());
        let row = self.threads.row_mut(thread);
        let before = row.stack.capacity();
        row.push(kept, &self.added[beyond..]);
        let grown = row.stack.capacity() - before;
        if grown > 0 { self.hold_stack(grown, offset) } else { Ok(()) }
    }

    /// Counts the memory of a thread's stack, which has grown by some frames.
    #[cold]
    fn hold_stack(&mut self, grown: usize, offset: u64) -> Result<(), Error> {
        self.threads.hold_frames(grown);
        self.options
            .limits
            .check(self.threads.held_bytes())
            .map_err(|over| Error::memory(NAME, Position::Byte(offset), over))
    }

    /// The row of the record's thread, added if it is new.
    #[inline]
    fn thread(&mut self, record: &RecordFields, offset: u64) -> Result<usize, Error> {
        match self.threads.find(record.thread, record.interpreter) {
            Some(row) => Ok(row),
            None => self.new_thread(record, offset),
        }
    }

    #[cold]
    fn new_thread(&mut self, record: &RecordFields, offset: u64) -> Result<usize, Error> {
        let count = self.threads.len() + 1;
        let checked =
            self.options.limits.check(self.threads.held_bytes().saturating_add(Threads::BYTES_EACH));
        checked.map_err(|over| Error::memory(NAME, Position::Byte(offset), over))?;
        if let Some((_, expected)) = self.expected
            && count as u64 == u64::from(expected) + 1
        {
            self.tolerate(offset, || format!("expected {expected} threads, found more"))?;
        }
        Ok(self.threads.add(record.thread, record.interpreter, self.header.start_us, record.delta_us))
    }

    #[cold]
    fn bad_frame(&mut self, index: u32, offset: u64) -> Result<(), Error> {
        if !self.has_tables {
            return Ok(());
        }
        let count = self.tables.frame_count();
        let exists = (index as usize) < count;
        self.tolerate(offset, || {
            if exists {
                format!("frame {index} refers to missing strings")
            } else {
                format!("expected a frame below {count}, found frame {index}")
            }
        })
    }

    /// An error, or with lenient options a warning.
    #[cold]
    pub(super) fn tolerate(&mut self, offset: u64, message: impl FnOnce() -> String) -> Result<(), Error> {
        if self.options.is_lenient() {
            self.warn(offset, 0, message());
            return Ok(());
        }
        Err(Error::malformed(NAME, Position::Byte(offset), message()))
    }

    #[cold]
    pub(super) fn warn(&mut self, offset: u64, lost_bytes: u64, message: String) {
        self.recovery.warn(Warning::new(message).at(offset).losing(lost_bytes));
    }

    /// Handles bytes that are not a record: the end of the reading, or of the damage.
    #[cold]
    fn broken(&mut self, message: String, offset: u64, is_truncated: bool) -> Result<ReadStep, Error> {
        // A compressed stream that ends early cuts a record off: then the stream's error is reported.
        if self.region.has_ended()
            && is_truncated
            && let Some(step) = self.compressed_damage()?
        {
            return Ok(step);
        }
        if !self.options.is_lenient() {
            let kind = if is_truncated { ErrorKind::Truncated } else { ErrorKind::Malformed };
            return Err(Error::new(kind, NAME, Position::Byte(offset), message));
        }
        self.pass_over(message, offset);
        Ok(ReadStep::Again)
    }

    /// Reports the damage that ended a compressed region early, if there was any.
    fn compressed_damage(&mut self) -> Result<Option<ReadStep>, Error> {
        let Some(damage) = self.region.take_damage() else { return Ok(None) };
        let offset = self.region.offset();
        if !self.options.is_lenient() {
            let kind = if damage.truncated { ErrorKind::Truncated } else { ErrorKind::Malformed };
            let place = Position::Byte(HEADER_BYTES as u64);
            return Err(Error::new(kind, NAME, place, damage.message));
        }
        let rest = self.region.rest().len();
        self.region.consume(rest);
        let kind = if damage.truncated { WarningKind::Truncated } else { WarningKind::Damaged };
        let lost_bytes = damage.unread.saturating_add(rest as u64);
        self.recovery.warn(Warning::new(damage.message).of_kind(kind).at(offset).losing(lost_bytes));
        self.check_counts()?;
        Ok(Some(ReadStep::End))
    }

    fn end(&mut self) -> Result<ReadStep, Error> {
        if let Some(step) = self.compressed_damage()? {
            return Ok(step);
        }
        self.check_counts()?;
        self.warn_of_missing_samples();
        Ok(ReadStep::End)
    }

    /// Compares the numbers of samples and threads with the header. CPython detects too few or too many samples only
    /// after returning all of them, and ignores missing threads.
    fn check_counts(&mut self) -> Result<(), Error> {
        let Some((samples, threads)) = self.expected else { return Ok(()) };
        let (found, found_threads) = (self.recovery.samples, self.threads.len() as u64);
        if found_threads < u64::from(threads) {
            let message = format!("expected {threads} threads, found {found_threads}");
            self.recovery.warn(Warning::new(message));
        }
        if found != samples {
            let message = format!("expected {samples} samples, found {found}");
            let offset = self.region.offset();
            return self.tolerate(offset, || message);
        }
        Ok(())
    }
}
