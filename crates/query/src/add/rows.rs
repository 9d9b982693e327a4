//! Buffered rows of a table, column by column.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array as _, ArrayRef, Float64Array, Int64Array, RecordBatch, TimestampMicrosecondArray, UInt64Array,
};
use datafusion::arrow::datatypes::{Field, Schema};

use super::words::{NO_WORD, Word, Words};
use crate::ids::{self, Id};
use crate::tables::{Kind, Table, UTC};

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell {
    Absent,
    Word(Word),
    Time(i64),
    Int(i64),
    Unsigned(u64),
    Float(f64),
    Id(Id),
}

impl Cell {
    pub(super) fn int(value: Option<i64>) -> Self {
        value.map_or(Self::Absent, Self::Int)
    }

    pub(super) fn unsigned(value: Option<u64>) -> Self {
        value.map_or(Self::Absent, Self::Unsigned)
    }
}

/// The values of a column, stored once while they are all equal.
#[derive(Debug)]
struct Column {
    /// The value of all rows so far and their number, while `values` is empty.
    same: (Cell, usize),
    values: Values,
}

#[derive(Debug)]
enum Values {
    Words(Vec<Word>),
    Times(Vec<Option<i64>>),
    Ints(Vec<Option<i64>>),
    Unsigned(Vec<Option<u64>>),
    Floats(Vec<Option<f64>>),
    Ids(Vec<Option<Id>>),
}

impl Column {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Text => Values::Words(Vec::new()),
            Kind::Time => Values::Times(Vec::new()),
            Kind::Int => Values::Ints(Vec::new()),
            Kind::Unsigned => Values::Unsigned(Vec::new()),
            Kind::Float => Values::Floats(Vec::new()),
            // Lists are made from tables, not from rows.
            Kind::Id | Kind::Names | Kind::Frames => Values::Ids(Vec::new()),
        };
        Self { same: (Cell::Absent, 0), values }
    }

    #[inline]
    fn push(&mut self, cell: Cell) {
        let (same, count) = &mut self.same;
        if *count > 0 && *same == cell {
            *count += 1;
        } else if *count == 0 && self.values.is_empty() {
            self.same = (cell, 1);
        } else {
            self.spread();
            self.values.push(cell);
        }
    }

    /// Stores the shared value once per row.
    fn spread(&mut self) {
        let (same, count) = std::mem::replace(&mut self.same, (Cell::Absent, 0));
        (0..count).for_each(|_| self.values.push(same));
    }

    /// Compares two rows; columns of words compare their numbers.
    fn compare(&self, one: usize, other: usize) -> Ordering {
        if self.same.1 > 0 { Ordering::Equal } else { self.values.compare(one, other) }
    }

    /// Takes the values out in another order.
    fn take(&mut self, order: &[u32], words: &mut Words) -> ArrayRef {
        if self.same.1 > 0 {
            let (same, count) = std::mem::replace(&mut self.same, (Cell::Absent, 0));
            return self.values.repeated(same, count, words);
        }
        self.values.take(order, words)
    }
}

impl Values {
    fn is_empty(&self) -> bool {
        match self {
            Self::Words(words) => words.is_empty(),
            Self::Times(values) | Self::Ints(values) => values.is_empty(),
            Self::Unsigned(numbers) => numbers.is_empty(),
            Self::Floats(floats) => floats.is_empty(),
            Self::Ids(ids) => ids.is_empty(),
        }
    }

    #[inline]
    fn push(&mut self, cell: Cell) {
        match (self, cell) {
            (Self::Words(words), Cell::Word(word)) => words.push(word),
            (Self::Words(words), _) => words.push(NO_WORD),
            (Self::Times(times), Cell::Time(time)) => times.push(Some(time)),
            (Self::Times(times), _) => times.push(None),
            (Self::Ints(ints), Cell::Int(int)) => ints.push(Some(int)),
            (Self::Ints(ints), _) => ints.push(None),
            (Self::Unsigned(numbers), Cell::Unsigned(number)) => numbers.push(Some(number)),
            (Self::Unsigned(numbers), _) => numbers.push(None),
            (Self::Floats(floats), Cell::Float(float)) => floats.push(Some(float)),
            (Self::Floats(floats), _) => floats.push(None),
            (Self::Ids(ids), Cell::Id(id)) => ids.push(Some(id)),
            (Self::Ids(ids), _) => ids.push(None),
        }
    }

