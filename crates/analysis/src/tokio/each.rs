//! Single polls and spans, for callers that keep all of them.

use borehole_model::ShapeId;

use super::TokioSink;
use super::plan::EventSort;
use super::workers::Poll;

/// A poll that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndedPoll {
    /// Its start on the clock of the trace.
    pub start_ns: u64,
    /// Its duration.
    pub duration_ns: u64,
    /// The worker that polled.
    pub worker: u64,
    /// The task that was polled.
    pub task: u64,
    /// Where the task was spawned: see [`TokioSink::spawned_at`].
    pub place: u32,
}

/// A span that ended with its last exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedSpan<'s> {
    /// Its name.
    pub name: &'s str,
    /// Its first entry on the clock of the trace.
    pub start_ns: u64,
    /// The time from its first entry to its last exit.
    pub duration_ns: u64,
    /// Its number in the trace; `None` if it is a single event.
    pub id: Option<u64>,
    /// The number of the span that it was created in; `None` if there is none, or the trace does not say.
    pub parent: Option<u64>,
    /// The task that entered it first; `None` if it was entered outside of tasks, or the trace does not say.
    pub task: Option<u64>,
    /// The row of its name and fields.
    pub(super) label: u32,
}

impl EndedSpan<'_> {
    /// The row of its name and fields, which spans with equal ones share: see [`TokioSink::span_fields`].
    #[must_use]
    pub const fn label(&self) -> u32 {
        self.label
    }
}

impl TokioSink {
    /// The poll that ended with the latest event; returned only once.
    #[must_use]
    pub fn ended_poll(&mut self) -> Option<EndedPoll> {
        let Poll { start_ns, duration_ns, worker, task, place, .. } = self.runtime.ended_poll.take()?;
        Some(EndedPoll { start_ns, duration_ns, worker, task, place })
    }

    /// The name of a place where tasks are spawned.
    #[must_use]
    pub fn spawned_at(&self, place: u32) -> &str {
        self.runtime.places.text(place)
    }

    /// The offset from times of the trace to nanoseconds since 1970; `None` before the trace has recorded it.
    #[must_use]
    pub const fn unix_offset_ns(&self) -> Option<i128> {
        self.coverage.unix_offset_ns
    }

    /// Whether the fields of events of this shape, which have been read, are measurements. Events that only mark polls and spans
    /// or make up samples have none.
    #[must_use]
    pub fn is_measurement(&self, shape: ShapeId) -> bool {
        let plan = self.plans.get(shape.index()).copied().flatten();
        plan.is_some_and(|plan| {
            matches!(
                plan.sort,
                EventSort::Other | EventSort::WholeSpan | EventSort::Metrics | EventSort::Lost
            )
        })
    }

    /// The text fields of spans with this label, as keys and values.
    pub fn span_fields(&self, label: u32) -> impl Iterator<Item = (&str, &str)> {
        self.spans.fields(label)
    }

    /// Passes all ended spans to `take`. Call it before [`ProfileSink::finish`](borehole_model::ProfileSink::finish).
    pub fn each_span(&self, take: impl FnMut(EndedSpan<'_>)) {
        self.spans.each(take);
    }
}
