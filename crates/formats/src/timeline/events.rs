//! Events by meaning: the polls, parks and wakes of a Tokio program, spans, measurements, and other events.
//!
//! Source: the events of dial9 0.5.7 and 0.3.2. They are expected in order of time.

use std::io;

use borehole_model::{Context, Event, ShapeId, is_worker};
use hashbrown::HashMap;

use super::fields::{Fields, measure};
use super::tracks::{Key, Track, Tracks};
use super::{Arrow, Canvas, Mark};

/// Events whose numbers are all measurements, although older recorders do not say so.
const MEASUREMENTS: [&str; 3] = ["RuntimeMetricsEvent", "QueueSampleEvent", "ProcessResourceUsageEvent"];

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

/// The activities of workers, tasks and spans.
#[derive(Debug, Default)]
pub(super) struct Actors {
    meanings: Vec<Option<Meaning>>,
    /// The activities in progress, by the track that shows them.
    polls: HashMap<u64, Vec<Track>>,
    states: HashMap<u64, Track>,
    spans: HashMap<u64, Vec<Track>>,
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
        let meaning = self.meaning(event.shape, fields);
        if meaning == Meaning::Hidden {
            return Ok(());
        }
        self.last_ns = self.last_ns.max(time_ns);
        let mut draw = Draw { canvas, tracks, fields, time_ns };
        let worker = fields.number("worker_id").filter(|&worker| is_worker(worker));
        match (meaning, worker) {
            (Meaning::PollStart, Some(worker)) => self.poll_start(&mut draw, worker),
            (Meaning::PollEnd, Some(worker)) => self.poll_end(&mut draw, worker),
            (Meaning::Park | Meaning::Unpark, Some(worker)) => self.worker_moves(&mut draw, worker, meaning),
            (Meaning::Wake, _) => self.wake(&mut draw),
            (Meaning::SpanEnter, _) => self.span_enter(&mut draw),
            (Meaning::SpanExit, _) => self.span_exit(&mut draw),
            (Meaning::Measurement, _) => draw.measurements(),
            _ => draw.other(),
        }
    }

    fn meaning(&mut self, shape: ShapeId, fields: Fields<'_>) -> Meaning {
        self.meanings.resize(self.meanings.len().max(shape.index() + 1), None);
        *self.meanings[shape.index()].get_or_insert_with(|| meaning_of(fields))
    }

    /// Draws a poll with its worker and with its task.
    fn poll_start(&mut self, draw: &mut Draw<'_, impl Canvas>, worker: u64) -> io::Result<()> {
        self.poll_end(draw, worker)?;
        let task = draw.fields.number("task_id");
        let name = draw.fields.text("spawn_loc").unwrap_or("poll");
        let arrow = task.and_then(|task| self.wakes.remove(&task)).map(Arrow::To);
        let on_worker = draw.begin(&Key::Worker(worker), name, arrow)?;
        let mut open = vec![on_worker];
        if let Some(task) = task.filter(|&task| task > 0) {
            open.push(draw.begin(&Key::Task(task), "poll", None)?);
        }
        self.polls.insert(worker, open);
        draw.local_queue(worker)
    }

    fn poll_end(&mut self, draw: &mut Draw<'_, impl Canvas>, worker: u64) -> io::Result<()> {
        let open = self.polls.remove(&worker).unwrap_or_default();
        open.iter().try_for_each(|track| draw.canvas.end(track, draw.time_ns))
    }

    fn worker_moves(
        &mut self,
        draw: &mut Draw<'_, impl Canvas>,
        worker: u64,
        meaning: Meaning,
    ) -> io::Result<()> {
        if let Some(track) = self.states.remove(&worker) {
            draw.canvas.end(&track, draw.time_ns)?;
        }
        let name = if meaning == Meaning::Park { "parked" } else { "active" };
        let track = draw.begin(&Key::WorkerState(worker), name, None)?;
        self.states.insert(worker, track);
        draw.local_queue(worker)
    }

    /// Draws an arrow from the worker that woke a task to the task's next poll.
    fn wake(&mut self, draw: &mut Draw<'_, impl Canvas>) -> io::Result<()> {
        self.arrows += 1;
        if let Some(woken) = draw.fields.number("woken_task_id") {
            self.wakes.insert(woken, self.arrows);
        }
        let issuer = draw.fields.number("target_worker").filter(|&worker| is_worker(worker));
        let key = issuer.map_or_else(|| Key::Events("wakes from outside".to_owned()), Key::Worker);
        let track = draw.tracks.track(draw.canvas, &key)?;
        let details = draw.fields.details();
        let arrow = Some(Arrow::From(self.arrows));
        draw.canvas.instant(track, &Mark { time_ns: draw.time_ns, name: "wake", details, arrow })
    }

    fn span_enter(&mut self, draw: &mut Draw<'_, impl Canvas>) -> io::Result<()> {
        let Some(span) = draw.fields.number("span_id") else { return draw.other() };
        let name = draw.fields.text("span_name").unwrap_or(draw.fields.event_name());
        let track = draw.begin(&Key::Span(span), name, None)?;
        self.spans.entry(span).or_default().push(track);
        Ok(())
    }

    fn span_exit(&mut self, draw: &mut Draw<'_, impl Canvas>) -> io::Result<()> {
        let Some(span) = draw.fields.number("span_id") else { return draw.other() };
        let Some(open) = self.spans.get_mut(&span) else { return Ok(()) };
        if let Some(track) = open.pop() {
            draw.canvas.end(&track, draw.time_ns)?;
        }
        if open.is_empty() {
            self.spans.remove(&span);
        }
        Ok(())
    }

    /// Ends all activities at the last time seen, in a fixed order.
    pub(super) fn end_all(&mut self, canvas: &mut impl Canvas) -> io::Result<()> {
        let polls = self.polls.drain().flat_map(|(_, tracks)| tracks);
        let spans = self.spans.drain().flat_map(|(_, tracks)| tracks);
        let states = self.states.drain().map(|(_, track)| track);
        let mut open: Vec<_> = polls.chain(spans).chain(states).collect();
        open.sort_by_key(|track| track.id);
        self.wakes.clear();
        open.iter().try_for_each(|track| canvas.end(track, self.last_ns))
    }
}

