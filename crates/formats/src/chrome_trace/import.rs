//! Imports trace events into the model.

use std::io::BufRead;
use std::ops::ControlFlow;

use borehole_memory::HeldBytes as _;
use borehole_model::{
    Context, Frame, FrameId, LaneId, ProfileSink, Recovery, Sample, Segment, StringId, TableFull, Tables,
    Thread, ValueType, Warning,
};
use hashbrown::HashMap;

use super::NAME;
use super::calls::{self, Call, Stretch};
use super::events::HeldEvents;
use super::read::{Arguments, EventTaker, TraceEvent, TraceId, TraceSeed};
use super::sampled::{ProfiledThread, SampledProfiles, is_sampled};
use crate::documents::json::{self, JsonMemory};
use crate::documents::whole::DocumentDamage;
use crate::{ErrorKind, ReadError, ReadOptions};

/// Reads trace events: each thread becomes a segment, and each stretch of time with one stack a sample with the value
/// `wall/nanoseconds`.
///
/// Calls are complete events (`X`) and pairs of begin and end (`B`, `E`); a call that never ends lasts until the last event of its
/// thread. The name of an event is its function; file and line come from its arguments, where py-spy has them, or from the name,
/// where viztracer does. A list that is cut off is read up to the cut, with a warning. If the trace has profiles sampled by V8
/// (DevTools' performance panel), each is a segment whose samples last until the next one, and calls are not read, because they are
/// of the same time.
///
/// Instants are events, pairs of asynchronous events are spans, and counters are events with a number that changes over time. Flow
/// arrows, objects, memory dumps and other events are not read; a note for each counts them.
///
/// # Errors
/// If the input is not such a document or exceeds the limit, or the sink fails. Positions are lines.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, chrome_trace};
/// use borehole_model::{Count, Tables};
///
/// let text = br#"[{"ph":"X","name":"f","pid":1,"tid":1,"ts":10,"dur":5}]"#;
/// let mut count = Count::default();
/// let recovery = chrome_trace::import(&text[..], &ReadOptions::default(), &mut Tables::default(), &mut count)?;
/// assert_eq!(recovery.samples, 1);
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
    let mut lanes = TraceLanes {
        tables,
        memory: &memory,
        rows: Vec::new(),
        index: HashMap::new(),
        sampled: SampledProfiles::default(),
        events: HeldEvents::default(),
        unread: UnreadEvents::default(),
        full: None,
    };
    let read = json::parse(NAME, input, &memory, TraceSeed(&mut lanes));
    let TraceLanes { rows, sampled, events, mut unread, full, .. } = lanes;
    if let Some(full) = full {
        return Err(full.into());
    }
    match read {
        // The end of the list may be missing: programs that are killed leave it out.
        Err(error) if error.kind() == ErrorKind::Truncated && !(rows.is_empty() && events.is_empty()) => {
            damage.recovery.warn(Warning::truncated(error.message()));
        }
        Err(error) => damage.meet(error, 0)?,
        Ok(()) => {}
    }
    let has_samples = !sampled.profiles.is_empty();
    if has_samples {
        let calls: usize = rows.iter().map(|row| row.calls.len()).sum();
        if calls > 0 {
            let message = format!("{calls} calls are not read: the samples of the same time are");
            damage.recovery.note(Warning::new(message));
        }
        sampled.deliver(|row| rows[row].thread(), &mut damage, tables, sink)?;
        // What a browser traces beside samples is of many kinds.
        unread.others = 0;
    }
    unread.note(&mut damage);
    for row in rows.into_iter().filter(|_| !has_samples) {
        row.deliver(tables, sink, &mut damage)?;
        if damage.recovery.stopped {
            break;
        }
    }
    if !damage.recovery.stopped {
        events.deliver(tables, sink, &mut damage)?;
    }
    damage.finish(sink)
}

/// The events of all threads.
struct TraceLanes<'a> {
    tables: &'a mut Tables,
    memory: &'a JsonMemory,
    rows: Vec<LaneCalls>,
    index: HashMap<(TraceId, TraceId), usize>,
    sampled: SampledProfiles,
    events: HeldEvents,
    unread: UnreadEvents,
    /// The table that ended the reading.
    full: Option<TableFull>,
}

/// The numbers of events that are not read.
#[derive(Clone, Copy, Debug, Default)]
struct UnreadEvents {
    arrows: u64,
    objects: u64,
    dumps: u64,
    others: u64,
}

