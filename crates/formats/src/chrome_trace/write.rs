//! A timeline as lines of JSON.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use hashbrown::HashSet;
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

use crate::timeline::{Arrow, Canvas, Detail, Details, Mark, TimelineTrack, TrackKind};

/// The bytes buffered before a write.
const BUFFER_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub struct TraceEvents<W: Write> {
    output: BufWriter<W>,
    has_begun: bool,
    names: HashSet<Arc<str>>,
    /// By track: the names of what has begun and not ended. Importers match an end by its name, as speedscope's does.
    open: Vec<Vec<Arc<str>>>,
}

/// One event. Members that do not apply are left out.
#[derive(Debug, Serialize)]
struct JsonTraceEvent<'a> {
    ph: &'static str,
    pid: i64,
    tid: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<serde_json::Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    /// Links events across tracks.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// The end of an arrow: `e` binds it to the enclosing slice.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
    /// The scope of an instant: its thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Args<'a>>,
}

#[derive(Debug)]
enum Args<'a> {
    Details(&'a Details<'a>),
    Name(&'a str),
    SortIndex(u64),
    Value(f64),
    Wall { time_ns: u64, unix_ns: u64 },
}

impl Serialize for Args<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Details(details) => {
                for (name, value) in *details {
                    match value {
                        Detail::Unsigned(number) => map.serialize_entry(name, number)?,
                        Detail::Signed(number) => map.serialize_entry(name, number)?,
                        Detail::Float(number) => map.serialize_entry(name, number)?,
                        Detail::Bool(truth) => map.serialize_entry(name, truth)?,
                        Detail::Text(text) => map.serialize_entry(name, text)?,
                    }
                }
            }
            Self::Name(name) => map.serialize_entry("name", name)?,
            Self::SortIndex(index) => map.serialize_entry("sort_index", index)?,
            Self::Value(value) => map.serialize_entry("value", value)?,
            Self::Wall { time_ns, unix_ns } => {
                map.serialize_entry("time_ns", time_ns)?;
                map.serialize_entry("unix_ns", unix_ns)?;
            }
        }
        map.end()
    }
}

/// The first number for rows and processes without one. It must not be an id of a process or a thread, which in containers
/// are as small as 1. The trace processor reads 32 bits.
///
/// Source: Linux 6.18, `include/linux/threads.h`, `PID_MAX_LIMIT`: 2^22 at most.
const MADE_UP: u64 = 1 << 31;

impl<'a> JsonTraceEvent<'a> {
    fn new(ph: &'static str, track: &TimelineTrack) -> Self {
        let made_up = MADE_UP.saturating_add(track.process);
        let pid = track.pid.unwrap_or_else(|| i64::try_from(made_up).unwrap_or(i64::MAX));
        let tid = match track.kind {
            TrackKind::Thread(tid) => tid,
            _ => MADE_UP.saturating_add(track.id),
        };
        let (ts, name, cat, id, bp, s, args) = (None, None, None, None, None, None, None);
        Self { ph, pid, tid, ts, name, cat, id, bp, s, args }
    }

    fn marked(self, mark: &'a Mark<'a>) -> Self {
        let args = Some(&mark.details).filter(|details| !details.is_empty()).map(Args::Details);
        Self { name: Some(mark.name), args, ..self.at(mark.time_ns) }
    }

    fn at(self, time_ns: u64) -> Self {
        Self { ts: microseconds(time_ns), ..self }
    }
}

/// Formats nanoseconds as microseconds with a fraction: exact up to some hundred days, as a double is.
fn microseconds(time_ns: u64) -> Option<serde_json::Number> {
    serde_json::from_str(&format!("{}.{:03}", time_ns / 1000, time_ns % 1000)).ok()
}

