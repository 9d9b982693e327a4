//! Tasks, their wakes, and their delays until they are polled.

use borehole_model::RowIndex;
use borehole_model::dial9::is_worker;

use super::coverage::{EventTimes, extend};
use super::handoffs::{Handoffs, WaitChain};
use super::histogram::Durations;
use super::names::{UNKNOWN_ROW, at};
use super::reports::Reports;
use super::view::{AliveCounts, LimitRow, TaskView, WakeView};
use super::worst::Worst;

/// The delay above which a delay is high.
const HIGH_DELAY_NS: u64 = 5_000_000;
/// The wait to be polled, at the end of the trace, above which a task is starved.
const STARVED_NS: u64 = 1_000_000_000;
/// The time without a wake above which a task may have lost its waker.
const UNWOKEN_NS: u64 = 10_000_000_000;
/// The wakes of a task by itself, and the time that they go on, from which on it may be a busy loop.
const BUSY_WAKES: u32 = 1000;
const BUSY_NS: u64 = 100_000_000;
/// The rate of them per second above which it is one.
const BUSY_PER_SECOND: u64 = 10_000;
/// The maximum number of tasks that are followed, of 96 bytes each.
const MOST_TASKS: usize = 1 << 22;
/// The maximum number of wakes and polls, of 16 bytes each, from which delays are derived.
const MOST_MOMENTS: usize = 1 << 24;
/// Marks a wake, in place of a poll's duration.
const WAKE: u32 = 0;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TaskRecord {
    pub(super) id: u64,
    /// The place, as a row of the names of places.
    pub(super) place: u32,
    pub(super) spawned_ns: Option<u64>,
    pub(super) ended_ns: Option<u64>,
    pub(super) is_polled: bool,
    /// Whether its wakes are not recorded.
    is_untraced: bool,
    is_woken: bool,
    /// The start of its last poll; `idle_ns` is the end of the last poll that ended.
    polled_ns: u64,
    idle_ns: Option<u64>,
    /// The last wake.
    woken_ns: u64,
    /// The last wake by itself, in a poll.
    yielded_ns: u64,
    /// The wakes by itself, in a poll or right after it: their number, and the times of the first and the last.
    self_wakes: u32,
    self_woken_ns: EventTimes,
}

/// Tasks that woke themselves again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BusyTasks {
    pub(super) count: u64,
    /// The wakes of the task with the most.
    pub(super) wakes: u64,
    pub(super) start_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) task: u64,
    /// The place, as a row of the names of places.
    pub(super) place: u32,
}

/// Tasks that wait at the end of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WaitingTasks {
    pub(super) count: u64,
    pub(super) longest_ns: u64,
    /// The start of that one's wait.
    pub(super) since_ns: u64,
    pub(super) task: u64,
    /// The place, as a row of the names of places.
    pub(super) place: u32,
}

/// Waiting tasks, by what they wait for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AllWaiting {
    /// Woken, and not polled since.
    pub(super) starved: WaitingTasks,
    /// Spawned, and never polled.
    pub(super) unpolled: WaitingTasks,
    /// Polled, and never woken.
    pub(super) unwoken: WaitingTasks,
    /// Woken by themselves again and again.
    pub(super) busy: BusyTasks,
}

/// A wake or a poll, for tasks whose delays the runtime does not measure.
#[derive(Clone, Copy, Debug)]
struct TaskMoment {
    task: u32,
    time_ns: u64,
    /// [`WAKE`], or one more than the poll's duration, up to 4 s.
    what: u32,
}

/// The state of a task at a moment of the trace.
#[derive(Clone, Copy, Debug, Default)]
struct WakeState {
    /// The first wake since its last poll.
    woken_ns: Option<u64>,
    /// The end of that poll.
    idle_ns: u64,
}

/// A wait. Ordered by duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wait {
    pub(super) delay_ns: u64,
    pub(super) poll_ns: u64,
    pub(super) task: u64,
    pub(super) worker: Option<u64>,
    /// The place, as a row of the names of places.
    pub(super) place: u32,
}

#[derive(Debug, Default)]
pub(super) struct Tasks {
    index: RowIndex,
    pub(super) tasks: Vec<TaskRecord>,
    pub(super) wakes: WakeView,
    /// Whether polls record their delay.
    pub(super) is_measured: bool,
    moments: Vec<TaskMoment>,
    /// The delays by place.
    pub(super) delays: Vec<Durations>,
    pub(super) high: u64,
    pub(super) worst: Worst<Wait>,
    /// Tasks alive as the runtimes counted them.
    pub(super) counted: Reports,
    /// Wakes of a task by another one of its place.
    handoffs: Handoffs,
    /// Tasks that are not followed: spawned, and ended.
    unfollowed: (u64, u64),
    /// Wakes and polls that delays are not derived from.
    unfollowed_moments: u64,
}