impl UnreadEvents {
    fn count(&mut self, phase: &str) {
        match phase {
            "M" => {}
            "s" | "t" | "f" => self.arrows += 1,
            "N" | "O" | "D" => self.objects += 1,
            "v" | "V" => self.dumps += 1,
            _ => self.others += 1,
        }
    }

    fn note(self, damage: &mut DocumentDamage) {
        for (count, what) in [
            (self.arrows, "ends and steps of flow arrows are not read"),
            (self.objects, "events about objects (created, snapshot, deleted) are not read"),
            (self.dumps, "memory dumps are not read"),
            (self.others, "other events are not read: their phase is unknown, or they have no time"),
        ] {
            if count > 0 {
                damage.recovery.note(Warning::new(format!("{count} {what}")));
            }
        }
    }
}

/// The calls of a thread.
#[derive(Debug, Default)]
struct LaneCalls {
    process: Option<i64>,
    thread: Option<u64>,
    name: Option<StringId>,
    process_name: Option<StringId>,
    calls: Vec<Call>,
    /// The places in `calls` of the calls that have not ended.
    open: Vec<usize>,
    latest_ns: i64,
    /// Ends without a beginning.
    unmatched: u64,
}

impl EventTaker for TraceLanes<'_> {
    fn event(&mut self, event: TraceEvent) -> Result<(), String> {
        self.take(event).map_err(|full| {
            let message = full.to_string();
            self.full = Some(full);
            message
        })
    }
}

impl TraceLanes<'_> {
    fn take(&mut self, event: TraceEvent) -> Result<(), TableFull> {
        let is_call = matches!(&*event.ph, "X" | "B" | "E");
        let is_name = event.ph == "M" && matches!(&*event.name, "thread_name" | "process_name");
        if is_sampled(&event.name)
            && let Some(data) = event.args.data
        {
            let row = self.row(event.pid.clone(), event.tid);
            let held = self.sampled.take((event.pid, event.id), &event.name, row, data);
            self.memory.add(held);
            return Ok(());
        }
        if let Some(ts) = event.ts.filter(|_| event.has_data()) {
            let row = self.row(event.pid.clone(), event.tid.clone());
            let lane = (self.rows[row].process, self.rows[row].thread);
            let held = self.events.take(event, nanoseconds(ts), lane, self.tables)?;
            // Sorting needs half as much again.
            self.memory.add(2 * held);
            return Ok(());
        }
        if !is_call && !is_name {
            self.unread.count(&event.ph);
            return Ok(());
        }
        let TraceEvent { ph, name, pid, tid, ts, dur, args, .. } = event;
        let row = self.row(pid, tid);
        if is_name {
            let text = args.name.map(|text| self.tables.intern_string(text.as_bytes())).transpose()?;
            let row = &mut self.rows[row];
            match &*name {
                "thread_name" => row.name = text,
                _ => row.process_name = text,
            }
            return Ok(());
        }
        let (start_ns, lasts_ns) = (nanoseconds(ts.unwrap_or(0.0)), nanoseconds(dur.unwrap_or(0.0)).max(0));
        if ph == "E" {
            self.rows[row].end(start_ns);
            return Ok(());
        }
        let frame = intern(self.tables, &name, &args)?;
        let row = &mut self.rows[row];
        let before = row.calls.held_bytes();
        if ph == "X" {
            let end_ns = start_ns.saturating_add(lasts_ns);
            row.latest_ns = row.latest_ns.max(end_ns);
            row.calls.push(Call { start_ns, end_ns, frame });
        } else {
            row.latest_ns = row.latest_ns.max(start_ns);
            row.open.push(row.calls.len());
            row.calls.push(Call { start_ns, end_ns: i64::MAX, frame });
        }
        // The list of open calls is at most as long, and sorting needs as much again.
        self.memory.add(3 * (row.calls.held_bytes() - before));
        Ok(())
    }

    fn row(&mut self, pid: TraceId, tid: TraceId) -> usize {
        let next = self.rows.len();
        let key = (pid, tid);
        if let Some(&row) = self.index.get(&key) {
            return row;
        }
        let process = id_of(&key.0, &|| self.index.keys().position(|(pid, _)| *pid == key.0).unwrap_or(next));
        let thread = id_of(&key.1, &|| next);
        self.memory.add(size_of::<LaneCalls>() + 2 * (key.0.0.len() + key.1.0.len()));
        self.rows.push(LaneCalls {
            process: process.map(LaneId::to_process),
            thread: thread.map(LaneId::to_u64),
            latest_ns: i64::MIN,
            ..LaneCalls::default()
        });
        self.index.insert(key, next);
        next
    }
}

