//! Parsers for option values that several commands share.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{anyhow, bail};
use borehole::heap::NodeId;
use borehole_text::grouped;

/// The maximum number of rows of a table; `0` for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowLimit(usize);

impl RowLimit {
    pub(crate) const fn new(count: usize) -> Self {
        Self(count)
    }

    /// The maximum as a number.
    pub(crate) const fn count(self) -> usize {
        if self.0 == 0 { usize::MAX } else { self.0 }
    }

    /// The maximum; `None` for all.
    pub(crate) fn as_option(self) -> Option<usize> {
        Some(self.0).filter(|&count| count > 0)
    }
}

impl FromStr for RowLimit {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for RowLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// How many rows of a table are shown; `None` if all are.
pub(crate) fn cut(shown: u64, of: u64) -> Option<String> {
    cut_by(shown, of, Some("--limit"))
}

/// Like [`cut`], for a command whose option for the number of rows is called `option`; `None` if it has none.
pub(crate) fn cut_by(shown: u64, of: u64, option: Option<&str>) -> Option<String> {
    let hint = option.map(|option| format!("; {option} 0 for all")).unwrap_or_default();
    (shown < of).then(|| format!("{} of {} shown{hint}", grouped(shown), grouped(of)))
}

/// Parses a duration: a number with a unit, or of seconds.
pub(crate) fn duration(text: &str) -> anyhow::Result<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let expected = || anyhow!("expected a duration such as 30s, found {text}");
    let number: f64 = digits.parse().map_err(|_| expected())?;
    let seconds = match &text[digits.len()..] {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        unit => bail!("expected the unit ms, s, m, h or d, found {unit}"),
    };
    let duration = Duration::try_from_secs_f64((number * seconds).max(0.0)).map_err(|_| expected())?;
    if duration.is_zero() {
        bail!("expected a duration above 0, found {text}");
    }
    Ok(duration)
}

/// Parses a percentage, with or without the sign.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    let number = number.ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("expected a percentage such as 5%, found {text}"))
}

/// Parses a size in bytes, such as `4096`, `64K`, `64M` or `2G`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix(['B', 'b']).unwrap_or(text);
    let (digits, shift) = match number.char_indices().last() {
        Some((end, 'K' | 'k')) => (&number[..end], 10),
        Some((end, 'M' | 'm')) => (&number[..end], 20),
        Some((end, 'G' | 'g')) => (&number[..end], 30),
        _ => (number, 0),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(1_u64 << shift));
    bytes.ok_or_else(|| format!("expected a size such as 64M, found {text}"))
}

/// A memory limit as PHP's `memory_limit` takes it: a size, or -1 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryLimit;

impl FromStr for MemoryLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_limit = text == "-1" || size(text).is_ok();
        is_limit.then_some(Self).ok_or_else(|| format!("expected a size such as 2G, or -1, found {text}"))
    }
}

/// Parses a node of a heap, such as `#17` or `17`.
pub(crate) fn node(text: &str) -> Result<NodeId, String> {
    text.parse().map_err(|_| format!("expected a node such as #17, found {text}"))
}

/// Parses an address in hexadecimal digits, with or without `0x`.
pub(crate) fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| format!("expected a hexadecimal address, found {text}"))
}

/// Parses `KEY=VALUE`. The value may be empty, and contain equals signs.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = parts.ok_or_else(|| format!("expected KEY=VALUE, found {text}"))?;
    Ok((key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, ms) in [("250ms", 250), ("3", 3000), ("30s", 30_000), ("1.5m", 90_000), ("1h", 3_600_000)]
        {
            assert_eq!(duration(text).unwrap(), Duration::from_millis(ms), "{text}");
        }
        for text in ["", "s", "0s", "-1s", "3 weeks", "1y", "1e400", "nan"] {
            assert!(duration(text).is_err(), "{text}");
        }
        let said = ["-1s", "-n", "1e400"].map(|text| duration(text).unwrap_err().to_string());
        let such = "expected a duration such as 30s, found";
        let expected = [
            "expected a duration above 0, found -1s".to_owned(),
            format!("{such} -n"),
            format!("{such} 1e400"),
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn no_rows_are_all_rows() {
        let rows = ["0", "7"].map(|text| text.parse::<RowLimit>().unwrap());
        assert_eq!(rows.map(RowLimit::count), [usize::MAX, 7]);
        assert_eq!(rows.map(RowLimit::as_option), [None, Some(7)]);
        assert_eq!(rows.map(|rows| rows.to_string()), ["0", "7"]);
    }

    #[test]
    fn per_cent_need_no_sign() {
        assert_eq!(["5", "5%", "0.5 %"].map(percent), [Ok(5.0), Ok(5.0), Ok(0.5)]);
        for text in ["", "%", "-1", "nan", "inf", "five"] {
            assert!(percent(text).unwrap_err().ends_with(&format!("found {text}")), "{text}");
        }
    }

    #[test]
    fn sizes_may_have_units() {
        for (text, bytes) in [("4096", 4096), ("1k", 1024), ("64M", 64 << 20), ("2GB", 2 << 30), ("0", 0)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "garbage", "-1", "1.5G", "1T", "99999999999G"] {
            assert_eq!(size(text), Err(format!("expected a size such as 64M, found {text}")));
            assert_eq!(text.parse::<MemoryLimit>().is_ok(), text == "-1", "{text}");
        }
        assert_eq!("128M".parse(), Ok(MemoryLimit));
    }

    #[test]
    fn a_pair_has_a_key() {
        let both = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(
            [pair("a=b"), pair("a="), pair("a=b=c")],
            [both("a", "b"), both("a", ""), both("a", "b=c")]
        );
        for text in ["", "a", "=b"] {
            assert_eq!(pair(text), Err(format!("expected KEY=VALUE, found {text}")));
        }
    }
}
