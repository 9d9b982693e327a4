//! Writes samples as a file, byte for byte like CPython 3.15.2.
//!
//! Header and tables are known only at the end, so the samples wait in a spool, compressed if the file is, and
//! [`Writer::finish`] joins the parts: the output need not be seekable.

use std::io::{self, Read, Seek, SeekFrom, Write};

use borehole_wire::{Compression, put_varint};
use hashbrown::HashMap;

use super::body::Body;
use super::journal::Journal;
use super::layout::{
    ByteOrder, COMPRESSION_NONE, COMPRESSION_ZSTD, Config, FOOTER_BYTES, FileHeader, Footer, HEADER_BYTES,
    HeaderLayout, MAX_DEPTH, RUN_BYTES, RUN_ENTRY_BYTES, RecordKind, VERSION,
};
use super::statistics::Statistics;
use super::tables::{FileFrame, NumberedFrames, NumberedStrings, put_string};

/// The facts of a file and the form of its output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriterOptions {
    /// The byte order of numbers.
    pub byte_order: ByteOrder,
    /// The layout of the header.
    pub layout: HeaderLayout,
    /// The compression of the samples: none, or one Zstandard frame, streamed, at CPython's level.
    pub compression: Compression,
    /// The version of the profiled Python.
    pub python: [u8; 3],
    /// The start of profiling, on the clock of all samples.
    pub start_us: u64,
    /// The sampling period.
    pub interval_us: u64,
    /// The sampling configuration. The old layout cannot hold it.
    pub config: Config,
    /// The order of the samples.
    pub order: SampleOrder,
}

impl Default for WriterOptions {
    /// As CPython writes: with Zstandard, in the byte order of x86 and ARM.
    fn default() -> Self {
        Self {
            byte_order: ByteOrder::default(),
            layout: HeaderLayout::default(),
            compression: Compression::Zstd,
            python: [0; 3],
            start_us: 0,
            interval_us: 0,
            config: Config::default(),
            order: SampleOrder::default(),
        }
    }
}

/// The order of samples. It decides the position in the file of a run that has reached its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleOrder {
    /// The order of sampling: a full run is written when the next sample would be added to it.
    #[default]
    Arrival,
    /// The order of another file: a full run is written at once, at its position in that file.
    File,
}

/// A frame to be defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonFrame<'a> {
    /// The file.
    pub file: &'a [u8],
    /// The qualified function name.
    pub function: &'a [u8],
    /// The line; -1 if unknown.
    pub line: i32,
    /// The last line; -1 if unknown.
    pub end_line: i32,
    /// The column; -1 if unknown.
    pub column: i32,
    /// The column after the last; -1 if unknown.
    pub end_column: i32,
    /// The bytecode instruction.
    pub opcode: Option<u8>,
}

/// A frame that has been defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameSlot(u32);

/// A pair of thread and interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadSlot(usize);

impl ThreadSlot {
    /// Its index in the order of first appearance, 0-based.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0
    }
}

/// Writes a file. `S` holds the samples until everything is known: an empty temporary file, or memory. They come after
/// a header without the offsets of the tables: with a journal ([`Writer::with_journal`]) the spool of a writer that was
/// killed is read by [`Reader::with_journal`](super::Reader::with_journal).
///
/// Memory grows with the distinct contents and with the threads, each with a run of at most 16 KiB. From some hundred
/// kilobytes on, compressed samples go through a thread of the writer, if one can be created; the bytes are the same
/// without it, and only the caller's thread touches the spool.
#[derive(Debug)]
pub struct Writer<S: Write> {
    options: WriterOptions,
    body: Body<S>,
    journal: Option<Journal>,
    strings: NumberedStrings,
    frames: NumberedFrames,
    threads: Vec<WriterThread>,
    index: HashMap<(u64, u32), usize>,
    statistics: Option<Statistics>,
    samples: u64,
    /// The number of runs begun.
    runs: u64,
}

#[derive(Debug)]
struct WriterThread {
    id: u64,
    interpreter: u32,
    time_us: u64,
    frames_leaf_first: Vec<FrameSlot>,
    /// Samples of the same stack that have not been written yet.
    run: Vec<u8>,
    run_samples: u32,
    /// The number of the run in the file.
    run_number: u64,
}

