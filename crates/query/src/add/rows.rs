//! Buffered rows of a table, column by column.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use datafusion::arrow::compute::take;

use super::words::{ColumnWords, NO_WORD, Word};
use crate::ids::{self, LakeStackId};
use crate::tables::{ColumnKind, LakeTable, UTC};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RowCell {
    Absent,
    Word(Word),
    Time(i64),
    Int(i64),
    Unsigned(u64),
    Float(f64),
    Id(LakeStackId),
}

impl RowCell {
    pub(super) fn word(word: Word) -> Self {
        if word == NO_WORD { Self::Absent } else { Self::Word(word) }
    }

    pub(super) fn int(value: Option<i64>) -> Self {
        value.map_or(Self::Absent, Self::Int)
    }

    pub(super) fn unsigned(value: Option<u64>) -> Self {
        value.map_or(Self::Absent, Self::Unsigned)
    }
}

/// The values of a column, stored once while they are all equal.
#[derive(Debug)]
struct ColumnBuffer {
    /// The value of all rows so far and their number, while `values` is empty.
    same: (RowCell, usize),
    /// Whether rows are in `values`.
    is_mixed: bool,
    values: ColumnValues,
}

#[derive(Debug)]
enum ColumnValues {
    Words(Vec<Word>),
    /// Sets of labels.
    Labels(Vec<Word>),
    Times(Vec<Option<i64>>),
    Ints(Vec<Option<i64>>),
    Unsigned(Vec<Option<u64>>),
    Floats(Vec<Option<f64>>),
    Ids(Vec<Option<LakeStackId>>),
}

impl ColumnBuffer {
    fn new(kind: ColumnKind) -> Self {
        let values = match kind {
            ColumnKind::Text => ColumnValues::Words(Vec::new()),
            ColumnKind::Labels => ColumnValues::Labels(Vec::new()),
            ColumnKind::Time => ColumnValues::Times(Vec::new()),
            ColumnKind::Int => ColumnValues::Ints(Vec::new()),
            ColumnKind::Unsigned => ColumnValues::Unsigned(Vec::new()),
            ColumnKind::Float => ColumnValues::Floats(Vec::new()),
            // Lists are made from tables, not from rows.
            ColumnKind::Id | ColumnKind::Names | ColumnKind::Frames => ColumnValues::Ids(Vec::new()),
        };
        Self { same: (RowCell::Absent, 0), is_mixed: false, values }
    }

    #[inline]
    fn push(&mut self, cell: RowCell) {
        let (same, count) = &mut self.same;
        if *count > 0 && *same == cell {
            *count += 1;
        } else if *count == 0 && !self.is_mixed {
            self.same = (cell, 1);
        } else {
            self.spread();
            self.values.push(cell);
        }
    }

    /// Stores the shared value once per row.
    fn spread(&mut self) {
        let (same, count) = std::mem::replace(&mut self.same, (RowCell::Absent, 0));
        (0..count).for_each(|_| self.values.push(same));
        self.is_mixed = true;
    }

    /// Compares two rows; columns of words compare their numbers.
    fn compare(&self, one: usize, other: usize) -> Ordering {
        if self.same.1 > 0 { Ordering::Equal } else { self.values.compare(one, other) }
    }

    /// Takes the values out in another order.
    fn take(&mut self, order: &[u32], words: &mut ColumnWords) -> ArrayRef {
        if self.same.1 > 0 {
            let (same, count) = std::mem::replace(&mut self.same, (RowCell::Absent, 0));
            self.values.push(same);
            let row = self.values.take(&[0], words);
            return take(&row, &UInt32Array::from_value(0, count), None).expect("the first row of one");
        }
        self.is_mixed = false;
        self.values.take(order, words)
    }
}

