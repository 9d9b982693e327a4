//! What began and ended, one by one: for who keeps all of it.

use borehole_model::ShapeId;

use super::TokioSink;
use super::plan::Sort;

/// A poll of a task that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedPoll {
    /// When it began, on the clock of the trace.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// The worker that polled.
    pub worker: u64,
    /// The task that was polled.
    pub task: u64,
    /// Where the task was spawned: see [`TokioSink::spawned_at`].
    pub place: u32,
}

/// A span that was left for the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedSpan<'s> {
    /// What it is called.
    pub name: &'s str,
    /// When it was entered first, on the clock of the trace.
    pub start_ns: u64,
    /// From then until it was left last.
    pub duration_ns: u64,
}

impl TokioSink {
    /// The poll that ended with the event that was taken last; it is given out once.
    #[must_use]
    pub fn ended_poll(&mut self) -> Option<EndedPoll> {
        self.ended_poll.take()
    }

    /// A place where tasks are spawned.
    #[must_use]
    pub fn spawned_at(&self, place: u32) -> &str {
        self.places.text(place)
    }

    /// What is to be added to times of the trace for nanoseconds since 1970, as far as the trace has said it.
    #[must_use]
    pub const fn unix_offset_ns(&self) -> Option<i128> {
        self.unix_offset_ns
    }

    /// Whether the fields of such events, which have been taken, measure something: not so with events that only tell where polls and
    /// spans begin and end, or what samples are made of.
    #[must_use]
    pub fn is_measurement(&self, shape: ShapeId) -> bool {
        let plan = self.plans.get(shape.index()).copied().flatten();
        plan.is_some_and(|plan| {
            matches!(plan.sort, Sort::Other | Sort::WholeSpan | Sort::Metrics | Sort::Lost)
        })
    }

    /// Gives `take` all spans that ended, before [`ProfileSink::finish`](borehole_model::ProfileSink::finish).
    pub fn each_span(&self, take: impl FnMut(EndedSpan<'_>)) {
        self.spans.each(take);
    }
}
