//! Markers as events: a moment is an event of the marker's name, and an interval is a span, which is entered and left.

use borehole_model::{Context, Event, Segment, StackId, Tables, Value, Warning};
use hashbrown::HashMap;
use serde_json::Value as Json;

use super::import::ProfileReading;
use super::marker_table::{MarkerRow, MarkerTable, Phase};
use super::read::{Meta, nanoseconds};
use crate::ReadError;
use crate::occurrences::{self, Occurrence, OccurrenceFacts, OccurrenceShapes};

/// The most frames of a marker's stack that are named.
const MOST_FRAMES: usize = 1024;

/// The markers of a thread, with what their numbers refer to.
#[derive(Clone, Copy)]
pub(super) struct ThreadMarkers<'a> {
    pub(super) table: &'a MarkerTable,
    pub(super) strings: &'a [String],
    pub(super) stacks: &'a [Option<StackId>],
    pub(super) meta: &'a Meta,
    pub(super) thread: Option<u64>,
    /// The nanoseconds from the origin of all times to that of these.
    pub(super) later_ns: i64,
}

/// The numbers of all markers so far.
#[derive(Debug, Default)]
pub(super) struct MarkerCounts {
    spans: u64,
    timeless: u64,
    nameless: u64,
    unknown_stacks: u64,
}

impl MarkerCounts {
    /// Reports what could not be read.
    pub(super) fn notes(&self) -> impl Iterator<Item = Warning> {
        let counts = [
            (self.timeless, "markers without a time are not read"),
            (self.nameless, "markers without a name are not read"),
            (self.unknown_stacks, "stacks of markers are not in the profile"),
        ];
        let counts = counts.into_iter().filter(|&(count, _)| count > 0);
        counts.map(|(count, what)| Warning::new(format!("{count} {what}")))
    }
}

/// A moment of a marker in a row of the table.
#[derive(Clone, Copy, Debug)]
struct MarkerMoment {
    time_ns: i64,
    row: usize,
    moment: Occurrence,
}

impl ProfileReading<'_> {
    /// Passes the markers of a thread to the sink, in order of time.
    pub(super) fn markers(&mut self, markers: ThreadMarkers<'_>, segment: &Segment) -> Result<(), ReadError> {
        let moments = self.moments(&markers);
        let mut shapes = OccurrenceShapes::default();
        for moment in moments {
            if self.damage.recovery.stopped {
                break;
            }
            self.moment(&markers, moment, segment, &mut shapes)?;
        }
        Ok(())
    }

    /// The moments of all markers. Intervals whose ends are markers of their own are joined by name, the last begun first, as
    /// the profiler does; one that has begun before lasts from the first marker, and one without an end to the last.
    fn moments(&mut self, markers: &ThreadMarkers<'_>) -> Vec<MarkerMoment> {
        let counts = &mut self.marker_counts;
        let mut moments = Vec::new();
        let mut open: HashMap<usize, Vec<(usize, u64)>> = HashMap::new();
        let mut unbegun = Vec::new();
        for row in 0..markers.table.len() {
            let marker = markers.table.row(row);
            let Some(name) = marker.name.filter(|&name| name < markers.strings.len()) else {
                counts.nameless += 1;
                continue;
            };
            let Some((start_ns, end_ns)) = markers.times(&marker) else {
                counts.timeless += 1;
                continue;
            };
            let mut add = |time_ns, moment| moments.push(MarkerMoment { time_ns, row, moment });
            match marker.phase {
                Phase::Instant => add(start_ns, Occurrence::Moment),
                Phase::End => match open.get_mut(&name).and_then(Vec::pop) {
                    Some((_, span)) => add(end_ns, Occurrence::Exit(span)),
                    None => {
                        counts.spans += 1;
                        unbegun.push((row, counts.spans));
                        add(end_ns, Occurrence::Exit(counts.spans));
                    }
                },
                Phase::Interval | Phase::Start => {
                    counts.spans += 1;
                    add(start_ns, Occurrence::Enter(counts.spans));
                    match marker.phase {
                        Phase::Interval => add(end_ns.max(start_ns), Occurrence::Exit(counts.spans)),
                        _ => open.entry(name).or_default().push((row, counts.spans)),
                    }
                }
            }
        }
        let times = || moments.iter().map(|moment| moment.time_ns);
        let (first_ns, last_ns) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let unended = open.into_values().flatten();
        let unended =
            unended.map(|(row, span)| MarkerMoment { time_ns: last_ns, row, moment: Occurrence::Exit(span) });
        let unbegun = unbegun.into_iter();
        let unbegun = unbegun.map(|(row, span)| MarkerMoment {
            time_ns: first_ns,
            row,
            moment: Occurrence::Enter(span),
        });
        let mut all: Vec<_> = unbegun.chain(moments).chain(unended).collect();
        // A span that begins and ends at once is entered first.
        all.sort_by_key(|moment| (moment.time_ns, moment.row));
        all
    }

    fn moment(
        &mut self,
        markers: &ThreadMarkers<'_>,
        at: MarkerMoment,
        segment: &Segment,
        shapes: &mut OccurrenceShapes,
    ) -> Result<(), ReadError> {
        let marker = markers.table.row(at.row);
        let Some(name) = marker.name.and_then(|place| markers.strings.get(place)) else { return Ok(()) };
        let shape = shapes.of(name, at.moment, self.tables)?;
        let category = marker.category.and_then(|place| markers.meta.categories.get(place)?.name.as_deref());
        let data = match at.moment {
            Occurrence::Exit(_) => Value::Absent,
            _ => self.marker_data(markers, marker.data),
        };
        let facts = OccurrenceFacts { name, thread: markers.thread, category, data };
        let values = occurrences::values(at.moment, facts);
        let event = Event { shape, type_id: None, time_ns: u64::try_from(at.time_ns).ok(), values: &values };
        let at = Context { tables: self.tables, segment };
        self.damage.recovery.events += 1;
        self.damage.recovery.stopped = self.sink.event(at, &event)?.is_break();
        Ok(())
    }

    /// The data of a marker, with the strings and stacks that it refers to.
    fn marker_data(&mut self, markers: &ThreadMarkers<'_>, data: &[u8]) -> Value<'static> {
        let Some(mut members) = occurrences::members(data) else { return occurrences::data_value(data) };
        for name in ["cause", "stack"] {
            let found = members.get_mut(name).and_then(|member| Some((stack_place(member)?, member)));
            let Some((place, member)) = found else { continue };
            match markers.stacks.get(place) {
                Some(&Some(stack)) => *member = Json::Array(frame_names(self.tables, stack)),
                _ => self.marker_counts.unknown_stacks += 1,
            }
        }
        let schema = members.get("type").and_then(Json::as_str).and_then(|name| markers.schema(name));
        for key in
            schema.into_iter().flat_map(|schema| &schema.fields).filter_map(|field| field.key_of_string())
        {
            if let Some(value) = members.get_mut(key)
                && let Some(string) = value.as_u64().and_then(|place| markers.string(place))
            {
                *value = Json::String(string.to_owned());
            }
        }
        occurrences::map_of(members)
    }
}

