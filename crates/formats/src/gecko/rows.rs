//! Tables of unprocessed profiles: rows of cells, and a schema that says which cell is what.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The positions of columns in rows.
pub(super) type Schema = HashMap<String, usize>;

/// A table of numbers. Other cells are absent, and so are cells at the end of a row that are left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowTable<'a> {
    pub(super) schema: &'a Schema,
    pub(super) data: &'a CellRows,
}

/// The cells of all rows, one after the other.
#[derive(Debug, Default)]
pub(super) struct CellRows {
    cells: Vec<Option<f64>>,
    /// Where each row ends.
    ends: Vec<usize>,
}

impl CellRows {
    /// Appends a cell to the last row.
    pub(super) fn push(&mut self, cell: Option<f64>) {
        self.cells.push(cell);
    }

    /// Ends a row.
    pub(super) fn end_row(&mut self) {
        self.ends.push(self.cells.len());
    }
}

impl RowTable<'_> {
    /// The number of rows.
    pub(super) const fn len(self) -> usize {
        self.data.ends.len()
    }

    /// The position of a column in rows; `None` if the schema lacks it.
    pub(super) fn column(self, name: &str) -> Option<usize> {
        self.schema.get(name).copied()
    }

    /// A cell.
    pub(super) fn cell(self, row: usize, column: Option<usize>) -> Option<f64> {
        let end = *self.data.ends.get(row)?;
        let start = row.checked_sub(1).map_or(0, |before| self.data.ends[before]);
        self.data.cells[start..end].get(column?).copied().flatten()
    }

    /// A cell that is an index.
    pub(super) fn index(self, row: usize, column: Option<usize>) -> Option<usize> {
        self.cell(row, column).and_then(whole)
    }
}

/// A number that counts something; `None` for others.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
pub(super) fn whole(number: f64) -> Option<usize> {
    (number >= 0.0 && number < f64::from(u32::MAX) && number.fract() == 0.0).then_some(number as usize)
}

impl<'de> Deserialize<'de> for CellRows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(AllRows)
    }
}

struct AllRows;

impl<'de> Visitor<'de> for AllRows {
    type Value = CellRows;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<CellRows, A::Error> {
        let mut all = CellRows::default();
        while rows.next_element_seed(OneRow(&mut all.cells))?.is_some() {
            all.ends.push(all.cells.len());
        }
        Ok(all)
    }
}

struct OneRow<'a>(&'a mut Vec<Option<f64>>);

impl<'de> DeserializeSeed<'de> for OneRow<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OneRow<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<(), A::Error> {
        while let Some(Cell(cell)) = cells.next_element()? {
            self.0.push(cell);
        }
        Ok(())
    }
}

/// A cell; `None` if it is no number.
struct Cell(Option<f64>);

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyCell)
    }
}

struct AnyCell;

impl<'de> Visitor<'de> for AnyCell {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cell")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Cell, E> {
        Ok(Cell(None))
    }

    #[expect(clippy::cast_precision_loss, reason = "indices and times are far smaller")]
    fn visit_i64<E>(self, number: i64) -> Result<Cell, E> {
        Ok(Cell(Some(number as f64)))
    }

    #[expect(clippy::cast_precision_loss, reason = "indices and times are far smaller")]
    fn visit_u64<E>(self, number: u64) -> Result<Cell, E> {
        Ok(Cell(Some(number as f64)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Cell, E> {
        Ok(Cell(Some(number)))
    }

    fn visit_str<E>(self, _: &str) -> Result<Cell, E> {
        Ok(Cell(None))
    }

    fn visit_unit<E>(self) -> Result<Cell, E> {
        Ok(Cell(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Cell, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Cell(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cell, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Cell(None))
    }
}
