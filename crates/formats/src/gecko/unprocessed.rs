//! Imports the profiles that Firefox itself writes: a document for each process, one inside the other.

use std::collections::HashMap;

use borehole_model::{Context, Frame, FrameId, LaneId, NativeFrame, Sample, Segment, Thread};

use super::NAME;
use super::import::{ProfileReading, ResolvedStacks, id_text};
use super::location::RawLocation;
use super::markers::ThreadMarkers;
use super::read::{Lib, ProcessedProfile, ThreadTables, nanoseconds};
use crate::ReadError;

impl ProfileReading<'_> {
    /// Reads the threads of a process, then those of its children. Times count from the start of the outermost.
    pub(super) fn processes(&mut self, document: &ProcessedProfile) -> Result<(), ReadError> {
        let mut waiting = vec![document];
        while let Some(process) = waiting.pop() {
            for thread in &process.threads {
                if !self.damage.recovery.stopped {
                    self.raw_thread(process, thread)?;
                }
            }
            self.counters(process, self.later_ns(process))?;
            waiting.extend(process.processes.iter().rev());
        }
        Ok(())
    }

    fn raw_thread(&mut self, process: &ProcessedProfile, thread: &ThreadTables) -> Result<(), ReadError> {
        let Some(samples) = thread.samples.as_ref().map(|samples| samples.rows()) else { return Ok(()) };
        let stacks = self.raw_stacks(process, thread)?;
        let segment = self.raw_segment(process, thread)?;
        self.sink.segment(Context { tables: self.tables, segment: &segment })?;
        self.damage.recovery.segments += 1;
        let number = id_text(&thread.tid).and_then(|text| LaneId::parse(&text)).map(LaneId::to_u64);
        self.name_raw_thread(thread, &segment, number)?;
        let later_ns = self.later_ns(process);
        let (stack_column, time_column) = (samples.column("stack"), samples.column("time"));
        for row in 0..samples.len() {
            let stack = match samples.cell(row, stack_column) {
                None => None,
                Some(_) => match samples.index(row, stack_column).and_then(|stack| stacks.get(stack)) {
                    Some(&Some(stack)) => Some(stack),
                    _ => {
                        self.meet(format!("unknown stack in sample {row} of a thread"))?;
                        continue;
                    }
                },
            };
            let time_ns =
                samples.cell(row, time_column).map(|time| nanoseconds(time).saturating_add(later_ns));
            self.give(&segment, &Sample { stack, count: 1, time_ns, thread: number, ..Sample::default() })?;
            if self.damage.recovery.stopped {
                return Ok(());
            }
        }
        let strings = thread.string_array.as_deref().unwrap_or_default();
        let (table, meta) = (&thread.markers, &process.meta);
        let stacks = &stacks[..];
        self.markers(ThreadMarkers { table, strings, stacks, meta, thread: number, later_ns }, &segment)
    }

    /// The nanoseconds from the start of the outermost process to that of `process`.
    fn later_ns(&self, process: &ProcessedProfile) -> i64 {
        let starts = process.meta.start_time.zip(self.document.meta.start_time);
        starts.map_or(0, |(own, first)| nanoseconds(own - first))
    }

    fn raw_segment(
        &mut self,
        process: &ProcessedProfile,
        thread: &ThreadTables,
    ) -> Result<Segment, ReadError> {
        let mut metadata = Vec::new();
        for (key, value) in [("process", &thread.process_name), ("type", &thread.process_type)] {
            if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
                metadata.push((self.text(key)?, self.text(value)?));
            }
        }
        let meta = &self.document.meta;
        let interval = process.meta.interval.map(nanoseconds).and_then(|period| u64::try_from(period).ok());
        Ok(Segment {
            format: NAME,
            index: self.damage.recovery.segments,
            period_ns: interval.filter(|&period| period > 0),
            has_times: true,
            start_unix_ns: meta.start_time.map(nanoseconds).filter(|&start| start > 0),
            process: id_text(&thread.pid).and_then(|text| LaneId::parse(&text)).map(LaneId::to_process),
            metadata,
            ..Segment::default()
        })
    }

    fn name_raw_thread(
        &mut self,
        thread: &ThreadTables,
        segment: &Segment,
        number: Option<u64>,
    ) -> Result<(), ReadError> {
        let name = thread.name.as_deref().filter(|name| !name.is_empty());
        if let Some((name, number)) = name.zip(number) {
            let name = self.text(name)?;
            let thread = Thread { process: segment.process, number };
            self.sink.thread(Context { tables: self.tables, segment }, thread, name)?;
        }
        Ok(())
    }

    /// All stacks of a thread. Callers come before callees.
    fn raw_stacks(
        &mut self,
        process: &ProcessedProfile,
        thread: &ThreadTables,
    ) -> Result<ResolvedStacks, ReadError> {
        let Some(table) = thread.stack_table.as_ref().map(|table| table.rows()) else {
            return Ok(Vec::new());
        };
        let frames = self.raw_frames(process, thread)?;
        let (prefix_column, frame_column) = (table.column("prefix"), table.column("frame"));
        let mut stacks: ResolvedStacks = Vec::new();
        for row in 0..table.len() {
            let frame = table.index(row, frame_column).and_then(|frame| frames.get(frame).copied().flatten());
            let caller = match table.cell(row, prefix_column) {
                None => Some(None),
                Some(_) => {
                    let caller =
                        table.index(row, prefix_column).and_then(|caller| stacks.get(caller).copied());
                    caller.flatten().map(Some)
                }
            };
            stacks.push(self.stack(row, caller.zip(frame))?);
        }
        Ok(stacks)
    }

    fn raw_frames(
        &mut self,
        process: &ProcessedProfile,
        thread: &ThreadTables,
    ) -> Result<Vec<Option<FrameId>>, ReadError> {
        let table = thread.frame_table.rows();
        let strings = thread.string_array.as_deref().unwrap_or_default();
        let libs = sorted_libs(process);
        let [location, line, column] = ["location", "line", "column"].map(|name| table.column(name));
        // Many rows are of one function.
        let mut functions: HashMap<usize, Frame> = HashMap::new();
        let mut frames = Vec::new();
        for row in 0..table.len() {
            let found = table.index(row, location).and_then(|index| Some((index, strings.get(index)?)));
            let Some((index, text)) = found else {
                self.meet(format!("invalid frame {row}: missing location"))?;
                frames.push(None);
                continue;
            };
            let function = match functions.get(&index) {
                Some(&known) => known,
                None => {
                    let function = self.raw_function(&libs, text)?;
                    functions.insert(index, function);
                    function
                }
            };
            let line = table.index(row, line).and_then(|line| i64::try_from(line).ok());
            let column = table.index(row, column).and_then(|column| u32::try_from(column).ok());
            frames.push(Some(self.tables.intern_frame(&executing(function, line, column))?));
        }
        Ok(frames)
    }

    /// The function that a text names, with its own position.
    fn raw_function(&mut self, libs: &[&Lib], text: &str) -> Result<Frame, ReadError> {
        Ok(match RawLocation::parse(text) {
            RawLocation::Address(address) => match lib_at(libs, address) {
                Some(lib) => self.native_frame(&format!("{:#x}", address - lib.start), lib.module())?,
                None => Frame::named(self.text(text)?),
            },
            RawLocation::Native { function, library } => self.native_frame(function, library)?,
            RawLocation::Script { function, file, line, column } => Frame {
                file: Some(self.text(file)?),
                line,
                column,
                ..Frame::named(self.text(function.unwrap_or(file))?)
            },
            RawLocation::Name(name) => Frame::named(self.text(name)?),
        })
    }

    fn native_frame(&mut self, name: &str, module: &str) -> Result<Frame, ReadError> {
        let native = Some(NativeFrame { module: self.text(module)?, offset: None, file_offset: None });
        Ok(Frame { native, ..Frame::named(self.text(name)?) })
    }
}

/// The libraries that have a name, by their address.
fn sorted_libs(process: &ProcessedProfile) -> Vec<&Lib> {
    let mut libs: Vec<_> = process.libs.iter().filter(|lib| !lib.module().is_empty()).collect();
    libs.sort_by_key(|lib| lib.start);
    libs
}

fn lib_at<'l>(libs: &[&'l Lib], address: u64) -> Option<&'l Lib> {
    let before = libs.partition_point(|lib| lib.start <= address).checked_sub(1)?;
    libs.get(before).copied().filter(|lib| address < lib.end)
}

/// The frame of a function at the line and column that were executed, which come before its own. Native code has none.
fn executing(function: Frame, line: Option<i64>, column: Option<u32>) -> Frame {
    if function.native.is_some() || line.is_none() {
        return function;
    }
    Frame { line, column, ..function }
}