impl Tasks {
    pub(super) fn new(rows: usize) -> Self {
        Self { worst: Worst::new(rows.max(1)), ..Self::default() }
    }

    /// The row of a task that is known.
    pub(super) fn row_of(&self, id: u64) -> Option<u32> {
        self.index.find(id).and_then(|row| u32::try_from(row).ok())
    }

    /// The row of a task; `None` if there are too many others.
    #[inline]
    fn row(&mut self, id: u64) -> Option<usize> {
        self.index.get(id).or_else(|| self.add(id))
    }

    #[cold]
    fn add(&mut self, id: u64) -> Option<usize> {
        let row = self.tasks.len();
        if row == MOST_TASKS {
            return None;
        }
        self.index.insert(id, row);
        self.tasks.push(TaskRecord { id, place: UNKNOWN_ROW, ..TaskRecord::default() });
        Some(row)
    }

    pub(super) fn spawned(&mut self, id: u64, time_ns: u64, place: Option<u32>, is_traced: bool) {
        let Some(row) = self.row(id) else {
            self.unfollowed.0 += 1;
            return;
        };
        let task = &mut self.tasks[row];
        task.is_untraced = !is_traced;
        task.spawned_ns = Some(time_ns);
        task.place = place.unwrap_or(task.place);
    }

    pub(super) fn ended(&mut self, id: u64, time_ns: u64) {
        match self.row(id) {
            Some(row) => self.tasks[row].ended_ns = Some(time_ns),
            None => self.unfollowed.1 += 1,
        }
    }

    /// Records the start of a poll; a measured delay is taken as it is. Returns the row of the task, and where it was spawned: if
    /// the poll does not say, other events may have.
    #[inline]
    pub(super) fn polled(&mut self, wait: Wait, is_measured: bool) -> (usize, u32) {
        let Some(row) = self.row(wait.task) else {
            if is_measured {
                self.waited(wait);
            }
            return (MOST_TASKS, wait.place);
        };
        let task = &mut self.tasks[row];
        task.is_polled = true;
        task.polled_ns = task.polled_ns.max(wait.poll_ns);
        if wait.place != UNKNOWN_ROW {
            task.place = wait.place;
        }
        let place = task.place;
        if is_measured {
            self.is_measured = true;
            self.waited(Wait { place, ..wait });
        }
        (row, place)
    }

    #[inline]
    pub(super) fn poll_ended(&mut self, row: usize, start_ns: u64, duration_ns: u64) {
        let Some(task) = self.tasks.get_mut(row) else { return };
        task.idle_ns = task.idle_ns.max(Some(start_ns.saturating_add(duration_ns)));
        if !self.is_measured {
            let what = u32::try_from(duration_ns).unwrap_or(u32::MAX - 1).saturating_add(1);
            self.moment(TaskMoment { task: number(row), time_ns: start_ns, what });
        }
    }

    #[inline]
    fn moment(&mut self, moment: TaskMoment) {
        if self.moments.len() < MOST_MOMENTS {
            self.moments.push(moment);
        } else {
            self.unfollowed_moments += 1;
        }
    }

    /// Records a wake. `awake_ns` is the time since which the worker, if it is one, has not parked.
    #[inline]
    pub(super) fn woken(
        &mut self,
        (waker, id): (u64, u64),
        worker: Option<u64>,
        awake_ns: u64,
        time_ns: u64,
    ) {
        self.wakes.count += 1;
        self.wakes.from_outside += u64::from(waker == 0);
        self.wakes.by_itself += u64::from(waker == id && id != 0);
        self.wakes.off_worker += u64::from(worker.is_some_and(|worker| !is_worker(worker)));
        if id == 0 {
            return;
        }
        let Some(row) = self.row(id) else { return };
        let task = &mut self.tasks[row];
        // Tokio wakes a task that yields when its poll has ended, on the same worker.
        let yields = waker == 0 && task.idle_ns.is_some_and(|idle_ns| idle_ns >= awake_ns);
        if waker == id || yields {
            task.self_wakes = task.self_wakes.saturating_add(1);
            extend(&mut task.self_woken_ns, time_ns);
        }
        task.is_woken = true;
        task.woken_ns = task.woken_ns.max(time_ns);
        if waker == id {
            task.yielded_ns = task.yielded_ns.max(time_ns);
        } else if waker != 0 {
            self.handed_over(waker, row, time_ns);
        }
        if !self.is_measured {
            self.moment(TaskMoment { task: number(row), time_ns, what: WAKE });
        }
    }

