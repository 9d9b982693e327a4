//! The work of each worker in each cell of the screen.

use borehole_analysis::tokio::{PageGrid, PageLane, TokioPage};

/// A range of time on the page's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRange {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
}

impl TimeRange {
    /// The shortest range.
    const LEAST_NS: i64 = 100;

    /// The time of a page, all of it.
    pub(crate) fn of(page: &TokioPage) -> Self {
        Self { start_ns: 0, end_ns: page.end_ns.max(Self::LEAST_NS) }
    }

    pub(crate) const fn length_ns(self) -> i64 {
        self.end_ns - self.start_ns
    }

    /// The part that is cell `cell` of `cells`.
    pub(crate) fn cell(self, cell: usize, cells: usize) -> Self {
        let at = |cell: usize| {
            let part = i128::from(self.length_ns()) * cell as i128 / cells.max(1) as i128;
            self.start_ns + i64::try_from(part).unwrap_or(i64::MAX)
        };
        Self { start_ns: at(cell), end_ns: at(cell + 1).max(at(cell) + 1) }
    }

    /// The cell of a time, if the range contains it.
    pub(crate) fn cell_of(self, time_ns: i64, cells: usize) -> Option<usize> {
        if time_ns < self.start_ns || time_ns > self.end_ns || cells == 0 {
            return None;
        }
        let part = i128::from(time_ns - self.start_ns) * cells as i128 / i128::from(self.length_ns().max(1));
        usize::try_from(part).ok().map(|cell| cell.min(cells - 1))
    }

    /// A range of `length_ns` around a time, within `all`.
    pub(crate) fn around(time_ns: i64, length_ns: i64, all: Self) -> Self {
        let length_ns = length_ns.clamp(Self::LEAST_NS, all.length_ns());
        let start_ns = (time_ns - length_ns / 2).clamp(all.start_ns, all.end_ns - length_ns);
        Self { start_ns, end_ns: start_ns + length_ns }
    }

    /// The time that it has in common with another.
    pub(crate) fn overlap_ns(self, other: Self) -> i64 {
        (self.end_ns.min(other.end_ns) - self.start_ns.max(other.start_ns)).max(0)
    }
}

/// The work of a worker during a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LaneCell {
    /// The share of the time in polls, from 0 to 1.
    pub(crate) busy: f64,
    /// Whether it was parked for some of the time.
    pub(crate) is_parked: bool,
    /// The longest poll that is there one by one, as an index of the page's polls.
    pub(crate) poll: Option<usize>,
}

/// The columns of the grid that a range touches.
pub(crate) fn columns(grid: PageGrid, range: TimeRange) -> std::ops::Range<usize> {
    let column_ns = i64::try_from(grid.column_ns.max(1)).unwrap_or(i64::MAX);
    let column = |time_ns: i64| {
        usize::try_from((time_ns - grid.first_ns).div_euclid(column_ns)).unwrap_or(0).min(grid.columns)
    };
    column(range.start_ns)..(column(range.end_ns - 1) + 1).min(grid.columns)
}

impl LaneCell {
    /// Adds up what the lane at index `row` did. Cells shorter than a column of the grid take what polls say that are there one
    /// by one, and the share of the column where there are none.
    #[expect(clippy::cast_precision_loss, reason = "shares of a cell")]
    pub(crate) fn of(page: &TokioPage, row: usize, range: TimeRange, polls: &LanePolls) -> Self {
        let Some(lane) = page.lanes.get(row) else { return Self::default() };
        let columns = columns(page.grid, range);
        let all_ns = (columns.len() as u64).saturating_mul(page.grid.column_ns).max(1) as f64;
        let sum = |of: &[u64]| of.get(columns.clone()).unwrap_or_default().iter().sum::<u64>() as f64;
        let (busy, parked) = (sum(&lane.busy_ns) / all_ns, sum(&lane.parked_ns) / all_ns);
        let poll = polls.longest(page, row, range).or_else(|| longest(page, lane, columns));
        let is_fine = range.length_ns() < i64::try_from(page.grid.column_ns).unwrap_or(i64::MAX);
        let one_by_one = poll
            .filter(|_| is_fine)
            .map(|poll| range.overlap_ns(extent(page, poll)) as f64 / range.length_ns().max(1) as f64);
        Self { busy: one_by_one.unwrap_or(busy).min(1.0), is_parked: parked > 0.01, poll }
    }
}

/// The longest poll that began in these columns.
fn longest(page: &TokioPage, lane: &PageLane, columns: std::ops::Range<usize>) -> Option<usize> {
    let polls = lane.longest.get(columns).unwrap_or_default().iter();
    let polls = polls.filter_map(|&poll| usize::try_from(poll).ok());
    polls.max_by_key(|&poll| page.polls.duration_ns.get(poll))
}