fn meaning_of(fields: Fields<'_>) -> Meaning {
    match fields.event_name() {
        "PollStartEvent" => Meaning::PollStart,
        "PollEndEvent" => Meaning::PollEnd,
        "WorkerParkEvent" => Meaning::Park,
        "WorkerUnparkEvent" => Meaning::Unpark,
        "WakeEventEvent" => Meaning::Wake,
        "SymbolTableEntry" | "SegmentMetadataEvent" | "ClockSyncEvent" | "SpanCloseEvent" => Meaning::Hidden,
        name if name.starts_with("SpanEnter:") || name == "RuntimeEnter" => Meaning::SpanEnter,
        name if name.starts_with("SpanExit:") || name == "RuntimeExit" => Meaning::SpanExit,
        name if MEASUREMENTS.contains(&name) => Meaning::Measurement,
        _ if (0..fields.shape.fields.len()).any(|field| fields.is_measure(field)) => Meaning::Measurement,
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
    fn begin(&mut self, key: &Key, name: &str, arrow: Option<Arrow>) -> io::Result<Track> {
        let track = self.tracks.track(self.canvas, key)?;
        let details = self.fields.details();
        self.canvas.begin(track, &Mark { time_ns: self.time_ns, name, details, arrow })?;
        Ok(track.clone())
    }

    #[expect(clippy::cast_precision_loss, reason = "counters of timelines are floating-point numbers")]
    fn local_queue(&mut self, worker: u64) -> io::Result<()> {
        let Some(length) = self.fields.number("local_queue") else { return Ok(()) };
        let track = self.tracks.track(self.canvas, &Key::LocalQueue(worker))?;
        self.canvas.counter(track, self.time_ns, length as f64)
    }

    /// Draws each number on its own track, named by the texts of the event: a runtime's name, an address.
    fn measurements(&mut self) -> io::Result<()> {
        let fields = self.fields;
        let mut suffix = String::new();
        for (name, _) in fields.iter() {
            if let Some(text) = fields.text(name) {
                suffix.push(' ');
                suffix.push_str(text);
            }
        }
        let says = (0..fields.shape.fields.len()).any(|field| fields.is_measure(field));
        for (field, (name, value)) in fields.iter().enumerate() {
            let Some(number) = measure(value).filter(|_| !says || fields.is_measure(field)) else { continue };
            let track = self.tracks.track(self.canvas, &Key::Counter(format!("{name}{suffix}")))?;
            self.canvas.counter(track, self.time_ns, number)?;
        }
        Ok(())
    }

    /// Draws any other event as an instant, with its fields.
    fn other(&mut self) -> io::Result<()> {
        let name = self.fields.event_name();
        let track = self.tracks.track(self.canvas, &Key::Events(name.to_owned()))?;
        let details = self.fields.details();
        self.canvas.instant(track, &Mark { time_ns: self.time_ns, name, details, arrow: None })
    }
}
