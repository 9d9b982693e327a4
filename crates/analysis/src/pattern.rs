//! Patterns that select frames.

use std::{error, fmt};

use regex::bytes::{Regex, RegexBuilder};

/// A regular expression over the text of a frame.
///
/// Names are bytes, so a pattern is compiled for bytes first: `.` is any byte, `\w` is ASCII. If that is not possible, as with
/// `\p{Greek}` or `[éè]`, it is compiled for UTF-8.
///
/// # Examples
///
/// ```
/// use borehole_analysis::Pattern;
///
/// let pattern = Pattern::new(r"^App\\Db::")?;
/// assert!(pattern.is_match(br"App\Db::query /app/Db.php:12"));
/// assert!(!pattern.is_match(br"Other\App\Db::query"));
/// # Ok::<(), borehole_analysis::PatternError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles `source`.
    ///
    /// # Errors
    /// If it is not a regular expression, or needs look-around or back-references.
    pub fn new(source: &str) -> Result<Self, PatternError> {
        let bytes = RegexBuilder::new(source).unicode(false).build();
        let either = bytes.or_else(|_| RegexBuilder::new(source).build());
        either.map(Self).map_err(|error| PatternError { source: source.into(), reason: reason(&error) })
    }

    /// Whether the pattern is found anywhere in `text`.
    #[must_use]
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }

    /// The pattern as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// The reason in an error of the engine: the last of its lines.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).trim_end_matches('.').to_owned()
}

/// An invalid pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    source: String,
    reason: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid pattern '{}': {}", self.source, self.reason)
    }
}

impl error::Error for PatternError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(source: &str) -> String {
        Pattern::new(source).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_pattern_and_the_reason() {
        assert_eq!(error("foo("), "invalid pattern 'foo(': unclosed group");
        assert_eq!(error(r"(?<=a)b"), {
            "invalid pattern '(?<=a)b': look-around, including look-ahead and look-behind, is not supported"
        });
        assert_eq!(error(r"(a)\1"), r"invalid pattern '(a)\1': backreferences are not supported");
        assert!(error(r"(\w{1000}){1000}").starts_with(r"invalid pattern '(\w{1000}){1000}': "));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_matched() {
        assert!(Pattern::new("a.b").unwrap().is_match(b"a\xffb"));
        assert!(Pattern::new("^[^:]+::run$").unwrap().is_match(b"\xe9t\xe9::run"));
        assert!(Pattern::new(r"\xff").unwrap().is_match(b"\xff"));
    }

    #[test]
    fn characters_are_matched_where_bytes_would_not_do() {
        assert!(Pattern::new("été").unwrap().is_match("un été".as_bytes()));
        assert!(Pattern::new("[éè]t").unwrap().is_match("été".as_bytes()));
        assert!(!Pattern::new("^[éè]t").unwrap().is_match("àt".as_bytes()));
    }

    #[test]
    fn delimiters_of_the_other_program_need_no_escape() {
        assert!(Pattern::new("a#b/c").unwrap().is_match(b"a#b/c"));
        assert!(Pattern::new(r"^Symfony\\|^Laminas\\").unwrap().is_match(br"Laminas\Mvc"));
    }
}