/// The time of a poll.
pub(crate) fn extent(page: &TokioPage, poll: usize) -> TimeRange {
    let start_ns = page.polls.start_ns.get(poll).copied().unwrap_or_default();
    let duration_ns = page.polls.duration_ns.get(poll).copied().unwrap_or_default();
    TimeRange { start_ns, end_ns: start_ns.saturating_add_unsigned(duration_ns) }
}

/// Where the polls of each lane are in the page's table, which has them by lane and start.
#[derive(Clone, Debug, Default)]
pub(crate) struct LanePolls {
    lanes: Vec<std::ops::Range<usize>>,
    /// The longest poll of each lane, which says how far back one may begin that is still running.
    longest_ns: Vec<i64>,
}

impl LanePolls {
    pub(crate) fn of(page: &TokioPage) -> Self {
        let lanes: Vec<_> = (0..page.lanes.len())
            .map(|lane| {
                let lane = i64::try_from(lane).unwrap_or(i64::MAX);
                let first = page.polls.lane.partition_point(|&other| other < lane);
                first..page.polls.lane.partition_point(|&other| other <= lane)
            })
            .collect();
        let longest = |polls: &std::ops::Range<usize>| {
            let longest = page.polls.duration_ns.get(polls.clone()).unwrap_or_default().iter().max();
            longest.map_or(0, |&ns| i64::try_from(ns).unwrap_or(i64::MAX))
        };
        let longest_ns = lanes.iter().map(longest).collect();
        Self { lanes, longest_ns }
    }

    /// The poll of a lane with the most time in a range.
    pub(crate) fn longest(&self, page: &TokioPage, lane: usize, range: TimeRange) -> Option<usize> {
        let polls = self.lanes.get(lane)?.clone();
        let starts = page.polls.start_ns.get(polls.clone())?;
        let first_ns = range.start_ns.saturating_sub(self.longest_ns[lane]);
        let first = starts.partition_point(|&start_ns| start_ns < first_ns);
        let last = starts.partition_point(|&start_ns| start_ns < range.end_ns);
        let overlap_ns = |poll: &usize| range.overlap_ns(extent(page, *poll));
        (polls.start + first..polls.start + last).filter(|poll| overlap_ns(poll) > 0).max_by_key(overlap_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cover_a_range_without_gaps() {
        let range = TimeRange { start_ns: 5, end_ns: 1_000_008 };
        let cells: Vec<_> = (0..7).map(|cell| range.cell(cell, 7)).collect();
        assert_eq!((cells[0].start_ns, cells[6].end_ns), (5, 1_000_008));
        assert!(cells.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
        for (cell, part) in cells.iter().enumerate() {
            assert_eq!(range.cell_of(part.end_ns - 1, 7), Some(cell));
        }
        assert_eq!((range.cell_of(4, 7), range.cell_of(1_000_009, 7)), (None, None));
    }

    #[test]
    fn ranges_stay_within_the_trace() {
        let all = TimeRange { start_ns: 0, end_ns: 1000 };
        assert_eq!(TimeRange::around(10, 200, all), TimeRange { start_ns: 0, end_ns: 200 });
        assert_eq!(TimeRange::around(990, 200, all), TimeRange { start_ns: 800, end_ns: 1000 });
        assert_eq!(TimeRange::around(500, 5000, all), all);
        assert_eq!(TimeRange::around(500, 0, all).length_ns(), 100);
    }

    #[test]
    fn a_cell_shows_what_its_columns_and_polls_say() {
        let lane = PageLane {
            worker: 3,
            busy_ns: vec![100, 0, 50, 100],
            parked_ns: vec![0, 100, 50, 0],
            longest: vec![0, -1, 1, -1],
            ..PageLane::default()
        };
        let polls = borehole_analysis::tokio::PagePolls {
            lane: vec![0, 0],
            start_ns: vec![0, 250],
            duration_ns: vec![100, 150],
            ..Default::default()
        };
        let grid = PageGrid { first_ns: 0, column_ns: 100, columns: 4 };
        let page = TokioPage { end_ns: 400, grid, lanes: vec![lane], polls, ..TokioPage::default() };
        let polls = LanePolls::of(&page);
        let cell = |start_ns, end_ns| LaneCell::of(&page, 0, TimeRange { start_ns, end_ns }, &polls);
        assert_eq!(cell(0, 100), LaneCell { busy: 1.0, is_parked: false, poll: Some(0) });
        assert_eq!(cell(100, 200), LaneCell { busy: 0.0, is_parked: true, poll: None });
        assert_eq!(cell(0, 400), LaneCell { busy: 0.625, is_parked: true, poll: Some(1) });
        // Within a column, by the polls themselves.
        assert_eq!(cell(240, 260), LaneCell { busy: 0.5, is_parked: true, poll: Some(1) });
        assert_eq!(cell(380, 390), LaneCell { busy: 1.0, is_parked: false, poll: Some(1) });
    }
}
