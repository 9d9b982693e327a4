//! Labels as a column of maps.
//!
//! While rows are gathered, a set of labels is one text, a JSON object, which most rows share. Files have maps, which SQL can list
//! and index.

use std::sync::Arc;

use borehole_text::lossless::escape;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, MapArray, StringArray, StringBuilder, StringViewArray,
    StringViewBuilder, StructArray,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::Result;
use hashbrown::HashMap;
use serde_json::{Map, Value};

/// The key and the value of an entry. Keys are not views, because the engine compares them with texts that are not.
///
/// The names are those of the Parquet specification, `LogicalTypes.md`, "Maps".
fn entry_fields() -> Fields {
    Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8View, true),
    ])
}

fn entries(fields: Fields) -> Arc<Field> {
    Arc::new(Field::new("key_value", DataType::Struct(fields), false))
}

/// The type of a column of labels.
pub(crate) fn data_type() -> DataType {
    DataType::Map(entries(entry_fields()), false)
}

/// A text that a user gives, as lakes have it: without NUL, as texts of files.
pub(crate) fn without_nul(text: &str) -> String {
    text.replace('\0', &escape(b"\0"))
}

/// A label as text: texts as they are, other values as JSON.
pub(crate) fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The labels in a JSON object; none in any other text.
pub(crate) fn parsed(object: &str) -> Map<String, Value> {
    serde_json::from_str(object).unwrap_or_default()
}

/// A column of maps from a key and a value of each entry, and the number of entries of each row; `None` without labels.
///
/// # Panics
/// If there are fewer or more keys or values than entries.
pub(crate) fn column(keys: ArrayRef, values: ArrayRef, lengths: &[Option<usize>]) -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("key", keys.data_type().clone(), false),
        Field::new("value", values.data_type().clone(), true),
    ]);
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|length| length.unwrap_or(0)));
    let nulls: NullBuffer = lengths.iter().map(Option::is_some).collect();
    let structs = StructArray::new(fields.clone(), vec![keys, values], None);
    Arc::new(MapArray::new(entries(fields), offsets, structs, Some(nulls), false))
}

/// The labels in JSON objects, one a row; each distinct text is parsed once.
pub(crate) fn of_objects<'t>(objects: impl Iterator<Item = Option<&'t str>>) -> ArrayRef {
    let mut known: HashMap<&str, Map<String, Value>> = HashMap::new();
    let mut column = LabelColumn::default();
    for object in objects {
        column.push(object.map(|object| &*known.entry(object).or_insert_with(|| parsed(object))));
    }
    column.finish()
}

/// A column of labels, row by row.
#[derive(Default)]
pub(crate) struct LabelColumn {
    keys: StringBuilder,
    values: StringViewBuilder,
    lengths: Vec<Option<usize>>,
}

impl LabelColumn {
    /// Adds a row.
    pub(crate) fn push(&mut self, labels: Option<&Map<String, Value>>) {
        for (key, value) in labels.into_iter().flatten() {
            self.keys.append_value(key);
            self.values.append_value(value_text(value));
        }
        self.lengths.push(labels.map(Map::len).filter(|&length| length > 0));
    }

    pub(crate) fn finish(mut self) -> ArrayRef {
        column(Arc::new(self.keys.finish()), Arc::new(self.values.finish()), &self.lengths)
    }
}

/// The labels in the rows of a column.
pub(crate) struct LabelRows {
    maps: MapArray,
    keys: StringArray,
    values: StringViewArray,
}

impl LabelRows {
    /// # Errors
    /// If the column has no maps of texts.
    pub(crate) fn new(column: &ArrayRef) -> Result<Self> {
        let column = cast(column, &data_type())?;
        let maps = column.as_map().clone();
        let (keys, values) = (maps.keys().as_string().clone(), maps.values().as_string_view().clone());
        Ok(Self { maps, keys, values })
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.maps.len()
    }

    /// The keys and values of a row; `None` without labels.
    pub(crate) fn row(&self, row: usize) -> Option<impl Iterator<Item = (&str, &str)>> {
        let ends = self.maps.value_offsets();
        let end = |row: usize| usize::try_from(ends[row]).unwrap_or(0);
        let entries = (!self.maps.is_null(row)).then(|| end(row)..end(row + 1));
        entries.map(|entries| {
            let is_there = |&entry: &usize| !self.values.is_null(entry);
            entries.filter(is_there).map(|entry| (self.keys.value(entry), self.values.value(entry)))
        })
    }

    /// The label of a row.
    pub(crate) fn label(&self, row: usize, key: &str) -> Option<&str> {
        self.row(row)?.find(|&(known, _)| known == key).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_texts_numbers_or_lists() {
        let objects =
            [Some(r#"{"uri":"/a b","n":3,"twice":["x","y"]}"#), None, Some("{}"), Some("no object")];
        let rows = LabelRows::new(&of_objects(objects.into_iter())).unwrap();
        let labels = ["uri", "n", "twice", "none"].map(|key| rows.label(0, key));
        assert_eq!(labels, [Some("/a b"), Some("3"), Some(r#"["x","y"]"#), None]);
        assert!((1..rows.len()).all(|row| rows.row(row).is_none()));
    }
}
