//! The durations that inputs state.

use borehole_model::{StringId, Tables};

/// The metadata key of a duration, in nanoseconds.
pub(crate) const KEY: &str = "duration_ns";

/// The sum over the inputs of the longest duration that each states: the parts of one input ran in parallel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StatedDuration {
    input: u64,
    longest_ns: Option<u64>,
    before_ns: Option<u64>,
}

impl StatedDuration {
    /// Adds a duration that an input states; inputs come one after the other.
    pub(crate) fn take(&mut self, input: u64, duration_ns: u64) {
        if input != self.input {
            *self = Self { input, longest_ns: None, before_ns: self.sum_ns() };
        }
        self.longest_ns = self.longest_ns.max(Some(duration_ns));
    }

    /// The sum; `None` if no input states a duration.
    pub(crate) fn sum_ns(self) -> Option<u64> {
        match (self.before_ns, self.longest_ns) {
            (Some(before), Some(longest)) => Some(before.saturating_add(longest)),
            (before, longest) => before.or(longest),
        }
    }
}

/// The duration in a metadata entry; `None` if the entry is about something else.
pub(crate) fn stated_ns(tables: &Tables, (key, value): (StringId, StringId)) -> Option<u64> {
    let value = Some(tables.string(value)).filter(|_| tables.string(key) == KEY.as_bytes())?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_summed_over_inputs_and_not_within_one() {
        let mut stated = StatedDuration::default();
        assert_eq!(stated.sum_ns(), None);
        for (input, duration_ns) in [(1, 5), (1, 7), (1, 6), (2, 7), (4, 0), (5, 1)] {
            stated.take(input, duration_ns);
        }
        assert_eq!(stated.sum_ns(), Some(7 + 7 + 1));
    }
}
