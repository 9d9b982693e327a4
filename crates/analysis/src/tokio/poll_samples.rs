//! Samples of threads on or off the CPU, and which of them were taken during a poll.

use hashbrown::HashMap;

use super::names::at;
use super::stacks::NamedStacks;
use super::view::{LimitRow, LimitedRows, PollSampleRow, PollSampleView};
use super::workers::Blockable;

/// A sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadSample {
    pub(super) time_ns: u64,
    pub(super) thread: Option<u64>,
    pub(super) worker: Option<u64>,
    pub(super) stack: Option<u32>,
    /// The number of equal samples.
    pub(super) count: u32,
}

/// The maximum number of samples; further ones are counted.
const MOST_SAMPLES: usize = 1 << 22;

/// The samples of one kind. Memory: 48 bytes a sample.
#[derive(Clone, Debug, Default)]
pub(super) struct PollSamples {
    samples: Vec<ThreadSample>,
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
struct StackCount {
    count: u64,
    first_ns: u64,
}

impl PollSamples {
    pub(super) fn add(&mut self, sample: ThreadSample) {
        if self.samples.len() == MOST_SAMPLES {
            self.left_out += 1;
            return;
        }
        self.samples.push(sample);
    }

    /// The part of the samples, called `what`, that was followed.
    pub(super) fn limit(&self, what: &'static str) -> LimitRow {
        LimitRow { what, followed: self.samples.len() as u64, left_out: self.left_out }
    }

    /// The stacks, and for each place the number of samples in polls of tasks spawned there.
    pub(super) fn view(
        &self,
        polls: &mut [Blockable],
        stacks: &NamedStacks,
        limit: usize,
    ) -> (PollSampleView, Vec<u64>) {
        polls.sort_unstable_by_key(|poll| (lane(poll), poll.start_ns));
        let mut view = PollSampleView {
            samples: self.samples.iter().map(|sample| u64::from(sample.count)).sum(),
            ..PollSampleView::default()
        };
        let mut groups: HashMap<Option<u32>, StackCount> = HashMap::new();
        let mut places = Vec::new();
        for sample in &self.samples {
            let Some(poll) = sample.poll(polls) else { continue };
            view.in_polls += u64::from(sample.count);
            *at(&mut places, poll.place) += u64::from(sample.count);
            let group = groups.entry(sample.stack).or_insert(StackCount { count: 0, first_ns: u64::MAX });
            group.count += u64::from(sample.count);
            group.first_ns = group.first_ns.min(sample.time_ns);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_unstable_by_key(|&(stack, group)| (u64::MAX - group.count, group.first_ns, stack));
        view.stacks = LimitedRows::new(groups, limit, |(stack, group)| row(stack, group, stacks));
        (view, places)
    }
}

fn row(stack: Option<u32>, group: StackCount, stacks: &NamedStacks) -> PollSampleRow {
    let StackCount { count, first_ns } = group;
    let leaf = stack.map_or_else(|| "(no stack)".to_owned(), |stack| stacks.leaf(stack));
    let callers = stack.map(|stack| stacks.callers(stack)).unwrap_or_default();
    let call = callers.first().unwrap_or(&leaf).clone();
    PollSampleRow { count, first_ns, leaf, call, callers }
}

fn lane(poll: &Blockable) -> PollOwner {
    poll.thread.map_or(PollOwner::Worker(poll.worker), PollOwner::Thread)
}

impl ThreadSample {
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
        let mut blocking = PollSamples::default();
        for (time_ns, thread) in [(100, 7), (200, 7), (201, 7), (499, 7), (150, 9), (500, 8), (950, 7)] {
            let (thread, worker, count) = (Some(thread), Some(1), if time_ns == 200 { 5 } else { 1 });
            blocking.add(ThreadSample { time_ns, thread, worker, stack: None, count });
        }
        let (view, places) = blocking.view(&mut polls, &NamedStacks::default(), 10);
        assert_eq!((view.samples, view.in_polls), (11, 7));
        assert_eq!(places, [7]);
        assert_eq!((view.stacks.rows[0].count, view.stacks.rows[0].first_ns), (7, 100));
    }
}
