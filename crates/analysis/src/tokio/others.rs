//! Other events: statistics of their numeric fields, and the values of their texts.

use borehole_model::{Event, FieldShape, Shape, Tables, Value};
use hashbrown::HashMap;

use super::coverage::{EventTimes, extend};
use super::field_texts::{is_text, text_of};
use super::histogram::ValueDistribution;
use super::names::{NameTable, OTHERS, at};
use super::plan::{annotation, is_numeric, text, unit};
use super::view::{EventRow, FieldRow, TextRow, TextValueRow};

/// The maximum number of distinct names, with the texts by which their events are grouped; further ones are counted together.
const MOST_NAMES: usize = 512;
/// The maximum number of numeric fields analysed per name.
const MOST_FIELDS: usize = 64;
/// The maximum number of texts analysed per name.
const MOST_TEXTS: usize = 8;
/// The maximum number of values of a text; further ones are counted together.
const MOST_VALUES: usize = 64;
/// The number of values of a text that are shown.
const VALUES_SHOWN: usize = 5;

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

/// The values of a text, and how often each occurs.
#[derive(Clone, Debug)]
struct TextStatistics {
    name: String,
    values: NameTable,
    counts: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
struct Other {
    name: String,
    group: Option<String>,
    count: u64,
    times_ns: EventTimes,
    fields: Vec<FieldStatistics>,
    texts: Vec<TextStatistics>,
}

/// The mapping of an event's values to fields.
#[derive(Clone, Debug, Default)]
struct EventLayout {
    row: usize,
    /// Pairs of positions among the values and among the fields.
    fields: Vec<(usize, usize)>,
    /// Pairs of positions among the values and among the texts.
    texts: Vec<(usize, usize)>,
    group: Option<Grouping>,
}

/// The layouts of the events of one shape, by the text that tells them apart.
#[derive(Clone, Debug)]
struct Grouping {
    /// The position of the text among the values.
    position: usize,
    texts: NameTable,
    /// The layout for each row of the texts.
    layouts: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Others {
    rows: HashMap<(String, Option<String>), usize>,
    events: Vec<Other>,
    layouts: Vec<EventLayout>,
    /// The text by which events of one name are told apart.
    pub(super) group: Option<String>,
}

impl Others {
    /// The number of a shape.
    pub(super) fn layout(&mut self, shape: &Shape, tables: &Tables) -> u32 {
        let is_group = |field: &FieldShape| {
            is_text(field.kind) && self.group.as_ref().is_some_and(|group| text(tables, field.name) == *group)
        };
        let position = shape.fields.iter().position(is_group);
        let layout = self.new_layout(shape, tables, None);
        if let Some(position) = position {
            let grouping =
                Grouping { position, texts: NameTable::with_most(MOST_NAMES), layouts: Vec::new() };
            self.layouts[layout as usize].group = Some(grouping);
        }
        layout
    }

    fn new_layout(&mut self, shape: &Shape, tables: &Tables, group: Option<String>) -> u32 {
        let name = (text(tables, shape.name), group);
        let known = self.rows.contains_key(&name) || self.events.len() < MOST_NAMES;
        let (name, group) = if known { name } else { (OTHERS.to_owned(), None) };
        let row = *self.rows.entry((name.clone(), group.clone())).or_insert_with(|| {
            self.events.push(Other { name, group, ..Other::default() });
            self.events.len() - 1
        });
        let mut layout = EventLayout { row, ..EventLayout::default() };
        if known {
            self.events[row].find_fields(shape, tables, &mut layout.fields);
            self.events[row].find_texts(shape, tables, self.group.as_deref(), &mut layout.texts);
        }
        self.layouts.push(layout);
        u32::try_from(self.layouts.len() - 1).unwrap_or(u32::MAX)
    }

    #[inline]
    pub(super) fn add(&mut self, layout: u32, event: &Event<'_>, tables: &Tables) {
        let layout = self.group_of(layout, event, tables);
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
        for &(position, field) in &layout.texts {
            if let Some(value) = event.values.get(position).and_then(text_of) {
                other.texts[field].add(value);
            }
        }
    }

    /// The layout for the event's own group; that of its shape if it is in none.
    #[inline]
    fn group_of(&mut self, layout: u32, event: &Event<'_>, tables: &Tables) -> u32 {
        let Some(grouping) = self.layouts.get_mut(layout as usize).and_then(|own| own.group.as_mut()) else {
            return layout;
        };
        let Some(value) = event.values.get(grouping.position).and_then(text_of) else { return layout };
        let row = grouping.texts.row(value);
        if let Some(&known) = grouping.layouts.get(row as usize) {
            return known;
        }
        let value = grouping.texts.text(row).to_owned();
        let new = self.new_layout(tables.shape(event.shape), tables, Some(value));
        if let Some(grouping) = &mut self.layouts[layout as usize].group {
            grouping.layouts.push(new);
        }
        new
    }

    /// The names, the most frequent first.
    pub(super) fn rows(&self) -> Vec<EventRow> {
        let mut rows: Vec<_> = self.events.iter().filter(|other| other.count > 0).map(Other::row).collect();
        let name = |row: &EventRow| (row.name.clone(), row.group.clone());
        rows.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| name(one).cmp(&name(other))));
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

    /// Finds the texts but for the one by which events are told apart.
    fn find_texts(
        &mut self,
        shape: &Shape,
        tables: &Tables,
        group: Option<&str>,
        found: &mut Vec<(usize, usize)>,
    ) {
        for (position, field) in shape.fields.iter().enumerate().filter(|(_, field)| is_text(field.kind)) {
            let name = text(tables, field.name);
            let row = self.texts.iter().position(|known| known.name == name).or_else(|| {
                (self.texts.len() < MOST_TEXTS && Some(&*name) != group).then(|| {
                    let values = NameTable::with_most(MOST_VALUES);
                    self.texts.push(TextStatistics { name, values, counts: Vec::new() });
                    self.texts.len() - 1
                })
            });
            found.extend(row.map(|row| (position, row)));
        }
    }

    fn row(&self) -> EventRow {
        let span = self.times_ns;
        let per_second = span.and_then(|(first, last)| rate(self.count.saturating_sub(1), last - first));
        let fields = self.fields.iter().filter(|field| field.values.count > 0);
        let fields = fields.map(|field| field.row(span)).collect();
        let texts =
            self.texts.iter().filter(|text| !text.counts.is_empty()).map(TextStatistics::row).collect();
        EventRow {
            name: self.name.clone(),
            group: self.group.clone(),
            count: self.count,
            per_second,
            fields,
            texts,
        }
    }
}

impl TextStatistics {
    #[inline]
    fn add(&mut self, value: &str) {
        *at(&mut self.counts, self.values.row(value)) += 1;
    }

    fn row(&self) -> TextRow {
        let mut values: Vec<_> = self
            .counts
            .iter()
            .zip(self.values.texts())
            .map(|(&count, value)| TextValueRow { value: value.clone(), count })
            .collect();
        values.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.value.cmp(&other.value)));
        let (distinct, count) = (values.len(), self.counts.iter().sum());
        values.truncate(VALUES_SHOWN);
        TextRow { name: self.name.clone(), count, distinct, values }
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
