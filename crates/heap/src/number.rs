//! Formats numbers as PHP does in JSON.

use crate::sink::ValueKind;

/// The shortest text that parses as the same number. Source: PHP 8.2, `json_encode`: an exponent below 1e-4 and from
/// 1e17 on, with a fraction before it; reli for numbers that JSON lacks, as in the recorded files.
pub(crate) fn float_text(number: f64) -> (String, ValueKind) {
    if number.is_nan() {
        return ("[\"nan\"]".to_owned(), ValueKind::Json);
    }
    if number.is_infinite() {
        let sign = if number < 0.0 { "-" } else { "" };
        return (format!("[\"{sign}infinity\"]"), ValueKind::Json);
    }
    if number == 0.0 || (1e-4..1e17).contains(&number.abs()) {
        return (number.to_string(), ValueKind::Float);
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let fraction = if mantissa.contains('.') { "" } else { ".0" };
    (format!("{mantissa}{fraction}e{exponent:+}"), ValueKind::Float)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts are the output of PHP 8.2.
    #[test]
    fn fractions_are_written_as_php_does() {
        let php = [
            (1e14, "100000000000000"),
            (1e16, "10000000000000000"),
            (1e17, "1.0e+17"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (0.0001, "0.0001"),
            (-0.0, "-0"),
            (99_999_999_999_999_984.0, "99999999999999980"),
            (0.00001, "1.0e-5"),
            (1.0, "1"),
            (100_000.5, "100000.5"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "[\"nan\"]"),
            (f64::INFINITY, "[\"infinity\"]"),
        ];
        for (number, text) in php {
            assert_eq!(float_text(number).0, text);
        }
    }
}
