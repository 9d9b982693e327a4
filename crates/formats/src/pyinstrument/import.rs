//! Imports a session into the model.

use std::io::BufRead;

use borehole_model::{
    Context, Frame, FrameId, LaneId, ProfileSink, Recovery, Sample, Segment, StackId, StringId, TableFull,
    Tables, Thread, ValueType,
};
use hashbrown::HashMap;

use super::NAME;
use super::read::{FrameInfo, RecordTaker, SessionFacts, SessionSeed};
use crate::documents::json::{self, JsonMemory};
use crate::documents::whole::DocumentDamage;
use crate::frames::memo::FrameMemo;
use crate::{ReadError, ReadOptions};

/// Reads a session of pyinstrument. The time of each sample is its value `wall/nanoseconds`, and it begins where that of the sample
/// before ends.
///
/// # Errors
/// If the input is not such a session or exceeds the limit, or the sink fails. Positions are lines.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, pyinstrument};
/// use borehole_model::{Count, Tables};
///
/// let text = br#"{"start_time":1700000000.5,"duration":0.1,"sample_count":2,"start_call_stack":[],
///     "frame_records":[[["main\u0000/a.py\u00001"],0.06],[["main\u0000/a.py\u00001"],0.04]]}"#;
/// let mut count = Count::default();
/// let recovery = pyinstrument::import(&text[..], &ReadOptions::default(), &mut Tables::default(), &mut count)?;
/// assert_eq!(recovery.samples, 2);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = DocumentDamage::new(options);
    let memory = JsonMemory::new(options.limits);
    let mut records = SessionRecords::new(&memory, tables);
    let read = json::parse(NAME, input, &memory, SessionSeed(&mut records));
    if let Some(full) = records.full {
        return Err(full.into());
    }
    let facts = match read {
        Ok(facts) => facts,
        Err(error) => {
            damage.meet(error, 0)?;
            SessionFacts::default()
        }
    };
    let SessionRecords { rows, threads, .. } = records;
    let segment = segment(&facts, tables)?;
    sink.segment(Context { tables, segment: &segment })?;
    damage.recovery.segments += 1;
    for thread in &threads {
        let of = Thread { process: None, number: thread.number };
        sink.thread(Context { tables, segment: &segment }, of, thread.name)?;
    }
    let mut time_ns = 0_i64;
    for RecordRow { stack, thread, lasts_ns } in rows {
        let thread = thread.and_then(|row| threads.get(row as usize)).map(|thread| thread.number);
        let values = &[lasts_ns];
        let sample = Sample { stack, count: 1, time_ns: Some(time_ns), thread, values, ..Sample::default() };
        damage.recovery.samples += 1;
        damage.recovery.stopped = sink.sample(Context { tables, segment: &segment }, &sample)?.is_break();
        if damage.recovery.stopped {
            break;
        }
        time_ns = time_ns.saturating_add(lasts_ns);
    }
    damage.finish(sink)
}

fn segment(facts: &SessionFacts, tables: &mut Tables) -> Result<Segment, TableFull> {
    let mut metadata = Vec::new();
    if let Some(target) = facts.target_description.as_deref().filter(|target| !target.is_empty()) {
        metadata.push((tables.intern_string(b"target")?, tables.intern_string(target.as_bytes())?));
    }
    let period_ns = facts.min_interval.map(nanoseconds).and_then(|period| u64::try_from(period).ok());
    Ok(Segment {
        format: NAME,
        period_ns: period_ns.filter(|&period| period > 0),
        has_times: true,
        is_ordered: true,
        start_unix_ns: facts.start_time.map(nanoseconds).filter(|&start| start > 0),
        value_types: vec![ValueType::new("wall", "nanoseconds")],
        is_uncounted: true,
        metadata,
        ..Segment::default()
    })
}

/// Converts seconds. What is too large becomes the largest.
#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

/// The samples of a session, until its end is known to be there.
struct SessionRecords<'a> {
    memory: &'a JsonMemory,
    tables: &'a mut Tables,
    memo: FrameMemo,
    threads: Vec<SessionThread>,
    thread_rows: HashMap<String, u32>,
    rows: Vec<RecordRow>,
    next: NextRecord,
    name: Vec<u8>,
    /// The table that ended the reading.
    full: Option<TableFull>,
}

/// A thread, by the frame that stands for it.
struct SessionThread {
    number: u64,
    name: StringId,
}

#[derive(Clone, Copy)]
struct RecordRow {
    stack: Option<StackId>,
    /// The row of the thread.
    thread: Option<u32>,
    lasts_ns: i64,
}

/// The frames of the sample that is being read.
#[derive(Clone, Copy, Default)]
struct NextRecord {
    stack: Option<StackId>,
    thread: Option<u32>,
}

impl RecordTaker for SessionRecords<'_> {
    fn frame(&mut self, text: &str) -> Result<(), String> {
        self.take(text).map_err(|full| {
            self.full = Some(full);
            full.to_string()
        })
    }

    fn time(&mut self, seconds: f64) {
        let NextRecord { stack, thread } = std::mem::take(&mut self.next);
        self.memory.add(size_of::<RecordRow>());
        self.rows.push(RecordRow { stack, thread, lasts_ns: nanoseconds(seconds).max(0) });
    }
}

impl<'a> SessionRecords<'a> {
    fn new(memory: &'a JsonMemory, tables: &'a mut Tables) -> Self {
        Self {
            memory,
            tables,
            memo: FrameMemo::default(),
            threads: Vec::new(),
            thread_rows: HashMap::new(),
            rows: Vec::new(),
            next: NextRecord::default(),
            name: Vec::new(),
            full: None,
        }
    }

    fn take(&mut self, text: &str) -> Result<(), TableFull> {
        // The first frame of a sample may stand for its thread.
        if self.next.stack.is_none()
            && let Some(thread) = self.thread(text)?
        {
            self.next.thread = Some(thread);
            return Ok(());
        }
        let Self { memory, tables, memo, name, .. } = self;
        let frame = memo.frame(text.as_bytes(), || {
            memory.add(2 * text.len() + 32);
            intern(&FrameInfo::parse(text), name, tables)
        })?;
        self.next.stack = Some(self.tables.intern_stack(self.next.stack, frame)?);
        Ok(())
    }

    /// The row of the thread that a frame stands for.
    fn thread(&mut self, text: &str) -> Result<Option<u32>, TableFull> {
        if let Some(&known) = self.thread_rows.get(text) {
            return Ok(Some(known));
        }
        let info = FrameInfo::parse(text);
        let Some(id) = info.thread.and_then(LaneId::parse) else { return Ok(None) };
        let Ok(row) = u32::try_from(self.threads.len()) else { return Ok(None) };
        self.memory.add(2 * text.len() + 64);
        let name = self.tables.intern_string(info.function.as_bytes())?;
        self.threads.push(SessionThread { number: id.to_u64(), name });
        self.thread_rows.insert(text.to_owned(), row);
        Ok(Some(row))
    }
}

fn intern(info: &FrameInfo<'_>, name: &mut Vec<u8>, tables: &mut Tables) -> Result<FrameId, TableFull> {
    name.clear();
    if !info.class.is_empty() {
        name.extend_from_slice(info.class.as_bytes());
        name.push(b'.');
    }
    name.extend_from_slice(info.function.as_bytes());
    let function = tables.intern_string(name)?;
    let file = match info.file {
        "" => None,
        file => Some(tables.intern_string(file.as_bytes())?),
    };
    tables.intern_frame(&Frame { file, line: info.line, ..Frame::named(function) })
}