fn put_entry(output: &mut impl Write, has_begun: &mut bool, entry: &JsonTraceEvent<'_>) -> io::Result<()> {
    let is_first = !std::mem::replace(has_begun, true);
    let before: &[u8] = if is_first { b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" } else { b",\n" };
    output.write_all(before)?;
    Ok(serde_json::to_writer(output, entry)?)
}

impl<W: Write> TraceEvents<W> {
    fn open(&mut self, track: &TimelineTrack) -> &mut Vec<Arc<str>> {
        let row = usize::try_from(track.id).expect("tracks are numbered as they appear");
        if self.open.len() <= row {
            self.open.resize_with(row + 1, Vec::new);
        }
        &mut self.open[row]
    }

    fn entry(&mut self, entry: &JsonTraceEvent<'_>) -> io::Result<()> {
        put_entry(&mut self.output, &mut self.has_begun, entry)
    }

    fn metadata(&mut self, track: &TimelineTrack, name: &'static str, args: Args<'_>) -> io::Result<()> {
        self.entry(&JsonTraceEvent { name: Some(name), args: Some(args), ..JsonTraceEvent::new("M", track) })
    }

    /// Writes either end of an arrow.
    fn arrow(&mut self, track: &TimelineTrack, mark: &Mark<'_>) -> io::Result<()> {
        let (ph, id, bp) = match mark.arrow {
            Some(Arrow::From(id)) => ("s", id, None),
            Some(Arrow::To(id)) => ("f", id, Some("e")),
            None => return Ok(()),
        };
        let entry = JsonTraceEvent::new(ph, track).at(mark.time_ns);
        self.entry(&JsonTraceEvent { id: Some(id), bp, name: Some("wake"), cat: Some("wake"), ..entry })
    }
}

impl<W: Write> Canvas for TraceEvents<W> {
    type Output = W;

    fn new(output: W) -> Self {
        Self {
            output: BufWriter::with_capacity(BUFFER_BYTES, output),
            has_begun: false,
            names: HashSet::new(),
            open: Vec::new(),
        }
    }

    fn track(&mut self, track: &TimelineTrack) -> io::Result<()> {
        match track.kind {
            TrackKind::Process => self.metadata(track, "process_name", Args::Name(&track.name)),
            TrackKind::Thread(_) | TrackKind::Row => {
                self.metadata(track, "thread_name", Args::Name(&track.name))?;
                self.metadata(track, "thread_sort_index", Args::SortIndex(track.id))
            }
            TrackKind::Shared | TrackKind::Counter => Ok(()),
        }
    }

    fn begin(&mut self, track: &TimelineTrack, mark: &Mark<'_>) -> io::Result<()> {
        let name = Arc::clone(self.names.get_or_insert_with(mark.name, |name| Arc::from(name)));
        self.open(track).push(name);
        if track.kind == TrackKind::Shared {
            let entry = JsonTraceEvent::new("b", track).marked(mark);
            return self.entry(&JsonTraceEvent { id: Some(track.id), cat: Some("span"), ..entry });
        }
        self.entry(&JsonTraceEvent::new("B", track).marked(mark))?;
        self.arrow(track, mark)
    }

    fn end(&mut self, track: &TimelineTrack, time_ns: u64) -> io::Result<()> {
        let name = self.open(track).pop();
        let name = Some(name.as_deref().unwrap_or_default());
        let entry = match track.kind {
            TrackKind::Shared => {
                let entry = JsonTraceEvent::new("e", track);
                JsonTraceEvent { id: Some(track.id), cat: Some("span"), name, ..entry }
            }
            _ => JsonTraceEvent { name, ..JsonTraceEvent::new("E", track) },
        };
        put_entry(&mut self.output, &mut self.has_begun, &entry.at(time_ns))
    }

    fn instant(&mut self, track: &TimelineTrack, mark: &Mark<'_>) -> io::Result<()> {
        self.entry(&JsonTraceEvent { s: Some("t"), ..JsonTraceEvent::new("i", track).marked(mark) })?;
        self.arrow(track, mark)
    }

    fn counter(&mut self, track: &TimelineTrack, time_ns: u64, value: f64) -> io::Result<()> {
        let entry = JsonTraceEvent::new("C", track).at(time_ns);
        self.entry(&JsonTraceEvent { name: Some(&track.name), args: Some(Args::Value(value)), ..entry })
    }

    fn wall_clock(&mut self, time_ns: u64, unix_ns: u64) -> io::Result<()> {
        let whole = TimelineTrack {
            id: 0,
            parent: None,
            process: 0,
            pid: None,
            kind: TrackKind::Process,
            name: String::new(),
        };
        self.metadata(&whole, "clock_sync", Args::Wall { time_ns, unix_ns })
    }

    fn finish(&mut self) -> io::Result<()> {
        self.output.write_all(b"\n]}\n")?;
        self.output.flush()
    }
}
