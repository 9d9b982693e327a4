//! Sample times as a heat map: one column per second, one row per part of the second.
//!
//! Work that recurs at the same part of each second shows as a line, which a timeline of seconds hides. The view is that of
//! Netflix' FlameScope.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, ProfileSink, Sample, Weigher};
use hashbrown::HashMap;

use crate::profile::clock::CommonClock;
use crate::weighing::{AddedAmount, Weighing};

/// The number of rows of a column.
const ROWS: i64 = 50;

/// The initial length of a cell, which makes a column a second.
const CELL_NS: i64 = 1_000_000_000 / ROWS;

/// The maximum number of columns; after an hour they become longer.
const MOST_COLUMNS: i64 = 3600;

/// The maximum number of cells held before they become longer.
const MOST_CELLS: usize = 1 << 18;

/// Samples in cells of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeatMap {
    /// The start of the first column, in nanoseconds since the first sample.
    pub start_ns: i64,
    /// The length of a column: a second, or a power of two of seconds.
    pub column_ns: u64,
    /// The number of rows of a column, all of the same length.
    pub rows: usize,
    /// The samples of each cell, column by column; for samples with values, the sum of those above 0.
    pub samples: Vec<u64>,
    /// Samples without a timestamp, which are in no cell.
    pub without_time: u64,
}

impl HeatMap {
    /// The number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.samples.len() / self.rows.max(1)
    }

    /// The samples of a column, by row.
    pub fn column(&self, column: usize) -> &[u64] {
        self.samples.get(column * self.rows..(column + 1) * self.rows).unwrap_or_default()
    }

    /// The largest number of samples in a cell.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.samples.iter().copied().max().unwrap_or(0)
    }
}

/// Builds a [`HeatMap`] of a profile.
///
/// # Examples
///
/// ```
/// use borehole_analysis::HeatMapSink;
/// use borehole_model::{Context, ProfileSink, Sample, Segment, Tables};
///
/// let (tables, segment) = (Tables::default(), Segment::default());
/// let mut sink = HeatMapSink::default();
/// for time_ns in [0, 10_000_000, 1_990_000_000] {
///     let at = Context { tables: &tables, segment: &segment };
///     let _ = sink.sample(at, &Sample { count: 1, time_ns: Some(time_ns), ..Sample::default() })?;
/// }
/// let map = sink.into_view();
/// assert_eq!((map.columns(), map.rows), (2, 50));
/// assert_eq!((map.column(0)[0], map.column(1)[49]), (2, 1));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct HeatMapSink {
    clock: CommonClock,
    weighing: Weighing,
    cell_ns: i64,
    cells: HashMap<i64, u64>,
    /// The cell of the last samples, and the number of them that are not in `cells` yet.
    last: (i64, u64),
    without_time: u64,
}

impl Default for HeatMapSink {
    fn default() -> Self {
        Self {
            clock: CommonClock::default(),
            weighing: Weighing::default(),
            cell_ns: CELL_NS,
            cells: HashMap::new(),
            last: (0, 0),
            without_time: 0,
        }
    }
}

impl HeatMapSink {
    /// Creates a map of the samples that `weigher` picks.
    #[must_use]
    pub fn new(weigher: Weigher) -> Self {
        Self { weighing: Weighing::new(weigher), ..Self::default() }
    }

    /// The map; empty if no sample has a timestamp.
    #[must_use]
    pub fn into_view(mut self) -> HeatMap {
        self.settle();
        let column = |cell: i64| cell.div_euclid(ROWS);
        let columns = |cells: &HashMap<i64, u64>| {
            let first = cells.keys().copied().min()?;
            let last = cells.keys().copied().max()?;
            Some((column(first), column(last)))
        };
        while columns(&self.cells).is_some_and(|(first, last)| last.saturating_sub(first) >= MOST_COLUMNS) {
            self.widen();
        }
        let Some((first, last)) = columns(&self.cells) else {
            return HeatMap { without_time: self.without_time, rows: 50, ..HeatMap::default() };
        };
        let cells = (first * ROWS..(last + 1) * ROWS).map(|cell| self.cells.get(&cell).copied().unwrap_or(0));
        HeatMap {
            start_ns: (first * ROWS).saturating_mul(self.cell_ns),
            column_ns: self.cell_ns.unsigned_abs().saturating_mul(ROWS.unsigned_abs()),
            rows: 50,
            samples: cells.collect(),
            without_time: self.without_time,
        }
    }

