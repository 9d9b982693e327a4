//! The activity of each thread or worker over time.

use borehole_memory::HeldBytes as _;
use borehole_model::RowIndex;

/// Intervals with their activities, by thread or worker.
///
/// Memory: 24 bytes per interval.
#[derive(Debug, Default)]
pub(super) struct Activities {
    rows: RowIndex,
    lanes: Vec<LaneActivities>,
}

#[derive(Debug, Default)]
struct LaneActivities {
    open: Option<(u64, u64)>,
    spans: Vec<ActiveInterval>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ActiveInterval {
    start_ns: u64,
    end_ns: u64,
    what: u64,
}

impl Activities {
    pub(super) fn begin(&mut self, lane: u64, time_ns: u64, what: u64) {
        let row = match self.rows.get(lane) {
            Some(row) => row,
            None => self.add(lane),
        };
        self.lanes[row].open = Some((time_ns, what));
    }

    #[cold]
    fn add(&mut self, lane: u64) -> usize {
        self.rows.insert(lane, self.lanes.len());
        self.lanes.push(LaneActivities::default());
        self.lanes.len() - 1
    }

    pub(super) fn end(&mut self, lane: u64, time_ns: u64) {
        let Some(row) = self.rows.get(lane) else { return };
        let lane = &mut self.lanes[row];
        if let Some((start_ns, what)) = lane.open.take() {
            lane.spans.push(ActiveInterval { start_ns, end_ns: time_ns, what });
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        let spans: usize = self.lanes.iter().map(|lane| lane.spans.held_bytes()).sum();
        self.lanes.held_bytes() + spans
    }

    /// Closes the open intervals, and sorts everything: batches of a trace need not be in order.
    pub(super) fn complete(&mut self) {
        for lane in &mut self.lanes {
            if let Some((start_ns, what)) = lane.open.take() {
                lane.spans.push(ActiveInterval { start_ns, end_ns: u64::MAX, what });
            }
            lane.spans.sort_unstable();
        }
    }

    /// The activity at a time; `None` if it is unknown.
    pub(super) fn at(&self, lane: u64, time_ns: u64) -> Option<u64> {
        let spans = &self.lanes[self.rows.find(lane)?].spans;
        let after = spans.partition_point(|span| span.start_ns <= time_ns);
        let span = spans.get(after.checked_sub(1)?)?;
        (time_ns <= span.end_ns).then_some(span.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_span_that_holds_it() {
        let mut spans = Activities::default();
        spans.begin(7, 100, 1);
        spans.end(7, 200);
        spans.begin(7, 50, 2);
        spans.end(7, 60);
        spans.begin(7, 300, 3);
        spans.end(8, 310);
        spans.complete();
        let at = [49, 55, 61, 100, 200, 201, 400].map(|time_ns| spans.at(7, time_ns));
        assert_eq!(at, [None, Some(2), None, Some(1), Some(1), None, Some(3)]);
        assert_eq!(spans.at(8, 305), None);
    }
}
