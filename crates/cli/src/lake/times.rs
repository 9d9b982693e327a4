//! Times as users write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::values::duration;

/// Parses a time such as `2026-11-22`, `2026-11-22T10:30` or `2026-11-22T10:30:00Z`, or an age such as `30m`, `12h` or `7d`, into
/// microseconds since 1970 (UTC).
pub(super) fn instant(text: &str) -> Result<i64, String> {
    // A number without a unit may be meant as a year.
    let has_unit = text.ends_with(|letter: char| letter.is_ascii_alphabetic());
    if let Some(ago) = duration(text).ok().filter(|_| has_unit) {
        return Ok(now_us().saturating_sub(us(ago)));
    }
    let known =
        "expected a time such as 2026-11-22, 2026-11-22T10:30 or 2026-11-22T10:30:00Z, or an age such as 7d";
    borehole_query::parse_time_us(text).ok_or_else(|| known.to_owned())
}

/// Whole microseconds, as lakes count time.
pub(super) fn us(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Parses a time range `FROM..TO`, either end of which may be missing.
pub(super) fn range(text: &str) -> Result<(Option<i64>, Option<i64>), String> {
    let (from, to) =
        text.split_once("..").ok_or("expected a time range such as 2026-11-20..2026-11-21 or 2d..1d")?;
    let end = |text: &str| if text.is_empty() { Ok(None) } else { instant(text).map(Some) };
    match (end(from)?, end(to)?) {
        (Some(from_us), Some(to_us)) if from_us >= to_us => {
            Err(format!("expected a start before the end, found {from}"))
        }
        ends => Ok(ends),
    }
}

fn now_us() -> i64 {
    us(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_ago_has_a_unit() {
        for (text, ago_us) in [("30s", 30_000_000), ("1.5h", 5_400_000_000), ("7d", 604_800_000_000)] {
            let then = instant(text).unwrap();
            let since = now_us() - then;
            assert!((ago_us..ago_us + 60_000_000).contains(&since), "{text}: {since}");
        }
        for text in ["", "7", "d", "-1d", "7w"] {
            assert!(instant(text).is_err(), "{text}");
        }
        // A year, or invalid; but not an age in seconds.
        assert!(instant("2026").is_err());
    }

    #[test]
    fn a_range_has_two_ends_that_may_be_open() {
        let (from, to) = range("2026-11-20..2026-11-21T12:00").unwrap();
        assert_eq!(to.unwrap() - from.unwrap(), 36 * 3_600_000_000);
        assert_eq!(range("..2026-11-20").unwrap(), (None, from));
        assert!(range("2026-11-20").is_err());
        assert!(range("1d..2d").unwrap_err().ends_with("found 1d"));
    }
}
