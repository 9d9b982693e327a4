//! The texts that name frames of unprocessed profiles.
//!
//! Source: Firefox Profiler, `src/profile-logic/process-profile.ts`: addresses, functions of JavaScript and of native code.

/// The parts of a frame's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawLocation<'a> {
    /// An address in the memory of the process.
    Address(u64),
    /// `FUNCTION (in LIBRARY) (+ BYTES)`.
    Native { function: &'a str, library: &'a str },
    /// `FUNCTION (URL:LINE:COLUMN)`, or without a function. The position is that of the function.
    Script { function: Option<&'a str>, file: &'a str, line: Option<i64>, column: Option<u32> },
    /// A label.
    Name(&'a str),
}

impl<'a> RawLocation<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        if let Some(address) = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok())
        {
            return Self::Address(address);
        }
        native(text).or_else(|| script(text)).unwrap_or_else(|| Self::Name(script_name(text)))
    }
}

fn native(text: &str) -> Option<RawLocation<'_>> {
    let (rest, offset) = text.strip_suffix(')')?.rsplit_once(" (+ ")?;
    let (function, library) = rest.strip_suffix(')')?.rsplit_once(" (in ")?;
    offset.bytes().all(|byte| byte.is_ascii_digit()).then_some(RawLocation::Native { function, library })
}

fn script(text: &str) -> Option<RawLocation<'_>> {
    let text = without_source(text);
    let inside = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
    let (function, place) = match inside {
        Some((function, place)) => (Some(function), place),
        None => (None, text),
    };
    let (rest, last) = numbered(place)?;
    let (file, line, column) = match numbered(rest) {
        Some((file, line)) => (file, line, u32::try_from(last).ok()),
        None => (rest, last, None),
    };
    // The names of labels may end in a number, too.
    let is_place = function.is_some() || file.contains("://");
    is_place.then_some(RawLocation::Script {
        function,
        file,
        line: Some(line).filter(|&line| line > 0),
        column,
    })
}

/// The name of a label, or of a script as a whole.
fn script_name(text: &str) -> &str {
    if text.contains("://") { without_source(text) } else { text }
}

/// A text without the number of its source, which newer versions put at its end in brackets.
fn without_source(text: &str) -> &str {
    let inside = text.strip_suffix(']').and_then(|text| text.rsplit_once('['));
    match inside {
        Some((rest, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            rest
        }
        _ => text,
    }
}

/// Splits a number from the end, behind a colon.
fn numbered(text: &str) -> Option<(&str, i64)> {
    let (rest, number) = text.rsplit_once(':')?;
    let is_number =
        !rest.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((rest, number.parse().ok().filter(|_| is_number)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_frames_are_told_apart() {
        let script = |function, file, line, column| RawLocation::Script { function, file, line, column };
        for (text, location) in [
            ("0x7fe08b115d5b", RawLocation::Address(0x7fe0_8b11_5d5b)),
            (
                "f(int) (in libxul.so) (+ 12)",
                RawLocation::Native { function: "f(int)", library: "libxul.so" },
            ),
            (
                "tick (file:///app/a.html:4:26)[8]",
                script(Some("tick"), "file:///app/a.html", Some(4), Some(26)),
            ),
            ("f (self-hosted:780:27)", script(Some("f"), "self-hosted", Some(780), Some(27))),
            ("a/b< (chrome://x/y.js:3)", script(Some("a/b<"), "chrome://x/y.js", Some(3), None)),
            ("https://x.org:8080/a.js:7:1", script(None, "https://x.org:8080/a.js", Some(7), Some(1))),
            ("(root)", RawLocation::Name("(root)")),
            ("js::RunScript", RawLocation::Name("js::RunScript")),
            ("Reflow x:3", RawLocation::Name("Reflow x:3")),
            ("file:///app/a.html[9]", RawLocation::Name("file:///app/a.html")),
            ("a[9]", RawLocation::Name("a[9]")),
            ("0xg", RawLocation::Name("0xg")),
            ("", RawLocation::Name("")),
        ] {
            assert_eq!(RawLocation::parse(text), location, "{text}");
        }
    }
}
