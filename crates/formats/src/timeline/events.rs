//! Events by meaning: the polls, parks and wakes of a Tokio program, spans, measurements, and other events.
//!
//! Source: the events of dial9 0.5.7 and 0.3.2. They are expected in order of time.

use std::io;
use std::sync::Arc;

use borehole_model::dial9::{event, field, is_worker};
use borehole_model::{Context, Event, Shape, ShapeId, Tables, Value};
use hashbrown::HashMap;

use super::tracks::{TrackSubject, Tracks};
use super::{Arrow, Canvas, Detail, Mark};

/// Events whose numbers are all measurements, although older recorders do not say so.
const MEASUREMENTS: [&str; 3] = [event::RUNTIME_METRICS, event::QUEUE_SAMPLE, "ProcessResourceUsageEvent"];

/// The most bytes of texts in the name of a counter: each number of an event has a track of such a name.
const MOST_SUFFIX_BYTES: usize = 1024;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    PollStart,
    PollEnd,
    Park,
    Unpark,
    Wake,
    SpanEnter,
    SpanExit,
    Measurement,
    /// Facts about the trace, which are not drawn.
    Hidden,
    Other,
}

/// The meaning of all events of a shape.
#[derive(Clone, Debug)]
struct ShapeMeaning {
    meaning: Meaning,
    /// By field: whether the source marks it as a number that changes over time. Empty if it marks none.
    measured: Arc<[bool]>,
}

/// The activities of workers, tasks and spans.
#[derive(Debug, Default)]
pub(super) struct Actors {
    /// By shape.
    meanings: Vec<Option<ShapeMeaning>>,
    /// The activities in progress, as the ids of the tracks that show them: of a worker's poll, also that of the task.
    polls: HashMap<u64, (u64, Option<u64>)>,
    states: HashMap<u64, u64>,
    spans: HashMap<u64, Vec<u64>>,
    /// The arrow of the last wake of each task that has not been polled since.
    wakes: HashMap<u64, u64>,
    arrows: u64,
    last_ns: u64,
}

impl Actors {
    pub(super) fn event(
        &mut self,
        canvas: &mut impl Canvas,
        tracks: &mut Tracks,
        at: Context<'_>,
        event: &Event<'_>,
        time_ns: u64,
    ) -> io::Result<()> {
        let fields = Fields::new(at.tables, event);
        let ShapeMeaning { meaning, measured } = self.meaning(event.shape, fields);
        if meaning == Meaning::Hidden {
            return Ok(());
        }
        self.last_ns = self.last_ns.max(time_ns);
        let mut draw = Draw { canvas, tracks, fields, time_ns };
        let worker = fields.number(field::WORKER).filter(|&worker| is_worker(worker));
        match (meaning, worker) {
            (Meaning::PollStart, Some(worker)) => self.poll_start(&mut draw, worker),
            (Meaning::PollEnd, Some(worker)) => self.poll_end(&mut draw, worker),
            (Meaning::Park | Meaning::Unpark, Some(worker)) => self.worker_moves(&mut draw, worker, meaning),
            (Meaning::Wake, _) => self.wake(&mut draw),
            (Meaning::SpanEnter, _) => self.span_enter(&mut draw),
            (Meaning::SpanExit, _) => self.span_exit(&mut draw),
            (Meaning::Measurement, _) => draw.measurements(&measured),
            _ => draw.other(),
        }
    }

    fn meaning(&mut self, shape: ShapeId, fields: Fields<'_>) -> ShapeMeaning {
        if self.meanings.len() <= shape.index() {
            self.meanings.resize(shape.index() + 1, None);
        }
        let known = self.meanings[shape.index()].get_or_insert_with(|| {
            let measured = fields.measured();
            ShapeMeaning { meaning: meaning_of(fields, !measured.is_empty()), measured: measured.into() }
        });
        known.clone()
    }

    /// Draws a poll with its worker and with its task.
    fn poll_start(&mut self, draw: &mut Draw<'_, impl Canvas>, worker: u64) -> io::Result<()> {
        self.poll_end(draw, worker)?;
        let task = draw.fields.number(field::TASK);
        let name = draw.fields.text(field::SPAWNED_AT).unwrap_or("poll");
        let arrow = task.and_then(|task| self.wakes.remove(&task)).map(Arrow::To);
        let on_worker = draw.begin(&TrackSubject::Worker(worker), name, arrow)?;
        let task = task.filter(|&task| task > 0);
        let on_task = task.map(|task| draw.begin(&TrackSubject::Task(task), "poll", None)).transpose()?;
        self.polls.insert(worker, (on_worker, on_task));
        draw.local_queue(worker)
    }

    fn poll_end(&mut self, draw: &mut Draw<'_, impl Canvas>, worker: u64) -> io::Result<()> {
        let Some((on_worker, on_task)) = self.polls.remove(&worker) else { return Ok(()) };
        draw.end(on_worker)?;
        on_task.map_or(Ok(()), |on_task| draw.end(on_task))
    }

