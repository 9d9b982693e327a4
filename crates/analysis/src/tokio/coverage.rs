//! The time that a trace covers, and what is missing from it.

use super::view::{Contents, PollCoverage, Seal};

/// The first and the last of some times.
pub(super) type EventTimes = Option<(u64, u64)>;

/// The number of events, their times, and losses.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage {
    pub(super) events: u64,
    /// The number of events that do not only describe the file.
    pub(super) recorded: u64,
    /// The number of events of each kind.
    pub(super) contents: Contents,
    /// Whether any event shows more than samples do.
    pub(super) is_worth_a_view: bool,
    runtime_ns: EventTimes,
    /// The times of measurements, which continue when nothing happens.
    measured_ns: EventTimes,
    /// The times of samples, which threads other than workers have too.
    sampled_ns: EventTimes,
    /// The offset from times of the trace to nanoseconds since 1970.
    pub(super) unix_offset_ns: Option<i128>,
    pub(super) seals: Seals,
    pub(super) polls: PollCoverage,
    pub(super) lost_events: u64,
    /// The time of the first noticed loss.
    pub(super) lost_ns: Option<u64>,
}

impl Coverage {
    /// Records a runtime event, or a measurement of the runtime.
    #[inline]
    pub(super) fn runtime_event(&mut self, is_measurement: bool, time_ns: u64) {
        self.is_worth_a_view = true;
        self.recorded += 1;
        self.contents.runtime += 1;
        extend(if is_measurement { &mut self.measured_ns } else { &mut self.runtime_ns }, time_ns);
    }

    pub(super) fn sampled(&mut self, time_ns: u64) {
        extend(&mut self.sampled_ns, time_ns);
    }

    pub(super) fn lost(&mut self, events: u64, time_ns: u64) {
        self.lost_events = self.lost_events.saturating_add(events);
        self.lost_ns = Some(self.lost_ns.map_or(time_ns, |first_ns| first_ns.min(time_ns)));
    }

    /// The first and the last time: of runtime events if there are any.
    pub(super) fn range_ns(&self) -> (u64, u64) {
        self.runtime_ns.or(self.measured_ns).or(self.sampled_ns).unwrap_or_default()
    }

    /// The last time of any event.
    pub(super) fn end_ns(&self) -> u64 {
        let ranges = [self.runtime_ns, self.measured_ns, self.sampled_ns];
        ranges.into_iter().flatten().map(|(_, last_ns)| last_ns).max().unwrap_or(0)
    }

    /// Whether there are events, but none except descriptions of the file.
    pub(super) const fn is_empty(&self) -> bool {
        self.events > 0 && self.recorded == 0
    }
}

#[inline]
pub(super) fn extend(range_ns: &mut EventTimes, time_ns: u64) {
    let (first, last) = range_ns.get_or_insert((time_ns, time_ns));
    (*first, *last) = ((*first).min(time_ns), (*last).max(time_ns));
}

/// The files' own records of their completion, in any order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seals {
    /// The last time at which an incomplete file was described.
    open_ns: Option<u64>,
    /// The last time at which a file was completed.
    sealed_ns: Option<u64>,
    is_incomplete: bool,
}

impl Seals {
    /// Adds the description of a file; `is_complete` is its own record of completion, if it has one.
    pub(super) fn described(&mut self, time_ns: u64, is_complete: Option<bool>) {
        match is_complete {
            // Later files cannot restore what is missing.
            Some(false) => self.is_incomplete = true,
            Some(true) => self.sealed_ns = self.sealed_ns.max(Some(time_ns)),
            None => self.open_ns = self.open_ns.max(Some(time_ns)),
        }
    }

    /// The seal of all files: a killed process leaves its last file without one, whatever the earlier files have.
    pub(super) fn seal(&self) -> Seal {
        match self.sealed_ns {
            _ if self.is_incomplete => Seal::Incomplete,
            Some(_) if self.sealed_ns >= self.open_ns => Seal::Complete,
            _ => Seal::Absent,
        }
    }
}
