//! Times as people write them, and spans of time.

use chrono::{DateTime, NaiveDate, NaiveDateTime};

/// Parses a day, `2026-11-22`, or a moment, `2026-11-22T10:30`, `2026-11-22 10:30:00` or `2026-11-22T10:30:00+01:00`, as
/// microseconds since 1970 (UTC). Times without a zone are in UTC. `None` if it is neither.
#[must_use]
pub fn parse_time_us(text: &str) -> Option<i64> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp_micros());
    }
    let text = text.strip_suffix('Z').unwrap_or(text);
    let moments = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    let moment = moments.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0);
    Some(moment.or_else(day)?.and_utc().timestamp_micros())
}

/// Formats microseconds since 1970 (UTC) as `2026-11-22T10:30:00Z`, without fractions of a second.
#[must_use]
pub fn format_time_us(time_us: i64) -> String {
    let time = DateTime::from_timestamp_micros(time_us).unwrap_or_default();
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The shortest span that covers two spans, each a first and a last time.
pub(crate) fn joined(one: (i64, i64), other: (i64, i64)) -> (i64, i64) {
    (one.0.min(other.0), one.1.max(other.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_zone_is_utc() {
        let noon = 1_795_348_800_000_000;
        let texts =
            ["2026-11-22T12:00", "2026-11-22T12:00Z", "2026-11-22 12:00:00", "2026-11-22T13:00:00+01:00"];
        assert_eq!(texts.map(parse_time_us), [Some(noon); 4]);
        assert_eq!(parse_time_us("2026-11-22"), Some(noon - 12 * 3_600_000_000));
        assert_eq!(["", "yesterday", "2026-13-01", "12:00"].map(parse_time_us), [None; 4]);
    }

    #[test]
    fn times_before_1970_are_parsed_and_formatted() {
        let texts = ["1969-12-31T00:00:00Z", "2026-11-22T10:30:07Z", "0001-01-01T00:00:00Z"];
        assert_eq!(texts.map(|text| format_time_us(parse_time_us(text).unwrap())), texts);
        assert_eq!(format_time_us(-1), "1969-12-31T23:59:59Z");
    }
}