    /// Records a wake by another task, if both may be of one place: batches that say so may follow.
    fn handed_over(&mut self, waker: u64, row: usize, time_ns: u64) {
        let Some(waker) = self.index.find(waker) else { return };
        let (by, task) = (&self.tasks[waker], &self.tasks[row]);
        if by.place != UNKNOWN_ROW && [by.place, UNKNOWN_ROW].contains(&task.place) {
            let in_poll_ns = time_ns.saturating_sub(by.polled_ns);
            let wake = Wait { place: by.place, poll_ns: time_ns, delay_ns: in_poll_ns, ..Wait::default() };
            self.handoffs.add(wake, number(waker), number(row));
        }
    }

    /// The longest chain of tasks of each place that waited for each other, and the number of its first task.
    pub(super) fn chains(&mut self) -> Vec<(WaitChain, u64)> {
        let tasks = &self.tasks;
        let place = |row: u32| tasks.get(row as usize).map(|task| task.place);
        let chains = std::mem::take(&mut self.handoffs).chains(place).into_iter();
        chains
            .map(|chain| (chain, self.tasks.get(chain.task_row as usize).map_or(0, |task| task.id)))
            .collect()
    }

    /// Tasks, and wakes and polls, of which only a part was followed.
    pub(super) fn limits(&self) -> [LimitRow; 2] {
        let tasks =
            LimitRow { what: "tasks", followed: self.tasks.len() as u64, left_out: self.unfollowed.0 };
        let (followed, left_out) = (MOST_MOMENTS as u64, self.unfollowed_moments);
        [tasks, LimitRow { what: "wakes and polls for delays", followed, left_out }]
    }

    #[inline]
    fn waited(&mut self, wait: Wait) {
        at(&mut self.delays, wait.place).add(wait.delay_ns);
        self.high += u64::from(wait.delay_ns > HIGH_DELAY_NS);
        self.worst.add(wait);
    }

    /// Computes everything that needs the whole trace.
    pub(super) fn complete(&mut self) {
        let moments = std::mem::take(&mut self.moments);
        if !self.is_measured {
            self.derive_delays(moments);
        }
    }

    /// Derives delays: from a task's first wake since its last poll began to its next poll. If it was woken while it ran, the
    /// delay begins at the end of that poll.
    fn derive_delays(&mut self, mut moments: Vec<TaskMoment>) {
        // Each batch is in order, so a sort that uses runs has little to do.
        moments.sort_by_key(|moment| (moment.time_ns, moment.what));
        let mut states = vec![WakeState::default(); self.tasks.len()];
        for TaskMoment { task, time_ns, what } in moments {
            let row = task as usize;
            let Some(state) = states.get_mut(row) else { continue };
            if what == WAKE {
                state.woken_ns = state.woken_ns.or(Some(time_ns));
                continue;
            }
            let woken_ns = state.woken_ns.take();
            let idle_ns = std::mem::replace(&mut state.idle_ns, time_ns.saturating_add(u64::from(what) - 1));
            if let Some(woken_ns) = woken_ns {
                let TaskRecord { id, place, .. } = self.tasks[row];
                let delay_ns = time_ns.saturating_sub(idle_ns.max(woken_ns));
                self.waited(Wait { delay_ns, poll_ns: time_ns, task: id, worker: None, place });
            }
        }
    }

    /// The view of the tasks; their lifetimes; and for each place the number spawned there and of those alive at the end.
    pub(super) fn view(&self) -> (TaskView, Durations, Vec<(u64, u64)>) {
        let (mut view, mut lifetimes, mut places) = (TaskView::default(), Durations::default(), Vec::new());
        for task in &self.tasks {
            match (task.spawned_ns, task.ended_ns) {
                (Some(spawned_ns), ended_ns) => {
                    let (spawned, alive) = at(&mut places, task.place);
                    view.spawned += 1;
                    *spawned += 1;
                    view.ended += u64::from(ended_ns.is_some());
                    *alive += u64::from(ended_ns.is_none());
                    if let Some(lived_ns) = ended_ns.and_then(|ended_ns| ended_ns.checked_sub(spawned_ns)) {
                        lifetimes.add(lived_ns);
                    }
                }
                (None, ended_ns) if task.is_polled => {
                    view.older += 1;
                    view.older_alive += u64::from(ended_ns.is_none());
                }
                (None, Some(_)) => view.blocking += 1,
                (None, None) => {}
            }
        }
        view.spawned += self.unfollowed.0;
        view.ended += self.unfollowed.1.min(self.unfollowed.0);
        view.alive = view.spawned - view.ended;
        view.counted = self.alive_counts();
        (view, lifetimes, places)
    }