/// The id that a text says; a name is numbered.
fn id_of(text: &TraceId, number: &dyn Fn() -> usize) -> Option<LaneId> {
    if text.0.is_empty() {
        return None;
    }
    LaneId::parse(&text.0).or_else(|| Some(LaneId::Profile(number() as u64)))
}

fn intern(tables: &mut Tables, name: &str, args: &Arguments) -> Result<FrameId, TableFull> {
    let (name, file, line) = match &args.file {
        Some(file) => (name, Some(&**file), args.line),
        None => split_place(name)
            .map_or((name, None, args.line), |(name, file, line)| (name, Some(file), Some(line))),
    };
    let function = tables.intern_string(name.as_bytes())?;
    let file = match file {
        Some(file) => Some(tables.intern_string(file.as_bytes())?),
        None => None,
    };
    tables.intern_frame(&Frame { file, line, ..Frame::named(function) })
}

/// Splits `FUNCTION (FILE:LINE)`, the names of viztracer.
fn split_place(name: &str) -> Option<(&str, &str, i64)> {
    let (function, place) = name.strip_suffix(')')?.rsplit_once(" (")?;
    let (file, line) = place.rsplit_once(':')?;
    Some((function, file, line.parse().ok().filter(|&line| line >= 0)?))
}

impl LaneCalls {
    fn thread(&self) -> ProfiledThread {
        ProfiledThread { process: self.process, thread: self.thread, name: self.name }
    }

    fn end(&mut self, end_ns: i64) {
        self.latest_ns = self.latest_ns.max(end_ns);
        match self.open.pop() {
            Some(place) => self.calls[place].end_ns = end_ns.max(self.calls[place].start_ns),
            None => self.unmatched += 1,
        }
    }

    /// Passes the calls to the sink as samples.
    fn deliver(
        mut self,
        tables: &mut Tables,
        sink: &mut dyn ProfileSink,
        damage: &mut DocumentDamage,
    ) -> Result<(), ReadError> {
        if self.calls.is_empty() {
            return Ok(());
        }
        for &place in &self.open {
            self.calls[place].end_ns = self.latest_ns;
        }
        let segment = self.segment(damage.recovery.segments, tables)?;
        sink.segment(Context { tables, segment: &segment })?;
        damage.recovery.segments += 1;
        if let (Some(name), Some(number)) = (self.name, self.thread) {
            let thread = Thread { process: self.process, number };
            sink.thread(Context { tables, segment: &segment }, thread, name)?;
        }
        let recovery = &mut damage.recovery;
        let thread = self.thread;
        let cut = calls::stretches(&mut self.calls, tables, |tables, stretch| {
            if recovery.stopped {
                return Ok(());
            }
            let Stretch { stack, start_ns, lasts_ns } = stretch;
            let values = &[lasts_ns];
            let sample = Sample {
                stack: Some(stack),
                count: 1,
                time_ns: Some(start_ns),
                thread,
                values,
                ..Sample::default()
            };
            recovery.samples = recovery.samples.saturating_add(1);
            recovery.stopped =
                sink.sample(Context { tables, segment: &segment }, &sample)? == ControlFlow::Break(());
            Ok::<_, ReadError>(())
        })?;
        self.warn(cut, damage);
        Ok(())
    }

    fn segment(&self, index: u64, tables: &mut Tables) -> Result<Segment, TableFull> {
        let metadata = match self.process_name {
            Some(name) => vec![(tables.intern_string(b"process_name")?, name)],
            None => Vec::new(),
        };
        Ok(Segment {
            format: NAME,
            index,
            has_times: true,
            is_ordered: true,
            process: self.process,
            metadata,
            value_types: vec![ValueType::new("wall", "nanoseconds")],
            is_uncounted: true,
            ..Segment::default()
        })
    }

    /// Reports calls that are not nested, or not whole.
    fn warn(&self, cut: u64, damage: &mut DocumentDamage) {
        let lane = || {
            let id =
                |number: Option<u64>| number.map_or("?".to_owned(), |number| LaneId::of(number).to_string());
            format!("thread {} of process {}", id(self.thread), id(self.process.map(i64::cast_unsigned)))
        };
        for (count, what) in [
            (self.open.len() as u64, "calls without an end last until the last event"),
            (self.unmatched, "ends without a call are ignored"),
            (cut, "calls that end after their caller are cut there"),
        ] {
            if count > 0 {
                damage.recovery.note(Warning::new(format!("{count} {what} ({})", lane())));
            }
        }
    }
}

/// Converts microseconds. What is too large becomes the largest.
#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
fn nanoseconds(microseconds: f64) -> i64 {
    (microseconds * 1000.0).round() as i64
}
