//! Imports `rbt` into the model.

use std::io::{self, Read};
use std::ops::ControlFlow;

use borehole_model::{
    Context, Frame, FrameId, Label, LabelValue, LabelsId, NameParts, NativeFrame, ProfileSink, Recovery,
    Sample, Segment, StackId, StringId, TableFull, Tables,
};
use hashbrown::HashMap;

use super::assembler::{Record, SegmentStart, StoredSample};
use super::clock::stated_unix_ns;
use super::column::put;
use super::definitions::{DefinedFrame, Definitions};
use super::indices::{FrameIndex, StackIndex, StringIndex};
use super::layout::NAME;
use super::paths::CallPath;
use super::read::Reader;
use super::segment_process::SegmentProcess;
use crate::frames::composed::{ComposedBytes, LongNames};
use crate::frames::function_name::FunctionName;
use crate::{Position, ReadError, ReadOptions};

/// Streams `input`, raw or compressed, into `sink`.
///
/// Time continues over the segments of an input, as reli's segmented writer counts it: the origin is the start of the
/// first segment. A segment that states its wall clock is placed by it instead. A segment's process is its metadata `pid`, if
/// that names only one.
///
/// # Errors
/// If the input is damaged (read strictly) or cannot be read, or the sink fails.
pub fn import(
    input: impl Read,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    import_reader(Reader::with_options(input, *options), tables, sink)
}

/// Streams the output of `reader` into `sink`.
///
/// # Errors
/// Those of [`import`].
pub fn import_reader(
    mut reader: Reader<impl Read>,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut importer = Importer::new(tables, sink);
    let outcome = importer.run(&mut reader);
    let recovery = reader.into_recovery();
    for warning in &recovery.warnings {
        importer.sink.warning(warning)?;
    }
    let stopped = outcome?.is_break();
    Ok(Recovery { stopped, ..recovery })
}

struct Importer<'a> {
    tables: &'a mut Tables,
    sink: &'a mut dyn ProfileSink,
    rows: SegmentRows,
    segment: Segment,
    /// Whether the sink has received the segment: metadata before the first sample belongs to it.
    announced: bool,
    process: SegmentProcess,
    /// The start of the segment, in microseconds since the start of the first one.
    segment_start_us: i64,
    last_time_us: i64,
    /// The wall time of the start of the first segment, if a segment with timestamps has stated its own.
    origin_unix_ns: Option<i64>,
}

impl<'a> Importer<'a> {
    fn new(tables: &'a mut Tables, sink: &'a mut dyn ProfileSink) -> Self {
        Self {
            tables,
            sink,
            rows: SegmentRows::default(),
            segment: Segment::default(),
            announced: true,
            process: SegmentProcess::default(),
            segment_start_us: 0,
            last_time_us: 0,
            origin_unix_ns: None,
        }
    }