    /// The tasks waiting at this time, after which the trace may be incomplete.
    pub(super) fn waiting(&self, until_ns: u64) -> AllWaiting {
        let mut found = AllWaiting::default();
        self.tasks.iter().for_each(|task| found.busy.add_if(task));
        for task in self.tasks.iter().filter(|task| task.ended_ns.is_none()) {
            let since = |since_ns: u64, least_ns| until_ns.checked_sub(since_ns).filter(|&ns| ns > least_ns);
            if let Some(since_ns) = task.starves_since() {
                found.starved.add_if(task, since_ns, since(since_ns, STARVED_NS));
            } else if let (Some(spawned_ns), false) = (task.spawned_ns, task.is_polled) {
                found.unpolled.add_if(task, spawned_ns, since(spawned_ns, STARVED_NS));
            } else if let Some(idle_ns) = task.unwoken_since().filter(|_| self.wakes.count > 0) {
                found.unwoken.add_if(task, idle_ns, since(idle_ns, UNWOKEN_NS));
            }
        }
        found
    }

    /// The number of tasks alive, as the runtimes counted, or else from spawns and ends.
    fn alive_counts(&self) -> Option<AliveCounts> {
        let series = self.alive_series();
        let (&(_, first), &(_, last)) = (series.first()?, series.last()?);
        let mut counts = AliveCounts { samples: series.len() as u64, first, last, ..AliveCounts::default() };
        for (time_ns, alive) in series {
            if alive > counts.peak {
                (counts.peak, counts.peak_ns) = (alive, time_ns);
            }
        }
        Some(counts)
    }

    /// The number of tasks alive, at the times when it was counted or changed.
    pub(super) fn alive_series(&self) -> Vec<(u64, u64)> {
        match self.counted.summed() {
            series if series.is_empty() => self.balance(),
            series => series,
        }
    }

    /// The number of tasks alive after each spawn and end. Ends of tasks that were not spawned do not count.
    fn balance(&self) -> Vec<(u64, u64)> {
        let known = self.tasks.iter().filter_map(|task| Some((task.spawned_ns?, task.ended_ns)));
        let mut changes: Vec<_> = known
            .flat_map(|(spawned_ns, ended_ns)| {
                let ended = ended_ns.map(|ended_ns| (ended_ns.max(spawned_ns), -1));
                std::iter::once((spawned_ns, 1)).chain(ended)
            })
            .collect();
        changes.sort_by_key(|&(time_ns, change)| (time_ns, -change));
        let mut alive = 0u64;
        let after = |(time_ns, change): (u64, i64)| {
            alive = alive.saturating_add_signed(change);
            (time_ns, alive)
        };
        changes.into_iter().map(after).collect()
    }
}

impl TaskRecord {
    /// The end of its last poll, unless it is in one.
    fn rests_since(&self) -> Option<u64> {
        self.idle_ns.filter(|&idle_ns| idle_ns >= self.polled_ns)
    }

    /// The start of its starvation. A wake by another thread may be recorded late, after the poll that it led to.
    fn starves_since(&self) -> Option<u64> {
        let idle_ns = self.rests_since()?;
        let is_woken = self.woken_ns > idle_ns || (self.is_woken && self.yielded_ns >= self.polled_ns);
        is_woken.then_some(idle_ns.max(self.woken_ns))
    }

    /// The time since which it has not been woken. It must have been spawned in the trace, because earlier wakes are unknown.
    fn unwoken_since(&self) -> Option<u64> {
        let is_lost = self.spawned_ns.is_some() && !self.is_woken && !self.is_untraced;
        self.rests_since().filter(|_| is_lost)
    }
}

impl WaitingTasks {
    fn add_if(&mut self, task: &TaskRecord, since_ns: u64, waited_ns: Option<u64>) {
        let Some(waited_ns) = waited_ns else { return };
        self.count += 1;
        if self.count == 1 || waited_ns > self.longest_ns {
            let &TaskRecord { id, place, .. } = task;
            *self = Self { count: self.count, longest_ns: waited_ns, since_ns, task: id, place };
        }
    }
}

