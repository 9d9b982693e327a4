//! Numbers as people read them.

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

/// An amount in words that suit its unit: times in nanoseconds as `1.23 s`, bytes as `1.5 KiB`, anything else as a number with its
/// unit, `count` aside.
///
/// # Examples
///
/// ```
/// use borehole_analysis::amount::with_unit;
///
/// assert_eq!(with_unit(1_230_000_000, "nanoseconds"), "1.23 s");
/// assert_eq!(with_unit(1536, "bytes"), "1.5 KiB");
/// assert_eq!(with_unit(1536, "count"), "1,536");
/// ```
#[must_use]
pub fn with_unit(amount: u64, unit: &str) -> String {
    match unit {
        "nanoseconds" => time(amount),
        "bytes" => bytes(amount),
        "count" | "" => grouped(amount),
        other => format!("{} {other}", grouped(amount)),
    }
}

/// A time in the unit that suits it.
#[expect(clippy::cast_precision_loss, reason = "two digits after the point are shown")]
fn time(amount_ns: u64) -> String {
    let units = [("s", 1_000_000_000_u64), ("ms", 1_000_000), ("us", 1_000)];
    match units.into_iter().find(|&(_, unit)| amount_ns >= unit) {
        Some((name, unit)) => format!("{:.2} {name}", amount_ns as f64 / unit as f64),
        None => format!("{amount_ns} ns"),
    }
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
}
