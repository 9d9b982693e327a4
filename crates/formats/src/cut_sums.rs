//! Sums outside the range of signed 64-bit numbers. Formats of such numbers store the largest or smallest one instead.

/// The name of these sums in the losses.
pub(crate) const CUT_SUMS: &str = "sums beyond 64 bits";

/// The number of such sums.
pub(crate) fn cut_sums(sums: impl Iterator<Item = i64>) -> u64 {
    sums.filter(|sum| matches!(*sum, i64::MIN | i64::MAX)).count() as u64
}
