//! Numbers as people read them.

use borehole_model::nanoseconds_per;

/// A number with a comma between thousands.
///
/// # Examples
///
/// ```
/// assert_eq!(borehole_analysis::amount::grouped(1_234_567), "1,234,567");
/// ```
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes in the unit that suits it.
///
/// # Examples
///
/// ```
/// assert_eq!(borehole_analysis::amount::bytes(1536), "1.5 KiB");
/// ```
#[must_use]
pub fn bytes(count: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|&(_, unit)| count >= unit) {
        #[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
        Some((name, unit)) => format!("{:.1} {name}", count as f64 / unit as f64),
        None => format!("{count} B"),
    }
}

/// A value in a unit: a time, a number of bytes, or a number with its unit, which is left out of counts.
///
/// # Examples
///
/// ```
/// use borehole_analysis::amount::with_unit;
///
/// let texts = [(1_234_000_000, "nanoseconds"), (-1536, "bytes"), (7770, "count"), (5, "pages")];
/// let texts = texts.map(|(amount, unit)| with_unit(amount, unit));
/// assert_eq!(texts, ["1.23 s", "-1.5 KiB", "7,770", "5 pages"]);
/// ```
#[must_use]
pub fn with_unit(amount: impl Into<i128>, unit: &str) -> String {
    let amount = amount.into();
    let size = amount.unsigned_abs();
    let whole = u64::try_from(size).unwrap_or(u64::MAX);
    let text = match (nanoseconds_per(unit), unit) {
        (Some(factor), _) => time(size.saturating_mul(factor.into())),
        (None, "bytes" | "byte") => bytes(whole),
        (None, "count" | "") => grouped(whole),
        (None, unit) => format!("{} {unit}", grouped(whole)),
    };
    if amount < 0 { format!("-{text}") } else { text }
}

/// Nanoseconds in the unit that suits them, with three digits.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn time(ns: u128) -> String {
    let units = [
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
    ];
    let Some((name, unit)) = units.into_iter().find(|&(_, unit)| ns >= unit) else {
        return if ns == 0 { "0 s".to_owned() } else { format!("{ns} ns") };
    };
    let value = ns as f64 / unit as f64;
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_told_apart() {
        let numbers = [0, 999, 1000, 3412, 1_234_567];
        assert_eq!(numbers.map(grouped), ["0", "999", "1,000", "3,412", "1,234,567"]);
    }

    #[test]
    fn bytes_have_units() {
        let sizes = [0, 1023, 1536, 20 << 20, u64::MAX].map(bytes);
        assert_eq!(sizes, ["0 B", "1023 B", "1.5 KiB", "20.0 MiB", "17179869184.0 GiB"]);
    }

    #[test]
    fn times_have_three_digits_and_signs_stand_before_them() {
        let times = [0, 7, 1_500, 12_340_000, -999_000_000_000, 980_000_000, 7_200_000_000_000];
        let times = times.map(|ns: i64| with_unit(ns, "ns"));
        assert_eq!(times, ["0 s", "7 ns", "1.50 us", "12.3 ms", "-16.6 min", "980 ms", "2.00 h"]);
        assert_eq!(with_unit(1010, "milliseconds"), "1.01 s");
        assert!(
            with_unit(i128::MIN, "ns").ends_with(" h") && with_unit(i128::MAX, "bytes").ends_with(" GiB")
        );
    }
}
