//! Formats numbers for reports, and computes shares.

pub(super) use borehole_text::{bytes as size, grouped as count};

/// The percentage of `part` in `whole`, to two digits; 0 if `whole` is 0.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    (borehole_text::percent_of(part, whole) * 100.0).round() / 100.0
}

/// The number of bytes for each of `count`; 0 if `count` is 0.
pub(super) fn each(bytes: u64, count: u64) -> u64 {
    bytes.checked_div(count).unwrap_or_default()
}

/// Whether `part` is at least `percent` of `whole`; `false` if `whole` is 0.
pub(super) fn is_share(part: u64, percent: u64, whole: u64) -> bool {
    whole > 0 && u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}

/// A count and the total bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ByteSum {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

impl ByteSum {
    pub(super) fn add(&mut self, bytes: u64) {
        *self = self.with(Self { count: 1, bytes });
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self { count: self.count.saturating_add(other.count), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_by_zero_gives_zero() {
        assert_eq!((share(5, 0), each(5, 0), is_share(0, 0, 0)), (0.0, 0, false));
        assert_eq!((share(1, 3), each(7, 2)), (33.33, 3));
        assert!(is_share(u64::MAX, 100, u64::MAX) && !is_share(u64::MAX - 1, 100, u64::MAX));
        assert!(share(u64::MAX, 1).is_finite());
    }
}
