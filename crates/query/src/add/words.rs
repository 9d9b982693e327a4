//! The texts of a column, each stored once.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use datafusion::arrow::datatypes::Int32Type;
use hashbrown::HashMap;
use serde_json::Value;

use crate::labels;

/// The number of a text in [`ColumnWords`]; negative for an absent one.
pub(super) type Word = i32;

/// The number of an absent text.
pub(super) const NO_WORD: Word = -1;

/// Distinct texts with numbers.
#[derive(Debug, Default)]
pub(super) struct ColumnWords {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, Word>,
    array: Option<Arc<StringArray>>,
}

impl ColumnWords {
    pub(super) fn word(&mut self, text: &str) -> Word {
        if let Some(&word) = self.numbers.get(text) {
            return word;
        }
        let word = Word::try_from(self.texts.len()).unwrap_or(NO_WORD);
        self.texts.push(text.into());
        self.numbers.insert(text.into(), word);
        self.array = None;
        word
    }

    pub(super) fn of_bytes(&mut self, text: &[u8]) -> Word {
        self.word(&String::from_utf8_lossy(text))
    }

    pub(super) fn optional(&mut self, text: Option<&str>) -> Word {
        text.map_or(NO_WORD, |text| self.word(text))
    }

    pub(super) fn text(&self, word: Word) -> Option<&str> {
        usize::try_from(word).ok().and_then(|row| self.texts.get(row)).map(|text| &**text)
    }

    /// The texts of `words` as a column.
    pub(super) fn column(&mut self, words: impl Iterator<Item = Word>) -> ArrayRef {
        let texts = self.array.get_or_insert_with(|| Arc::new(StringArray::from_iter_values(&self.texts)));
        let keys: Int32Array = words.map(|word| (word >= 0).then_some(word)).collect();
        let column: DictionaryArray<Int32Type> =
            DictionaryArray::try_new(keys, Arc::clone(texts) as ArrayRef).expect("words have texts");
        Arc::new(column)
    }

    /// The sets of labels that `words` are, which are JSON objects, as a column of maps.
    pub(super) fn label_column(&mut self, words: impl Iterator<Item = Word>) -> ArrayRef {
        let mut known: HashMap<Word, Vec<(Word, Word)>> = HashMap::new();
        let (mut keys, mut values, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        for word in words {
            let pairs = known.entry(word).or_insert_with(|| self.label_pairs(word));
            keys.extend(pairs.iter().map(|&(key, _)| key));
            values.extend(pairs.iter().map(|&(_, value)| value));
            lengths.push(Some(pairs.len()).filter(|&length| length > 0));
        }
        let [keys, values] = [keys, values].map(|words| self.column(words.into_iter()));
        labels::column(keys, values, &lengths)
    }

    fn label_pairs(&mut self, word: Word) -> Vec<(Word, Word)> {
        let labels = self.text(word).map(labels::parsed).unwrap_or_default();
        let pair = |(key, value): (&String, &Value)| (self.word(key), self.word(&labels::value_text(value)));
        labels.iter().map(pair).collect()
    }
}
