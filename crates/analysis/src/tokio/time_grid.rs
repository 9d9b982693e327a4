//! Sums of the time of each worker in columns of time, in bounded memory: columns double when there are too many.

use hashbrown::HashMap;

use super::page::{PageGrid, PageLane};
use super::workers::Poll;

/// The maximum number of columns: more than a screen shows.
const MOST_COLUMNS: u64 = 2048;
/// The maximum number of columns of all lanes. With more than 8 workers, each has fewer columns.
const MOST_CELLS: u64 = 1 << 14;
/// The maximum number of lanes; further workers are left out.
pub(super) const MOST_LANES: usize = 1024;
/// The length of a column before there is need for longer ones, as a power of two: 1 µs.
const SHORTEST: u32 = 10;
/// The maximum number of columns that long polls are spread over. What workers do follows each other, so only a trace in
/// which it overlaps gets there; its further polls count for the column in which they begin.
const MOST_STEPS: u64 = 1 << 26;

/// A worker in one column.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    busy_ns: u64,
    parked_ns: u64,
    waited_ns: u64,
    queue: u64,
    polls: u32,
    longest: Option<Poll>,
}

/// Columns begin at multiples of their length.
#[derive(Clone, Debug)]
pub(super) struct TimeGrid {
    /// The length of a column as a power of two.
    power: u32,
    /// The first and the last column in use.
    columns: Option<(u64, u64)>,
    cells: HashMap<(usize, u64), Cell>,
    /// The lanes by worker.
    lanes: HashMap<u64, usize>,
    steps: u64,
}

impl Default for TimeGrid {
    fn default() -> Self {
        let (cells, lanes) = (HashMap::new(), HashMap::new());
        Self { power: SHORTEST, columns: None, cells, lanes, steps: 0 }
    }
}

impl TimeGrid {
    pub(super) fn poll(&mut self, poll: Poll) {
        let Poll { worker, start_ns, duration_ns, .. } = poll;
        let end_ns = start_ns.saturating_add(duration_ns);
        let Some(lane) = self.spread(worker, (start_ns, end_ns), |cell| &mut cell.busy_ns) else { return };
        let cell = self.cell(lane, start_ns >> self.power);
        cell.polls = cell.polls.saturating_add(1);
        cell.longest = cell.longest.max(Some(poll));
    }

    pub(super) fn parked(&mut self, worker: u64, start_ns: u64, end_ns: u64) {
        self.spread(worker, (start_ns, end_ns), |cell| &mut cell.parked_ns);
    }

    pub(super) fn waited(&mut self, worker: u64, end_ns: u64, waited_ns: u64) {
        let start_ns = end_ns.saturating_sub(waited_ns);
        self.spread(worker, (start_ns, end_ns), |cell| &mut cell.waited_ns);
    }

    pub(super) fn queued(&mut self, worker: u64, time_ns: u64, queue: u64) {
        if let Some(lane) = self.lane(worker) {
            self.cover(time_ns, time_ns);
            let cell = self.cell(lane, time_ns >> self.power);
            cell.queue = cell.queue.max(queue);
        }
    }

    fn lane(&mut self, worker: u64) -> Option<usize> {
        let next = self.lanes.len();
        match self.lanes.get(&worker) {
            Some(&lane) => Some(lane),
            None if next < MOST_LANES => Some(*self.lanes.entry(worker).or_insert(next)),
            None => None,
        }
    }

    fn cell(&mut self, lane: usize, column: u64) -> &mut Cell {
        self.cells.entry((lane, column)).or_default()
    }

    /// Adds a stretch of time to the columns that it covers. Returns the lane.
    fn spread(
        &mut self,
        worker: u64,
        (start_ns, end_ns): (u64, u64),
        sum: impl Fn(&mut Cell) -> &mut u64,
    ) -> Option<usize> {
        let lane = self.lane(worker)?;
        self.cover(start_ns, end_ns);
        let (first, mut last) = (start_ns >> self.power, end_ns >> self.power);
        self.steps = self.steps.saturating_add(last - first);
        if self.steps > MOST_STEPS {
            last = first;
        }
        for column in first..=last {
            let from_ns = start_ns.max(column << self.power);
            let until_ns = end_ns.min((column << self.power) + ((1 << self.power) - 1));
            // Ends belong to the column that they are in: the nanosecond between two columns is of the first.
            let ns = until_ns.saturating_sub(from_ns) + u64::from(column < last);
            let sum_ns = sum(self.cell(lane, column));
            *sum_ns = sum_ns.saturating_add(ns);
        }
        Some(lane)
    }

    /// Makes room for columns from one time to another.
    fn cover(&mut self, start_ns: u64, end_ns: u64) {
        loop {
            let (first, last) = (start_ns >> self.power, end_ns >> self.power);
            let (first, last) =
                self.columns.map_or((first, last), |(least, most)| (least.min(first), most.max(last)));
            if last - first < self.most_columns() || self.power == 62 {
                self.columns = Some((first, last));
                return;
            }
            self.double();
        }
    }

    fn most_columns(&self) -> u64 {
        let each = MOST_CELLS / (self.lanes.len() as u64).next_power_of_two();
        each.min(MOST_COLUMNS)
    }

