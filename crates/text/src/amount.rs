//! Numbers as people read them: one rule for counts, sizes, times and percentages.

/// A number with a comma between thousands.
///
/// # Examples
///
/// ```
/// assert_eq!(borehole_text::grouped(1_234_567), "1,234,567");
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

/// A count and its noun, in the plural unless the count is 1.
///
/// # Examples
///
/// ```
/// use borehole_text::counted;
///
/// assert_eq!([counted(1, "sample"), counted(4803, "byte")], ["1 sample", "4,803 bytes"]);
/// ```
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count))
}

/// A number of bytes with three digits in the largest suitable unit; below 1 KiB all digits.
///
/// # Examples
///
/// ```
/// assert_eq!(borehole_text::bytes(3_019_899), "2.88 MiB");
/// ```
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [(&str, u64); 6] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("PiB", 1 << 50),
        ("EiB", 1 << 60),
    ];
    if count < UNITS[0].1 { format!("{count} B") } else { scaled(count.into(), &UNITS) }
}

/// A time in nanoseconds with three digits in the largest suitable unit; below 1 µs all digits.
///
/// # Examples
///
/// ```
/// assert_eq!(borehole_text::duration(15_618_128_u64), "15.6 ms");
/// ```
#[must_use]
pub fn duration(ns: impl Into<u128>) -> String {
    const UNITS: [(&str, u64); 5] = [
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    match ns.into() {
        0 => "0 s".to_owned(),
        ns if ns < UNITS[0].1.into() => format!("{ns} ns"),
        ns => scaled(ns, &UNITS),
    }
}

/// `amount` with three digits in the largest of `units` in which they are not below 1. The first unit is at most `amount`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn scaled(amount: u128, units: &[(&str, u64)]) -> String {
    let mut text = String::new();
    for (index, (name, unit)) in units.iter().enumerate() {
        let value = amount as f64 / *unit as f64;
        let (digits, step) = if value >= 99.95 {
            (0, 1.0)
        } else if value >= 9.995 {
            (1, 10.0)
        } else {
            (2, 100.0)
        };
        let rounded = (value * step).round() / step;
        text = format!("{value:.digits$} {name}");
        let next = units.get(index + 1).map(|(_, next)| *next as f64 / *unit as f64);
        if next.is_none_or(|next| rounded < next) {
            break;
        }
    }
    text
}

/// A value in a unit: a time, a number of bytes, or a number with its unit, which is left out of counts.
///
/// # Examples
///
/// ```
/// use borehole_text::with_unit;
///
/// let texts = [(1_234_000_000, "nanoseconds"), (-1536, "bytes"), (7770, "count"), (5, "pages")];
/// let texts = texts.map(|(amount, unit)| with_unit(amount, unit));
/// assert_eq!(texts, ["1.23 s", "-1.50 KiB", "7,770", "5 pages"]);
/// ```
#[must_use]
pub fn with_unit(amount: impl Into<i128>, unit: &str) -> String {
    let amount = amount.into();
    let size = amount.unsigned_abs();
    let whole = u64::try_from(size).unwrap_or(u64::MAX);
    let text = match (nanoseconds_per(unit), unit) {
        (Some(factor), _) => duration(size.saturating_mul(factor.into())),
        (None, "bytes" | "byte") => bytes(whole),
        (None, "count" | "") => grouped(whole),
        (None, unit) => format!("{} {unit}", grouped(whole)),
    };
    if amount < 0 { format!("-{text}") } else { text }
}

/// Nanoseconds per unit of time; `None` for other units.
///
/// Source: google/pprof, `internal/measurement/measurement.go`: the names that the tool accepts as units of time.
#[must_use]
pub fn nanoseconds_per(unit: &str) -> Option<u64> {
    match unit {
        "nanoseconds" | "nanosecond" | "ns" => Some(1),
        "microseconds" | "microsecond" | "us" => Some(1_000),
        "milliseconds" | "millisecond" | "ms" => Some(1_000_000),
        "seconds" | "second" | "s" => Some(1_000_000_000),
        _ => None,
    }
}

/// `part` in percent of `whole`, with the sign of `part`; 0 if `whole` is 0.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a percentage need not be exact beyond 2^53")]
pub fn percent_of(part: impl Into<i128>, whole: impl Into<i128>) -> f64 {
    match whole.into().unsigned_abs() {
        0 => 0.0,
        whole => part.into() as f64 / whole as f64 * 100.0,
    }
}

/// A percentage with one digit after the point.
///
/// # Examples
///
/// ```
/// use borehole_text::{percent, percent_of};
///
/// assert_eq!(percent(percent_of(1, 3)), "33.3%");
/// ```
#[must_use]
pub fn percent(percent: f64) -> String {
    format!("{percent:.1}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        let numbers = [0, 999, 1000, 3412, 1_234_567];
        assert_eq!(numbers.map(grouped), ["0", "999", "1,000", "3,412", "1,234,567"]);
    }

    #[test]
    fn sizes_have_three_digits() {
        let sizes = [0, 1023, 1024, 1536, 10_235, 20 << 20, 161_229_046, u64::MAX].map(bytes);
        assert_eq!(
            sizes,
            ["0 B", "1023 B", "1.00 KiB", "1.50 KiB", "10.0 KiB", "20.0 MiB", "154 MiB", "16.0 EiB"]
        );
        let below_a_unit = [(1000 << 10), (1 << 20) - 600, (1 << 20) - 1].map(bytes);
        assert_eq!(below_a_unit, ["1000 KiB", "1023 KiB", "1.00 MiB"]);
    }

    #[test]
    fn times_have_three_digits_and_signs_stand_before_them() {
        let times = [0, 7, 1_500, 12_340_000, -999_000_000_000, 980_000_000, 7_200_000_000_000];
        let times = times.map(|ns: i64| with_unit(ns, "ns"));
        assert_eq!(times, ["0 s", "7 ns", "1.50 us", "12.3 ms", "-16.6 min", "980 ms", "2.00 h"]);
        assert_eq!(with_unit(1010, "milliseconds"), "1.01 s");
        assert_eq!([999_600_u64, 59_990_000_000].map(duration), ["1.00 ms", "1.00 min"]);
        let extremes = [with_unit(i128::MIN, "ns"), with_unit(i128::MAX, "bytes")];
        assert!(extremes[0].ends_with(" h") && extremes[1] == "16.0 EiB", "{extremes:?}");
    }

    #[test]
    fn percentages_have_the_sign_of_the_part() {
        assert_eq!([percent_of(-1, -2), percent_of(1, 0)].map(percent), ["-50.0%", "0.0%"]);
        assert_eq!(percent(percent_of(u64::MAX, u64::MAX)), "100.0%");
    }
}
