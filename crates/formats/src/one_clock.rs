//! The single clock of a document.

use borehole_model::Segment;

/// The clock of a document: that of the first input with a known start. Times of other inputs with a known start are
/// moved to it, earlier or later; times of inputs without one stay unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OneClock {
    start_unix_ns: Option<i64>,
}

impl OneClock {
    /// Takes a segment's clock; returns whether it has just become the document's clock.
    pub(crate) fn take(&mut self, segment: &Segment) -> bool {
        let is_new = self.start_unix_ns.is_none() && segment.start_unix_ns.is_some();
        self.start_unix_ns = self.start_unix_ns.or(segment.start_unix_ns);
        is_new
    }

    /// A time of a segment on the document's clock.
    pub(crate) fn time_ns(self, segment: &Segment, time_ns: i64) -> i128 {
        let between = segment.start_unix_ns.zip(self.start_unix_ns);
        let later_ns = between.map_or(0, |(own, common)| i128::from(own) - i128::from(common));
        i128::from(time_ns) + later_ns
    }

    /// The wall time of the clock's start.
    pub(crate) const fn start_unix_ns(self) -> Option<i64> {
        self.start_unix_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_inputs_that_know_when_they_began_are_moved_to_the_first_of_them() {
        let mut clock = OneClock::default();
        let starting = |start_unix_ns| Segment { start_unix_ns, ..Segment::default() };
        let taken = [None, Some(100), Some(90), Some(i64::MIN), None].map(|start_unix_ns| {
            let segment = starting(start_unix_ns);
            (clock.take(&segment), clock.time_ns(&segment, 5))
        });
        let least = i128::from(i64::MIN) - 100 + 5;
        assert_eq!(taken, [(false, 5), (true, 5), (false, -5), (false, least), (false, 5)]);
        assert_eq!(clock.start_unix_ns(), Some(100));
    }
}