impl BusyTasks {
    fn add_if(&mut self, task: &TaskRecord) {
        let (wakes, Some((first_ns, last_ns))) = (task.self_wakes, task.self_woken_ns) else { return };
        let duration_ns = last_ns - first_ns;
        let per_second = u128::from(wakes) * 1_000_000_000 / u128::from(duration_ns.max(1));
        if wakes < BUSY_WAKES || duration_ns < BUSY_NS || per_second < BUSY_PER_SECOND.into() {
            return;
        }
        self.count += 1;
        if u64::from(wakes) > self.wakes {
            let &TaskRecord { id, place, .. } = task;
            let (count, wakes) = (self.count, wakes.into());
            *self = Self { count, wakes, start_ns: first_ns, duration_ns, task: id, place };
        }
    }
}

/// The row as a [`TaskMoment`] stores it.
fn number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(tasks: &mut Tasks, task: u64, start_ns: u64, duration_ns: u64) {
        let wait = Wait { delay_ns: 0, poll_ns: start_ns, task, worker: Some(0), place: 0 };
        let (row, _) = tasks.polled(wait, false);
        tasks.poll_ended(row, start_ns, duration_ns);
    }

    #[test]
    fn a_poll_that_does_not_say_where_its_task_was_spawned_is_of_where_the_spawning_said() {
        let mut tasks = Tasks::new(10);
        tasks.spawned(7, 10, Some(3), true);
        let wait = Wait { delay_ns: 0, poll_ns: 20, task: 7, worker: Some(0), place: UNKNOWN_ROW };
        assert_eq!(tasks.polled(wait, true), (0, 3));
        let (_, _, places) = tasks.view();
        assert_eq!(places[3], (1, 1));
        assert_eq!(tasks.worst.into_sorted().map(|wait| wait.place).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn a_delay_is_from_the_first_wake_to_the_next_poll_whatever_order_they_come_in() {
        let mut tasks = Tasks::new(10);
        poll(&mut tasks, 7, 1000, 100);
        poll(&mut tasks, 7, 2000, 100);
        tasks.woken((1, 7), Some(0), 0, 700);
        tasks.woken((1, 7), Some(0), 0, 900);
        // While it runs: it waits from the end of the poll on.
        tasks.woken((7, 7), Some(0), 0, 1050);
        // Nobody woke it for this one.
        poll(&mut tasks, 7, 3000, 100);
        tasks.complete();
        let worst: Vec<_> = tasks.worst.into_sorted().map(|wait| (wait.delay_ns, wait.poll_ns)).collect();
        assert_eq!(worst, [(900, 2000), (300, 1000)]);
        assert_eq!((tasks.wakes.count, tasks.wakes.by_itself), (3, 1));
    }

    #[test]
    fn tasks_wait_at_the_end_for_a_poll_or_for_a_wake() {
        const S: u64 = 1_000_000_000;
        let mut tasks = Tasks::new(10);
        (1..=6).for_each(|task| tasks.spawned(task, 0, Some(0), task != 5));
        // Starved; polled again; by itself, within its poll; never woken; likewise, but its wakes are not recorded.
        (1..=5).for_each(|task| poll(&mut tasks, task, task * 100, 10));
        tasks.woken((9, 1), Some(0), u64::MAX, 2 * S);
        tasks.woken((9, 2), Some(0), u64::MAX, 2 * S);
        poll(&mut tasks, 2, 3 * S, 10);
        tasks.woken((3, 3), Some(0), 0, 305);
        let found = tasks.waiting(11 * S);
        let seen = |waiting: WaitingTasks| (waiting.count, waiting.task, waiting.longest_ns);
        assert_eq!(seen(found.starved), (2, 3, 11 * S - 310));
        assert_eq!(seen(found.unpolled), (1, 6, 11 * S));
        assert_eq!(seen(found.unwoken), (1, 4, 11 * S - 410));
        let earlier = tasks.waiting(S);
        assert_eq!((earlier.starved.count, earlier.unpolled.count, earlier.unwoken.count), (0, 0, 0));
    }

    #[test]
    fn tasks_that_only_end_are_of_the_blocking_pool() {
        let mut tasks = Tasks::new(10);
        tasks.spawned(1, 10, Some(0), true);
        tasks.ended(1, 30);
        tasks.spawned(2, 20, Some(0), true);
        tasks.ended(3, 25);
        poll(&mut tasks, 4, 40, 1);
        let (view, _, places) = tasks.view();
        assert_eq!((view.spawned, view.ended, view.alive, view.blocking), (2, 1, 1, 1));
        assert_eq!((view.older, view.older_alive), (1, 1));
        assert_eq!(places[0], (2, 1));
        let counted = view.counted.unwrap();
        assert_eq!((counted.samples, counted.first, counted.last, counted.peak), (3, 1, 1, 2));
    }
}
