//! The views over time, in which a time range can be selected.

use borehole_analysis::{TimeRange, Timeline};

use crate::list::ScrollList;

/// The times of the columns of a screen: some units of time each, without gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeAxis {
    pub(crate) start_ns: i64,
    pub(crate) unit_ns: u64,
    pub(crate) units: usize,
    pub(crate) columns: usize,
}

impl TimeAxis {
    /// The units of a column. If there are more columns than units, several columns share one.
    pub(crate) fn units(&self, column: usize) -> std::ops::Range<usize> {
        let place = |column: usize| column * self.units / self.columns.max(1);
        let start = place(column).min(self.units);
        start..place(column + 1).max(start + 1).min(self.units)
    }

    /// The time range of a column.
    pub(crate) fn range(&self, column: usize) -> TimeRange {
        let time = |unit: usize| {
            let offset = u64::try_from(unit).unwrap_or(u64::MAX).saturating_mul(self.unit_ns);
            self.start_ns.saturating_add_unsigned(offset)
        };
        let units = self.units(column);
        TimeRange { start_ns: time(units.start), end_ns: time(units.end) }
    }

    /// The last column whose time contains the given one, or is nearest to it.
    fn column(&self, ns: i64) -> usize {
        let since = u64::try_from(ns.saturating_sub(self.start_ns)).unwrap_or(0);
        let unit = usize::try_from(since / self.unit_ns.max(1)).unwrap_or(usize::MAX);
        let unit = unit.min(self.units.saturating_sub(1));
        let column = ((unit + 1) * self.columns).div_ceil(self.units.max(1)).saturating_sub(1);
        column.min(self.columns.saturating_sub(1))
    }
}

/// The state of the views over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeViews {
    /// The counts; the inner `None` means that samples have no times.
    pub(crate) timeline: Option<Option<Timeline>>,
    pub(crate) list: ScrollList,
    /// The times of the columns when they were drawn last.
    pub(crate) axis: TimeAxis,
    /// The column of the cursor.
    pub(crate) column: usize,
    /// The start of the time under the cursor, once it has been moved: the cursor stays there when the columns' times change.
    at_ns: Option<i64>,
    /// The start of a selection in progress.
    pub(crate) anchor: Option<TimeRange>,
}

impl TimeViews {
    /// Discards outdated counts.
    pub(crate) fn forget(&mut self) {
        self.timeline = None;
    }

    /// Sets the times of the columns.
    pub(crate) fn lay_out(&mut self, axis: TimeAxis) {
        if self.axis != axis {
            self.axis = axis;
            self.column = self.at_ns.map_or(0, |ns| axis.column(ns));
        }
    }

    /// Puts the cursor on a column, or on the last one.
    pub(crate) fn go_to(&mut self, column: usize) {
        self.column = column.min(self.axis.columns.saturating_sub(1));
        self.at_ns = Some(self.axis.range(self.column).start_ns);
    }

    /// The selection in progress, from its start to the cursor.
    pub(crate) fn being_made(&self) -> Option<TimeRange> {
        let (from, to) = (self.anchor?, self.axis.range(self.column));
        Some(TimeRange { start_ns: from.start_ns.min(to.start_ns), end_ns: from.end_ns.max(to.end_ns) })
    }

    /// Whether a column is within the selection in progress.
    pub(crate) fn is_being_made(&self, column: usize) -> bool {
        self.being_made().is_some_and(|made| overlap(made, self.axis.range(column)))
    }
}

/// Whether two time ranges overlap.
pub(crate) const fn overlap(one: TimeRange, other: TimeRange) -> bool {
    one.start_ns < other.end_ns && other.start_ns < one.end_ns
}

/// A time since the first sample in seconds, as `--after` and `--before` take them, with enough digits to separate slices.
pub(crate) fn moment(ns: i64, slice_ns: u64) -> String {
    let digits = (0..9).find(|&digits| 10_u64.pow(9 - digits) <= slice_ns).unwrap_or(9);
    let (unit_ns, units) = (10_u64.pow(9 - digits), 10_u64.pow(digits));
    let count = ns.unsigned_abs().saturating_add(unit_ns / 2) / unit_ns;
    let sign = if ns < 0 && count > 0 { "-" } else { "" };
    let (seconds, part) = (count / units, count % units);
    match usize::try_from(digits).unwrap_or(0) {
        0 => format!("{sign}{seconds} s"),
        digits => format!("{sign}{seconds}.{part:0digits$} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(units: usize, columns: usize) -> TimeAxis {
        TimeAxis { start_ns: -7_000, unit_ns: 1_000, units, columns }
    }

    #[test]
    fn columns_share_out_all_units_and_each_time_is_found_in_its_column() {
        for (units, columns) in [(10, 10), (10, 3), (10, 7), (3600, 100), (2048, 133), (1, 1), (100, 99)] {
            let axis = axis(units, columns);
            let mut next = 0;
            for column in 0..columns {
                let (found, range) = (axis.units(column), axis.range(column));
                assert_eq!(found.start, next, "{units} in {columns}");
                assert!(!found.is_empty(), "{units} in {columns}");
                next = found.end;
                for ns in [range.start_ns, range.end_ns - 1] {
                    assert_eq!(axis.column(ns), column, "{units} in {columns}");
                }
            }
            assert_eq!(next, units);
            assert_eq!((axis.column(i64::MIN), axis.column(i64::MAX)), (0, columns - 1));
        }
    }

    #[test]
    fn slices_next_to_each_other_have_other_times_that_options_take() {
        for shift in 0..40 {
            let slice_ns = 1_u64 << shift;
            let texts: Vec<_> = (0..50).map(|slice| moment((slice + 6_800_000) << shift, slice_ns)).collect();
            assert!(texts.windows(2).all(|pair| pair[0] != pair[1]), "{texts:?}");
            let is_number = |text: &String| text.trim_end_matches(" s").parse::<f64>().is_ok();
            assert!(texts.iter().all(is_number), "{texts:?}");
        }
        assert_eq!(moment(6_840_300_000_000, 4 << 30), "6840 s");
        assert_eq!(moment(1_500_000_000, 1 << 22), "1.500 s");
        assert_eq!((moment(-1_500_000, 1 << 20), moment(-1, 1 << 20)), ("-0.002 s".into(), "0.000 s".into()));
        assert_eq!(moment(i64::MIN, 1), "-9223372036.854775808 s");
    }

    #[test]
    fn few_units_are_spread_over_many_columns() {
        let found: Vec<_> = (0..7).map(|column| axis(3, 7).units(column)).collect();
        assert_eq!(found, [0..1, 0..1, 0..1, 1..2, 1..2, 2..3, 2..3]);
        assert_eq!([-7_000, -6_000, -5_000].map(|ns| axis(3, 7).column(ns)), [2, 4, 6]);
        assert_eq!((axis(0, 7).units(3), axis(0, 0).column(5)), (0..0, 0));
    }
}
