//! Label sets as text, each converted once.

use std::ops::Range;

use borehole_model::{Label, LabelValue, LabelsId, Tables, dial9};
use borehole_text::lossless::escape;
use serde_json::{Map, Value};

use super::words::{ColumnWords, NO_WORD, Word};
use crate::labels::value_text;

/// The label sets in a lake. Each includes the labels of where the rows come from.
#[derive(Debug, Default)]
pub(super) struct LabelWords {
    sets: Vec<Option<Set>>,
    pairs: Vec<Word>,
    /// The labels of where the rows come from.
    origin: Map<String, Value>,
    /// The set of these alone.
    of_origin: Option<Set>,
}

#[derive(Clone, Debug)]
pub(super) struct Set {
    /// The set as a JSON object.
    pub(super) text: Word,
    /// The range of its `key=value` pairs.
    pairs: Range<usize>,
    /// The kind of observation that a trace gives its sample, if it is not running code.
    pub(super) other_kind: Option<&'static str>,
    /// The ids of the trace and the span that its samples are of.
    pub(super) trace: [Word; 2],
}

impl Set {
    pub(super) const NONE: Self = Self { text: NO_WORD, pairs: 0..0, other_kind: None, trace: [NO_WORD; 2] };
}

/// The labels that are columns too, so that they are found without reading all rows. Source: `otlp` names links so.
const TRACE_LABELS: [&str; 2] = ["trace_id", "span_id"];

/// The kinds of trace observations that must not be added to samples of running code.
const OTHER_KINDS: [&str; 3] = ["off-cpu", "alloc", "task-dump"];

impl LabelWords {
    pub(super) fn of(&mut self, labels: Option<LabelsId>, tables: &Tables, words: &mut ColumnWords) -> Set {
        let Some(labels) = labels else { return self.of_origin(words) };
        if let Some(Some(set)) = self.sets.get(labels.index()) {
            return set.clone();
        }
        let set = self.add(tables.labels(labels), tables, words);
        if self.sets.len() <= labels.index() {
            self.sets.resize(tables.labels_count().max(labels.index() + 1), None);
        }
        self.sets[labels.index()] = Some(set.clone());
        set
    }

    /// Sets the labels of where the following rows come from. A label of the same name in a set replaces one of them.
    pub(super) fn set_origin(&mut self, origin: &Map<String, Value>) {
        if self.origin != *origin {
            self.origin.clone_from(origin);
            self.of_origin = None;
            self.sets.clear();
        }
    }

    /// The set of a row without labels of its own.
    #[inline]
    pub(super) fn of_origin(&mut self, words: &mut ColumnWords) -> Set {
        if let Some(set) = &self.of_origin {
            return set.clone();
        }
        let set = self.complete(Map::new(), None, words);
        self.of_origin = Some(set.clone());
        set
    }

    /// The set of a row with these texts as labels.
    pub(super) fn of_texts<'t>(
        &mut self,
        texts: impl Iterator<Item = (&'t str, &'t str)>,
        words: &mut ColumnWords,
    ) -> Set {
        let mut object = Map::new();
        for (key, value) in texts {
            add_value(&mut object, key.to_owned(), value.into());
        }
        self.complete(object, None, words)
    }

    pub(super) fn pairs(&self, set: &Set) -> &[Word] {
        &self.pairs[set.pairs.clone()]
    }

    fn add(&mut self, labels: &[Label], tables: &Tables, words: &mut ColumnWords) -> Set {
        let mut object = Map::new();
        let mut other_kind = None;
        for label in labels {
            let key = escape(tables.string(label.key)).into_owned();
            let value = match label.value {
                LabelValue::Text(text) => Value::from(escape(tables.string(text))),
                LabelValue::Number { value, .. } => Value::from(value),
            };
            if key == dial9::label::SOURCE {
                other_kind = OTHER_KINDS.into_iter().find(|kind| value == **kind);
            }
            add_value(&mut object, key, value);
        }
        self.complete(object, other_kind, words)
    }

    /// Adds the labels of the origin to a set that has no labels of the same name.
    fn complete(
        &mut self,
        mut object: Map<String, Value>,
        other_kind: Option<&'static str>,
        words: &mut ColumnWords,
    ) -> Set {
        let from = self.pairs.len();
        for (key, value) in &self.origin {
            if !object.contains_key(key) {
                object.insert(key.clone(), value.clone());
            }
        }
        // The result of `label(labels, key)` for the whole object.
        let pair = |(key, value): (&String, &Value)| words.word(&format!("{key}={}", value_text(value)));
        self.pairs.extend(object.iter().map(pair));
        let trace = TRACE_LABELS
            .map(|key| object.get(key).and_then(Value::as_str).map_or(NO_WORD, |id| words.word(id)));
        let text = if object.is_empty() { NO_WORD } else { words.word(&Value::Object(object).to_string()) };
        Set { text, pairs: from..self.pairs.len(), other_kind, trace }
    }
}

/// Adds a value; repeated keys get a list of distinct values. Returns whether the value is new.
pub(super) fn add_value(object: &mut Map<String, Value>, key: String, value: Value) -> bool {
    match object.get_mut(&key) {
        None => {
            object.insert(key, value);
        }
        Some(Value::Array(values)) if values.contains(&value) => return false,
        Some(Value::Array(values)) => values.push(value),
        Some(first) if *first == value => return false,
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
    true
}

/// Sets a value. Returns whether that changes the object.
pub(super) fn replace_value(object: &mut Map<String, Value>, key: String, value: Value) -> bool {
    let is_new = object.get(&key) != Some(&value);
    object.insert(key, value);
    is_new
}