    fn worker_moves(
        &mut self,
        draw: &mut Draw<'_, impl Canvas>,
        worker: u64,
        meaning: Meaning,
    ) -> io::Result<()> {
        if let Some(track) = self.states.remove(&worker) {
            draw.end(track)?;
        }
        let name = if meaning == Meaning::Park { "parked" } else { "active" };
        let track = draw.begin(&TrackSubject::WorkerState(worker), name, None)?;
        self.states.insert(worker, track);
        draw.local_queue(worker)
    }

    /// Draws an arrow from the worker that woke a task to the task's next poll.
    fn wake(&mut self, draw: &mut Draw<'_, impl Canvas>) -> io::Result<()> {
        self.arrows += 1;
        if let Some(woken) = draw.fields.number(field::WOKEN_TASK) {
            self.wakes.insert(woken, self.arrows);
        }
        let issuer = draw.fields.number(field::TARGET_WORKER).filter(|&worker| is_worker(worker));
        let key = issuer
            .map_or_else(|| TrackSubject::Events("wakes from outside".to_owned()), TrackSubject::Worker);
        let track = draw.tracks.track(draw.canvas, &key)?;
        let details = draw.fields.details();
        let arrow = Some(Arrow::From(self.arrows));
        draw.canvas.instant(track, &Mark { time_ns: draw.time_ns, name: "wake", details, arrow })
    }

    fn span_enter(&mut self, draw: &mut Draw<'_, impl Canvas>) -> io::Result<()> {
        let Some(span) = draw.fields.number(field::SPAN) else { return draw.other() };
        let name = draw.fields.text(field::SPAN_NAME).unwrap_or(draw.fields.event_name());
        let track = draw.begin(&TrackSubject::Span(span), name, None)?;
        self.spans.entry(span).or_default().push(track);
        Ok(())
    }

    fn span_exit(&mut self, draw: &mut Draw<'_, impl Canvas>) -> io::Result<()> {
        let Some(span) = draw.fields.number(field::SPAN) else { return draw.other() };
        let Some(open) = self.spans.get_mut(&span) else { return Ok(()) };
        if let Some(track) = open.pop() {
            draw.end(track)?;
        }
        if open.is_empty() {
            self.spans.remove(&span);
        }
        Ok(())
    }

    /// Ends all activities at the last time seen, in a fixed order.
    pub(super) fn end_all(&mut self, canvas: &mut impl Canvas, tracks: &Tracks) -> io::Result<()> {
        let polls = self
            .polls
            .drain()
            .flat_map(|(_, (on_worker, on_task))| std::iter::once(on_worker).chain(on_task));
        let spans = self.spans.drain().flat_map(|(_, open)| open);
        let states = self.states.drain().map(|(_, track)| track);
        let mut open: Vec<_> = polls.chain(spans).chain(states).collect();
        open.sort_unstable();
        self.wakes.clear();
        let mut open = open.into_iter().filter_map(|id| tracks.with_id(id));
        open.try_for_each(|track| canvas.end(track, self.last_ns))
    }
}

fn meaning_of(fields: Fields<'_>, has_measures: bool) -> Meaning {
    match fields.event_name() {
        event::POLL_START => Meaning::PollStart,
        event::POLL_END => Meaning::PollEnd,
        event::WORKER_PARK => Meaning::Park,
        event::WORKER_UNPARK => Meaning::Unpark,
        event::WAKE => Meaning::Wake,
        event::SYMBOL | event::METADATA | event::CLOCK_SYNC | event::SPAN_CLOSE => Meaning::Hidden,
        name if name.starts_with(event::SPAN_ENTER_PREFIX) || name == "RuntimeEnter" => Meaning::SpanEnter,
        name if name.starts_with(event::SPAN_EXIT_PREFIX) || name == "RuntimeExit" => Meaning::SpanExit,
        name if MEASUREMENTS.contains(&name) => Meaning::Measurement,
        _ if has_measures => Meaning::Measurement,
        _ => Meaning::Other,
    }
}

/// An event being drawn.
struct Draw<'a, C> {
    canvas: &'a mut C,
    tracks: &'a mut Tracks,
    fields: Fields<'a>,
    time_ns: u64,
}

