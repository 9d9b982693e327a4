//! The statistics before the footer, in both forms.
//!
//! Source: CPython 3.15.2. The old form, of the previews, has only duration and rate. Both end in the same sixteen
//! bytes, so that a reader finds them from the footer backwards.

use borehole_wire::Cursor;

use super::layout::ByteOrder;

/// The magic before version and size.
pub(super) const STATISTICS_MAGIC: [u8; 8] = *b"TACHSTAT";

/// The only version.
pub(super) const STATISTICS_VERSION: u32 = 1;

/// The length of the form of CPython 3.15.2.
pub(super) const STATISTICS_BYTES: usize = 56;

/// The length of the form of the previews.
pub(super) const OLD_STATISTICS_BYTES: usize = 32;

/// Magic, version and size, with which both forms end.
pub(super) const STATISTICS_TAIL_BYTES: usize = 16;

/// The profiler's statistics about its own work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// The duration of profiling, in seconds.
    pub duration_s: f64,
    /// The number of ticks per second.
    pub sample_rate: f64,
    /// The percentage of failed ticks.
    pub error_rate: Option<f64>,
    /// The percentage of missed ticks. Negative if there were more than expected.
    pub missed_samples: Option<f64>,
}

/// The flags of the optional numbers that are present.
const HAS_ERROR_RATE: u32 = 1;
const HAS_MISSED_SAMPLES: u32 = 2;

impl Statistics {
    /// The number of numbers that are present.
    pub(super) fn entries(&self) -> u64 {
        2 + u64::from(self.error_rate.is_some()) + u64::from(self.missed_samples.is_some())
    }

    /// Decodes the statistics in `bytes`, whose tail has been read: all of them, or duration and rate.
    #[must_use]
    pub(super) fn decode(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        let mut cursor = Cursor::new(bytes, 0);
        let mut float = || cursor.array().ok().map(|bytes| f64::from_bits(order.u64(bytes)));
        let (duration_s, sample_rate) = (float()?, float()?);
        if bytes.len() < STATISTICS_BYTES {
            return Some(Self { duration_s, sample_rate, error_rate: None, missed_samples: None });
        }
        let (error_rate, missed_samples) = (float()?, float()?);
        let presence = order.u32(cursor.array().ok()?);
        Some(Self {
            duration_s,
            sample_rate,
            error_rate: (presence & HAS_ERROR_RATE != 0).then_some(error_rate),
            missed_samples: (presence & HAS_MISSED_SAMPLES != 0).then_some(missed_samples),
        })
    }

    /// Whether every number is in its valid range.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let is_amount = |value: f64| value.is_finite() && value >= 0.0;
        is_amount(self.duration_s)
            && is_amount(self.sample_rate)
            && self.error_rate.is_none_or(is_amount)
            && self.missed_samples.is_none_or(f64::is_finite)
    }

    /// Encodes the form of CPython 3.15.2.
    #[must_use]
    pub fn encode(&self, order: ByteOrder) -> [u8; STATISTICS_BYTES] {
        let Self { duration_s, sample_rate, error_rate, missed_samples } = *self;
        let mut out = [0; STATISTICS_BYTES];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        let numbers = [duration_s, sample_rate, error_rate.unwrap_or(0.0), missed_samples.unwrap_or(0.0)];
        for (at, number) in (0..).step_by(8).zip(numbers) {
            put(at, &order.bytes_of_u64(number.to_bits()));
        }
        let has = |bit: u32, value: Option<f64>| if value.is_some() { bit } else { 0 };
        let presence = has(HAS_ERROR_RATE, error_rate) | has(HAS_MISSED_SAMPLES, missed_samples);
        put(32, &order.bytes_of_u32(presence));
        put(40, &STATISTICS_MAGIC);
        put(48, &order.bytes_of_u32(STATISTICS_VERSION));
        put(52, &order.bytes_of_u32(56));
        out
    }
}

/// The magic, version and size of statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) version: u32,
    pub(super) size: u32,
}

impl Tail {
    /// The tail in the last bytes of `bytes`, which end at the footer; `None` if there is none.
    pub(super) fn at_end_of(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        let tail = bytes.last_chunk::<STATISTICS_TAIL_BYTES>()?;
        let mut cursor = Cursor::new(tail.strip_prefix(&STATISTICS_MAGIC)?, 0);
        Some(Self { version: order.u32(cursor.array().ok()?), size: order.u32(cursor.array().ok()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_round_trip_in_both_orders() {
        for &order in ByteOrder::ALL {
            for (error_rate, missed_samples) in [(None, None), (Some(1.5), None), (Some(0.0), Some(-2.25))] {
                let said = Statistics { duration_s: 0.1, sample_rate: 1e3, error_rate, missed_samples };
                let bytes = said.encode(order);
                assert_eq!(Statistics::decode(&bytes, order), Some(said));
                let tail = Tail { version: STATISTICS_VERSION, size: 56 };
                assert_eq!(Tail::at_end_of(&bytes, order), Some(tail));
            }
        }
    }

    #[test]
    fn statistics_out_of_range_are_invalid() {
        let good = Statistics { missed_samples: Some(-1.0), ..Statistics::default() };
        assert!(good.is_valid());
        for bad in [
            Statistics { duration_s: f64::NAN, ..good },
            Statistics { sample_rate: f64::INFINITY, ..good },
            Statistics { error_rate: Some(-1.0), ..good },
            Statistics { missed_samples: Some(f64::NAN), ..good },
        ] {
            assert!(!bad.is_valid());
        }
    }
}
