//! Distributions in little memory: logarithmic buckets, each split into equal parts.
//!
//! Our own implementation, because it is short, and because its memory grows with the range in use: there are usually
//! hundreds of them, one per name or field.

/// The number of parts of an octave: a percentile is off by less than 1 in 128.
const PARTS: i32 = 64;
const PART_BITS: u32 = 6;
/// The limit of floating-point numbers: those beyond 2^64, or nearer to 0 than 2^-64, count as those.
const OCTAVES: i32 = 64;

/// Counts by a key that grows with the value.
#[derive(Clone, Debug, Default)]
struct Buckets {
    /// The counts by octave, in order.
    octaves: Vec<(i32, Box<[u64; PARTS as usize]>)>,
    /// The row of the octave used last.
    last: usize,
}

impl Buckets {
    #[inline]
    fn add(&mut self, key: i32) {
        let octave = key.div_euclid(PARTS);
        if self.octaves.get(self.last).is_none_or(|(last, _)| *last != octave) {
            self.last = self.row(octave);
        }
        // The remainder is not negative, and below the number of parts.
        self.octaves[self.last].1[key.rem_euclid(PARTS).unsigned_abs() as usize] += 1;
    }

    fn row(&mut self, octave: i32) -> usize {
        match self.octaves.binary_search_by_key(&octave, |(octave, _)| *octave) {
            Ok(row) => row,
            Err(row) => {
                self.octaves.insert(row, (octave, Box::new([0; PARTS as usize])));
                row
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        for (octave, parts) in &other.octaves {
            let row = self.row(*octave);
            let sums = self.octaves[row].1.iter_mut();
            sums.zip(parts.iter()).for_each(|(sum, count)| *sum += count);
        }
    }

    /// The key at a rank, 1-based.
    fn key_at(&self, rank: u64) -> i32 {
        let mut left = rank;
        let parts = self.octaves.iter().flat_map(|(octave, parts)| {
            (0..).zip(parts.iter()).map(move |(part, &count)| (octave * PARTS + part, count))
        });
        for (key, count) in parts {
            if left <= count {
                return key;
            }
            left -= count;
        }
        0
    }
}

fn rank(percent: u64, count: u64) -> u64 {
    let whole = u128::from(percent) * u128::from(count);
    u64::try_from(whole.div_ceil(100)).unwrap_or(count).max(1)
}

#[derive(Clone, Debug, Default)]
pub(super) struct Durations {
    buckets: Buckets,
    pub(super) count: u64,
    pub(super) sum_ns: u64,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
}

impl Durations {
    #[inline]
    pub(super) fn add(&mut self, duration_ns: u64) {
        self.min_ns = if self.count == 0 { duration_ns } else { self.min_ns.min(duration_ns) };
        self.max_ns = self.max_ns.max(duration_ns);
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(duration_ns);
        self.buckets.add(duration_key(duration_ns));
    }

    /// The distribution of all values of several.
    pub(super) fn of_all<'d>(all: impl IntoIterator<Item = &'d Self>) -> Self {
        let mut sum = Self::default();
        for part in all.into_iter().filter(|part| part.count > 0) {
            sum.min_ns = if sum.count == 0 { part.min_ns } else { sum.min_ns.min(part.min_ns) };
            sum.max_ns = sum.max_ns.max(part.max_ns);
            sum.count += part.count;
            sum.sum_ns = sum.sum_ns.saturating_add(part.sum_ns);
            sum.buckets.merge(&part.buckets);
        }
        sum
    }

    pub(super) const fn mean_ns(&self) -> u64 {
        match self.sum_ns.checked_div(self.count) {
            Some(mean) => mean,
            None => 0,
        }
    }

    pub(super) fn percentile(&self, percent: u64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        self.at(rank(percent, self.count))
    }

    /// The values that bound a percentile: at the ranks three standard deviations of the count below it away.
    pub(super) fn bounds(&self, percent: u64) -> (u64, u64) {
        if self.count == 0 {
            return (0, 0);
        }
        let (rank, variance) = (rank(percent, self.count), u128::from(percent * (100 - percent)));
        let variance = u128::from(self.count) * variance / 10_000;
        let distance =
            u64::try_from(variance.isqrt()).unwrap_or(u64::MAX).saturating_add(1).saturating_mul(3);
        // Beyond the last value is no bound.
        let above = rank.saturating_add(distance);
        let above = if above > self.count { u64::MAX } else { self.at(above) };
        (self.at(rank.saturating_sub(distance).max(1)), above)
    }

    fn at(&self, rank: u64) -> u64 {
        duration_of(self.buckets.key_at(rank)).clamp(self.min_ns, self.max_ns)
    }
}

fn duration_key(value: u64) -> i32 {
    let octave = value.checked_ilog2().unwrap_or(0).saturating_sub(PART_BITS);
    // The leading bit and the bits of the part: at most 7 of them.
    let head = i32::try_from(value >> octave).unwrap_or(i32::MAX);
    head + octave.cast_signed() * PARTS
}

/// The middle of a bucket.
fn duration_of(key: i32) -> u64 {
    let octave = (key.div_euclid(PARTS) - 1).max(0);
    let head = u64::from((key - octave * PARTS).unsigned_abs());
    let width = 1u64 << octave.unsigned_abs();
    head * width + width / 2
}

/// A distribution of a field's values.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueDistribution {
    buckets: Buckets,
    pub(super) count: u64,
    sum: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl ValueDistribution {
    /// Adds a value; NaN is left out.
    #[inline]
    pub(super) fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = if self.count == 0 { value } else { self.max.max(value) };
        self.count += 1;
        self.sum += value;
        self.buckets.add(value_key(value));
    }