impl ColumnValues {
    #[inline]
    fn push(&mut self, cell: RowCell) {
        match (self, cell) {
            (Self::Words(words) | Self::Labels(words), RowCell::Word(word)) => words.push(word),
            (Self::Words(words) | Self::Labels(words), _) => words.push(NO_WORD),
            (Self::Times(times), RowCell::Time(time)) => times.push(Some(time)),
            (Self::Times(times), _) => times.push(None),
            (Self::Ints(ints), RowCell::Int(int)) => ints.push(Some(int)),
            (Self::Ints(ints), _) => ints.push(None),
            (Self::Unsigned(numbers), RowCell::Unsigned(number)) => numbers.push(Some(number)),
            (Self::Unsigned(numbers), _) => numbers.push(None),
            (Self::Floats(floats), RowCell::Float(float)) => floats.push(Some(float)),
            (Self::Floats(floats), _) => floats.push(None),
            (Self::Ids(ids), RowCell::Id(id)) => ids.push(Some(id)),
            (Self::Ids(ids), _) => ids.push(None),
        }
    }

    /// Compares two rows; columns of words compare their numbers.
    fn compare(&self, one: usize, other: usize) -> Ordering {
        match self {
            Self::Words(words) => words[one].cmp(&words[other]),
            Self::Times(values) | Self::Ints(values) => values[one].cmp(&values[other]),
            Self::Unsigned(numbers) => numbers[one].cmp(&numbers[other]),
            Self::Labels(_) | Self::Floats(_) | Self::Ids(_) => Ordering::Equal,
        }
    }

    /// Takes the values out in another order.
    fn take(&mut self, order: &[u32], words: &mut ColumnWords) -> ArrayRef {
        fn taken<T: Copy>(values: &mut Vec<T>, order: &[u32]) -> Vec<T> {
            let taken = order.iter().map(|&row| values[row as usize]).collect();
            values.clear();
            taken
        }
        match self {
            Self::Words(values) => words.column(taken(values, order).into_iter()),
            Self::Labels(values) => words.label_column(taken(values, order).into_iter()),
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

#[derive(Debug)]
pub(super) struct TableRows {
    table: LakeTable,
    columns: Vec<ColumnBuffer>,
    pub(super) count: usize,
    /// The sort keys after the minute of the first time.
    keys: Vec<usize>,
    time: usize,
}

impl TableRows {
    pub(super) fn new(table: LakeTable) -> Self {
        let description = table.description();
        let place = |name: &str| description.columns.iter().position(|column| column.name == name);
        Self {
            table,
            columns: description.columns.iter().map(|column| ColumnBuffer::new(column.kind)).collect(),
            count: 0,
            keys: description.order.iter().filter_map(|name| place(name)).collect(),
            time: place("time").unwrap_or(0),
        }
    }

    /// Adds a row: its first cells, those that its table has alone, and its last.
    #[inline]
    pub(super) fn push(&mut self, first: &[RowCell], cells: &[RowCell], last: &[RowCell]) {
        debug_assert_eq!(first.len() + cells.len() + last.len(), self.columns.len(), "one cell per column");
        let all = first.iter().chain(cells).chain(last);
        self.columns.iter_mut().zip(all).for_each(|(column, &cell)| column.push(cell));
        self.count += 1;
    }

    /// Takes all rows out in the order of the table.
    pub(super) fn take(&mut self, words: &mut ColumnWords) -> RecordBatch {
        let order = self.order();
        let arrays = self.columns.iter_mut().map(|column| column.take(&order, words)).collect();
        self.count = 0;
        self.table.batch(arrays)
    }

    fn order(&self) -> Vec<u32> {
        // Equal times have equal minutes.
        let minute = |row: usize| match &self.columns[self.time].values {
            ColumnValues::Times(times) => {
                times.get(row).copied().flatten().map(|time| time.div_euclid(MINUTE_US))
            }
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

/// The length of a minute. Rows of one minute are sorted by host, which keeps differences of times small and runs of hosts
/// long, while a range of time is still a range of the file.
pub(super) const MINUTE_US: i64 = 60_000_000;