    fn run(&mut self, reader: &mut Reader<impl Read>) -> Result<ControlFlow<()>, ReadError> {
        loop {
            while let Some(sample) = reader.ready_sample() {
                if self.sample(&sample)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            match reader.any_record()? {
                Some(Record::Sample(sample)) => {
                    if self.sample(&sample)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Some(Record::Segment(start)) => self.segment(start)?,
                Some(Record::Metadata { key, value }) => self.metadata(key, value)?,
                None => break,
            }
        }
        self.announce()?;
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, start: SegmentStart) -> Result<(), ReadError> {
        self.announce()?;
        self.rows.clear();
        self.segment_start_us = self.last_time_us;
        let period_ns = u64::from(start.header.period_us) * 1000;
        self.segment = Segment {
            format: NAME,
            index: start.index,
            offset: Some(start.offset),
            period_ns: (period_ns > 0).then_some(period_ns),
            has_times: start.header.has_timestamps,
            is_ordered: true,
            start_unix_ns: self.origin_unix_ns.filter(|_| start.header.has_timestamps),
            ..Segment::default()
        };
        self.announced = false;
        self.process = SegmentProcess::default();
        Ok(())
    }

    fn announce(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.announced, true) {
            self.sink.segment(Context { tables: self.tables, segment: &self.segment })?;
        }
        Ok(())
    }

    fn metadata(&mut self, key: &[u8], value: &[u8]) -> Result<(), ReadError> {
        if let Some(unix_ns) = stated_unix_ns(key, value).filter(|_| !self.announced) {
            self.place_segment(unix_ns);
            return Ok(());
        }
        let pair = (self.tables.intern_string(key)?, self.tables.intern_string(value)?);
        self.process.metadata(key, value);
        self.segment.process = self.process.process();
        if self.announced {
            let at = Context { tables: self.tables, segment: &self.segment };
            self.sink.metadata(at, pair.0, pair.1)?;
        } else {
            self.segment.metadata.push(pair);
        }
        Ok(())
    }

    /// Places the segment on the clock of the input by its own wall clock, so that segments of concurrent recordings overlap
    /// and pauses between segments remain. Samples without timestamps have only that clock.
    fn place_segment(&mut self, unix_ns: i64) {
        if !self.segment.has_times {
            self.segment.start_unix_ns = Some(unix_ns);
            return;
        }
        let start_ns = self.segment_start_us.saturating_mul(1000);
        let origin_unix_ns = *self.origin_unix_ns.get_or_insert(unix_ns.saturating_sub(start_ns));
        self.segment.start_unix_ns = Some(origin_unix_ns);
        self.segment_start_us = unix_ns.saturating_sub(origin_unix_ns).div_euclid(1000);
        self.last_time_us = self.segment_start_us;
    }

    #[expect(clippy::inline_always, reason = "every sample of a file passes here, in registers if in line")]
    #[inline(always)]
    fn sample(&mut self, sample: &StoredSample<'_>) -> Result<ControlFlow<()>, ReadError> {
        self.announce()?;
        let definitions = sample.definitions;
        let stack = self.rows.stack(sample.stack, definitions, sample.offset, self.tables);
        let stack = stack.map_err(|fault| fault.at(sample.offset))?;
        let labels = match sample.annotations {
            None => None,
            Some(pairs) => {
                let offset = sample.offset;
                let mut interner =
                    RowInterner { rows: &mut self.rows, definitions, offset, tables: self.tables };
                Some(interner.labels(pairs)?)
            }
        };
        let sample = Sample {
            stack,
            count: sample.count,
            time_ns: sample.accumulated_us.and_then(|us| self.time_ns(us)),
            delta_us: sample.delta_us,
            process: sample.pid,
            labels,
            ..Sample::default()
        };
        Ok(self.sink.sample(Context { tables: self.tables, segment: &self.segment }, &sample)?)
    }

    fn time_ns(&mut self, accumulated_us: i64) -> Option<i64> {
        let time_us = self.segment_start_us.checked_add(accumulated_us)?;
        self.last_time_us = time_us;
        time_us.checked_mul(1000)
    }
}

/// The rows of the current segment's indices in the tables.
#[derive(Default)]
struct SegmentRows {
    strings: Vec<Option<StringId>>,
    frames: Vec<Option<FrameId>>,
    /// Only up to the last sampled one.
    calls: Vec<StackId>,
    /// `None` also for stacks without frames.
    stacks: Vec<Option<StackId>>,
    labels: HashMap<Box<[(StringIndex, StringIndex)]>, LabelsId>,
    functions: HashMap<[StringIndex; 3], (StringId, NameParts)>,
    name: Vec<u8>,
    /// Of all segments.
    name_bytes: ComposedBytes,
}

/// The reason why a stack cannot be added to the tables.
enum StackFault {
    Full(TableFull),
    LongNames(LongNames),
}

impl From<TableFull> for StackFault {
    fn from(full: TableFull) -> Self {
        Self::Full(full)
    }
}

impl StackFault {
    #[cold]
    fn at(self, offset: u64) -> ReadError {
        match self {
            Self::Full(full) => full.into(),
            Self::LongNames(long) => long.at(NAME, Position::Byte(offset)).into(),
        }
    }
}

impl SegmentRows {
    fn clear(&mut self) {
        self.strings.clear();
        self.frames.clear();
        self.calls.clear();
        self.stacks.clear();
        self.labels.clear();
        self.functions.clear();
    }

    #[inline]
    fn stack(
        &mut self,
        stack: StackIndex,
        definitions: &Definitions,
        offset: u64,
        tables: &mut Tables,
    ) -> Result<Option<StackId>, StackFault> {
        match self.stacks.get(stack.index()) {
            Some(&Some(known)) => Ok(Some(known)),
            _ => RowInterner { rows: self, definitions, offset, tables }.stack(stack),
        }
    }
}

/// Adds what the current segment defines to the tables.
struct RowInterner<'a> {
    rows: &'a mut SegmentRows,
    definitions: &'a Definitions,
    /// Where the sample is whose stack is added.
    offset: u64,
    tables: &'a mut Tables,
}