    // A mean does not need the digits that a double lacks.
    #[expect(clippy::cast_precision_loss)]
    pub(super) fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    pub(super) fn percentile(&self, percent: u64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        value_of(self.buckets.key_at(rank(percent, self.count))).clamp(self.min, self.max)
    }
}

/// The number of bits of a double below the part.
const FINE_BITS: u32 = 52 - PART_BITS;
/// The key of 2^-64 without its sign, from the bits of a double.
const LOWEST: i32 = (1023 - OCTAVES) * PARTS;
const HIGHEST: i32 = (1023 + OCTAVES) * PARTS;

fn value_key(value: f64) -> i32 {
    if value == 0.0 {
        return 0;
    }
    // Exponent and part: 17 bits.
    let head = i32::try_from(value.abs().to_bits() >> FINE_BITS).unwrap_or(HIGHEST);
    let key = head.clamp(LOWEST, HIGHEST) - LOWEST + 1;
    if value < 0.0 { -key } else { key }
}

fn value_of(key: i32) -> f64 {
    if key == 0 {
        return 0.0;
    }
    let head = u64::from((key.abs() - 1 + LOWEST).unsigned_abs());
    let middle = f64::from_bits(head << FINE_BITS | 1 << (FINE_BITS - 1));
    if key < 0 { -middle } else { middle }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_own_middle_and_is_narrow() {
        for value in [0, 1, 63, 64, 127, 128, 129, 1000, 5951, 13_007_132, u64::MAX / 2, u64::MAX] {
            let middle = duration_of(duration_key(value));
            assert_eq!(duration_key(middle), duration_key(value), "{value}");
            assert!(middle.abs_diff(value) <= value / 128 + 1, "{value} {middle}");
        }
        for value in [1.0, -1.0, 0.001, -1234.5, 1e18, 3.5e-7] {
            let middle = value_of(value_key(value));
            assert!((middle - value).abs() <= value.abs() / 64.0, "{value} {middle}");
        }
    }

    #[test]
    fn several_distributions_are_as_one_of_all_their_values() {
        let values = |range: std::ops::Range<u64>| range.map(|value| value * value % 100_000 + 3);
        let of = |range| {
            let mut durations = Durations::default();
            values(range).for_each(|value| durations.add(value));
            durations
        };
        let (whole, parts) = (of(0..900), [of(0..1), of(5..5), of(1..300), of(300..900)]);
        let sum = Durations::of_all(&parts);
        let facts = |all: &Durations| {
            let quantiles = [0, 10, 50, 90, 99, 100].map(|percent| all.percentile(percent));
            (all.count, all.sum_ns, all.min_ns, all.max_ns, quantiles)
        };
        assert_eq!(facts(&sum), facts(&whole));
        assert_eq!(Durations::of_all(&[]).count, 0);
    }

    #[test]
    fn keys_grow_with_values() {
        let keys = [0, 1, 63, 64, 65, 127, 128, 255, 256, 1 << 40].map(duration_key);
        assert!(keys.is_sorted() && keys[0] == 0, "{keys:?}");
        let keys = [f64::MIN, -2.0, -1.0, -1e-300, 0.0, 1e-300, 0.5, 1.0, f64::MAX].map(value_key);
        assert!(keys.is_sorted_by(|one, other| one < other), "{keys:?}");
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values() {
        let mut durations = Durations::default();
        (1..=1000).for_each(|value| durations.add(value * 1000));
        for (percent, exact) in [(50, 500_000), (90, 900_000), (99, 990_000), (100, 1_000_000)] {
            let found = durations.percentile(percent);
            assert!(found.abs_diff(exact) <= exact / 128, "p{percent}: {found}");
        }
        assert_eq!((durations.min_ns, durations.max_ns, durations.mean_ns()), (1000, 1_000_000, 500_500));
        assert_eq!(Durations::default().percentile(50), 0);
    }

    #[test]
    fn one_value_is_every_percentile() {
        let mut values = ValueDistribution::default();
        values.add(-7.5);
        values.add(f64::NAN);
        assert_eq!([1, 50, 100].map(|percent| values.percentile(percent)), [-7.5; 3]);
        assert_eq!((values.count, values.mean()), (1, -7.5));
    }
}
