//! Times as users write them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970 (UTC) of `2026-11-22`, `2026-11-22T10:30`, `2026-11-22T10:30:00Z` or, so long ago, `30m`, `12h`, `7d`.
pub(super) fn instant(text: &str) -> Result<i64, String> {
    if let Some(ago_us) = duration(text).ok().filter(|_| !text.contains('-')) {
        return Ok(now_us().saturating_sub(ago_us));
    }
    let known = "expected a time such as 2026-11-22, 2026-11-22T10:30 or 2026-11-22T10:30:00Z, or how long ago, such as 7d";
    borehole_query::parse_time_us(text).ok_or_else(|| known.to_owned())
}

/// Microseconds of `30s`, `15m`, `12h` or `7d`.
pub(super) fn duration(text: &str) -> Result<i64, String> {
    let wrong = || "expected a duration such as 30s, 15m, 12h or 7d".to_owned();
    let (number, unit) = text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let number: i64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds * 1_000_000).filter(|&us| us > 0).ok_or_else(wrong)
}

/// A stretch of time as `FROM..TO`; either may be missing.
pub(super) fn stretch(text: &str) -> Result<(Option<i64>, Option<i64>), String> {
    let (from, to) =
        text.split_once("..").ok_or("expected a stretch of time such as 2026-11-20..2026-11-21 or 2d..1d")?;
    let end = |text: &str| if text.is_empty() { Ok(None) } else { instant(text).map(Some) };
    Ok((end(from)?, end(to)?))
}

fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(
            ["30s", "15m", "2h", "7d"].map(duration),
            [30, 900, 7200, 604_800].map(|s| Ok(s * 1_000_000))
        );
        for wrong in ["", "7", "d", "-1d", "1.5h", "7w", "9223372036854775807d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_stretch_has_two_ends_that_may_be_open() {
        let (from, to) = stretch("2026-11-20..2026-11-21T12:00").unwrap();
        assert_eq!(to.unwrap() - from.unwrap(), 36 * 3_600_000_000);
        assert_eq!(stretch("..2026-11-20").unwrap(), (None, from));
        assert!(stretch("2026-11-20").is_err());
    }
}
