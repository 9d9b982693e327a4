//! Parses one line of folded stacks.

use super::convention::Measured;
use crate::lines::text::excerpt;

/// A stack and its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CountedStack<'a> {
    /// The frames, from the root, separated by semicolons. Empty for the empty stack.
    pub(super) stack: &'a [u8],
    pub(super) count: u64,
    pub(super) oddity: Option<CountOddity>,
}

/// A property of a line that a profile cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountOddity {
    /// The count has a fraction; it was rounded, half up.
    Fraction,
    /// There are two counts, before and after; the first was dropped, as in flame graphs.
    Differential,
}

/// Parses a line; `None` for a blank line and for a comment.
pub(super) fn parse(line: &[u8]) -> Result<Option<CountedStack<'_>>, String> {
    let Some(text) = content(line) else { return Ok(None) };
    let (stack, count) = split_last_word(text).ok_or_else(|| missing_count(line))?;
    let ParsedCount { value: count, is_fraction } = number(count).ok_or_else(|| missing_count(line))??;
    let fraction = is_fraction.then_some(CountOddity::Fraction);
    let (stack, differential) = without_first_count(stack);
    Ok(Some(CountedStack { stack, count, oddity: differential.or(fraction) }))
}

/// Like [`parse`], for a line with measured values instead of a count.
pub(super) fn parse_measured<'a>(
    line: &'a [u8],
    measured: Measured,
    values: &mut Vec<i64>,
) -> Result<Option<CountedStack<'a>>, String> {
    let Some(text) = content(line) else { return Ok(None) };
    let parts = split_last_word(text).filter(|(_, numbers)| measured.parse(numbers, values));
    let (stack, _) = parts.ok_or_else(|| missing_count(line))?;
    Ok(Some(CountedStack { stack, count: 1, oddity: None }))
}

/// A line without the white space at its end; `None` for a blank line and for a comment (`#` and a space).
fn content(line: &[u8]) -> Option<&[u8]> {
    let text = line.trim_ascii_end();
    let is_skipped = text.is_empty() || text.starts_with(b"# ") || text == b"#";
    (!is_skipped).then_some(text)
}

/// The last word, and the text before it without the white space between them.
pub(super) fn split_last_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memrchr2(b' ', b'\t', text)?;
    Some((text[..space].trim_ascii_end(), &text[space + 1..]))
}

fn without_first_count(stack: &[u8]) -> (&[u8], Option<CountOddity>) {
    match split_last_word(stack) {
        Some((before, word)) if !before.is_empty() && number(word).is_some() => {
            (before, Some(CountOddity::Differential))
        }
        _ => (stack, None),
    }
}

struct ParsedCount {
    value: u64,
    is_fraction: bool,
}

/// Parses a count: digits, optionally a point and more digits; `None` for another word.
fn number(word: &[u8]) -> Option<Result<ParsedCount, String>> {
    let point = word.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(word.len());
    let (digits, fraction) = word.split_at(point);
    let is_fraction = !fraction.is_empty();
    let is_number = !digits.is_empty() && (!is_fraction || is_fractional_part(fraction));
    is_number.then(|| {
        let half = u64::from(fraction.get(1).is_some_and(|&first| first >= b'5'));
        let value = whole(digits).and_then(|whole| whole.checked_add(half));
        value.map(|value| ParsedCount { value, is_fraction }).ok_or_else(|| too_large(word))
    })
}

fn is_fractional_part(text: &[u8]) -> bool {
    text[0] == b'.' && text[1..].iter().all(u8::is_ascii_digit)
}

fn whole(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

#[cold]
fn missing_count(line: &[u8]) -> String {
    format!("expected a stack and a count, found {:?}", excerpt(line))
}

#[cold]
fn too_large(word: &[u8]) -> String {
    format!("count too large: expected at most {}, found {}", u64::MAX, excerpt(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (&str, u64, Option<CountOddity>) {
        let line = parse(line.as_bytes()).expect("a good line").expect("a stack");
        (std::str::from_utf8(line.stack).unwrap(), line.count, line.oddity)
    }

    #[test]
    fn the_last_word_is_the_count() {
        assert_eq!(read("a;b;c 12"), ("a;b;c", 12, None));
        assert_eq!(
            read("main /my dir/a.php:3;f <internal>:-1 7"),
            ("main /my dir/a.php:3;f <internal>:-1", 7, None)
        );
    }

    #[test]
    fn a_tab_or_several_spaces_may_stand_before_the_count() {
        assert_eq!(read("a;b\t12"), ("a;b", 12, None));
        assert_eq!(read("a;b   12"), ("a;b", 12, None));
    }

    #[test]
    fn a_line_may_end_with_white_space() {
        assert_eq!(read("a;b 12\r"), ("a;b", 12, None));
        assert_eq!(read("a;b 12  "), ("a;b", 12, None));
    }

    #[test]
    fn a_count_alone_after_a_space_is_the_empty_stack() {
        assert_eq!(read(" 4"), ("", 4, None));
    }

    #[test]
    fn annotations_stay_in_the_name() {
        assert_eq!(read("a_[j];b_[k] 1"), ("a_[j];b_[k]", 1, None));
    }

    #[test]
    fn blank_lines_and_comments_are_skipped() {
        for line in ["", "  ", "\r", "#", "# a;b 12"] {
            assert_eq!(parse(line.as_bytes()), Ok(None), "{line:?}");
        }
        assert_eq!(read("#a;b 12"), ("#a;b", 12, None));
    }

    #[test]
    fn a_fraction_is_rounded_half_up() {
        assert_eq!(read("a 12.4"), ("a", 12, Some(CountOddity::Fraction)));
        assert_eq!(read("a 12.5"), ("a", 13, Some(CountOddity::Fraction)));
        assert_eq!(read("a 12."), ("a", 12, Some(CountOddity::Fraction)));
    }

    #[test]
    fn the_second_of_two_counts_is_used() {
        assert_eq!(read("a;b 1 2"), ("a;b", 2, Some(CountOddity::Differential)));
    }

    #[test]
    fn a_missing_count_is_an_error() {
        for line in ["a;b", "a;b c", "a;b -3", "a;b 1e3", "a;b .5", "12"] {
            let message = parse(line.as_bytes()).unwrap_err();
            assert_eq!(message, format!("expected a stack and a count, found {line:?}"));
        }
    }

    #[test]
    fn a_count_that_does_not_fit_is_an_error() {
        assert_eq!(read("a 18446744073709551615").1, u64::MAX);
        for count in ["18446744073709551616", "18446744073709551615.5"] {
            let message = parse(format!("a {count}").as_bytes()).unwrap_err();
            assert!(message.starts_with("count too large"), "{message}");
        }
    }
}
