//! Off-CPU samples, and which of them were taken during a poll.

use hashbrown::HashMap;

use super::names::at;
use super::stacks::NamedStacks;
use super::view::{BlockingRow, BlockingView, LimitRow, LimitedRows};
use super::workers::Blockable;

/// An off-CPU sample.
#[derive(Clone, Copy, Debug)]
struct OffCpuSample {
    time_ns: u64,
    thread: Option<u64>,
    worker: Option<u64>,
    stack: Option<u32>,
}

/// The maximum number of samples; further ones are counted.
const MOST_SAMPLES: usize = 1 << 22;

/// Memory: 48 bytes a sample.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocking {
    samples: Vec<OffCpuSample>,
    left_out: u64,
}

/// The owner of the polls to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum PollOwner {
    Thread(u64),
    /// A worker, in a trace without threads.
    Worker(u64),
}

/// The samples of one stack: their number, and the time of the first one.
#[derive(Clone, Copy, Debug)]
struct BlockedStack {
    count: u64,
    first_ns: u64,
}

impl Blocking {
    pub(super) fn add(&mut self, time_ns: u64, thread: Option<u64>, worker: Option<u64>, stack: Option<u32>) {
        if self.samples.len() == MOST_SAMPLES {
            self.left_out += 1;
            return;
        }
        self.samples.push(OffCpuSample { time_ns, thread, worker, stack });
    }

    pub(super) fn limit(&self) -> LimitRow {
        LimitRow { what: "off-CPU samples", followed: self.samples.len() as u64, left_out: self.left_out }
    }

    /// The blocking calls, and for each place the number of samples in polls of tasks spawned there.
    pub(super) fn view(
        &self,
        polls: &mut [Blockable],
        stacks: &NamedStacks,
        limit: usize,
    ) -> (BlockingView, Vec<u64>) {
        polls.sort_unstable_by_key(|poll| (lane(poll), poll.start_ns));
        let mut view = BlockingView { samples: self.samples.len() as u64, ..BlockingView::default() };
        let mut groups: HashMap<Option<u32>, BlockedStack> = HashMap::new();
        let mut places = Vec::new();
        for sample in &self.samples {
            let Some(poll) = sample.poll(polls) else { continue };
            view.in_polls += 1;
            *at(&mut places, poll.place) += 1;
            let group = groups.entry(sample.stack).or_insert(BlockedStack { count: 0, first_ns: u64::MAX });
            group.count += 1;
            group.first_ns = group.first_ns.min(sample.time_ns);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_unstable_by_key(|&(stack, group)| (u64::MAX - group.count, group.first_ns, stack));
        view.stacks = LimitedRows::new(groups, limit, |(stack, group)| row(stack, group, stacks));
        (view, places)
    }
}

fn row(stack: Option<u32>, group: BlockedStack, stacks: &NamedStacks) -> BlockingRow {
    let BlockedStack { count, first_ns } = group;
    let leaf = stack.map_or_else(|| "(no stack)".to_owned(), |stack| stacks.leaf(stack));
    let callers = stack.map(|stack| stacks.callers(stack)).unwrap_or_default();
    let call = callers.first().unwrap_or(&leaf).clone();
    BlockingRow { count, first_ns, leaf, call, callers }
}

fn lane(poll: &Blockable) -> PollOwner {
    poll.thread.map_or(PollOwner::Worker(poll.worker), PollOwner::Thread)
}

impl OffCpuSample {
    /// The poll during which the sample was taken.
    fn poll<'p>(&self, polls: &'p [Blockable]) -> Option<&'p Blockable> {
        let lanes = [self.thread.map(PollOwner::Thread), self.worker.map(PollOwner::Worker)];
        lanes.into_iter().flatten().find_map(|wanted| {
            let after = polls.partition_point(|poll| (lane(poll), poll.start_ns) <= (wanted, self.time_ns));
            let poll = polls.get(after.checked_sub(1)?)?;
            let is_inside = lane(poll) == wanted && self.time_ns - poll.start_ns <= poll.duration_ns;
            is_inside.then_some(poll)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_in_the_poll_that_its_thread_was_in() {
        let poll = |start_ns, thread| Blockable { start_ns, duration_ns: 100, thread, worker: 1, place: 0 };
        let mut polls = [poll(500, Some(7)), poll(100, Some(8)), poll(100, Some(7)), poll(900, None)];
        let mut blocking = Blocking::default();
        for (time_ns, thread) in [(100, 7), (200, 7), (201, 7), (499, 7), (150, 9), (500, 8), (950, 7)] {
            blocking.add(time_ns, Some(thread), Some(1), None);
        }
        let (view, places) = blocking.view(&mut polls, &NamedStacks::default(), 10);
        assert_eq!((view.samples, view.in_polls), (7, 3));
        assert_eq!(places, [3]);
        assert_eq!((view.stacks.rows[0].count, view.stacks.rows[0].first_ns), (3, 100));
    }
}
