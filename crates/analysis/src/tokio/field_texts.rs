//! The text fields of spans: sets of keys and values, each stored once.

use borehole_model::{Event, FieldKind, Shape, Tables, Value};
use hashbrown::HashMap;

use super::names::{NameTable, cut_at};
use super::plan::text;

/// The maximum number of distinct keys; fields with further ones are left out.
const MOST_KEYS: usize = 256;
/// The maximum number of distinct values of a key; further ones are one: `(others)`. Values by which people group, such as
/// routes, are fewer; those of requests are more, and would make every set another one.
const MOST_VALUES: usize = 256;
/// The maximum length of a value in bytes.
const MOST_VALUE_BYTES: usize = 128;
/// The maximum number of fields of a set.
const MOST_FIELDS: usize = 16;
/// The maximum number of distinct sets; spans with further ones have no fields.
const MOST_SETS: usize = 1 << 16;

/// The row of the set without fields.
pub(super) const NO_FIELDS: u32 = 0;

/// A key and a value, as rows.
type Field = (u16, u16);

#[derive(Clone, Debug)]
pub(super) struct FieldTexts {
    keys: NameTable,
    /// The values of each key.
    values: Vec<NameTable>,
    /// For each shape, the positions of its text fields and their keys.
    layouts: Vec<Vec<(usize, u16)>>,
    sets: Vec<Box<[Field]>>,
    rows: HashMap<Box<[Field]>, u32>,
    found: Vec<Field>,
    /// The number of spans whose set was one too many.
    pub(super) left_out: u64,
}

impl Default for FieldTexts {
    fn default() -> Self {
        Self {
            keys: NameTable::with_most(MOST_KEYS),
            values: Vec::new(),
            layouts: Vec::new(),
            sets: vec![Box::default()],
            rows: HashMap::from([(Box::default(), NO_FIELDS)]),
            found: Vec::new(),
            left_out: 0,
        }
    }
}

impl FieldTexts {
    /// The number of a shape. Fields whose name `is_known` have a meaning of their own.
    pub(super) fn layout(&mut self, shape: &Shape, tables: &Tables, is_known: impl Fn(&str) -> bool) -> u32 {
        let texts = shape.fields.iter().enumerate().filter(|(_, field)| is_text(field.kind));
        let named = texts.map(|(position, field)| (position, text(tables, field.name)));
        let named: Vec<_> = named.filter(|(_, name)| !is_known(name)).take(MOST_FIELDS).collect();
        let layout = named.into_iter().filter_map(|(position, name)| Some((position, self.key(&name)?)));
        let layout = layout.collect();
        self.layouts.push(layout);
        u32::try_from(self.layouts.len() - 1).unwrap_or(u32::MAX)
    }

    fn key(&mut self, name: &str) -> Option<u16> {
        let row = self.keys.row(name) as usize;
        if row >= self.values.len() && row < MOST_KEYS {
            self.values.push(NameTable::with_most(MOST_VALUES));
        }
        u16::try_from(row).ok().filter(|_| row < self.values.len())
    }

    /// The set of an event's text fields.
    #[inline]
    pub(super) fn set(&mut self, layout: u32, event: &Event<'_>) -> u32 {
        let Some(layout) = self.layouts.get(layout as usize).filter(|layout| !layout.is_empty()) else {
            return NO_FIELDS;
        };
        self.found.clear();
        for &(position, key) in layout {
            let Some(value) = event.values.get(position).and_then(text_of) else { continue };
            let value = self.values[usize::from(key)].row(value);
            self.found.push((key, u16::try_from(value).unwrap_or(u16::MAX)));
        }
        match self.rows.get(&self.found[..]) {
            Some(&row) => row,
            None => self.add(),
        }
    }

    #[cold]
    fn add(&mut self) -> u32 {
        if self.sets.len() >= MOST_SETS {
            self.left_out += 1;
            return NO_FIELDS;
        }
        let row = u32::try_from(self.sets.len()).unwrap_or(NO_FIELDS);
        self.sets.push(self.found.clone().into());
        self.rows.insert(self.found.clone().into(), row);
        row
    }

    /// The keys and values of a set.
    pub(super) fn fields(&self, set: u32) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.sets.get(set as usize).into_iter().flatten();
        fields.map(|&(key, value)| {
            (self.keys.text(key.into()), self.values[usize::from(key)].text(value.into()))
        })
    }

    /// The fields of a set, as `key=value key=value`.
    pub(super) fn describe(&self, set: u32) -> String {
        self.fields(set).map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    }

    /// The value of a key in a set.
    pub(super) fn value(&self, set: u32, key: &str) -> Option<&str> {
        self.fields(set).find(|(known, _)| *known == key).map(|(_, value)| value)
    }
}

/// The beginning of a text, and a truth as text.
#[inline]
pub(super) fn text_of<'v>(value: &'v Value<'_>) -> Option<&'v str> {
    match value {
        Value::Text(text) => Some(cut_at(text, MOST_VALUE_BYTES)),
        Value::Bool(true) => Some("true"),
        Value::Bool(false) => Some("false"),
        _ => None,
    }
}

/// Whether values of a field can be texts.
pub(super) const fn is_text(kind: FieldKind) -> bool {
    matches!(kind, FieldKind::Text | FieldKind::PooledText | FieldKind::Bool)
}
