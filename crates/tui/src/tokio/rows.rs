//! The rows of the lists: flags, polls, tasks and spans.

use borehole_analysis::tokio::TokioPage;
use borehole_text::{duration, grouped, printable};

use super::lanes::extent;
use super::{TokioApp, TokioList};

/// The moment that a row leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) time_ns: i64,
    /// How long it takes, if it does.
    pub(super) duration_ns: u64,
    pub(super) worker: Option<u64>,
}

impl TokioApp {
    /// The number of rows of the list, filtered or not.
    pub(super) fn row_count(&self) -> usize {
        let page = self.page();
        match self.kind {
            TokioList::Flags => page.flags.len(),
            TokioList::Polls => page.polls.start_ns.len(),
            TokioList::Tasks => page.tasks.len(),
            TokioList::Spans => page.spans.start_ns.len(),
        }
    }

    /// The text of a row; polls and spans are ordered by length.
    pub(super) fn row_text(&self, row: usize) -> String {
        let page = self.page();
        match self.kind {
            TokioList::Flags => flag_text(page, row),
            TokioList::Polls => poll_text(page, self.ordered(row)),
            TokioList::Tasks => task_text(page, row),
            TokioList::Spans => span_text(page, self.ordered(row)),
        }
    }

    /// The headings of the columns.
    pub(super) const fn heading(&self) -> &'static str {
        match self.kind {
            TokioList::Flags => "            at  severity  evidence",
            TokioList::Polls => "      took            at  worker      task  spawned at",
            TokioList::Tasks => "      busy       polls   longest      task  state  spawned at",
            TokioList::Spans => "      took            at  span",
        }
    }

    /// The index behind a row.
    fn ordered(&self, row: usize) -> usize {
        self.order.get(row).copied().unwrap_or(row)
    }

    /// The rows by length, if the list is ordered by that.
    pub(super) fn order_of(&self) -> Vec<usize> {
        let page = self.page();
        let durations = match self.kind {
            TokioList::Polls => &page.polls.duration_ns,
            TokioList::Spans => &page.spans.duration_ns,
            TokioList::Flags | TokioList::Tasks => return Vec::new(),
        };
        let mut order: Vec<_> = (0..durations.len()).collect();
        order.sort_by_key(|&row| std::cmp::Reverse(durations[row]));
        order
    }

    /// The moment of a row, if it has one.
    pub(super) fn moment(&self, row: usize) -> Option<Moment> {
        let page = self.page();
        match self.kind {
            TokioList::Flags => flag_moment(page, row),
            TokioList::Polls => Some(poll_moment(page, self.ordered(row))),
            TokioList::Tasks => {
                let task = page.tasks.get(row)?;
                let time_ns = task.spawned_ns.unwrap_or(0);
                let ended_ns = task.ended_ns.unwrap_or(page.end_ns);
                let duration_ns = u64::try_from(ended_ns - time_ns).unwrap_or(0);
                Some(Moment { time_ns, duration_ns, worker: None })
            }
            TokioList::Spans => {
                let row = self.ordered(row);
                let time_ns = *page.spans.start_ns.get(row)?;
                Some(Moment { time_ns, duration_ns: page.spans.duration_ns[row], worker: None })
            }
        }
    }
}

pub(super) fn flag_moment(page: &TokioPage, flag: usize) -> Option<Moment> {
    let flag = page.flags.get(flag)?;
    Some(Moment { time_ns: flag.time_ns?, duration_ns: 0, worker: flag.worker })
}

fn poll_moment(page: &TokioPage, poll: usize) -> Moment {
    let extent = extent(page, poll);
    let duration_ns = page.polls.duration_ns.get(poll).copied().unwrap_or_default();
    Moment { time_ns: extent.start_ns, duration_ns, worker: worker_of(page, poll) }
}

fn worker_of(page: &TokioPage, poll: usize) -> Option<u64> {
    let lane = usize::try_from(*page.polls.lane.get(poll)?).ok()?;
    page.lanes.get(lane).map(|lane| lane.worker)
}

/// A time since the start of the trace.
// A double has enough digits for microseconds.
#[expect(clippy::cast_precision_loss)]
pub(super) fn moment_text(time_ns: i64) -> String {
    format!("{:+.6} s", time_ns as f64 / 1e9)
}

fn flag_text(page: &TokioPage, row: usize) -> String {
    let Some(flag) = page.flags.get(row) else { return String::new() };
    let at = flag.time_ns.map_or_else(String::new, moment_text);
    let evidence = printable(flag.evidence.as_bytes());
    format!("{at:>14}  {:<8}  {}: {evidence}", flag.severity.name(), flag.check)
}

fn place_text(page: &TokioPage, place: u32) -> String {
    page.places.get(place as usize).map_or_else(String::new, |place| printable(place.as_bytes()))
}

fn poll_text(page: &TokioPage, poll: usize) -> String {
    let polls = &page.polls;
    let (Some(&start_ns), Some(&duration_ns)) = (polls.start_ns.get(poll), polls.duration_ns.get(poll))
    else {
        return String::new();
    };
    let mark = if polls.open.contains(&poll) { "+" } else { "" };
    let worker = worker_of(page, poll).map_or_else(String::new, |worker| worker.to_string());
    let took = format!("{}{mark}", duration(duration_ns));
    let (at, task) = (moment_text(start_ns), polls.task[poll]);
    format!("{took:>10} {at:>14}  {worker:>6} {task:>9}  {}", place_text(page, polls.place[poll]))
}

fn task_text(page: &TokioPage, row: usize) -> String {
    let Some(task) = page.tasks.get(row) else { return String::new() };
    let state = if task.ended_ns.is_some() { "ended" } else { "alive" };
    let [busy, longest] = [task.busy_ns, task.longest_ns].map(duration);
    let (polls, number) = (grouped(task.polls), task.task);
    format!("{busy:>10} {polls:>11} {longest:>9} {number:>9}  {state}  {}", place_text(page, task.place))
}

fn span_text(page: &TokioPage, span: usize) -> String {
    let spans = &page.spans;
    let (Some(&start_ns), Some(&duration_ns)) = (spans.start_ns.get(span), spans.duration_ns.get(span))
    else {
        return String::new();
    };
    let text = |index: usize| page.texts.get(index).map_or("", String::as_str);
    let fields = usize::try_from(spans.fields[span]).map_or("", text);
    let name = printable(format!("{} {fields}", text(spans.name[span])).trim_end().as_bytes());
    format!("{:>10} {:>14}  {name}", duration(duration_ns), moment_text(start_ns))
}

/// The facts about a poll, in one line.
pub(super) fn poll_facts(page: &TokioPage, poll: usize) -> String {
    let polls = &page.polls;
    let start_ns = polls.start_ns[poll];
    let took = duration(polls.duration_ns[poll]);
    let mark = if polls.open.contains(&poll) { ", not ended" } else { "" };
    let place = place_text(page, polls.place[poll]);
    let woken = match (polls.woken_ns[poll], polls.waker[poll]) {
        (..0, _) => String::new(),
        (woken_ns, waker) => {
            let before = duration(u64::try_from(start_ns - woken_ns).unwrap_or(0));
            let by = if waker == 0 { "from outside".to_owned() } else { format!("by task {waker}") };
            format!(", woken {by} {before} before")
        }
    };
    format!("poll of {took}{mark} at {}, task {} of {place}{woken}", moment_text(start_ns), polls.task[poll])
}