impl RowInterner<'_> {
    #[cold]
    fn stack(&mut self, stack: StackIndex) -> Result<Option<StackId>, StackFault> {
        let Some(leaf) = self.definitions.leaf(stack) else { return Ok(None) };
        // In the order of definition, which the writer of the trace chose: callers and callees are then near each
        // other, in the file and in the tables, whatever order they are sampled in.
        let new = self.definitions.calls().get(self.rows.calls.len()..=leaf.index());
        for &CallPath { caller, frame } in new.unwrap_or_default() {
            let caller = caller.map(|caller| self.rows.calls[caller.index()]);
            let frame = self.frame(frame)?;
            self.rows.calls.push(self.tables.intern_stack(caller, frame)?);
        }
        let id = self.rows.calls[leaf.index()];
        put(&mut self.rows.stacks, stack.index(), id);
        Ok(Some(id))
    }

    fn frame(&mut self, frame: FrameIndex) -> Result<FrameId, StackFault> {
        if let Some(Some(known)) = self.rows.frames.get(frame.index()) {
            return Ok(*known);
        }
        let row = match *self.definitions.frame(frame) {
            DefinedFrame::Native { symbol, module, offset } => {
                let (function, module) = (self.string(symbol)?, self.string(module)?);
                Frame {
                    native: Some(NativeFrame { module, offset: Some(offset), file_offset: None }),
                    ..Frame::named(function)
                }
            }
            DefinedFrame::Php { namespace, class, method, file, line, opcode } => {
                let (function, parts) = self.function([namespace, class, method])?;
                Frame {
                    parts: Some(parts),
                    file: Some(self.string(file)?),
                    line: (line != -1).then_some(line),
                    opcode: opcode.map(|opcode| self.string(opcode)).transpose()?,
                    ..Frame::named(function)
                }
            }
        };
        let id = self.tables.intern_frame(&row)?;
        put(&mut self.rows.frames, frame.index(), id);
        Ok(id)
    }

    fn function(&mut self, key: [StringIndex; 3]) -> Result<(StringId, NameParts), StackFault> {
        if let Some(&known) = self.rows.functions.get(&key) {
            return Ok(known);
        }
        let [namespace, class, method] = key.map(|part| self.definitions.string(part));
        self.rows.name.clear();
        FunctionName { namespace, class, method }.join_into(&mut self.rows.name);
        self.rows.name_bytes.add(&self.rows.name, self.offset).map_err(StackFault::LongNames)?;
        let function = self.tables.intern_string(&self.rows.name)?;
        let [namespace, class, method] = key;
        let parts = NameParts {
            namespace: self.string(namespace)?,
            class: self.string(class)?,
            method: self.string(method)?,
        };
        self.rows.functions.insert(key, (function, parts));
        Ok((function, parts))
    }

    fn string(&mut self, string: StringIndex) -> Result<StringId, TableFull> {
        if let Some(Some(known)) = self.rows.strings.get(string.index()) {
            return Ok(*known);
        }
        let id = self.tables.intern_string(self.definitions.string(string))?;
        put(&mut self.rows.strings, string.index(), id);
        Ok(id)
    }

    fn labels(&mut self, pairs: &[(StringIndex, StringIndex)]) -> Result<LabelsId, TableFull> {
        if let Some(&id) = self.rows.labels.get(pairs) {
            return Ok(id);
        }
        let mut labels = Vec::with_capacity(pairs.len());
        for &(key, value) in pairs {
            let (key, value) = (self.string(key)?, LabelValue::Text(self.string(value)?));
            labels.push(Label { key, value });
        }
        let id = self.tables.intern_labels(&labels)?;
        self.rows.labels.insert(pairs.into(), id);
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rbt::{Header, Writer};

    #[derive(Default)]
    struct Processes(Vec<Option<i64>>);

    impl ProfileSink for Processes {
        fn sample(&mut self, at: Context<'_>, _sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            self.0.push(at.segment.process);
            Ok(ControlFlow::Continue(()))
        }
    }

    #[test]
    fn a_segment_of_several_processes_is_nobodys() {
        let header = Header { has_timestamps: false, period_us: 0 };
        let mut writer = Writer::new(Vec::new(), header).unwrap();
        for processes in [&["7"][..], &["7", "7"], &["7", "8"], &["7", "8", "8"], &[], &["x", "8"]] {
            writer.start_segment(header).unwrap();
            for process in processes {
                writer.write_metadata(b"pid", process.as_bytes()).unwrap();
            }
            writer.write_trace(&[]).unwrap();
        }
        let (bytes, mut sink) = (writer.finish().unwrap(), Processes::default());
        import(bytes.as_slice(), &ReadOptions::default(), &mut Tables::default(), &mut sink).unwrap();
        assert_eq!(sink.0, [Some(7), Some(7), None, None, None, None]);
    }
}