impl<C: Canvas> Draw<'_, C> {
    /// Begins an activity; returns the id of its track.
    fn begin(&mut self, key: &TrackSubject, name: &str, arrow: Option<Arrow>) -> io::Result<u64> {
        let track = self.tracks.track(self.canvas, key)?;
        let details = self.fields.details();
        self.canvas.begin(track, &Mark { time_ns: self.time_ns, name, details, arrow })?;
        Ok(track.id)
    }

    /// Ends the activity begun last on a track.
    fn end(&mut self, track: u64) -> io::Result<()> {
        let track = self.tracks.with_id(track);
        track.map_or(Ok(()), |track| self.canvas.end(track, self.time_ns))
    }

    #[expect(clippy::cast_precision_loss, reason = "counters of timelines are floating-point numbers")]
    fn local_queue(&mut self, worker: u64) -> io::Result<()> {
        let Some(length) = self.fields.number(field::LOCAL_QUEUE) else { return Ok(()) };
        let track = self.tracks.track(self.canvas, &TrackSubject::LocalQueue(worker))?;
        self.canvas.counter(track, self.time_ns, length as f64)
    }

    /// Draws each number on its own track, named by the texts of the event: a runtime's name, an address. If any fields are
    /// `measured`, only those are.
    fn measurements(&mut self, measured: &[bool]) -> io::Result<()> {
        let mut suffix = String::new();
        for (_, value) in self.fields.iter() {
            if let Value::Text(text) = value
                && suffix.len() + text.len() < MOST_SUFFIX_BYTES
            {
                suffix.push(' ');
                suffix.push_str(text);
            }
        }
        for (field, (name, value)) in self.fields.iter().enumerate() {
            let is_shown = measured.is_empty() || measured.get(field) == Some(&true);
            let Some(number) = measure(value).filter(|_| is_shown) else { continue };
            let track = self.tracks.track(self.canvas, &TrackSubject::Counter(format!("{name}{suffix}")))?;
            self.canvas.counter(track, self.time_ns, number)?;
        }
        Ok(())
    }

    /// Draws any other event as an instant, with its fields.
    fn other(&mut self) -> io::Result<()> {
        let name = self.fields.event_name();
        let track = self.tracks.track(self.canvas, &TrackSubject::Events(name.to_owned()))?;
        let details = self.fields.details();
        self.canvas.instant(track, &Mark { time_ns: self.time_ns, name, details, arrow: None })
    }
}

/// An event with its shape.
#[derive(Clone, Copy)]
struct Fields<'a> {
    tables: &'a Tables,
    shape: &'a Shape,
    values: &'a [Value<'a>],
}

impl<'a> Fields<'a> {
    fn new(tables: &'a Tables, event: &Event<'a>) -> Self {
        Self { tables, shape: tables.shape(event.shape), values: event.values }
    }

    /// The name of the event; the empty text if it is not UTF-8.
    fn event_name(self) -> &'a str {
        std::str::from_utf8(self.tables.string(self.shape.name)).unwrap_or_default()
    }

    /// All fields with their names.
    fn iter(self) -> impl Iterator<Item = (&'a str, &'a Value<'a>)> {
        let Self { tables, shape, values } = self;
        let name = |id| std::str::from_utf8(tables.string(id)).unwrap_or_default();
        shape.fields.iter().map(move |field| name(field.name)).zip(values)
    }

    fn value(self, name: &str) -> Option<&'a Value<'a>> {
        self.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    fn number(self, name: &str) -> Option<u64> {
        match self.value(name)? {
            Value::Unsigned(number) => Some(*number),
            Value::Signed(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    fn text(self, name: &str) -> Option<&'a str> {
        match self.value(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// By field: whether the source marks it as a number that changes over time; empty if it marks none.
    fn measured(self) -> Vec<bool> {
        let mut measured = Vec::new();
        for annotation in &self.shape.annotations {
            let field = annotation.field as usize;
            let is_measure = self.tables.string(annotation.key) == b"kind"
                && matches!(self.tables.string(annotation.value), b"gauge" | b"counter" | b"updown-counter");
            if is_measure && field < self.shape.fields.len() {
                measured.resize(self.shape.fields.len(), false);
                measured[field] = true;
            }
        }
        measured
    }

    /// All fields as details. The members of a map are details, too; of other fields that hold many values, their number is.
    fn details(self) -> Vec<(&'a str, Detail<'a>)> {
        let mut details = Vec::new();
        for (name, value) in self.iter() {
            match value {
                Value::Map(members) => details.extend(members.iter().filter_map(member)),
                value => details.extend(detail(value).map(|value| (name, value))),
            }
        }
        details
    }
}

/// A member of a map; `None` if it has no name or no value.
fn member<'a>((name, value): &'a (Value<'a>, Value<'a>)) -> Option<(&'a str, Detail<'a>)> {
    match name {
        Value::Text(name) => Some((name, detail(value)?)),
        _ => None,
    }
}

fn detail<'a>(value: &'a Value<'a>) -> Option<Detail<'a>> {
    Some(match value {
        Value::Unsigned(number) => Detail::Unsigned(*number),
        Value::Signed(number) => Detail::Signed(*number),
        Value::Float(number) => Detail::Float(*number),
        Value::Bool(truth) => Detail::Bool(*truth),
        Value::Text(text) => Detail::Text(text.as_ref().into()),
        Value::Unresolved(id) => Detail::Text(format!("unresolved {id}").into()),
        Value::Bytes(bytes) => Detail::Text(format!("{} bytes", bytes.len()).into()),
        Value::Stack(stack) => Detail::Text(format!("{} addresses", stack.len()).into()),
        Value::List(values) => Detail::Text(format!("{} values", values.len()).into()),
        Value::Map(pairs) => Detail::Text(format!("{} entries", pairs.len()).into()),
        Value::Absent => return None,
    })
}

/// Converts a number of any type for a counter.
#[expect(clippy::cast_precision_loss, reason = "counters of timelines are floating-point numbers")]
fn measure(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Unsigned(number) => Some(*number as f64),
        Value::Signed(number) => Some(*number as f64),
        Value::Float(number) => Some(*number).filter(|number| number.is_finite()),
        _ => None,
    }
}
