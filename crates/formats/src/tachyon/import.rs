//! Imports `tachyon` into the model.

use std::io::Read;
use std::ops::ControlFlow;

use borehole_memory::HeldBytes as _;
use borehole_model::{
    Column, Context, Frame, FrameId, ProfileSink, Recovery, Sample, Segment, StackId, Status, StringId,
    TableFull, Tables,
};

use super::journal::JOURNAL_MAGIC;
use super::layout::FileHeader;
use super::opcodes::Opcodes;
use super::read::{self, Reader};
use super::tables::FileTables;
use super::threads::LOST_FRAME;
use super::{NAME, metadata};
use crate::registry::Document;
use crate::{Error, Position, ReadError, ReadOptions};

/// Streams `bytes`, a whole file, into `sink`: one sample for each of the file's, in the order of the file.
///
/// Times are on the profiler's monotonic clock. The header's fields and the statistics become metadata of the segment.
/// A frame without a name in the tables is called `frame#` and its number.
///
/// # Errors
/// If the file is damaged (read strictly), or the sink fails.
pub fn import(
    bytes: &[u8],
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    import_document(Document { bytes, sibling: None, on_passed: None }, options, tables, sink)
}

/// Like [`import`], for a file with related inputs.
///
/// # Errors
/// If the sibling cannot be read, and those of [`import`].
pub fn import_document(
    document: Document<'_>,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let Document { bytes, sibling, on_passed } = document;
    let mut reader = match sibling.filter(|sibling| sibling.starts_with(&JOURNAL_MAGIC)) {
        Some(journal) => Reader::with_journal(bytes, journal, *options)?,
        None => Reader::with_options(bytes, *options)?,
    };
    if let Some(sibling) = sibling.filter(|sibling| !sibling.starts_with(&JOURNAL_MAGIC)) {
        reader.borrow_tables(bytes, sibling)?;
    }
    let segment = metadata::segment(reader.header(), reader.statistics(), tables)?;
    sink.segment(Context { tables, segment: &segment })?;
    let outcome = deliver(&mut reader, on_passed, &segment, tables, sink);
    // This also applies to a profile that is not read to its end.
    reader.warn_of_early_times();
    for warning in &reader.recovery().warnings {
        sink.warning(warning)?;
    }
    let stopped = outcome?.is_break();
    Ok(Recovery { stopped, segments: 1, ..reader.into_recovery() })
}

/// Reads the whole of `input`, up to the limit for documents: the tables are at the end of a file.
///
/// # Errors
/// If the input is larger, or cannot be read; with lenient options the readable part is returned.
pub fn read_document(mut input: impl Read, options: &ReadOptions) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    loop {
        let read = input.by_ref().take(CHECKED_BYTES).read_to_end(&mut bytes);
        let end = Position::Byte(bytes.len() as u64);
        options.limits.check(bytes.held_bytes()).map_err(|over| Error::memory(NAME, end, over))?;
        match read {
            Err(error) if !options.is_lenient() => return Err(Error::io(NAME, end, error)),
            Ok(read) if read as u64 == CHECKED_BYTES => {}
            _ => return Ok(bytes),
        }
    }
}

/// The number of bytes between checks of the memory of a file that is read whole.
const CHECKED_BYTES: u64 = 1 << 20;

/// The number of samples read between two checks of the position.
const SAMPLES_BETWEEN_LOOKS: u64 = 1 << 11;

/// The number of stacks from which on they are forgotten if the sink allows it: the data per stack then still fits into
/// the caches of a processor.
const MANY_STACKS: usize = 1 << 14;

