//! Times as people write them.

use chrono::{DateTime, NaiveDate, NaiveDateTime};

/// Microseconds since 1970 of a day, `2026-11-22`, or of a moment, `2026-11-22T10:30`, `2026-11-22 10:30:00` or
/// `2026-11-22T10:30:00+01:00`; without a zone it is UTC. `None` where it is neither.
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
}
