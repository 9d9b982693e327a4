//! How long inputs say that they took.

use borehole_model::{StringId, Tables};

/// The metadata that says it, in nanoseconds.
pub(crate) const KEY: &str = "duration_ns";

/// The sum over the inputs, each with the longest that it states: what one input holds ran beside each other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StatedDuration {
    input: u64,
    longest_ns: Option<u64>,
    before_ns: Option<u64>,
}

impl StatedDuration {
    /// Takes what an input states; inputs come one after the other.
    pub(crate) fn take(&mut self, input: u64, duration_ns: u64) {
        if input != self.input {
            *self = Self { input, longest_ns: None, before_ns: self.sum_ns() };
        }
        self.longest_ns = self.longest_ns.max(Some(duration_ns));
    }

    /// The sum; `None` where no input states anything.
    pub(crate) fn sum_ns(self) -> Option<u64> {
        match (self.before_ns, self.longest_ns) {
            (Some(before), Some(longest)) => Some(before.saturating_add(longest)),
            (before, longest) => before.or(longest),
        }
    }
}

/// The duration that metadata state, if that is what they are about.
pub(crate) fn stated_ns(tables: &Tables, (key, value): (StringId, StringId)) -> Option<u64> {
    let value = Some(tables.string(value)).filter(|_| tables.string(key) == KEY.as_bytes())?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_follow_each_other_and_what_is_in_one_does_not() {
        let mut stated = StatedDuration::default();
        assert_eq!(stated.sum_ns(), None);
        for (input, duration_ns) in [(1, 5), (1, 7), (1, 6), (2, 7), (4, 0), (5, 1)] {
            stated.take(input, duration_ns);
        }
        assert_eq!(stated.sum_ns(), Some(7 + 7 + 1));
    }
}
