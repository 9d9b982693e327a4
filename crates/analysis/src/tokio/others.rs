//! Other events: statistics of their numeric fields.

use borehole_model::{Event, Shape, Tables, Value};
use hashbrown::HashMap;

use super::coverage::{EventTimes, extend};
use super::histogram::ValueDistribution;
use super::names::OTHERS;
use super::plan::{annotation, is_numeric, text, unit};
use super::view::{EventRow, FieldRow};

/// The maximum number of distinct names; further ones are counted together.
const MOST_NAMES: usize = 512;
/// The maximum number of fields analysed per name.
const MOST_FIELDS: usize = 64;

/// A time, and the value of a field at that time.
type FieldReading = (u64, f64);

#[derive(Clone, Debug)]
struct FieldStatistics {
    name: String,
    unit: Option<String>,
    kind: Option<String>,
    values: ValueDistribution,
    /// The first and the last reading in time.
    ends: Option<(FieldReading, FieldReading)>,
}

#[derive(Clone, Debug, Default)]
struct Other {
    name: String,
    count: u64,
    times_ns: EventTimes,
    fields: Vec<FieldStatistics>,
}

/// The mapping of an event's values to fields.
#[derive(Clone, Debug, Default)]
struct EventLayout {
    row: usize,
    /// Pairs of positions among the values and among the fields.
    fields: Vec<(usize, usize)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Others {
    rows: HashMap<String, usize>,
    events: Vec<Other>,
    layouts: Vec<EventLayout>,
}

impl Others {
    /// The number of a shape.
    pub(super) fn layout(&mut self, shape: &Shape, tables: &Tables) -> u32 {
        let name = text(tables, shape.name);
        let known = self.rows.contains_key(&name) || self.events.len() < MOST_NAMES;
        let name = if known { name } else { OTHERS.to_owned() };
        let row = *self.rows.entry(name.clone()).or_insert_with(|| {
            self.events.push(Other { name, ..Other::default() });
            self.events.len() - 1
        });
        let mut layout = EventLayout { row, fields: Vec::new() };
        if known {
            self.events[row].find_fields(shape, tables, &mut layout.fields);
        }
        self.layouts.push(layout);
        u32::try_from(self.layouts.len() - 1).unwrap_or(u32::MAX)
    }

    #[inline]
    pub(super) fn add(&mut self, layout: u32, event: &Event<'_>) {
        let Some(layout) = self.layouts.get(layout as usize) else { return };
        let other = &mut self.events[layout.row];
        other.count += 1;
        if let Some(time_ns) = event.time_ns {
            extend(&mut other.times_ns, time_ns);
        }
        for &(position, field) in &layout.fields {
            if let Some(value) = event.values.get(position).and_then(number) {
                other.fields[field].add(event.time_ns, value);
            }
        }
    }

    /// The names, the most frequent first.
    pub(super) fn rows(&self) -> Vec<EventRow> {
        let mut rows: Vec<_> = self.events.iter().filter(|other| other.count > 0).map(Other::row).collect();
        rows.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.name.cmp(&other.name)));
        rows
    }
}

impl Other {
    fn find_fields(&mut self, shape: &Shape, tables: &Tables, found: &mut Vec<(usize, usize)>) {
        for (position, field) in (0..).zip(&shape.fields).filter(|(_, field)| is_numeric(field.kind)) {
            let name = text(tables, field.name);
            let row = self.fields.iter().position(|known| known.name == name).or_else(|| {
                (self.fields.len() < MOST_FIELDS).then(|| {
                    let unit = unit(shape, tables, position);
                    let kind = annotation(shape, tables, position, &["kind"]);
                    self.fields.push(FieldStatistics {
                        name,
                        unit,
                        kind,
                        values: ValueDistribution::default(),
                        ends: None,
                    });
                    self.fields.len() - 1
                })
            });
            found.extend(row.map(|row| (position as usize, row)));
        }
    }

    fn row(&self) -> EventRow {
        let span = self.times_ns;
        let per_second = span.and_then(|(first, last)| rate(self.count.saturating_sub(1), last - first));
        let fields = self.fields.iter().filter(|field| field.values.count > 0);
        let fields = fields.map(|field| field.row(span)).collect();
        EventRow { name: self.name.clone(), count: self.count, per_second, fields }
    }
}

impl FieldStatistics {
    #[inline]
    fn add(&mut self, time_ns: Option<u64>, value: f64) {
        self.values.add(value);
        let Some(time_ns) = time_ns else { return };
        let now = (time_ns, value);
        let (first, last) = self.ends.get_or_insert((now, now));
        if time_ns < first.0 {
            *first = now;
        }
        if time_ns >= last.0 {
            *last = now;
        }
    }

    fn row(&self, span: Option<(u64, u64)>) -> FieldRow {
        let values = &self.values;
        let per_second = match (self.kind.as_deref(), self.ends) {
            (Some("counter"), Some((first, last))) => {
                rate(1, last.0 - first.0).map(|once| once * (last.1 - first.1))
            }
            _ => span.and_then(|(first, last)| rate(values.count.saturating_sub(1), last - first)),
        };
        FieldRow {
            name: self.name.clone(),
            unit: self.unit.clone(),
            kind: self.kind.clone(),
            count: values.count,
            min: values.min,
            mean: values.mean(),
            p50: values.percentile(50),
            p90: values.percentile(90),
            p99: values.percentile(99),
            max: values.max,
            per_second,
        }
    }
}

// Statistics do not need the digits that a double lacks.
#[expect(clippy::cast_precision_loss)]
fn number(value: &Value<'_>) -> Option<f64> {
    match *value {
        Value::Unsigned(number) => Some(number as f64),
        Value::Signed(number) => Some(number as f64),
        Value::Float(number) => Some(number),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate has no use for the digits that a double lacks")]
fn rate(count: u64, span_ns: u64) -> Option<f64> {
    (span_ns > 0).then(|| count as f64 * 1e9 / span_ns as f64)
}
