//! The rows of a timeline.

use std::io;

use borehole_model::{Lane, LaneId, Thread, ThreadNames};
use hashbrown::HashMap;

use super::Canvas;

/// A row, or a group of rows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TimelineTrack {
    /// The id, from 1, in order of first use.
    pub id: u64,
    /// The parent track; `None` for a process.
    pub parent: Option<u64>,
    /// The track of its process, which may be itself.
    pub process: u64,
    /// The process id, if it is known.
    pub pid: Option<i64>,
    pub kind: TrackKind,
    /// The name; empty once it is announced, except for counters, each of whose values has it.
    pub name: String,
}

/// The kind of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrackKind {
    /// All of a process, or of a source without a known process.
    Process,
    /// A thread, by the operating system's number.
    Thread(u64),
    /// Something else that does one thing at a time: a worker, a task.
    Row,
    /// A track for things that overlap: the spans of a name.
    Shared,
    /// A number that changes.
    Counter,
}

/// A row of a lane's calls. A lane has another one for samples that are older than those already drawn, since calls of one row
/// nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallsRow {
    pub(super) lane: Lane,
    /// The number of the row within its lane, from 0.
    pub(super) number: usize,
}

impl CallsRow {
    /// The first row of a lane, usually the only one.
    pub(super) const fn first(lane: Lane) -> Self {
        Self { lane, number: 0 }
    }
}

/// The subject of a track within its source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TrackSubject {
    Process(Option<i64>),
    Calls(CallsRow),
    Gil(CallsRow),
    Cpu(CallsRow),
    Worker(u64),
    WorkerState(u64),
    LocalQueue(u64),
    Task(u64),
    Span(u64),
    Events(String),
    Counter(String),
}

impl TrackSubject {
    fn kind(&self) -> TrackKind {
        match self {
            Self::Process(_) => TrackKind::Process,
            Self::Calls(row) if row.number == 0 => kind_of_lane(&row.lane),
            Self::Span(_) => TrackKind::Shared,
            Self::Counter(_) | Self::LocalQueue(_) => TrackKind::Counter,
            _ => TrackKind::Row,
        }
    }

    const fn process(&self) -> Option<i64> {
        match self {
            Self::Process(process) => *process,
            Self::Calls(row) | Self::Gil(row) | Self::Cpu(row) => row.lane.process,
            _ => None,
        }
    }

    /// The operating system's id of the process.
    fn pid(&self) -> Option<i64> {
        self.process().filter(|&process| matches!(LaneId::of_process(process), LaneId::System(_)))
    }

    /// The parent of the track.
    fn parent(&self) -> Option<Self> {
        match self {
            Self::Process(_) => None,
            Self::Gil(row) | Self::Cpu(row) => Some(Self::Calls(*row)),
            Self::Calls(row) if row.number > 0 => Some(Self::Calls(CallsRow::first(row.lane))),
            Self::WorkerState(worker) | Self::LocalQueue(worker) => Some(Self::Worker(*worker)),
            _ => Some(Self::Process(self.process())),
        }
    }
}

/// The kind of a lane's track. A thread number gets one track: that of the main interpreter, usually the only one.
fn kind_of_lane(lane: &Lane) -> TrackKind {
    match (lane.thread.map(LaneId::of), lane.interpreter.unwrap_or(0)) {
        (Some(LaneId::System(thread)), 0) => TrackKind::Thread(thread),
        _ => TrackKind::Row,
    }
}

/// All tracks so far.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    rows: Vec<TimelineTrack>,
    /// The rows of the current source.
    by_key: HashMap<TrackSubject, usize>,
    source: String,
    thread_names: ThreadNames<String>,
}

impl Tracks {
    /// Begins a source; equal keys are new tracks from here on.
    pub(super) fn begin_source(&mut self, name: &str) {
        self.by_key.clear();
        self.thread_names.clear();
        name.clone_into(&mut self.source);
    }

