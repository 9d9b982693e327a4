//! Events other than calls: moments, asynchronous spans and counters. They are held until the end, because a document may have them
//! in any order.

use std::ops::Range;

use borehole_model::{
    Context, Event, ProfileSink, Segment, ShapeId, StringId, TableFull, Tables, Value, Warning,
};
use hashbrown::HashMap;

use super::NAME;
use super::read::{TraceEvent, TraceId};
use crate::ReadError;
use crate::documents::whole::DocumentDamage;
use crate::occurrences::{self, Occurrence, OccurrenceFacts, OccurrenceShapes};

/// The numbers and names of spans that have not ended, the last begun last.
type OpenSpans = Vec<(u64, StringId)>;

/// The events of a document, and the spans that are open.
#[derive(Debug, Default)]
pub(super) struct HeldEvents {
    rows: Vec<HeldEvent>,
    /// The data of all events as JSON, one after the other.
    texts: Vec<u8>,
    /// By process, category and id.
    open: HashMap<(Option<i64>, StringId, TraceId), OpenSpans>,
    spans: u64,
    /// Ends without a beginning.
    unmatched: u64,
}

/// An event.
#[derive(Debug)]
struct HeldEvent {
    process: Option<i64>,
    thread: Option<u64>,
    time_ns: i64,
    name: StringId,
    category: StringId,
    what: HeldKind,
    /// The place of the data in `texts`.
    data: Range<usize>,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug)]
enum HeldKind {
    At(Occurrence),
    /// With what distinguishes it from others of its name.
    Counter(Option<StringId>),
}

/// The values of a counter: its type, and the place of each number among the members of the data.
type CounterShapes = HashMap<(StringId, Vec<String>), ShapeId>;

impl HeldEvents {
    /// Holds an event of a process and a thread; returns the bytes that it takes.
    ///
    /// # Errors
    /// If a table is full.
    pub(super) fn take(
        &mut self,
        event: TraceEvent,
        time_ns: i64,
        (process, thread): (Option<i64>, Option<u64>),
        tables: &mut Tables,
    ) -> Result<usize, TableFull> {
        let category = tables.intern_string(event.category.as_bytes())?;
        let mut name = tables.intern_string(event.name.as_bytes())?;
        let key = (process, category, event.id);
        let what = match &*event.ph {
            "C" if key.2.0.is_empty() => HeldKind::Counter(None),
            "C" => HeldKind::Counter(Some(tables.intern_string(key.2.0.as_bytes())?)),
            "b" | "S" => {
                self.spans += 1;
                self.open.entry(key).or_default().push((self.spans, name));
                HeldKind::At(Occurrence::Enter(self.spans))
            }
            "e" | "F" => {
                let Some((span, begun)) = self.open.get_mut(&key).and_then(Vec::pop) else {
                    self.unmatched += 1;
                    return Ok(0);
                };
                name = begun;
                HeldKind::At(Occurrence::Exit(span))
            }
            _ => HeldKind::At(Occurrence::Moment),
        };
        let start = self.texts.len();
        self.texts.extend_from_slice(&event.data);
        let data = start..self.texts.len();
        let held = size_of::<HeldEvent>() + data.len() + size_of::<(Option<i64>, StringId, TraceId)>();
        self.rows.push(HeldEvent { process, thread, time_ns, name, category, what, data });
        Ok(held)
    }

    /// Whether there is any.
    pub(super) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Passes the events to the sink in order of time, with a segment for each process.
    ///
    /// # Errors
    /// If a table is full, or the sink fails.
    pub(super) fn deliver(
        mut self,
        tables: &mut Tables,
        sink: &mut dyn ProfileSink,
        damage: &mut DocumentDamage,
    ) -> Result<(), ReadError> {
        if self.unmatched > 0 {
            let message = format!("{} ends of spans without a beginning are ignored", self.unmatched);
            damage.recovery.note(Warning::new(message));
        }
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by_key(|row| (row.process, row.time_ns));
        let mut shapes = (OccurrenceShapes::default(), CounterShapes::default());
        for of_process in rows.chunk_by(|one, next| one.process == next.process) {
            let segment = Segment {
                format: NAME,
                index: damage.recovery.segments,
                has_times: true,
                process: of_process[0].process,
                ..Segment::default()
            };
            sink.segment(Context { tables, segment: &segment })?;
            damage.recovery.segments += 1;
            for row in of_process {
                let (shape, values) = match row.what {
                    HeldKind::At(what) => self.occurrence(row, what, &mut shapes.0, tables)?,
                    HeldKind::Counter(id) => self.counter(row, id, &mut shapes.1, tables)?,
                };
                let time_ns = u64::try_from(row.time_ns).ok();
                let event = Event { shape, type_id: None, time_ns, values: &values };
                damage.recovery.events += 1;
                damage.recovery.stopped =
                    sink.event(Context { tables, segment: &segment }, &event)?.is_break();
                if damage.recovery.stopped {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn occurrence(
        &self,
        row: &HeldEvent,
        what: Occurrence,
        shapes: &mut OccurrenceShapes,
        tables: &mut Tables,
    ) -> Result<(ShapeId, Vec<Value<'static>>), TableFull> {
        let name = text_of(tables, row.name);
        let category = text_of(tables, row.category);
        let shape = shapes.of(&name, what, tables)?;
        let data = occurrences::data_value(&self.texts[row.data.clone()]);
        let category = Some(&*category).filter(|category| !category.is_empty());
        let facts = OccurrenceFacts { name: &name, thread: row.thread, category, data };
        Ok((shape, occurrences::values(what, facts)))
    }

    fn counter(
        &self,
        row: &HeldEvent,
        id: Option<StringId>,
        shapes: &mut CounterShapes,
        tables: &mut Tables,
    ) -> Result<(ShapeId, Vec<Value<'static>>), TableFull> {
        let name = text_of(tables, row.name);
        let members = occurrences::members(&self.texts[row.data.clone()]).unwrap_or_default();
        let numbers = || members.iter().filter_map(|(key, value)| Some((key, value.as_f64()?)));
        let is_alone = numbers().count() == 1;
        let series = numbers().map(|(key, _)| match &**key {
            "value" if is_alone => name.clone(),
            key => format!("{name} {key}"),
        });
        let series: Vec<_> = series.collect();
        let mut values: Vec<_> = numbers().map(|(_, number)| Value::Float(number)).collect();
        values.push(id.map_or(Value::Absent, |id| Value::Text(text_of(tables, id).into())));
        let key = (row.name, series);
        if let Some(&known) = shapes.get(&key) {
            return Ok((known, values));
        }
        let shape = occurrences::counter_shape(&name, &key.1, tables)?;
        shapes.insert(key, shape);
        Ok((shape, values))
    }
}

/// A text of the tables, which came from JSON.
fn text_of(tables: &Tables, id: StringId) -> String {
    String::from_utf8_lossy(tables.string(id)).into_owned()
}