/// The place of the stack in a member of a marker's data: a number, a cause with one, or in unprocessed profiles a thread with one
/// sample.
fn stack_place(member: &Json) -> Option<usize> {
    let samples = || {
        let samples = member.get("samples")?;
        let column = usize::try_from(samples.get("schema")?.get("stack")?.as_u64()?).ok()?;
        samples.get("data")?.get(0)?.get(column)
    };
    let place = if member.is_number() { Some(member) } else { member.get("stack").or_else(samples) };
    place.and_then(Json::as_u64).and_then(|place| usize::try_from(place).ok())
}

/// The functions of a stack with their places, the leaf first.
fn frame_names(tables: &Tables, stack: StackId) -> Vec<Json> {
    let text = |id| String::from_utf8_lossy(tables.string(id));
    let name = |frame| {
        let frame = tables.frame(frame);
        let function = text(frame.function);
        match (frame.file, frame.line) {
            (Some(file), Some(line)) => format!("{function} ({}:{line})", text(file)),
            _ => function.into_owned(),
        }
    };
    tables.frames_leaf_first(Some(stack)).take(MOST_FRAMES).map(|frame| Json::String(name(frame))).collect()
}

impl ThreadMarkers<'_> {
    /// The start and the end, which are the same for a moment.
    fn times(&self, marker: &MarkerRow<'_>) -> Option<(i64, i64)> {
        let time = |time: f64| nanoseconds(time).saturating_add(self.later_ns);
        match marker.phase {
            Phase::Instant => marker.start.or(marker.end).map(|at| (time(at), time(at))),
            Phase::Interval => Some((time(marker.start?), time(marker.end?))),
            Phase::Start => marker.start.map(|at| (time(at), time(at))),
            Phase::End => marker.end.map(|at| (time(at), time(at))),
        }
    }

    fn string(&self, place: u64) -> Option<&str> {
        usize::try_from(place).ok().and_then(|place| self.strings.get(place)).map(String::as_str)
    }

    fn schema(&self, name: &str) -> Option<&super::read::MarkerSchema> {
        self.meta.marker_schema.iter().find(|schema| schema.name.as_deref() == Some(name))
    }
}