    fn double(&mut self) {
        self.power += 1;
        self.columns = self.columns.map(|(first, last)| (first >> 1, last >> 1));
        for ((lane, column), cell) in std::mem::take(&mut self.cells) {
            self.cell(lane, column >> 1).add(cell);
        }
    }

    /// The longest poll of each column.
    pub(super) fn longest(&self) -> impl Iterator<Item = Poll> {
        self.cells.values().filter_map(|cell| cell.longest)
    }

    pub(super) fn shape(&self, origin_ns: u64) -> PageGrid {
        let (first, last) = self.columns.unwrap_or_default();
        let columns = self.columns.map_or(0, |_| usize::try_from(last - first).unwrap_or(0) + 1);
        PageGrid { first_ns: since(first << self.power, origin_ns), column_ns: 1 << self.power, columns }
    }

    /// The column of a time, if the grid has it.
    pub(super) fn column(&self, time_ns: u64) -> Option<usize> {
        let (first, last) = self.columns?;
        let column = time_ns >> self.power;
        usize::try_from(column.checked_sub(first)?).ok().filter(|_| column <= last)
    }

    /// The lanes by the number of their worker; `index` numbers polls.
    pub(super) fn lanes(&self, mut index: impl FnMut(&Poll) -> i64) -> Vec<PageLane> {
        let columns = self.shape(0).columns;
        let mut lanes: Vec<_> = (0..self.lanes.len()).map(|_| empty_lane(columns)).collect();
        for (&worker, &lane) in &self.lanes {
            lanes[lane].worker = worker;
        }
        let first = self.columns.unwrap_or_default().0;
        for (&(lane, column), cell) in &self.cells {
            let (lane, row) = (&mut lanes[lane], usize::try_from(column - first).unwrap_or(0));
            lane.busy_ns[row] = cell.busy_ns;
            lane.parked_ns[row] = cell.parked_ns;
            lane.waited_ns[row] = cell.waited_ns;
            lane.queue[row] = cell.queue;
            lane.polls[row] = cell.polls;
            lane.longest[row] = cell.longest.as_ref().map_or(-1, &mut index);
        }
        lanes.sort_by_key(|lane| lane.worker);
        lanes
    }
}

impl Cell {
    fn add(&mut self, other: Self) {
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.parked_ns = self.parked_ns.saturating_add(other.parked_ns);
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
        self.queue = self.queue.max(other.queue);
        self.polls = self.polls.saturating_add(other.polls);
        self.longest = self.longest.max(other.longest);
    }
}

fn empty_lane(columns: usize) -> PageLane {
    let none = vec![0; columns];
    PageLane {
        worker: 0,
        busy_ns: none.clone(),
        polls: vec![0; columns],
        longest: vec![-1; columns],
        parked_ns: none.clone(),
        waited_ns: none.clone(),
        queue: none,
    }
}

/// A time as nanoseconds since another.
pub(super) fn since(time_ns: u64, origin_ns: u64) -> i64 {
    let distance_ns = i128::from(time_ns) - i128::from(origin_ns);
    i64::try_from(distance_ns).unwrap_or(if distance_ns < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(worker: u64, start_ns: u64, duration_ns: u64) -> Poll {
        Poll { worker, start_ns, duration_ns, ..Poll::default() }
    }

    #[test]
    fn columns_double_until_everything_fits_and_lose_no_time() {
        let mut grid = TimeGrid::default();
        let mut busy_ns = 0;
        // Not in order of time, as in a trace.
        for start in (0..50_000u64).rev() {
            grid.poll(poll(start % 3, start * 100_000, 70_000));
            busy_ns += 70_000;
        }
        let lanes = grid.lanes(|poll| poll.duration_ns.cast_signed());
        let shape = grid.shape(0);
        assert!(shape.columns <= 2048 && shape.columns > 1000, "{shape:?}");
        assert_eq!(lanes.iter().map(|lane| lane.worker).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(lanes.iter().flat_map(|lane| &lane.busy_ns).sum::<u64>(), busy_ns);
        assert_eq!(lanes.iter().flat_map(|lane| &lane.polls).sum::<u32>(), 50_000);
        assert!(lanes[0].longest.contains(&70_000));
    }

    #[test]
    fn a_long_poll_covers_its_columns_and_begins_in_one() {
        let mut grid = TimeGrid::default();
        grid.poll(poll(7, 1000, 5000));
        grid.parked(7, 6000, 7168);
        let lane = &grid.lanes(|_| 5)[0];
        assert_eq!(lane.busy_ns, [24, 1024, 1024, 1024, 1024, 880, 0, 0]);
        assert_eq!(lane.polls, [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(lane.longest, [5, -1, -1, -1, -1, -1, -1, -1]);
        assert_eq!(lane.parked_ns, [0, 0, 0, 0, 0, 144, 1024, 0]);
    }

    #[test]
    fn times_far_apart_and_many_workers_take_bounded_memory() {
        let mut grid = TimeGrid::default();
        for worker in 0..2000 {
            grid.poll(poll(worker, 0, u64::MAX));
        }
        assert_eq!(grid.lanes.len(), MOST_LANES);
        assert!(grid.cells.len() as u64 <= MOST_CELLS, "{}", grid.cells.len());
        assert!(grid.shape(0).columns <= 32);
    }
}