fn deliver(
    reader: &mut Reader<'_>,
    on_passed: Option<&dyn Fn(usize)>,
    segment: &Segment,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<ControlFlow<()>, ReadError> {
    let mut imported = ImportedStacks::new(reader.header());
    let mut settles = true;
    for number in 1_u64.. {
        let Some(sample) = reader.next_sample()? else { break };
        let stack = imported.stack(&sample, tables)?;
        let sample = Sample {
            stack,
            count: 1,
            // In two's complement: times before the clock's origin are written as such.
            time_ns: sample.time_us.cast_signed().checked_mul(1000),
            thread: Some(sample.thread),
            interpreter: Some(u64::from(sample.interpreter)),
            status: Some(Status(sample.status)),
            ..Sample::default()
        };
        if sink.sample(Context { tables, segment }, &sample)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if settles && tables.stack_count() >= MANY_STACKS {
            settles = sink.settle(tables)?;
            if settles {
                imported.stacks.clear();
                tables.forget_stacks();
            }
        }
        if number.is_multiple_of(SAMPLES_BETWEEN_LOOKS)
            && let Some(on_passed) = on_passed
        {
            on_passed(reader.passed_bytes());
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The ids of the file's frames and stacks in the tables.
struct ImportedStacks {
    frames: ImportedFrames,
    /// By thread: the stack at each depth of its last sample, the root first.
    stacks: Vec<Vec<StackId>>,
}

impl ImportedStacks {
    fn new(header: &FileHeader) -> Self {
        let [major, minor, _] = header.python;
        let opcodes = Opcodes::of(major, minor);
        let (strings, known) = (Column::default(), Column::default());
        Self { frames: ImportedFrames { opcodes, strings, known, lost: None }, stacks: Vec::new() }
    }

    /// The stack of a sample. Only its new frames are looked up.
    #[inline]
    fn stack(
        &mut self,
        sample: &read::ThreadSample<'_>,
        tables: &mut Tables,
    ) -> Result<Option<StackId>, TableFull> {
        if self.stacks.len() <= sample.thread_index {
            self.stacks.resize_with(sample.thread_index + 1, Vec::new);
        }
        let stacks = &mut self.stacks[sample.thread_index];
        stacks.truncate(sample.kept);
        let mut last = stacks.last().copied();
        for &frame in &sample.frames_root_first[stacks.len()..] {
            let frame = self.frames.get(frame, sample.tables, tables)?;
            let stack = tables.intern_stack(last, frame)?;
            stacks.push(stack);
            last = Some(stack);
        }
        Ok(last)
    }
}

/// The ids of the file's frames and strings in the tables.
struct ImportedFrames {
    opcodes: Opcodes,
    strings: Column<StringId>,
    known: Column<FrameId>,
    lost: Option<FrameId>,
}

impl ImportedFrames {
    #[inline]
    fn get(&mut self, frame: u32, file: &FileTables<'_>, tables: &mut Tables) -> Result<FrameId, TableFull> {
        match self.known.get(frame as usize) {
            Some(known) => Ok(known),
            None => self.new_frame(frame, file, tables),
        }
    }

    #[cold]
    fn new_frame(
        &mut self,
        number: u32,
        file: &FileTables<'_>,
        tables: &mut Tables,
    ) -> Result<FrameId, TableFull> {
        if number == LOST_FRAME {
            return self.lost_frame(tables);
        }
        let known = file.frame(number).copied();
        let named =
            known.and_then(|frame| Some((frame, file.string(frame.file)?, file.string(frame.function)?)));
        let Some((frame, file_name, function)) = named else {
            let name = format!("frame#{number}");
            let function = tables.intern_string(name.as_bytes())?;
            let id = tables.intern_frame(&Frame::named(function))?;
            return Ok(id);
        };
        let function = self.string(frame.function, function, tables)?;
        let file_name = self.string(frame.file, file_name, tables)?;
        let opcode = frame.opcode.map(|number| tables.intern_string(self.opcodes.name(number).as_bytes()));
        let has_place = frame.line != -1;
        let column = |value: i32| u32::try_from(value).ok().filter(|_| has_place);
        let line = |value: i32| (has_place && value != -1).then_some(i64::from(value));
        let id = tables.intern_frame(&Frame {
            file: Some(file_name),
            line: line(frame.line),
            end_line: line(frame.end_line),
            column: column(frame.column),
            end_column: column(frame.end_column),
            opcode: opcode.transpose()?,
            ..Frame::named(function)
        })?;
        Ok(self.known.set(number as usize, id))
    }

    fn string(&mut self, number: u32, text: &[u8], tables: &mut Tables) -> Result<StringId, TableFull> {
        match self.strings.get(number as usize) {
            Some(known) => Ok(known),
            None => Ok(self.strings.set(number as usize, tables.intern_string(text)?)),
        }
    }

    fn lost_frame(&mut self, tables: &mut Tables) -> Result<FrameId, TableFull> {
        if let Some(known) = self.lost {
            return Ok(known);
        }
        let function = tables.intern_string(b"<lost frames>")?;
        let id = tables.intern_frame(&Frame::named(function))?;
        self.lost = Some(id);
        Ok(id)
    }
}
