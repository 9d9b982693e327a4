//! The markers of a thread: columns in processed profiles, rows in unprocessed ones.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::rows::{RowTable, Schema, whole};
use crate::documents::json_copy::JsonCopy;

/// The markers of a thread.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MarkerTable {
    schema: Schema,
    data: MarkerRows,
    name: Vec<Option<f64>>,
    start_time: Vec<Option<f64>>,
    end_time: Vec<Option<f64>>,
    /// The start, in old versions.
    time: Vec<Option<f64>>,
    phase: Vec<Option<f64>>,
    category: Vec<Option<f64>>,
}

/// The cells of unprocessed markers, and the data of all.
#[derive(Debug, Default)]
struct MarkerRows {
    cells: super::rows::CellRows,
    /// The data as JSON, one after the other.
    texts: Vec<u8>,
    /// Where the data of each marker ends.
    ends: Vec<usize>,
}

/// The relation of a marker to the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Instant,
    Interval,
    /// The end is another marker of the same name.
    Start,
    End,
}

impl Phase {
    /// Source: Firefox Profiler, `src/app-logic/constants.ts`, `INSTANT` to `INTERVAL_END`.
    fn of(number: Option<f64>, has_end: bool) -> Self {
        match number.and_then(whole) {
            Some(1) => Self::Interval,
            Some(2) => Self::Start,
            Some(3) => Self::End,
            None if has_end => Self::Interval,
            _ => Self::Instant,
        }
    }
}

/// A marker. Times are milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkerRow<'a> {
    /// The place of its name among the strings.
    pub(super) name: Option<usize>,
    pub(super) start: Option<f64>,
    pub(super) end: Option<f64>,
    pub(super) phase: Phase,
    pub(super) category: Option<usize>,
    /// An object of JSON; empty if there is none.
    pub(super) data: &'a [u8],
}

impl MarkerTable {
    /// The number of markers.
    pub(super) const fn len(&self) -> usize {
        if self.name.is_empty() { self.data.ends.len() } else { self.name.len() }
    }

    /// A marker.
    pub(super) fn row(&self, row: usize) -> MarkerRow<'_> {
        let table = RowTable { schema: &self.schema, data: &self.data.cells };
        let cell = |column: &[Option<f64>], name: &str| match self.name.is_empty() {
            true => table.cell(row, table.column(name)),
            false => column.get(row).copied().flatten(),
        };
        let start = cell(&self.start_time, "startTime").or_else(|| cell(&self.time, "time"));
        let end = cell(&self.end_time, "endTime");
        MarkerRow {
            name: cell(&self.name, "name").and_then(whole),
            start,
            end,
            phase: Phase::of(cell(&self.phase, "phase"), start.is_some() && end.is_some()),
            category: cell(&self.category, "category").and_then(whole),
            data: self.data.text(row),
        }
    }
}

impl MarkerRows {
    fn text(&self, row: usize) -> &[u8] {
        let Some(&end) = self.ends.get(row) else { return b"" };
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.texts[start..end]
    }
}

impl<'de> Deserialize<'de> for MarkerRows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(AllMarkers)
    }
}

struct AllMarkers;

impl<'de> Visitor<'de> for AllMarkers {
    type Value = MarkerRows;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of markers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<MarkerRows, A::Error> {
        let mut all = MarkerRows::default();
        while rows.next_element_seed(OneMarker(&mut all))?.is_some() {
            all.cells.end_row();
            all.ends.push(all.texts.len());
        }
        Ok(all)
    }
}

/// The data of a marker, or its cells with the data among them.
struct OneMarker<'a>(&'a mut MarkerRows);

impl<'de> DeserializeSeed<'de> for OneMarker<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OneMarker<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a marker")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        JsonCopy(&mut self.0.texts).visit_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<(), A::Error> {
        while cells.next_element_seed(OneCell(self.0))?.is_some() {}
        Ok(())
    }
}

struct OneCell<'a>(&'a mut MarkerRows);

impl<'de> DeserializeSeed<'de> for OneCell<'_> {
    type Value = ();

    /// An object is the data; it also keeps its place among the cells.
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let MarkerRows { cells, texts, .. } = self.0;
        let start = texts.len();
        deserializer.deserialize_any(JsonCopy(texts))?;
        let number = std::str::from_utf8(&texts[start..]).ok().and_then(|text| text.parse().ok());
        cells.push(number);
        if texts.get(start) != Some(&b'{') {
            texts.truncate(start);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type PlainMarker = (Option<usize>, Option<f64>, Option<f64>, Phase, String);

    fn rows(json: &str) -> Vec<PlainMarker> {
        let table: MarkerTable = serde_json::from_str(json).unwrap();
        let plain = |row| {
            let MarkerRow { name, start, end, phase, data, .. } = table.row(row);
            (name, start, end, phase, String::from_utf8(data.to_vec()).unwrap())
        };
        (0..table.len()).map(plain).collect()
    }

    #[test]
    fn rows_and_columns_are_the_same_markers() {
        let data = r#"{"type":"a","list":[1,-2,[0.5,null,true],{}],"b":"\"\\"}"#;
        let unprocessed = format!(
            r#"{{"schema":{{"name":0,"startTime":1,"endTime":2,"phase":3,"category":4,"data":5}},
            "data":[[3,1.5,2.5,1,0,{data}],[4,7,0,2,0],[4,0,8,3,0,null]]}}"#
        );
        let processed = format!(
            r#"{{"name":[3,4,4],"startTime":[1.5,7,0],"endTime":[2.5,0,8],"phase":[1,2,3],"category":[0,0,0],
            "data":[{data},null,null],"length":3}}"#
        );
        let expected = [
            (Some(3), Some(1.5), Some(2.5), Phase::Interval, data.to_owned()),
            (Some(4), Some(7.0), Some(0.0), Phase::Start, String::new()),
            (Some(4), Some(0.0), Some(8.0), Phase::End, String::new()),
        ];
        assert_eq!(rows(&unprocessed), expected);
        assert_eq!(rows(&processed), expected);
    }

    #[test]
    fn old_markers_have_one_time() {
        let expected = [(Some(0), Some(4.0), None, Phase::Instant, String::new())];
        assert_eq!(rows(r#"{"name":[0],"time":[4],"data":[null]}"#), expected);
    }
}
