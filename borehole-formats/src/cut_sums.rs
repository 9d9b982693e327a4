//! Sums that a format of signed 64-bit numbers cannot hold: they end at its largest and smallest number.

/// What is said of them.
pub(crate) const CUT_SUMS: &str = "sums beyond 64 bits";

/// How many of these are such sums.
pub(crate) fn cut_sums(sums: impl Iterator<Item = i64>) -> u64 {
    sums.filter(|sum| matches!(*sum, i64::MIN | i64::MAX)).count() as u64
}