    #[cold]
    fn turn_to(&mut self, cell: i64) {
        self.settle();
        self.last.0 = cell;
        while self.cells.len() > MOST_CELLS {
            self.widen();
            self.last.0 = self.last.0.div_euclid(2);
        }
    }

    fn settle(&mut self) {
        let (cell, count) = std::mem::take(&mut self.last);
        if count > 0 {
            let sum = self.cells.entry(cell).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// Doubles the length of cells.
    fn widen(&mut self) {
        self.cell_ns = self.cell_ns.saturating_mul(2);
        let mut wider: HashMap<i64, u64> = HashMap::with_capacity(self.cells.len());
        for (cell, count) in self.cells.drain() {
            let sum = wider.entry(cell.div_euclid(2)).or_default();
            *sum = sum.saturating_add(count);
        }
        self.cells = wider;
    }
}

impl ProfileSink for HeatMapSink {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let weight = match self.weighing.weigh(at, sample) {
            None => return Ok(ControlFlow::Continue(())),
            Some(AddedAmount::Samples) => sample.count,
            Some(AddedAmount::Value(value)) => u64::try_from(value).unwrap_or(0),
        };
        let Some(time_ns) = sample.time_ns else {
            self.without_time = self.without_time.saturating_add(sample.count);
            return Ok(ControlFlow::Continue(()));
        };
        let since_ns = self.clock.since_origin(time_ns, at.segment);
        if since_ns.div_euclid(self.cell_ns) != self.last.0 {
            self.turn_to(since_ns.div_euclid(self.cell_ns));
        }
        self.last.1 = self.last.1.saturating_add(weight);
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.weighing.segment(at.segment);
        if at.segment.index == 0 {
            self.clock.restart();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use borehole_model::{Segment, Tables};

    use super::*;

    fn map(times_ns: &[Option<i64>]) -> HeatMap {
        let (tables, segment) = (Tables::default(), Segment::default());
        let at = Context { tables: &tables, segment: &segment };
        let mut sink = HeatMapSink::default();
        for &time_ns in times_ns {
            let _ = sink.sample(at, &Sample { count: 2, time_ns, ..Sample::default() }).unwrap();
        }
        sink.into_view()
    }

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn a_clock_that_goes_back_has_columns_before_the_first_sample() {
        let map = map(&[Some(5), Some(-1), Some(SECOND), None]);
        assert_eq!((map.start_ns, map.column_ns, map.columns()), (-SECOND, 1_000_000_000, 2));
        assert_eq!((map.column(0)[49], map.column(1)[0], map.column(1)[49]), (2, 2, 2));
        assert_eq!((map.most(), map.without_time), (2, 2));
        assert!(map.column(7).is_empty());
    }

    #[test]
    fn columns_become_longer_until_they_are_few_enough_and_no_sample_is_lost() {
        let times: Vec<_> = (0..20_000).map(|second| Some(second * SECOND)).collect();
        let long = map(&times);
        assert!(long.columns() <= 3600 && long.columns() > 1800, "{}", long.columns());
        assert_eq!(long.samples.iter().sum::<u64>(), 40_000);
        let wild = map(&[Some(0), Some(i64::MAX), Some(i64::MIN), Some(3)]);
        assert_eq!(wild.samples.iter().sum::<u64>(), 8);
        assert!(wild.columns() <= 3600);
    }

    #[test]
    fn a_profile_without_times_is_an_empty_map() {
        assert_eq!((map(&[]).columns(), map(&[None]).without_time), (0, 2));
    }
}