impl<S: Read + Write + Seek> Writer<S> {
    /// Creates a writer whose samples wait in `spool`, which is empty.
    ///
    /// # Errors
    /// If the spool cannot be written, the compressor cannot be created, or the compression is neither none nor Zstandard.
    pub fn new(mut spool: S, options: WriterOptions) -> io::Result<Self> {
        options.compression.among(&[Compression::None, Compression::Zstd])?;
        spool.write_all(&unfinished_header(&options))?;
        Ok(Self {
            journal: None,
            body: Body::new(spool, options.compression)?,
            options,
            strings: NumberedStrings::default(),
            frames: NumberedFrames::default(),
            threads: Vec::new(),
            index: HashMap::new(),
            statistics: None,
            samples: 0,
            runs: 0,
        })
    }

    /// Also writes strings and frames to `journal`, before the spool has samples that refer to them.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn with_journal(mut self, journal: impl Write + Send + 'static) -> io::Result<Self> {
        let head = unfinished_header(&self.options);
        self.journal = Some(Journal::begin(Box::new(journal), &head)?);
        Ok(self)
    }

    /// The number of a frame. For bytes equal to CPython's, define a stack's frames from the leaf on.
    ///
    /// # Errors
    /// If there are too many.
    pub fn define_frame(&mut self, frame: &PythonFrame<'_>) -> io::Result<FrameSlot> {
        let file = self.strings.intern(frame.file)?;
        let function = self.strings.intern(frame.function)?;
        let PythonFrame { line, end_line, column, end_column, opcode, .. } = *frame;
        let frame = FileFrame { file, function, line, end_line, column, end_column, opcode };
        self.frames.intern(&frame).map(FrameSlot)
    }

    /// The slot of a thread in an interpreter. For bytes equal to CPython's, call this at its first sample.
    ///
    /// # Errors
    /// If there are too many.
    #[inline]
    pub fn thread(&mut self, id: u64, interpreter: u32) -> io::Result<ThreadSlot> {
        match self.index.get(&(id, interpreter)) {
            Some(&row) => Ok(ThreadSlot(row)),
            None => self.new_thread(id, interpreter),
        }
    }

    fn new_thread(&mut self, id: u64, interpreter: u32) -> io::Result<ThreadSlot> {
        let row = self.threads.len();
        if row >= u32::MAX as usize {
            return Err(io::Error::other("too many threads: expected fewer than 2^32"));
        }
        self.threads.push(WriterThread {
            id,
            interpreter,
            time_us: self.options.start_us,
            frames_leaf_first: Vec::new(),
            run: Vec::new(),
            run_samples: 0,
            run_number: 0,
        });
        self.index.insert((id, interpreter), row);
        Ok(ThreadSlot(row))
    }

    /// Writes a sample. Of a stack that is too deep the innermost [`MAX_DEPTH`] frames are kept.
    ///
    /// # Errors
    /// If spool or journal cannot be written: the sample is then not taken, and once the spool has failed, it stays so.
    /// If `thread` is another writer's, and this one has none of that number.
    #[inline]
    pub fn write_sample(
        &mut self,
        thread: ThreadSlot,
        time_us: u64,
        status: u8,
        frames_leaf_first: &[FrameSlot],
    ) -> io::Result<()> {
        let frames = &frames_leaf_first[..frames_leaf_first.len().min(MAX_DEPTH)];
        if self.thread_at(thread)?.frames_leaf_first == frames {
            return self.write_repeat(thread, time_us, status);
        }
        self.flush_run(thread.0)?;
        self.drain()?;
        self.samples += 1;
        let row = &mut self.threads[thread.0];
        let delta_us = time_us.wrapping_sub(row.time_us);
        row.time_us = time_us;
        let change = StackChange::between(&row.frames_leaf_first, frames);
        let out = self.body.buffer();
        put_head(out, row, change.kind, self.options.byte_order);
        put_varint(out, delta_us);
        out.push(status);
        change.numbers().for_each(|number| put_varint(out, number));
        let added = &frames[..change.added];
        put_varint(out, added.len() as u64);
        added.iter().for_each(|frame| put_varint(out, u64::from(frame.0)));
        row.frames_leaf_first.clear();
        row.frames_leaf_first.extend_from_slice(frames);
        Ok(())
    }

    /// Writes a sample with the thread's last stack; the empty one if it had none.
    ///
    /// # Errors
    /// Those of [`Writer::write_sample`].
    #[inline]
    pub fn write_repeat(&mut self, thread: ThreadSlot, time_us: u64, status: u8) -> io::Result<()> {
        self.thread_at(thread)?;
        if self.is_full(thread.0) {
            self.flush_run(thread.0)?;
        }
        if self.threads[thread.0].run.is_empty() {
            self.drain()?;
            self.runs += 1;
            self.threads[thread.0].run_number = self.runs;
        }
        let row = &mut self.threads[thread.0];
        put_varint(&mut row.run, time_us.wrapping_sub(row.time_us));
        row.run.push(status);
        row.run_samples += 1;
        row.time_us = time_us;
        self.samples += 1;
        if self.options.order == SampleOrder::File && self.is_full(thread.0) {
            // The bytes written here leave room before the next run begins.
            self.put_run(thread.0);
        }
        Ok(())
    }

    #[inline]
    fn thread_at(&self, slot: ThreadSlot) -> io::Result<&WriterThread> {
        self.threads.get(slot.0).ok_or_else(|| foreign_slot(slot))
    }

    #[inline]
    fn is_full(&self, row: usize) -> bool {
        self.threads[row].run.len() + RUN_ENTRY_BYTES > RUN_BYTES
    }

    #[inline]
    fn flush_run(&mut self, row: usize) -> io::Result<()> {
        if self.threads[row].run_samples > 0 {
            self.drain()?;
            self.put_run(row);
        }
        Ok(())
    }

    fn put_run(&mut self, row: usize) {
        let row = &mut self.threads[row];
        let out = self.body.buffer();
        put_head(out, row, RecordKind::Repeat, self.options.byte_order);
        put_varint(out, u64::from(row.run_samples));
        out.extend_from_slice(&row.run);
        row.run.clear();
        row.run_samples = 0;
    }

    /// Stores a full buffer. This comes before anything is added: records that cannot be stored are not taken.
    #[inline]
    fn drain(&mut self) -> io::Result<()> {
        if self.body.is_full() { self.store() } else { Ok(()) }
    }

    #[cold]
    fn store(&mut self) -> io::Result<()> {
        if let Some(journal) = &mut self.journal {
            journal.write_new(&self.strings, &self.frames)?;
        }
        self.body.store()
    }

    /// Writes all samples so far to spool and journal. Runs end here, where CPython would continue them: the samples
    /// are the same, the bytes are not.
    ///
    /// # Errors
    /// If spool or journal cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.flush_runs()?;
        self.store()?;
        self.body.flush()
    }

    /// Writes the runs that are open at the end, in order of their threads or of their beginning.
    fn flush_runs(&mut self) -> io::Result<()> {
        let mut rows: Vec<_> = (0..self.threads.len()).collect();
        if self.options.order == SampleOrder::File {
            rows.sort_by_key(|&row| self.threads[row].run_number);
        }
        rows.into_iter().try_for_each(|row| self.flush_run(row))
    }

    /// Sets the profiler's statistics; `None`, the default, for no statistics.
    pub const fn set_statistics(&mut self, statistics: Option<Statistics>) {
        self.statistics = statistics;
    }

    /// Sets the final mode and features of the header, instead of those of the options.
    pub const fn set_config(&mut self, config: Config) {
        self.options.config = config;
    }

    /// Writes the file to `output` and flushes it.
    ///
    /// # Errors
    /// If the spool cannot be read, or could not be written at any time, or the output cannot be written.
    pub fn finish(mut self, mut output: impl Write) -> io::Result<()> {
        self.flush_runs()?;
        let mut tables = Vec::new();
        self.strings.since(0).for_each(|string| put_string(&mut tables, string));
        let strings_bytes = tables.len() as u64;
        self.frames.since(0).iter().for_each(|frame| frame.encode(&mut tables));
        let order = self.options.byte_order;
        if let Some(statistics) = &self.statistics {
            tables.extend(statistics.encode(order));
        }
        let footer = Footer { strings: self.strings.count(), frames: self.frames.count(), file_bytes: 0 };
        let mut header = self.header()?;
        let (mut spool, samples_bytes) = self.body.finish()?;
        header.strings_offset = HEADER_BYTES as u64 + samples_bytes;
        header.frames_offset = header.strings_offset + strings_bytes;
        let file_bytes = header.strings_offset + tables.len() as u64 + FOOTER_BYTES as u64;
        output.write_all(&header.encode())?;
        spool.seek(SeekFrom::Start(HEADER_BYTES as u64))?;
        io::copy(&mut spool.take(samples_bytes), &mut output)?;
        output.write_all(&tables)?;
        output.write_all(&Footer { file_bytes, ..footer }.encode(order))?;
        output.flush()
    }

    /// The header without the offsets of the tables.
    fn header(&self) -> io::Result<FileHeader> {
        if self.options.layout == HeaderLayout::Old && u32::try_from(self.samples).is_err() {
            let found = self.samples;
            let message =
                format!("too many samples for the old header: expected fewer than 2^32, found {found}");
            return Err(io::Error::other(message));
        }
        Ok(FileHeader {
            samples: self.samples,
            threads: u32::try_from(self.threads.len()).unwrap_or(u32::MAX),
            ..first_header(&self.options)
        })
    }
}

