//! Label sets as text, each converted once.

use std::ops::Range;

use borehole_model::{Label, LabelValue, LabelsId, Tables, dial9};
use borehole_text::lossless::escape;
use serde_json::{Map, Value};

use super::words::{ColumnWords, NO_WORD, Word};

/// The label sets in a lake.
#[derive(Debug, Default)]
pub(super) struct LabelWords {
    sets: Vec<Option<Set>>,
    pairs: Vec<Word>,
}

#[derive(Clone, Debug)]
pub(super) struct Set {
    /// The set as a JSON object.
    pub(super) text: Word,
    /// The range of its `key=value` pairs.
    pairs: Range<usize>,
    /// The kind of observation that a trace gives its sample, if it is not running code.
    pub(super) other_kind: Option<&'static str>,
}

impl Set {
    pub(super) const NONE: Self = Self { text: NO_WORD, pairs: 0..0, other_kind: None };
}

/// The kinds of trace observations that must not be added to samples of running code.
const OTHER_KINDS: [&str; 3] = ["off-cpu", "alloc", "task-dump"];

impl LabelWords {
    pub(super) fn of(&mut self, labels: Option<LabelsId>, tables: &Tables, words: &mut ColumnWords) -> Set {
        let Some(labels) = labels else { return Set::NONE };
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

    pub(super) fn pairs(&self, set: &Set) -> &[Word] {
        &self.pairs[set.pairs.clone()]
    }

    fn add(&mut self, labels: &[Label], tables: &Tables, words: &mut ColumnWords) -> Set {
        let mut object = Map::new();
        let mut other_kind = None;
        let from = self.pairs.len();
        for label in labels {
            let key = escape(tables.string(label.key)).into_owned();
            let value = match label.value {
                LabelValue::Text(text) => Value::from(escape(tables.string(text))),
                LabelValue::Number { value, .. } => Value::from(value),
            };
            if key == dial9::label::SOURCE {
                other_kind = OTHER_KINDS.into_iter().find(|kind| value == **kind);
            }
            merge(&mut object, key, value);
        }
        // The result of `label(labels, key)` for the whole object.
        let pair = |(key, value): (&String, &Value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            words.word(&format!("{key}={text}"))
        };
        self.pairs.extend(object.iter().map(pair));
        let text = if object.is_empty() { NO_WORD } else { words.word(&Value::Object(object).to_string()) };
        Set { text, pairs: from..self.pairs.len(), other_kind }
    }
}

/// Adds a value; repeated keys get a list of values.
fn merge(object: &mut Map<String, Value>, key: String, value: Value) {
    match object.get_mut(&key) {
        None => {
            object.insert(key, value);
        }
        Some(Value::Array(values)) => values.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}