    /// Whether nothing has been drawn.
    pub(super) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn name_thread(&mut self, thread: Thread, name: &str) {
        self.thread_names.name(thread, name.to_owned());
    }

    /// The track of `key`, announced if it is new.
    pub(super) fn track(
        &mut self,
        canvas: &mut impl Canvas,
        key: &TrackSubject,
    ) -> io::Result<&TimelineTrack> {
        let row = match self.by_key.get(key) {
            Some(&row) => row,
            None => self.announce(canvas, key)?,
        };
        Ok(&self.rows[row])
    }

    /// The track with an id.
    pub(super) fn with_id(&self, id: u64) -> Option<&TimelineTrack> {
        self.rows.get(usize::try_from(id.checked_sub(1)?).ok()?)
    }

    /// Announces the track of `key` and its new ancestors, the outermost first.
    fn announce(&mut self, canvas: &mut impl Canvas, key: &TrackSubject) -> io::Result<usize> {
        let mut missing = vec![key.clone()];
        while let Some(parent) = missing.last().and_then(TrackSubject::parent) {
            if self.by_key.contains_key(&parent) {
                break;
            }
            missing.push(parent);
        }
        for key in missing.into_iter().rev() {
            let mut track = self.new_track(&key);
            canvas.track(&track)?;
            if track.kind != TrackKind::Counter {
                track.name = String::new();
            }
            self.by_key.insert(key, self.rows.len());
            self.rows.push(track);
        }
        Ok(self.rows.len() - 1)
    }

    fn new_track(&self, key: &TrackSubject) -> TimelineTrack {
        let id = self.rows.len() as u64 + 1;
        let parent = key.parent().and_then(|parent| self.by_key.get(&parent)).map(|&row| &self.rows[row]);
        TimelineTrack {
            id,
            parent: parent.map(|parent| parent.id),
            process: parent.map_or(id, |parent| parent.process),
            pid: parent.map_or(key.pid(), |parent| parent.pid),
            kind: key.kind(),
            name: self.name(key),
        }
    }

    fn name(&self, key: &TrackSubject) -> String {
        match key {
            TrackSubject::Process(pid) => {
                let numbered = |pid| format!("process {}", LaneId::of_process(pid));
                let name = pid.map_or_else(|| "process".to_owned(), numbered);
                if self.source.is_empty() { name } else { format!("{}: {name}", self.source) }
            }
            TrackSubject::Calls(row) if row.number > 0 => {
                format!("{} (row {})", self.lane_name(&row.lane), row.number + 1)
            }
            TrackSubject::Calls(row) => self.lane_name(&row.lane),
            TrackSubject::Gil(..) => "GIL".to_owned(),
            TrackSubject::Cpu(..) => "CPU".to_owned(),
            TrackSubject::Worker(worker) => format!("worker {worker}"),
            TrackSubject::WorkerState(worker) => format!("worker {worker} state"),
            TrackSubject::LocalQueue(worker) => format!("worker {worker} local queue"),
            TrackSubject::Task(task) => format!("task {task}"),
            TrackSubject::Span(_) => "spans".to_owned(),
            TrackSubject::Events(name) | TrackSubject::Counter(name) => name.clone(),
        }
    }

    fn lane_name(&self, lane: &Lane) -> String {
        let name = lane.thread().and_then(|thread| self.thread_names.of(thread));
        let name = match (name, lane.thread) {
            (Some(name), _) => name.clone(),
            (None, Some(number)) => format!("thread {}", LaneId::of(number)),
            (None, None) => "samples".to_owned(),
        };
        // Most programs have only interpreter 0. Tracks of other interpreters have no thread number of their own.
        let Some(interpreter) = lane.interpreter.filter(|&interpreter| interpreter > 0) else { return name };
        match lane.thread.map(LaneId::of) {
            Some(thread) => format!("{name}, thread {thread}, interpreter {interpreter}"),
            None => format!("{name}, interpreter {interpreter}"),
        }
    }
}
