//! Times as users write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::values::duration;

/// Microseconds since 1970 (UTC) of `2026-11-22`, `2026-11-22T10:30`, `2026-11-22T10:30:00Z` or, so long ago, `30m`, `12h`, `7d`.
pub(super) fn instant(text: &str) -> Result<i64, String> {
    // A number alone may be meant for a year.
    let has_unit = text.ends_with(|letter: char| letter.is_ascii_alphabetic());
    if let Some(ago) = duration(text).ok().filter(|_| has_unit) {
        return Ok(now_us().saturating_sub(us(ago)));
    }
    let known = "expected a time such as 2026-11-22, 2026-11-22T10:30 or 2026-11-22T10:30:00Z, or how long ago, such as 7d";
    borehole_query::parse_time_us(text).ok_or_else(|| known.to_owned())
}

/// Whole microseconds, as lakes count time.
pub(super) fn us(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// A stretch of time as `FROM..TO`; either may be missing.
pub(super) fn stretch(text: &str) -> Result<(Option<i64>, Option<i64>), String> {
    let (from, to) =
        text.split_once("..").ok_or("expected a stretch of time such as 2026-11-20..2026-11-21 or 2d..1d")?;
    let end = |text: &str| if text.is_empty() { Ok(None) } else { instant(text).map(Some) };
    match (end(from)?, end(to)?) {
        (Some(from_us), Some(to_us)) if from_us >= to_us => {
            Err(format!("expected a time before the one that ends the stretch, found {from}"))
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
        // A year or nothing, but not so many seconds ago.
        assert!(instant("2026").is_err());
    }

    #[test]
    fn a_stretch_has_two_ends_that_may_be_open() {
        let (from, to) = stretch("2026-11-20..2026-11-21T12:00").unwrap();
        assert_eq!(to.unwrap() - from.unwrap(), 36 * 3_600_000_000);
        assert_eq!(stretch("..2026-11-20").unwrap(), (None, from));
        assert!(stretch("2026-11-20").is_err());
        assert!(stretch("1d..2d").unwrap_err().ends_with("found 1d"));
    }
}