#[cold]
fn foreign_slot(slot: ThreadSlot) -> io::Error {
    let message = format!("thread {} does not belong to this writer", slot.0);
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// The part of the header known before the first sample.
fn first_header(options: &WriterOptions) -> FileHeader {
    let WriterOptions { byte_order, layout, compression, python, start_us, interval_us, config, .. } =
        *options;
    let compression = match compression {
        Compression::Zstd => COMPRESSION_ZSTD,
        _ => COMPRESSION_NONE,
    };
    FileHeader {
        byte_order,
        layout,
        version: VERSION,
        python,
        start_us,
        interval_us,
        compression,
        config,
        ..FileHeader::default()
    }
}

/// The header of the spool, always in the layout that can hold all of it.
fn unfinished_header(options: &WriterOptions) -> [u8; HEADER_BYTES] {
    FileHeader { layout: HeaderLayout::New, ..first_header(options) }.encode()
}

fn put_head(out: &mut Vec<u8>, row: &WriterThread, kind: RecordKind, order: ByteOrder) {
    out.extend(order.bytes_of_u64(row.id));
    out.extend(order.bytes_of_u32(row.interpreter));
    out.push(kind as u8);
}

/// The difference between a stack and the one before it.
struct StackChange {
    kind: RecordKind,
    /// Shared frames of a suffix, or popped frames.
    number: usize,
    /// The number of inner frames written.
    added: usize,
}

impl StackChange {
    /// The record that CPython chooses.
    ///
    /// Source: CPython 3.15.2, `compare_stacks` of the writer.
    fn between(before: &[FrameSlot], now: &[FrameSlot]) -> Self {
        let shared = before.iter().rev().zip(now.iter().rev()).take_while(|(old, new)| old == new).count();
        let (popped, added) = (before.len() - shared, now.len() - shared);
        if shared == 0 {
            Self { kind: RecordKind::Full, number: 0, added }
        } else if popped == 0 && added > 0 {
            Self { kind: RecordKind::Suffix, number: shared, added }
        } else if shared < now.len() / 2 {
            Self { kind: RecordKind::Full, number: 0, added: now.len() }
        } else {
            Self { kind: RecordKind::PopPush, number: popped, added }
        }
    }

    /// The numbers before the count of frames.
    fn numbers(&self) -> impl Iterator<Item = u64> + use<> {
        (self.kind != RecordKind::Full).then_some(self.number as u64).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_the_one_that_cpython_chooses() {
        let frames = |ids: &[u32]| ids.iter().map(|&id| FrameSlot(id)).collect::<Vec<_>>();
        for (before, now, kind, number, added) in [
            (vec![], vec![1], RecordKind::Full, 0, 1),
            (vec![2, 1], vec![3], RecordKind::Full, 0, 1),
            (vec![2, 1], vec![], RecordKind::Full, 0, 0),
            (vec![2, 1], vec![3, 2, 1], RecordKind::Suffix, 2, 1),
            (vec![2, 1], vec![1], RecordKind::PopPush, 1, 0),
            (vec![2, 1], vec![3, 1], RecordKind::PopPush, 1, 1),
            (vec![9, 1], vec![5, 4, 3, 1], RecordKind::Full, 0, 4),
            (vec![9, 1], vec![4, 3, 1], RecordKind::PopPush, 1, 2),
        ] {
            let change = StackChange::between(&frames(&before), &frames(&now));
            assert_eq!(
                (change.kind, change.number, change.added),
                (kind, number, added),
                "{before:?} {now:?}"
            );
        }
    }
}
