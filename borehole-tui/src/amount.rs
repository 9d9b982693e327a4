//! Numbers as they are shown.

use borehole_analysis::Weight;
pub(crate) use borehole_analysis::amount::{bytes, grouped};

/// A weight in words: `1,780`, `17.8 s`.
pub(crate) fn amount(value: u64, weight: Weight) -> String {
    match weight {
        Weight::Samples => grouped(value),
        Weight::Wall | Weight::Cpu => time(value),
    }
}

/// What a weight is called.
pub(crate) const fn name(weight: Weight) -> &'static str {
    match weight {
        Weight::Samples => "samples",
        Weight::Wall => "time",
        Weight::Cpu => "CPU time",
    }
}

/// Nanoseconds in the unit that suits them.
// Three digits are shown.
#[expect(clippy::cast_precision_loss)]
pub(crate) fn time(ns: u64) -> String {
    let units =
        [("h", 3_600_000_000_000_u64), ("min", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000)];
    let fitting = units.into_iter().find(|&(_, unit)| ns >= unit);
    let (name, unit) = fitting.unwrap_or(("us", 1_000));
    let value = ns as f64 / unit as f64;
    let digits = if value >= 100.0 { 0 } else { 1 };
    format!("{value:.digits$} {name}")
}

/// A share of a whole, 0 to 100.
// A percentage has no use for the digits that a double lacks.
#[expect(clippy::cast_precision_loss)]
pub(crate) fn percent(value: u64, whole: u64) -> f64 {
    value as f64 * 100.0 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_have_units() {
        assert_eq!(amount(1_234_567, Weight::Samples), "1,234,567");
        assert_eq!(amount(123, Weight::Samples), "123");
        let times = [0, 1_500, 12_340_000, 999_000_000_000, 17_800_000_000, 7_200_000_000_000];
        let times: Vec<_> = times.into_iter().map(|ns| amount(ns, Weight::Wall)).collect();
        assert_eq!(times, ["0.0 us", "1.5 us", "12.3 ms", "16.6 min", "17.8 s", "2.0 h"]);
        assert!((percent(1, 3) - 33.333).abs() < 0.001);
    }
}
