//! Formats numbers for reports, and computes shares.

/// A number of bytes in a suitable unit.
pub(super) fn size(bytes: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|&(_, unit)| bytes >= unit) {
        #[expect(clippy::cast_precision_loss, reason = "two digits after the point are shown")]
        Some((name, unit)) => format!("{:.2} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} B"),
    }
}

/// A number with separated thousands.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The percentage of `part` in `whole`, to two digits; 0 if `whole` is 0.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "a share need not be exact beyond 2^53 bytes")]
    let share = part as f64 / whole as f64;
    (share * 10_000.0).round() / 100.0
}

/// The number of bytes for each of `count`; 0 if `count` is 0.
pub(super) fn each(bytes: u64, count: u64) -> u64 {
    bytes.checked_div(count).unwrap_or_default()
}

/// Whether `part` is at least `percent` of `whole`; `false` if `whole` is 0.
pub(super) fn is_share(part: u64, percent: u64, whole: u64) -> bool {
    whole > 0 && u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_are_easy_to_read() {
        let sizes = [0, 1023, 1024, 1536, 1 << 20, 161_229_046, u64::MAX].map(size);
        assert_eq!(
            sizes,
            ["0 B", "1023 B", "1.00 KiB", "1.50 KiB", "1.00 MiB", "153.76 MiB", "17179869184.00 GiB"]
        );
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        assert_eq!((share(5, 0), each(5, 0), is_share(0, 0, 0)), (0.0, 0, false));
        assert_eq!((share(1, 3), each(7, 2)), (33.33, 3));
        assert!(is_share(u64::MAX, 100, u64::MAX) && !is_share(u64::MAX - 1, 100, u64::MAX));
        assert!(share(u64::MAX, 1).is_finite());
    }
}