    /// Builds `count` rows of `cell`.
    fn repeated(&self, cell: Cell, count: usize, words: &mut Words) -> ArrayRef {
        match (self, cell) {
            (Self::Words(_), Cell::Word(word)) => words.column(std::iter::repeat_n(word, count)),
            (Self::Words(_), _) => words.column(std::iter::repeat_n(NO_WORD, count)),
            (Self::Times(_), Cell::Time(time)) => {
                Arc::new(TimestampMicrosecondArray::from_value(time, count).with_timezone(UTC))
            }
            (Self::Times(_), _) => Arc::new(TimestampMicrosecondArray::new_null(count).with_timezone(UTC)),
            (Self::Ints(_), Cell::Int(int)) => Arc::new(Int64Array::from_value(int, count)),
            (Self::Ints(_), _) => Arc::new(Int64Array::new_null(count)),
            (Self::Unsigned(_), Cell::Unsigned(number)) => Arc::new(UInt64Array::from_value(number, count)),
            (Self::Unsigned(_), _) => Arc::new(UInt64Array::new_null(count)),
            (Self::Floats(_), Cell::Float(float)) => Arc::new(Float64Array::from_value(float, count)),
            (Self::Floats(_), _) => Arc::new(Float64Array::new_null(count)),
            (Self::Ids(_), Cell::Id(id)) => ids::array(std::iter::repeat_n(Some(id), count)),
            (Self::Ids(_), _) => ids::array(std::iter::repeat_n(None, count)),
        }
    }

    /// Compares two rows; columns of words compare their numbers.
    fn compare(&self, one: usize, other: usize) -> Ordering {
        match self {
            Self::Words(words) => words[one].cmp(&words[other]),
            Self::Times(values) | Self::Ints(values) => values[one].cmp(&values[other]),
            Self::Unsigned(numbers) => numbers[one].cmp(&numbers[other]),
            Self::Floats(_) | Self::Ids(_) => Ordering::Equal,
        }
    }

    /// Takes the values out in another order.
    fn take(&mut self, order: &[u32], words: &mut Words) -> ArrayRef {
        fn taken<T: Copy>(values: &mut Vec<T>, order: &[u32]) -> Vec<T> {
            let taken = order.iter().map(|&row| values[row as usize]).collect();
            values.clear();
            taken
        }
        match self {
            Self::Words(values) => words.column(taken(values, order).into_iter()),
            Self::Times(values) => {
                Arc::new(TimestampMicrosecondArray::from(taken(values, order)).with_timezone(UTC))
            }
            Self::Ints(values) => Arc::new(Int64Array::from(taken(values, order))),
            Self::Unsigned(values) => Arc::new(UInt64Array::from(taken(values, order))),
            Self::Floats(values) => Arc::new(Float64Array::from(taken(values, order))),
            Self::Ids(values) => ids::array(taken(values, order).into_iter()),
        }
    }
}

/// The rows of one table.
#[derive(Debug)]
pub(super) struct Rows {
    table: Table,
    columns: Vec<Column>,
    count: usize,
    /// The sort keys after the minute of the first time.
    keys: Vec<usize>,
    time: usize,
}

impl Rows {
    pub(super) fn new(table: Table) -> Self {
        let description = table.description();
        let place = |name: &str| description.columns.iter().position(|column| column.name == name);
        Self {
            table,
            columns: description.columns.iter().map(|column| Column::new(column.kind)).collect(),
            count: 0,
            keys: description.order.iter().filter_map(|name| place(name)).collect(),
            time: place("time").unwrap_or(0),
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn push(&mut self, cells: &[Cell]) {
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell a column");
        for (column, &cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell);
        }
        self.count += 1;
    }

    /// Takes all rows out in the order of the table.
    pub(super) fn take(&mut self, words: &mut Words) -> RecordBatch {
        let order = self.order();
        let arrays: Vec<_> = self.columns.iter_mut().map(|column| column.take(&order, words)).collect();
        self.count = 0;
        let names = self.table.description().columns.iter().map(|column| column.name);
        let fields: Vec<_> = names
            .zip(&arrays)
            .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
            .collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns of one length")
    }

    fn order(&self) -> Vec<u32> {
        // Equal times have equal minutes.
        let minute = |row: usize| match &self.columns[self.time].values {
            Values::Times(times) => times.get(row).copied().flatten().map(|time| time.div_euclid(MINUTE_US)),
            _ => None,
        };
        let compare = |one: usize, other: usize| {
            let keys = self.keys.iter().map(|&key| self.columns[key].compare(one, other));
            minute(one).cmp(&minute(other)).then_with(|| keys.fold(Ordering::Equal, Ordering::then))
        };
        let mut order: Vec<u32> = (0..).take(self.count).collect();
        if (1..self.count).any(|row| compare(row - 1, row).is_gt()) {
            order.sort_by(|&one, &other| compare(one as usize, other as usize));
        }
        order
    }
}

/// The length of a minute. Rows of one minute are sorted by host, which keeps differences of times small and gives long runs
/// of hosts; a range of time is still a range of the file.
const MINUTE_US: i64 = 60_000_000;
